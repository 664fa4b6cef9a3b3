"""Tables as people have them: separators, headers, text, missing values; models of them, and their
files.
"""

import numpy as np
import pandas as pd
import pytest

from gpattr import Explainer, RandomFeatureGPRegressor, SparseGPRegressor
from gpattr._core import documents
from gpattr.exceptions import FileFormatError, InvalidInputError
from gpattr.tables import Columns, TableModel, held_out, read_table
from gpattr.tables.held_out import HeldOut
from gpattr.tables.stream import Stream

ROWS = [
    ("72", "3,5", "red"),
    ("80.5", "4", "blue"),
    ("64", "2,5", "red"),
    ("90", "1", "green"),
    ("71", "0,5", "blue"),
    ("60", "2", "red"),
]


def written(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def table(folder, separator=";", header="weight;dose;color", rows=ROWS):
    lines = [
        header.replace(";", separator),
        *(
            separator.join(f'"{cell}"' if separator in cell else cell for cell in row)
            for row in rows
        ),
    ]
    return written(folder, "\n".join(lines) + "\n")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_usual_separator(tmp_path, separator):
    frame = read_table(table(tmp_path, separator))
    assert list(frame.columns) == ["weight", "dose", "color"]
    columns = Columns.of(frame, "weight")
    assert columns == Columns(("dose", "color"), {"color": ("blue", "green", "red")}, "weight")
    features = columns.features(frame)
    np.testing.assert_array_equal(features["dose"], [3.5, 4.0, 2.5, 1.0, 0.5, 2.0])
    assert list(features["color"][:2]) == ["red", "blue"]
    assert list(features.index) == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(columns.targets(frame), [72.0, 80.5, 64.0, 90.0, 71.0, 60.0])


def test_spaces_quotes_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes('\ufeff"a, b" , c\r\n 1 ,2\r\n\r\n3, 4 \r\n'.encode())
    frame = read_table(path)
    assert list(frame.columns) == ["a, b", "c"]
    assert frame.to_numpy().tolist() == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a line of column names and rows below it, got 0 lines"),
        ("a,b\n", "rows below it, got 1 line"),
        (
            "a b c\n1 2 3\n",
            (
                "expected at least 2 columns, got 1; columns are separated by comma, semicolon,"
                " tab, bar"
            ),
        ),
        ("1,2\n3,4\n", "expected column names in the first line, got numbers: 1, 2"),
        ("a,a\n1,2\n", "expected different column names, got 'a' more than once"),
        ("a,,c\n1,2,3\n", "expected a name for every column, got none for column 2"),
        ("a,b\n1,2\n3\n", "expected 2 columns in line 3, got 1; columns are separated by commas"),
        ("a,b\n1,\0\n", "expected text, got a binary file"),
    ],
)
def test_files_that_are_no_tables(tmp_path, text, words):
    with pytest.raises(InvalidInputError, match=words):
        read_table(written(tmp_path, text))


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,b\n1,2\n".encode("cp1252"))
    frame = read_table(path)
    assert list(frame.columns) == ["größe", "b"]
    assert frame.attrs["notes"] == [
        "The file is not UTF-8 and was read as Windows-1252: check special characters."
    ]
    path.write_bytes("größe,b\n1,2\n".encode("utf-16"))
    with pytest.raises(InvalidInputError, match="expected text, got a binary file"):
        read_table(path)


def test_an_index_that_was_written_along_is_left_out(tmp_path):
    frame = read_table(written(tmp_path, ",a,b\n0,1,2\n1,3,4\n"))
    assert list(frame.columns) == ["a", "b"]
    assert frame.attrs["notes"] == ["The first column was left out because it has no name."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n2.326,92;1\n926,5;2\n", [2326.92, 926.5]),
        ('a,b\n"1,234.5",1\n"2,000",2\n', [1234.5, 2000.0]),
        ('a,b\n"1,234,567",1\n"2,000",2\n', [1234567.0, 2000.0]),
        ('a,b\n"0,250",1\n"2,375",2\n', [0.25, 2.375]),
        ("a;b\n1,234;1\n2,5;2\n", [1.234, 2.5]),
        ("a (m, net);b (x, y)\n1,5;2\n2,5;3\n", [1.5, 2.5]),
        ('"a\nin m";b\n1,5;2\n2,5;3\n', [1.5, 2.5]),
    ],
)
def test_points_commas_and_thousands(tmp_path, text, expected):
    frame = read_table(written(tmp_path, text))
    columns = Columns.of(frame, frame.columns[1])
    assert columns.features(frame).iloc[:, 0].tolist() == expected


def test_numbers_that_can_be_read_in_two_ways(tmp_path):
    with pytest.raises(
        InvalidInputError, match="numbers such as '1,234' in column 'a' are ambiguous"
    ):
        read_table(written(tmp_path, 'a,b\n"1,234",1\n"2,500",2\n'))


def test_cells_without_end_and_folders(tmp_path):
    with pytest.raises(
        InvalidInputError, match="cannot be read as CSV: field larger than field limit"
    ):
        read_table(written(tmp_path, "a,b\n" + "x" * 200_000 + ",2\n"))
    with pytest.raises(InvalidInputError, match="expected a file, got a folder"):
        read_table(tmp_path)
    with pytest.raises(FileFormatError, match="expected a file, got a folder"):
        TableModel.load(tmp_path)


def test_columns_that_are_dropped():
    frame = pd.DataFrame(
        {"rise": ["20 %", "−6 %", "3,5 %"], "floor": ["1st", "2nd", "3rd"], "y": ["1", "2", "3"]}
    )
    columns = Columns.of(frame, "y", drop=["rise"])
    assert set(columns.categories) == {"floor"}
    assert list(columns.features(frame)) == ["floor"]
    with pytest.raises(InvalidInputError, match="'y' is the target and cannot be left out"):
        Columns.of(frame, "y", drop=["y"])


def test_missing_values_of_other_tables_are_filled_by_what_was_trained_on(prices):
    columns = Columns.of(prices, "price")
    model = TableModel.fit(columns.features(prices), columns.targets(prices), columns)
    assert model.typical == {
        "area": prices["area"].median(),
        "kind": prices["kind"].mode()[0],
        "rooms": prices["rooms"].median(),
    }
    other = pd.DataFrame({"area": ["", "1000"], "kind": ["", ""], "rooms": ["", "2"]})
    filled = columns.features(other, impute=True, typical=model.typical)
    assert filled["area"].tolist() == [prices["area"].median(), 1000.0]
    assert filled["kind"].tolist() == [model.typical["kind"]] * 2
    with pytest.raises(
        InvalidInputError, match="the target cannot be filled in: leave these rows out"
    ):
        columns.targets(prices.assign(price=["", *prices["price"][1:].astype(str)]))


def frame_of(**columns):
    return pd.DataFrame(
        columns, index=range(1, 1 + len(next(iter(columns.values())))), dtype=object
    )


Y = ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"a": ["1", "2", "x", "--4", "5", "6"]},
            "expected a number in column 'a', got 'x' in row 3",
        ),
        (
            {"a": [""] * 6},
            "expected at least one usable column besides the target 'y'; 'a' is empty",
        ),
        ({"a": ["1", "inf", "3", "4", "5", "6"]}, "expected finite numbers in column 'a', got inf"),
    ],
)
def test_columns_that_cannot_be_used(columns, words):
    frame = frame_of(**columns, y=Y)
    with pytest.raises(InvalidInputError, match=words):
        Columns.of(frame, "y").features(frame)


def test_texts_that_are_no_categories():
    frame = frame_of(name=[f"person {i}" for i in range(40)], y=[str(i) for i in range(40)])
    with pytest.raises(
        InvalidInputError, match="besides the target 'y'; 'name' has 40 values, all distinct"
    ):
        Columns.of(frame, "y")
    with pytest.raises(InvalidInputError, match="at least one column besides the target"):
        Columns.of(frame, "y", drop=["name"])


def test_missing_values_are_filled_unless_that_is_refused():
    frame = frame_of(a=["1", "", "3", "5", "NA", "6"], b=["r", "?", "g", "r", "r", "g"], y=Y)
    columns = Columns.of(frame, "y", strict=True)
    features = columns.features(frame)
    np.testing.assert_array_equal(features["a"], [1.0, 4.0, 3.0, 5.0, 4.0, 6.0])
    assert list(features["b"]) == ["r", "r", "g", "r", "r", "g"]
    for options in ({"strict": True}, {"impute": False}):
        with pytest.raises(
            InvalidInputError,
            match="2 values are missing in column 'a', the first in row 2; .* without --strict",
        ):
            columns.features(frame, **options)
        with pytest.raises(
            InvalidInputError, match="1 value is missing in column 'b', the first in row 2"
        ):
            columns.features(frame.assign(a=Y), **options)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1"] * 6, "expected targets that differ, got 1 in every row of 'y'"),
        (["1", "2", "3"], "expected at least 5 rows to learn from, got 3"),
        (["1", "2", "", "4", "5"], "1 value is missing in column 'y', the first in row 3"),
        (["a", "b", "c", "a", "b"], "expected a number in column 'y', got 'a' in row 1"),
    ],
)
def test_targets_that_cannot_be_learned(values, words):
    frame = frame_of(a=[str(i) for i in range(len(values))], y=values)
    with pytest.raises(InvalidInputError, match=words):
        Columns.of(frame, "y").targets(frame)
    with pytest.raises(
        InvalidInputError, match=r"expected a column 'z'; the columns are \['a', 'y'\]"
    ):
        Columns.of(frame, "z")


def test_other_tables_must_have_the_same_columns():
    frame = frame_of(a=Y, b=["r", "g", "g", "r", "r", "g"], y=Y)
    columns = Columns.of(frame, "y")
    with pytest.raises(
        InvalidInputError, match="expected one of \\['g', 'r'\\] in column 'b', got 'x' in row 2"
    ):
        columns.features(frame_of(a=["1", "2"], b=["r", "x"]))
    with pytest.raises(InvalidInputError, match="missing \\['b'\\]"):
        columns.features(frame_of(a=["1", "2"]))


@pytest.fixture(scope="module")
def prices():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.normal(100, 30, 50),
            "kind": rng.choice(["flat", "house"], 50),
            "rooms": rng.integers(1, 6, 50),
        }
    )
    frame["price"] = 3 * frame["area"] + 40 * (frame["kind"] == "house") + rng.normal(0, 5, 50)
    return frame


@pytest.mark.parametrize("estimator", ["exact", "sparse", "random-features"])
def test_models_are_explained_in_the_tables_columns_and_kept_in_files(tmp_path, prices, estimator):
    columns = Columns.of(prices, "price")
    X, y = columns.features(prices), columns.targets(prices)
    model = TableModel.fit(X, y, columns, estimator=estimator)
    ex = Explainer(model.posterior)(X[:4])
    assert ex.feature_names == ("area", "kind", "rooms")
    np.testing.assert_allclose(ex.predictions, model.predict(X[:4]), rtol=1e-10)
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-6)
    model.save(tmp_path / "model.json")
    again = TableModel.load(tmp_path / "model.json")
    np.testing.assert_allclose(
        Explainer(again.posterior)(X[:4]).values, ex.values, rtol=1e-9, atol=1e-9
    )
    assert again.columns == columns
    assert again.held_out == model.held_out
    assert model.held_out is not None


@pytest.mark.parametrize("most", [1000, 20])
@pytest.mark.parametrize("estimator", ["sparse", "random-features"])
def test_rows_are_held_out_of_approximate_models(monkeypatch, prices, estimator, most):
    """The posterior is formed without them, with all else as it was learned; each row once, or some
    of many rows.
    """
    monkeypatch.setattr(held_out, "MOST", most)
    prices = prices.drop(columns="kind")
    columns = Columns.of(prices, "price")
    X, y = columns.features(prices), columns.targets(prices)
    model = TableModel.fit(X, y, columns, estimator=estimator)
    learned = model.regressor
    order = np.random.default_rng(0).permutation(50)
    mean, std, chosen = [], [], order[:most]
    centre = learned.mean_.value
    for part in np.array_split(chosen, len(chosen) // 5):
        others = np.delete(np.arange(50), part)
        options = {
            "kernel": learned.kernel_,
            "noise_variance": learned.noise_variance_,
            "optimize": False,
            "random_state": 0,
            "mean": "zero",
        }
        if estimator == "sparse":
            alone = SparseGPRegressor(inducing=learned.inducing_, **options)
        else:
            alone = RandomFeatureGPRegressor(200, **options)
        found, spread = alone.fit(X.iloc[others], y[others] - centre).predict(
            X.iloc[part], return_std=True
        )
        mean.extend(found + centre)
        std.extend(spread)
    off, std = y[chosen] - mean, np.sqrt(np.square(std) + learned.noise_variance_)
    judged = model.held_out
    assert judged.rows == len(chosen)
    assert judged.score == pytest.approx(
        1 - (off**2).sum() / ((y[chosen] - y[chosen].mean()) ** 2).sum(), rel=1e-9
    )
    assert judged.error == pytest.approx(np.sqrt((off**2).mean()), rel=1e-9)
    assert judged.inside == tuple(
        np.mean(np.abs(off) < z * std) for z in (0.67449, 1.28155, 1.95996)
    )


def test_few_rows_and_files_of_earlier_versions(tmp_path, prices):
    columns = Columns.of(prices, "price")
    X, y = columns.features(prices), columns.targets(prices)
    assert TableModel.fit(X[:19], y[:19], columns, estimator="sparse").held_out is None
    model = TableModel.fit(X, y, columns, estimator="sparse")
    model.save(tmp_path / "model.json")
    content = documents.read("gpattr.table_model", tmp_path / "model.json", lambda content: content)
    del content["held_out"], content["regressor"]["missed_share"]
    documents.write("gpattr.table_model", content, tmp_path / "old.json")
    old = TableModel.load(tmp_path / "old.json")
    assert old.held_out is None
    np.testing.assert_array_equal(old.predict(X), model.predict(X))
    assert HeldOut.of(np.ones(3), np.ones(3), np.ones(3)).score is None


def test_models_that_cannot_be_trained(prices, monkeypatch):
    columns = Columns.of(prices, "price")
    X, y = columns.features(prices), columns.targets(prices)
    with pytest.raises(
        InvalidInputError,
        match="estimator: expected one of exact, sparse, random-features, got 'deep'",
    ):
        TableModel.fit(X, y, columns, estimator="deep")
    with pytest.raises(
        InvalidInputError, match="kernel: expected one of squared-exponential, matern52"
    ):
        TableModel.fit(X, y, columns, kernel="rbf")
    monkeypatch.setattr("gpattr.tables.model.MOST_ROWS", 40)
    with pytest.raises(
        InvalidInputError,
        match="rows: 50 are too many for an exact model .* use --estimator auto",
    ):
        TableModel.fit(X, y, columns)
    same = X.assign(area=1.0, kind="flat", rooms=2.0)
    with pytest.raises(InvalidInputError, match="expected features that vary between rows"):
        TableModel.fit(same[:20], y[:20], columns)


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "model.json"
    path.write_text('{"format": "gpattr.GPRegressor"}')
    with pytest.raises(FileFormatError, match="expected a file of format 'gpattr.table_model'"):
        TableModel.load(path)


@pytest.mark.parametrize("text", [",,\n,,\n", '""\n\n', '" ",\n,\n'])
def test_files_of_nothing_but_separators(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    for read in (read_table, Stream.of):
        with pytest.raises(InvalidInputError, match=r"t\.csv: expected "):
            read(path)
