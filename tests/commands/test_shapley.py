"""``gpattr explain --attribution shapley``: what is written, and that features are the players."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.reference.coalitions import joint_of, truth
from typer.testing import CliRunner

from gpattr import Explanation, MultiOutputExplanation
from gpattr.cli import app
from gpattr.tables import TableModel

SHOWN = 6  # rows explained
RNG = np.random.default_rng(0)
HOUSES = pd.DataFrame(
    {
        "area": RNG.normal(100, 30, 40).round(1),
        "kind": RNG.choice(["flat", "house", "hut"], 40),
        "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 40), "D"),
    }
)
PRICES = (
    3 * HOUSES["area"]
    + HOUSES["area"] * (HOUSES["kind"] == "house")
    + 0.05 * (HOUSES["sold"] - HOUSES["sold"].min()).dt.days
    + RNG.normal(0, 10, 40)
).round(2)


def called(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def explained(folder, target, *options, out="out"):
    data = folder / "houses.csv"
    HOUSES.assign(price=target).to_csv(data, index=False)
    arguments = ("explain", data, "--target", "price", "--attribution", "shapley")
    said = called(*arguments, "--rows", f"1-{SHOWN}", "--out", folder / out, *options)
    return " ".join(said.split()), folder / out


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    return explained(tmp_path_factory.mktemp("houses"), PRICES)


@pytest.fixture(scope="module")
def classification(tmp_path_factory):
    labels = np.where(PRICES.gt(PRICES.median()), "dear", "cheap")
    return explained(tmp_path_factory.mktemp("classes"), labels)


@pytest.mark.slow
def test_categories_and_dates_are_players(regression):
    """Against all coalitions of the features, under the joint distribution of the model itself."""
    said, out = regression
    ex, model = Explanation.load(out / "explanation.json"), TableModel.load(out / "model.json")
    assert "mean |attribution| (Shapley values) over 6 rows" in said
    assert ex.attribution == "Shapley values"
    assert ex.feature_names == ("area", "kind", "sold")
    encoder, columns = model.posterior.encoder, model.posterior.in_columns
    owner = [int(row.argmax()) for row in encoder.gathering]
    assert owner == [0, 1, 1, 1, 2, 2, 2, 2, 2]  # texts, days, and the seasons of dates
    rows = encoder.encode("X", model.columns.features(HOUSES)[:SHOWN])
    mean = encoder.encode("X", model.columns.features(HOUSES)).mean(axis=0)
    mean = encoder.nearest_one_hot(mean[None])[0]  # one category and one date, as rows have
    assert "with the most frequent categories" in ex.baseline_name
    scale = max(float(part.kernel.diagonal(rows[:1])[0]) for _, part in columns.components)
    tolerance = 1e-12 * scale**0.5  # of the prior's scale
    known = truth(joint_of(columns), rows, mean, owner)
    np.testing.assert_allclose(ex.values, known.mean, rtol=0, atol=tolerance)
    np.testing.assert_allclose(ex.cov, known.cov, rtol=0, atol=1e-10 * known.cov.max())
    gap = ex.predictions - ex.base_values
    np.testing.assert_allclose(ex.values.sum(axis=1), gap, rtol=0, atol=1e-9)
    by_columns = truth(joint_of(columns), rows, mean).mean @ encoder.gathering
    assert np.abs(by_columns - ex.values).max() > 1e5 * tolerance  # not sums of columns


def test_files_of_a_regression(regression):
    _, out = regression
    names = {path.name for path in out.iterdir()}
    assert names >= {"attributions.csv", "importance.csv", "beeswarm.png", "report.html"}
    ex = Explanation.load(out / "explanation.json")
    written = pd.read_csv(out / "attributions.csv")
    assert len(written) == SHOWN * 3
    np.testing.assert_allclose(written["attribution"], ex.values.ravel(), rtol=1e-12)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert '"attribution":"Shapley values"' in page.replace('": "', '":"')
    assert '"sliders are available for integrated gradients only"' in page
    again = out.parent / "again.json"
    ex.save(again)
    assert Explanation.load(again) == ex
    assert again.read_bytes() == (out / "explanation.json").read_bytes()


def test_a_saved_explanation_makes_the_same_report(regression):
    _, out = regression
    path = out.parent / "later.html"
    called("report", out / "explanation.json", "--out", path)
    assert "Shapley values" in path.read_text(encoding="utf-8")


def test_facts_as_json(tmp_path):
    data = tmp_path / "houses.csv"
    HOUSES.assign(price=PRICES).to_csv(data, index=False)
    arguments = ("explain", data, "--target", "price", "--attribution", "shapley", "--rows", "1-6")
    facts = json.loads(called(*arguments, "--out", tmp_path / "out", "--json"))
    assert facts["attribution"] == "Shapley values"
    assert facts["method"] == "closed form + enumeration"  # of Matérn kernels, by coalitions
    assert facts["features"] == ["area", "kind", "sold"]
    assert facts["rows"] == SHOWN
    assert facts["largest_gap"] < 1e-8


def test_classes_are_explained_by_log_odds(classification):
    said, out = classification
    assert "Shapley values divide the log odds of a class; integrated gradients divide its" in said
    assert ": log odds of dear " in said
    ex, model = Explanation.load(out / "explanation.json"), TableModel.load(out / "model.json")
    assert ex.attribution == "Shapley values"
    assert ex.quantity == "log odds of dear"
    latent = model.posterior.predict(model.columns.features(HOUSES)[:SHOWN])
    np.testing.assert_allclose(ex.predictions, latent, rtol=1e-9)
    gap = ex.predictions - ex.base_values
    np.testing.assert_allclose(ex.values.sum(axis=1), gap, rtol=0, atol=1e-9)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Shapley values divide the log odds of a class" in page
    assert "log odds of dear" in page


@pytest.mark.slow
def test_several_classes_share_the_files(tmp_path):
    labels = pd.qcut(PRICES, 3, labels=["cheap", "fair", "dear"]).astype(str)
    said, out = explained(tmp_path, labels)
    assert "Shapley values divide the log odds of a class" in said
    ex = MultiOutputExplanation.load(out / "explanation.json")
    assert set(ex.outputs) == {"cheap", "fair", "dear"}
    for part in ex.outputs.values():
        assert part.attribution == "Shapley values"
        assert part.quantity.startswith("log odds of ")


@pytest.mark.slow
def test_other_names_of_the_same_attribution_and_its_help(tmp_path):
    said, out = explained(tmp_path, PRICES, "--attribution", "integrated_gradients")
    assert "Shapley" not in said
    assert Explanation.load(out / "explanation.json").attribution == "integrated gradients"
    page = " ".join(called("explain", "--help").replace("│", " ").split())
    assert "integrated-gradients or shapley" in page
