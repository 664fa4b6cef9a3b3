"""Many categories, identifiers and columns that are almost empty: what is kept, grouped, left out
and said.
"""

import numpy as np
import pandas as pd
import pytest

from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, TableModel
from gpattr.tables.decisions import looks_like_identifier


def frame_of(**columns):
    n = len(next(iter(columns.values())))
    return pd.DataFrame(columns, index=range(1, n + 1)).assign(y=np.arange(n) % 7)


def many(n=600, distinct=60, seed=0):
    rng = np.random.default_rng(seed)
    share = np.arange(distinct, 0, -1.0)
    return rng.choice([f"city {i}" for i in range(distinct)], n, p=share / share.sum()).astype(
        object
    )


def test_the_most_frequent_categories_are_kept():
    frame = frame_of(city=many())
    columns = Columns.of(frame, "y")
    counts = frame["city"].value_counts()
    *kept, other = columns.categories["city"]
    assert len(kept) == 29
    assert other == columns.others["city"] == "other"
    assert counts[kept].min() >= counts.drop(kept).max()
    labels = columns.features(frame)["city"]
    assert (labels == "other").sum() == counts.drop(kept).sum()
    assert (labels[labels != "other"] == frame["city"][labels != "other"]).all()
    rows = int((labels == "other").sum())
    assert columns.notes == (
        (
            "The most frequent categories were kept and the others grouped: city (29 of"
            f" {len(counts)}; {rows} rows are “other”)."
        ),
    )
    assert columns.features(pd.DataFrame({"city": ["nowhere", kept[3]]}))["city"].tolist() == [
        "other",
        kept[3],
    ]
    assert Columns.of_content(columns.to_content()) == columns
    with pytest.raises(
        InvalidInputError,
        match="'city' has 59 distinct values; group them into at most 30 .*without --strict",
    ):
        Columns.of(frame, "y", strict=True)


def test_the_order_of_rows_does_not_matter():
    for city in (many(), [f"city {i % 40}" for i in range(240)]):  # forty cities of the same size
        frame = frame_of(city=city)
        assert (
            Columns.of(frame, "y")
            == Columns.of(frame[::-1], "y")
            == Columns.of(frame.sample(frac=1, random_state=1), "y")
        )


def test_a_category_of_the_table_may_be_called_other():
    city = many()
    city[:40], city[40:60] = "Other", "all others"
    columns = Columns.of(frame_of(city=city), "y")
    assert columns.others == {"city": "all others (2)"}
    assert "Other" in columns.categories["city"]


def test_thirty_categories_are_kept_as_they_are():
    columns = Columns.of(frame_of(city=[f"c{i % 30}" for i in range(60)]), "y", strict=True)
    assert len(columns.categories["city"]) == 30
    assert columns.others == {}
    with pytest.raises(InvalidInputError, match="expected one of"):
        columns.features(pd.DataFrame({"city": ["c31"]}))


def test_rare_texts_have_no_category_of_their_own():
    rare = [f"r{i // 2}" for i in range(80)]
    columns = Columns.of(frame_of(city=[*["often"] * 20, *rare], a=range(100)), "y")
    assert columns.categories == {"city": ("often", "other")}
    columns = Columns.of(frame_of(city=rare, a=range(80)), "y")
    assert columns.names == ("a",)
    assert "city (has 40 distinct values, none in 5 rows or more)" in columns.notes[0]


def test_grouped_categories_are_explained_and_kept_in_files(tmp_path):
    frame = frame_of(city=many(200), a=np.random.default_rng(1).normal(size=200))
    columns = Columns.of(frame, "y")
    model = TableModel.fit(columns.features(frame), columns.targets(frame), columns)
    model.save(tmp_path / "model.json")
    again = TableModel.load(tmp_path / "model.json").columns
    rows = pd.DataFrame({"city": ["new", ""], "a": ["1", "2"]})
    assert again.features(rows, typical=model.typical)["city"].tolist() == [
        "other",
        model.typical["city"],
    ]


def test_ten_thousand_different_texts():
    n = 10_000
    frame = frame_of(text=[f"text {i}" for i in range(n)], a=np.arange(n) % 13)
    columns = Columns.of(frame, "y")
    assert columns.names == ("a",)
    assert columns.left_out == ("text",)
    assert columns.notes == ("Columns left out: text (has 10,000 values, all distinct).",)
    assert (
        list(columns.features(frame)) == list(columns.features(frame.drop(columns="text"))) == ["a"]
    )
    with pytest.raises(
        InvalidInputError, match="the column 'text' has 10,000 values, all distinct; .*--drop text"
    ):
        Columns.of(frame, "y", strict=True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([f"a{i}" for i in range(10)], True),
        ([f"a{i}" for i in range(9)], False),
        ([f"a{i}" for i in range(9)] + ["a0"], False),
        ([f"a{i}" for i in range(95)] + ["a0"] * 5, True),
        ([f"a{i}" for i in range(80)] + ["a0"] * 20, False),
        ([f"a{i}" for i in range(20)] + [""] * 100, True),
        ([], False),
    ],
)
def test_identifiers(values, expected):
    assert looks_like_identifier(pd.Series(values, dtype=object)) == expected


@pytest.mark.parametrize(
    ("name", "values", "remarked"),
    [
        ("a", range(1, 41), True),
        ("a", range(40), True),
        ("year", range(1980, 2020), False),
        ("customer_id", range(500, 900, 10), True),
        ("ID", range(40, 0, -1), True),
        ("caseNo", range(500, 540), True),
        ("grid", range(500, 540), False),
        ("id", [1, 1, *range(38)], False),
        ("id", np.linspace(0, 1, 40), False),
    ],
)
def test_numbers_that_look_like_identifiers_are_kept_and_remarked(name, values, remarked):
    frame = frame_of(**{name: [str(value) for value in values]})
    columns = Columns.of(frame, "y", strict=True)
    assert columns.names == (name,)
    expected = f"{name} looks like an identifier; leave it out with --drop {name}."
    assert columns.notes == ((expected,) if remarked else ())


def test_columns_that_are_almost_empty_are_left_out():
    values = ["1", "2", *[""] * 38]
    frame = frame_of(
        nearly=values, empty=[None] * 40, half=["1", "2"] * 10 + ["NA"] * 20, a=range(5, 45)
    )
    columns = Columns.of(frame, "y")
    assert columns.names == ("half", "a")
    assert columns.notes == ("Columns left out: nearly (is 95% missing), empty (is empty).",)
    with pytest.raises(InvalidInputError, match="the column 'nearly' is 95% missing; fill it in"):
        Columns.of(frame, "y", strict=True)
    assert Columns.of(frame.assign(nearly=["1", "2", "3", *[""] * 37]), "y").names == (
        "nearly",
        "half",
        "a",
    )
    with pytest.raises(
        InvalidInputError,
        match="at least one usable column besides the target 'y'; 'empty' is empty",
    ):
        Columns.of(frame[["empty", "y"]], "y")
