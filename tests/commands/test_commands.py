"""``gpattr fit``, ``explain`` and ``info``: files in, files out, one sentence where something is
wrong, nothing half-written.
"""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpattr import Explainer, Explanation
from gpattr.cli import app
from gpattr.commands import outputs
from gpattr.commands.output import whole_folder
from gpattr.exceptions import InvalidInputError
from gpattr.explainer import importance
from gpattr.tables import TableModel


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    """A table of houses, and a folder for what is made of it."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("houses")
    frame = pd.DataFrame(
        {"area": rng.normal(100, 30, 40).round(1), "kind": rng.choice(["flat", "house"], 40)}
    )
    frame["age"] = rng.uniform(0, 80, 40).round()
    frame["price"] = (
        3 * frame["area"] + 40 * (frame["kind"] == "house") + rng.normal(0, 5, 40)
    ).round(2)
    frame.to_csv(folder / "houses.csv", index=False, sep=";")
    return folder


@pytest.fixture(scope="module")
def model(prices):
    called(
        "fit", prices / "houses.csv", "--target", "price", "--out", prices / "model.json", "--quiet"
    )
    return prices / "model.json"


def called(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_table_is_explained_in_one_command(prices, tmp_path):
    out = tmp_path / "explanation"
    output = called(
        "explain", prices / "houses.csv", "--target", "price", "--rows", "1-5,9", "--out", out
    )
    assert "Importance" in output
    assert f"6 rows explained: {out}" in output.replace("\n", "")
    assert "Predictions of price, explained" in (out / "report.html").read_text(encoding="utf-8")
    ex = Explanation.load(out / "explanation.json")
    assert ex.feature_names == ("area", "kind", "age")
    assert ex.row_names == (1, 2, 3, 4, 5, 9)
    fitted = TableModel.load(out / "model.json")
    frame = pd.read_csv(prices / "houses.csv", sep=";")
    X = fitted.columns.features(frame.set_axis(range(1, 41)))
    np.testing.assert_allclose(
        ex.predictions, fitted.predict(X.iloc[[0, 1, 2, 3, 4, 8]]), rtol=1e-9
    )
    table = pd.read_csv(out / "attributions.csv")
    assert len(table) == 18
    assert {path.name for path in out.glob("*.png")} >= {
        "importance.png",
        "beeswarm.png",
        "heatmap.png",
    }
    assert len(list(out.glob("row_*.png"))) == 3
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.slow
def test_importance_is_of_all_rows(prices, model, tmp_path, monkeypatch):
    for name, value in {"TOGETHER": 60, "ROWS": 20, "FEWEST": 10}.items():
        monkeypatch.setattr(importance, name, value)
    table = ("explain", prices / "houses.csv", "--model", model)
    output = called(*table, "--out", tmp_path / "out")
    assert "over 40 rows ± one standard deviation (spread from 20 of 40 rows)" in output
    fitted = TableModel.load(model)
    X = fitted.columns.features(pd.read_csv(prices / "houses.csv", sep=";"))
    expected = Explainer(fitted.posterior).importance(X)
    written = pd.read_csv(tmp_path / "out" / "importance.csv", index_col="feature")["importance"]
    np.testing.assert_allclose(written[list(expected.feature_names)], expected.values, rtol=1e-9)
    assert "spread from 20 of 40 rows" in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )
    found = json.loads(called(*table, "--out", tmp_path / "again", "--json"))
    assert (found["rows"], found["importance_drawn_from_rows"]) == (40, 20)


@pytest.mark.slow
def test_parquet_in_and_out(prices, tmp_path):
    frame = pd.read_csv(prices / "houses.csv", sep=";")
    frame["kind"], frame["age"] = frame["kind"].astype("category"), frame["age"].astype("Int64")
    frame["new"] = frame["age"] < 10
    frame.to_parquet(tmp_path / "houses.parquet")
    out = tmp_path / "explanation"
    called(
        "explain",
        tmp_path / "houses.parquet",
        "--target",
        "price",
        "--rows",
        "1-5",
        "--out",
        out,
        "--quiet",
    )
    table = pd.read_parquet(out / "attributions.parquet")
    assert table["feature"].tolist()[:4] == ["area", "kind", "age", "new"]
    assert table["label"].tolist()[1] == frame["kind"][0]
    pd.testing.assert_frame_equal(
        table, pd.read_csv(out / "attributions.csv").fillna({"label": ""}), check_dtype=False
    )
    frame["age"] = frame["age"].mask(frame["age"] > 70)
    frame.to_parquet(tmp_path / "missing.parquet")
    arguments = (
        "explain",
        tmp_path / "missing.parquet",
        "--target",
        "price",
        "--rows",
        "1",
        "--quiet",
        "--out",
        tmp_path / "missing",
    )
    assert "missing in column 'age'" in called(*arguments, "--strict", code=1)
    called(*arguments, "--impute")  # as in earlier versions, without any effect


@pytest.mark.slow
def test_a_model_of_a_file_explains_another_table(prices, model, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("age,kind,area\n10,flat,80\n20,house,120\n")
    found = json.loads(
        called(
            "explain",
            new,
            "--target",
            "price",
            "--model",
            model,
            "--out",
            tmp_path / "out",
            "--json",
        )
    )
    assert found["rows"] == 2
    assert found["features"] == ["area", "kind", "age"]
    assert found["baseline"] == "mean of the training inputs"
    assert found["largest_gap"] < 1e-6
    assert not (tmp_path / "out" / "model.json").exists()
    direct = Explainer(TableModel.load(model).posterior)(
        pd.DataFrame({"area": [80.0], "kind": ["flat"], "age": [10.0]})
    )
    np.testing.assert_allclose(
        Explanation.load(tmp_path / "out" / "explanation.json").values[0],
        direct.values[0],
        rtol=1e-9,
    )


@pytest.mark.slow
def test_baselines(prices, model, tmp_path):
    table = [
        "explain",
        prices / "houses.csv",
        "--target",
        "price",
        "--model",
        model,
        "--quiet",
        "--force",
        "--out",
        tmp_path / "out",
    ]
    called(*table, "--rows", "3-4", "--baseline", "row:3")
    ex = Explanation.load(tmp_path / "out" / "explanation.json")
    np.testing.assert_array_equal(ex.values[0], 0.0)
    assert np.abs(ex.values[1]).max() > 0
    point = tmp_path / "point.csv"
    point.write_text("area,kind,age\n100,flat,30\n")
    called(*table, "--rows", "1", "--baseline", point)
    called(*table, "--rows", "1", "--baseline", "median")
    name = Explanation.load(tmp_path / "out" / "explanation.json").baseline_name
    assert name == "median of the training inputs, with the most frequent categories"
    for text, words in (
        ("row:99", "expected rows from 1 to 40"),
        ("row:x", "expected row:N"),
        ("nowhere.csv", "an existing file"),
    ):
        assert words in called(*table, "--baseline", text, code=1).replace("\n", " ")
    values = []
    for lines in ("100,flat,30\n", "90,house,20\n", "100,flat,30\n90,house,20\n"):
        point.write_text(f"area,kind,age\n{lines}")
        called(*table, "--rows", "1-5", "--baseline", point)
        values.append(Explanation.load(tmp_path / "out" / "explanation.json").values)
    np.testing.assert_allclose(values[2], 0.5 * (values[0] + values[1]), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_baselines_of_several_rows_are_averaged(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"]).assign(
        y=lambda table: table["a"]
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame[["a", "b"]][:3].to_csv(tmp_path / "points.csv", index=False)
    out = tmp_path / "out"
    called(
        "explain",
        tmp_path / "data.csv",
        "--target",
        "y",
        "--baseline",
        tmp_path / "points.csv",
        "--out",
        out,
        "--quiet",
    )
    assert (
        Explanation.load(out / "explanation.json").baseline_name
        == "average over 3 points of points.csv"
    )


@pytest.mark.slow
def test_models_of_other_kinds(prices, tmp_path, monkeypatch):
    options = ["--target", "price", "--drop", "kind", "--out", tmp_path / "model.json", "--force"]
    output = called(
        "fit", prices / "houses.csv", *options, "--estimator", "sparse", "--kernel", "matern52"
    )
    assert "40 rows × 2 features; R² on these rows" in output
    assert type(TableModel.load(tmp_path / "model.json").regressor).__name__ == "SparseGPRegressor"
    assert "Held-out rows (40): R² " in output
    assert " of targets inside their 95% intervals." in output
    again = [
        "--model",
        tmp_path / "model.json",
        "--drop",
        "kind",
        "--rows",
        "1-3",
        "--out",
        tmp_path / "out",
    ]
    assert "Held-out rows (40): R² " in called("explain", prices / "houses.csv", *again)
    assert "calibration, held-out rows" in (tmp_path / "out" / "report.html").read_text(
        encoding="utf-8"
    )
    monkeypatch.setattr("gpattr.estimators.random_feature_gp_regressor.CHANCE", 0.0)
    output = called("fit", prices / "houses.csv", *options, "--estimator", "random-features")
    assert "With 200 other random frequencies, predictions would change by " in output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--target", "cost"],
            "expected a column 'cost'; the columns are ['area', 'kind', 'age', 'price']",
        ),
        (
            ["--target", "kind", "--task", "regression"],
            "--task regression: expected numbers in the target 'kind', got",
        ),
        (["--target", "price", "--rows", "0-3"], "--rows: expected rows from 1 to 40, got '0-3'"),
        (
            ["--target", "price", "--rows", "first"],
            "--rows: expected numbers and ranges such as 1-10,17, got 'first'",
        ),
        (
            ["--target", "price", "--kernel", "rbf"],
            "kernel: expected one of squared-exponential, matern52",
        ),
        (["--target", "price", "--level", "95"], "level: expected"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(prices, tmp_path, options, words):
    output = called(
        "explain", prices / "houses.csv", "--quiet", "--out", tmp_path / "out", *options, code=1
    )
    assert words in output.replace("\n", " ")
    assert "Traceback" not in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_files_that_are_not_there_or_are_in_the_way(prices, model, tmp_path):
    missing = tmp_path / "missing.csv"
    assert f"{missing}: no such file" in called(
        "explain", missing, "--target", "y", code=1
    ).replace("\n", "")
    assert "already exists" in called(
        "fit", prices / "houses.csv", "--target", "price", "--out", model, code=1
    )
    (tmp_path / "out").mkdir()
    table = [
        "explain",
        prices / "houses.csv",
        "--target",
        "price",
        "--model",
        model,
        "--rows",
        "1",
        "--out",
        tmp_path / "out",
    ]
    assert "already exists; choose another name, or overwrite it with --force" in called(
        *table, code=1
    ).replace("\n", " ")
    called(*table, "--force")
    assert (tmp_path / "out" / "explanation.json").exists()
    (tmp_path / "file").write_text("")
    assert "expected a folder, got a file" in called(
        *table[:-1], tmp_path / "file", "--force", code=1
    ).replace("\n", " ")
    result = called(
        "explain",
        prices / "houses.csv",
        "--target",
        "age",
        "--model",
        model,
        "--out",
        tmp_path / "other",
        code=1,
    )
    assert "--target: the model predicts 'price', got 'age'" in result


def test_nothing_of_the_users_is_written_over(prices, model, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes((prices / "houses.csv").read_bytes())
    output = called(
        "explain", data, "--model", model, "--out", tmp_path, "--force", code=1
    ).replace("\n", " ")
    assert "contains files not written by gpattr, such as data.csv" in output
    assert "would overwrite the input" in called(
        "fit", data, "--target", "price", "--out", data, "--force", code=1
    )
    assert data.read_bytes() == (prices / "houses.csv").read_bytes()
    assert "is inside of the input" in called(
        "explain", tmp_path, "--target", "y", "--out", tmp_path / "out", code=1
    )
    assert "expected a file, got a folder" in called(
        "explain", tmp_path, "--target", "y", "--out", tmp_path / "out", "--no-stream", code=1
    )
    with (
        pytest.raises(InvalidInputError, match="contains files not written by gpattr"),
        whole_folder(tmp_path, force=True),
    ):
        pass


@pytest.mark.slow
def test_a_baseline_between_categories_is_named(prices, model, tmp_path):
    table = (
        "explain",
        prices / "houses.csv",
        "--model",
        model,
        "--out",
        tmp_path / "out",
        "--force",
    )
    assert "The baseline averages over the labels" in called(*table)
    assert "The baseline averages over the labels" not in called(*table, "--baseline", "median")
    assert "The baseline averages over the labels" not in called(*table, "--attribution", "shapley")


@pytest.mark.slow
def test_what_is_said_of_a_table(prices, tmp_path):
    frame = pd.read_csv(prices / "houses.csv", sep=";").assign(
        price=np.random.default_rng(7).normal(size=40)
    )
    frame.loc[3:5, "age"] = np.nan
    frame.to_csv(tmp_path / "noise.csv")
    out = tmp_path / "out"
    arguments = (
        "explain",
        tmp_path / "noise.csv",
        "--target",
        "price",
        "--impute",
        "--out",
        out,
        "--baseline",
        "row:4",
    )
    said = " ".join(called(*arguments).split())
    page = (out / "report.html").read_text(encoding="utf-8")
    for sentence in (
        "The first column was left out because it has no name.",
        "3 missing values in age were filled with ",
        "Taken as categories: kind (2).",
        "The model predicts unseen rows no better than the mean of the targets does: ",
    ):
        assert sentence in said
        assert sentence in page
    assert Explanation.load(out / "explanation.json").baseline_name == "row 4 of noise.csv"
    notes = json.loads(called(*arguments, "--force", "--json"))["notes"]
    assert notes[0].startswith("The model predicts unseen rows no better than")
    assert any(note.startswith("The first column") for note in notes)
    frame.drop(columns="price")[:2].to_csv(tmp_path / "new.csv", index=False)
    called(
        "explain",
        tmp_path / "new.csv",
        "--model",
        out / "model.json",
        "--rows",
        "2-",
        "--out",
        tmp_path / "new",
        "--quiet",
    )
    assert Explanation.load(tmp_path / "new" / "explanation.json").row_names == (2,)
    for options, words in (
        (["--baseline", "row:0"], "--baseline: expected rows from 1 to 2, got '0'"),
        (["--rows", "1_0"], "--rows: expected numbers and ranges"),
        (["--kernel", "matern52"], "--kernel, --estimator: cannot be combined with --model"),
        (["--drop", "colour"], "--drop: expected a column of"),
    ):
        other = called(
            "explain",
            tmp_path / "new.csv",
            "--model",
            out / "model.json",
            "--out",
            tmp_path / "x",
            *options,
            code=1,
        )
        assert words in " ".join(other.split())
    assert "name the column to predict" in called(
        "explain", tmp_path / "new.csv", "--out", tmp_path / "x", code=1
    )


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A table of sales as people have them: dates, currencies, many categories, identifiers,
    missing values.
    """
    rng = np.random.default_rng(0)
    n, folder = 120, tmp_path_factory.mktemp("messy")
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    area = rng.normal(100, 20, n).round(1)
    frame = pd.DataFrame(
        {
            "nr": range(1, n + 1),
            "owner": [f"person {i}" for i in range(n)],
            "sold": day.strftime("%d/%m/%Y"),
        }
    )
    frame["city"] = np.where(np.arange(n) < 70, "here", [f"city {i}" for i in range(n)])
    frame["area"] = [f"{a} m²".replace(".", ",") for a in area]
    frame["remark"], frame["age"] = "", rng.integers(1, 90, n).astype(str)
    prices = 3000 * area + 20000 * np.sin(2 * np.pi * day.day_of_year / 365.25)
    frame["price"] = [f"€ {price:,.0f}".replace(",", " ") for price in prices]
    frame.loc[[3, 4], "age"], frame.loc[7, "sold"], frame.loc[[0, 9], "price"] = "", "NA", ""
    frame.to_csv(folder / "sales.csv", index=False, sep=";")
    with pd.ExcelWriter(folder / "sales.xlsx") as book:
        frame.to_excel(book, sheet_name="sales", index=False)
        frame[:3].to_excel(book, sheet_name="other", index=False)
    return folder


@pytest.mark.slow
def test_a_table_as_people_have_it(messy, tmp_path):
    out = tmp_path / "out"
    options = ("--target", "price", "--rows", "2-12,14", "--baseline", "row:5", "--out", out)
    output = called("explain", messy / "sales.csv", *options, "--rows", "2-9,12", "--json")
    found = json.loads(output)
    assert found["notes"][:7] == [
        "2 rows were left out because price is missing.",
        "Columns left out: owner (has 118 values, all distinct), remark (is empty).",
        (
            "The most frequent categories were kept and the others grouped: city (1 of 51; 50 rows"
            " are “other”)."
        ),
        "nr looks like an identifier; leave it out with --drop nr.",
        found["notes"][4],
        "Taken as categories: city (2).",
        found["notes"][6],
    ]
    assert re.fullmatch(
        r"3 missing values were filled with medians and the most frequent categories: sold \(1"
        r" with 2021-\d\d-\d\d\), "
        r"age \(2 with [\d.]+\)\.",
        found["notes"][4],
    )
    assert re.fullmatch(
        r"Taken as dates: sold \(2020-\d\d-\d\d to 2022-\d\d-\d\d\)\.", found["notes"][6]
    )
    assert found["notes"][7] == "Taken as numbers: area (m²), price (€)."
    ex = Explanation.load(out / "explanation.json")
    assert ex.row_names == (*range(2, 10), 12)
    np.testing.assert_array_equal(ex.values[3], 0.0)
    assert ex.baseline_name == "row 5 of sales.csv"
    text = pd.read_csv(messy / "sales.csv", sep=";")["sold"][1]
    assert ex.labels["sold"][0] == "-".join(reversed(text.split("/")))
    written = called("explain", messy / "sales.csv", *options, "--force", code=1)
    assert "--rows: row 10 was left out because its target is missing" in written.replace("\n", " ")
    again = (
        "explain",
        messy / "sales.xlsx",
        "--model",
        out / "model.json",
        "--rows",
        "1-2",
        "--out",
        tmp_path / "again",
    )
    assert "has 2 sheets, 'sales', 'other'" in called(*again, code=1).replace("\n", " ")
    called(*again, "--sheet", "sales", "--quiet")
    np.testing.assert_allclose(
        Explanation.load(tmp_path / "again" / "explanation.json").predictions[1], ex.predictions[0]
    )


@pytest.mark.slow
def test_strict_decides_nothing(messy, tmp_path):
    arguments = [
        "explain",
        messy / "sales.csv",
        "--target",
        "price",
        "--strict",
        "--quiet",
        "--out",
        tmp_path / "out",
    ]
    assert "2 values are missing in column 'price', the first in row 1" in called(
        *arguments, code=1
    ).replace("\n", " ")
    frame = pd.read_csv(messy / "sales.csv", sep=";")
    frame[frame["price"].notna()].to_csv(tmp_path / "known.csv", index=False, sep=";")
    arguments[1] = tmp_path / "known.csv"
    for name, words in {
        "owner": "'owner' has 118 values, all distinct",
        "city": "'city' has 51 distinct values",
        "remark": "'remark' is empty",
        "sold": "1 value is missing in column 'sold'",
        "age": "2 values are missing in column 'age'",
    }.items():
        assert words in called(*arguments, code=1).replace("\n", " ")
        arguments += ["--drop", name]
    called(*arguments, "--rows", "1")


def test_letters_no_font_has_and_any_level(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 2)), columns=["温度", "b" * 130]).assign(
        y=lambda table: table["温度"]
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    output = called(
        "explain",
        tmp_path / "data.csv",
        "--target",
        "y",
        "--level",
        "0.5",
        "--out",
        tmp_path / "out",
        "--json",
    )
    assert "Some characters of the names are missing" in json.loads(output)["notes"][-1]


def test_an_interrupted_run_leaves_nothing(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("kept")

    def interrupted():
        with whole_folder(tmp_path / "out", force=True) as folder:
            (folder / "half").write_text("")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "report.html"]


def test_a_page_of_an_explanation_that_was_saved(prices, model, tmp_path):
    X = pd.DataFrame({"area": [80.0, 90.0], "kind": ["flat", "house"], "age": [10.0, 20.0]})
    Explainer(TableModel.load(model).posterior)(X).save(tmp_path / "ex.json")
    called("report", tmp_path / "ex.json", "--out", tmp_path / "page.html", "--title", "Prices")
    assert "<title>Prices</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "already exists" in called(
        "report", tmp_path / "ex.json", "--out", tmp_path / "page.html", code=1
    )
    assert "expected a file of format" in called(
        "report", model, "--out", tmp_path / "other.html", code=1
    ).replace("\n", " ")


def test_info():
    assert "scikit-learn" in called("info")
    known = json.loads(called("info", "--json"))
    assert known["parts"]["numpy"] == np.__version__
    assert "MixedSingleTaskGP" in known["models"]["BoTorch"]["models"]


@pytest.mark.parametrize("page", ["README.md", "docs/command_line.md"])
@pytest.mark.slow
def test_commands_that_are_shown_run(page, prices, tmp_path, monkeypatch):
    """On a table of houses, in the order in which they are shown; the demonstration and the paper
    have tests of their own.
    """
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    shown = [
        line
        for line in lines
        if line.startswith("gpattr ") and not line.startswith(("gpattr demo", "gpattr paper"))
    ]
    assert shown
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(prices / "houses.csv", sep=";")
    frame.to_csv("houses.csv", index=False)
    frame.to_csv("new.csv", index=False)
    for line in shown:
        called(*shlex.split(line)[1:])


@pytest.mark.slow
def test_covariances_are_left_out_of_a_large_file(prices, model, tmp_path, monkeypatch):
    monkeypatch.setattr(outputs, "MOST_COVARIANCES", 40)
    for rows, kept in (("1-4", True), ("1-5", False)):  # 9 covariances a row
        out = tmp_path / rows
        said = json.loads(
            called(
                "explain",
                prices / "houses.csv",
                "--model",
                model,
                "--rows",
                rows,
                "--out",
                out,
                "--json",
            )
        )
        assert (Explanation.load(out / "explanation.json").cov is not None) == kept
        assert any("omits the 45 covariances" in note for note in said["notes"]) != kept
        called("report", out / "explanation.json", "--out", tmp_path / f"{rows}.html")
