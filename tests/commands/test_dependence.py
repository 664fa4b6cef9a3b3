"""``gpattr explain`` shows the function as a whole: curves, indices, their files and options."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpattr import Explainer, sobol_indices
from gpattr.cli import app
from gpattr.commands import whole_function
from gpattr.commands.output import OWN
from gpattr.commands.whole_function import chosen_features
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.tables import TableModel


def called(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    """A table of houses with numbers, a category and dates, and a model of it."""
    rng = np.random.default_rng(0)
    n = 50
    folder = tmp_path_factory.mktemp("houses")
    frame = pd.DataFrame(
        {
            "area, m²": rng.normal(100, 30, n).round(1),
            "kind": rng.choice(["flat", "house"], n),
            "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    frame["price"] = 3 * frame["area, m²"] + 40 * (frame["kind"] == "house") + rng.normal(0, 5, n)
    frame.to_csv(folder / "houses.csv", index=False)
    called(
        "fit", folder / "houses.csv", "--target", "price", "--out", folder / "model.json", "--quiet"
    )
    return folder


def explain(houses, out, *options, code=0):
    return called(
        "explain",
        houses / "houses.csv",
        "--model",
        houses / "model.json",
        "--rows",
        "1-4",
        "--out",
        out,
        *options,
        code=code,
    )


def facts_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text.split('type="application/json">')[1].split("</script>")[0])


@pytest.mark.slow
def test_files_of_the_whole_function(houses, tmp_path):
    said = explain(houses, tmp_path / "out", "--level", 0.9)
    posterior = TableModel.load(houses / "model.json").posterior
    explainer = Explainer(posterior, target_name="price")
    table = pd.read_csv(tmp_path / "out" / "dependence.csv")
    columns = ["feature", "value", "mean", "std", "lower", "upper", "outside"]
    assert list(table.columns) == columns
    for name in ("area, m²", "kind", "sold"):
        curve, own = explainer.dependence(name), table[table["feature"] == name]
        low, high = curve.interval(0.9)
        for column, expected in (
            ("mean", curve.values),
            ("std", curve.std),
            ("lower", low),
            ("upper", high),
        ):
            np.testing.assert_allclose(own[column], expected, rtol=1e-9)
        assert not own["outside"].any()
    assert table.loc[table["feature"] == "kind", "value"].tolist() == ["flat", "house"]
    dates = table.loc[table["feature"] == "sold", "value"]
    assert dates.str.fullmatch(r"20\d\d-\d\d-\d\d").all()
    indices = sobol_indices(posterior, target_name="price")
    shares = pd.read_csv(tmp_path / "out" / "sobol.csv", index_col="feature")
    pd.testing.assert_frame_equal(shares, indices.to_frame(0.9))
    assert (tmp_path / "out" / "sobol.png").exists()
    assert (tmp_path / "out" / "dependence.png").exists()
    assert "Variance of the predicted price, by total Sobol index: area, m²" in said
    facts = facts_of(tmp_path / "out" / "report.html")["outputs"][0]
    assert {curve["feature"] for curve in facts["curves"]} == {"area, m²", "kind", "sold"}
    assert facts["indices"]["features"][0] == "area, m²"
    assert all(OWN.fullmatch(path.name) for path in (tmp_path / "out").iterdir())
    explain(houses, tmp_path / "out", "--force", "--quiet")  # its own files are known


@pytest.mark.slow
def test_json_has_a_summary(houses, tmp_path):
    found = json.loads(explain(houses, tmp_path / "out", "--json"))
    indices = sobol_indices(TableModel.load(houses / "model.json").posterior)
    assert found["sobol"]["variance"] == pytest.approx(indices.variance)
    expected = dict(zip(indices.feature_names, indices.total, strict=True))
    assert found["sobol"]["total"] == pytest.approx(expected)
    assert next(iter(found["sobol"]["total"])) == "area, m²"
    kind = found["dependence"]["kind"]
    assert (kind["lowest"]["at"], kind["highest"]["at"]) == ("flat", "house")
    assert kind["highest"]["mean"] - kind["lowest"]["mean"] == pytest.approx(40, abs=8)
    assert 0.999 < kind["probability"] <= 1.0
    assert kind["rows"] == 50
    assert found["dependence"]["sold"]["lowest"]["at"].startswith("202")
    assert isinstance(found["dependence"]["area, m²"]["lowest"]["at"], float)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--dependence", "kind,sold"], ["kind", "sold"]),
        (["--dependence", "sold", "--dependence", "area, m²"], ["sold", "area, m²"]),
        (["--dependence", " kind , sold,"], ["kind", "sold"]),
        (["--dependence", "none"], []),
    ],
)
def test_chosen_curves(houses, tmp_path, options, expected):
    explain(houses, tmp_path / "out", *options)
    facts = facts_of(tmp_path / "out" / "report.html")["outputs"][0]
    assert [curve["feature"] for curve in facts["curves"]] == expected
    path = tmp_path / "out" / "dependence.csv"
    assert path.exists() == bool(expected)
    if expected:
        assert list(dict.fromkeys(pd.read_csv(path)["feature"])) == expected
    assert facts["indices"] is not None


def test_unknown_features_are_refused_before_training(houses, tmp_path, monkeypatch):
    def train(*arguments, **options):
        raise AssertionError("it was trained")

    monkeypatch.setattr("gpattr.commands.explain.train", train)
    data = ("explain", houses / "houses.csv", "--target", "price", "--out", tmp_path / "out")
    for given, shown in (("kind,age", "'age'"), ("none,kind", "'none'"), (",", "no name")):
        said = called(*data, "--dependence", given, code=1)
        listed = "among ['area, m²', 'kind', 'sold'], or none"
        expected = f"--dependence: expected features {listed}, got {shown}"
        assert expected in said.replace("\n", "")
    assert list(tmp_path.iterdir()) == []


def test_names_are_names_first():
    assert chosen_features([], ["a"]) is None
    assert chosen_features(["none"], ["none", "b"]) == ("none",)
    assert chosen_features(["a,b", "c"], ["a", "b", "a,b", "c"]) == ("a,b", "c")
    assert chosen_features(["a,b,a"], ["a", "b"]) == ("a", "b")
    with pytest.raises(InvalidInputError, match="--dependence"):
        chosen_features(["none", "c"], ["a"])


def test_what_cannot_be_had_is_said(houses, tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise InvalidInputError("inputs: the function does not vary")

    def unsupported(*arguments, **options):
        raise UnsupportedModelError("kernel: this one has no averages.")

    monkeypatch.setattr(whole_function, "sobol_indices", refuse)
    monkeypatch.setattr(Explainer, "dependence", unsupported)
    said = explain(houses, tmp_path / "out")
    assert "Sobol indices are left out: the function does not vary.\n" in said
    assert "Partial dependence is left out: this one has no averages.\n" in said
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert "report.html" in names
    assert not names & {"dependence.csv", "dependence.png", "sobol.csv", "sobol.png"}
    facts = facts_of(tmp_path / "out" / "report.html")
    assert "Sobol indices are left out: the function does not vary." in facts["notes"]
    assert (facts["outputs"][0]["curves"], facts["outputs"][0]["indices"]) == ([], None)
    found = json.loads(explain(houses, tmp_path / "out", "--json", "--force"))
    assert found["sobol"] is None
    assert found["dependence"] is None


@pytest.mark.slow
def test_large_mixtures_have_curves_only(houses, tmp_path, monkeypatch):
    monkeypatch.setattr(whole_function, "MOST_OF_ALL", 100)
    out = tmp_path / "out"
    data = ("explain", houses / "houses.csv", "--target", "price", "--out", out, "--rows", "1-3")
    said = called(*data, "--kernel", "matern32", "--drop", "sold")
    expected = "Sobol indices are left out: for this kind of model they take too long"
    assert expected in said
    assert (out / "dependence.csv").exists()
    assert not (out / "sobol.csv").exists()


@pytest.mark.slow
def test_many_rows_and_features_are_bounded(houses, tmp_path, monkeypatch):
    monkeypatch.setattr(whole_function, "MOST_AVERAGED", 30)
    monkeypatch.setattr(whole_function, "MOST_CURVES", 2)
    columns = TableModel.load(houses / "model.json").posterior.n_columns
    monkeypatch.setattr(whole_function, "INDEX_WORK", 2 * columns)
    monkeypatch.setattr(whole_function, "FEWEST_INDICES", 2)
    said = explain(houses, tmp_path / "out")
    assert "Partial dependence is averaged over 30 of 50 rows, chosen at random." in said
    facts = facts_of(tmp_path / "out" / "report.html")["outputs"][0]
    assert len(facts["curves"]) == 2
    assert {curve["rows"] for curve in facts["curves"]} == {30}
    assert set(facts["indices"]["features"]) == {
        next(iter(pd.read_csv(tmp_path / "out" / "importance.csv")["feature"])),
        "the 2 other features",
    }
    monkeypatch.setattr(whole_function, "INDEX_WORK", columns)
    said = explain(houses, tmp_path / "out", "--force")
    assert f"left out: for {columns} columns they take too long" in said


def test_models_without_training_rows_average_over_the_table(houses, tmp_path):
    out = tmp_path / "out"
    data = ("explain", houses / "houses.csv", "--target", "price", "--out", out, "--rows", "1-3")
    called(*data, "--estimator", "sparse")
    facts = facts_of(out / "report.html")["outputs"][0]
    assert {curve["rows"] for curve in facts["curves"]} == {50}
    assert facts["indices"]["inputs"] == "independent draws from 50 rows"


@pytest.mark.slow
def test_several_classes_have_their_own(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(45, 2)).round(3), columns=["length", "width"])
    place = np.clip(np.round(frame["length"] + 1).astype(int), 0, 2)
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[place]
    frame.to_csv(tmp_path / "flowers.csv", index=False)
    out = tmp_path / "out"
    data = ("explain", tmp_path / "flowers.csv", "--target", "species", "--out", out)
    found = json.loads(called(*data, "--rows", "1-3", "--json"))
    classes = ["setosa", "versicolor", "virginica"]
    assert list(found["sobol"]) == list(found["dependence"]) == classes
    assert found["sobol"]["setosa"]["quantity"] == "log odds of setosa against the rest"
    for name in ("dependence", "sobol"):
        table = pd.read_csv(out / f"{name}.csv")
        assert list(dict.fromkeys(table["class"])) == classes
    model = TableModel.load(out / "model.json")
    table = pd.read_csv(out / "dependence.csv")
    for label, posterior in model.posteriors.items():
        own = table[(table["class"] == label) & (table["feature"] == "length")]
        np.testing.assert_allclose(
            own["mean"], Explainer(posterior).dependence("length").values, rtol=1e-6
        )
        assert (out / f"sobol_{label}.png").exists()
        assert (out / f"dependence_{label}.png").exists()
        assert OWN.fullmatch(f"sobol_{label}.png")
    outputs = facts_of(out / "report.html")["outputs"]
    assert [each["indices"]["quantity"] for each in outputs] == [
        f"log odds of {label} against the rest" for label in classes
    ]
    assert all(len(each["curves"]) == 2 for each in outputs)
