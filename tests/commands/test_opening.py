"""What a report opens with: doubts about its model, and what very few rows can say."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpattr import Baselines, Explainer, GPRegressor
from gpattr.cli import app
from gpattr.commands import explainers, notes
from gpattr.distributions import Gaussian
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import MixturePosterior
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import HeldOut, HeldOutClasses

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def line():
    """20 rows with a strong feature and an idle one."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"strong": np.linspace(-2, 2, 20), "idle": rng.normal(size=20)})
    model = TableModel.fit(
        X, 3.0 * X["strong"] + rng.normal(0, 0.3, 20), Columns(tuple(X), {}, "t")
    )
    return X, model


@pytest.fixture(scope="module")
def classifier():
    X = pd.DataFrame({"a": np.linspace(-2, 2, 20), "b": np.tile([0.0, 1.0], 10)})
    y = np.where(X["a"] + 0.5 * X["b"] > 0.2, "up", "down")
    return TableModel.fit(X, y, Columns(tuple(X), {}, "t"), task="classification")


def test_twenty_rows(line):
    X, model = line
    ex = Explainer(model.posterior)(X)
    (said,) = notes.of_small_table(model, {"": ex}, 0.95)
    width, alone = map(float, re.search(r"typically (.*) wide; .* be (.*)\. In", said).groups())
    assert width == pytest.approx(model.held_out.width, rel=0.05)
    assert alone == pytest.approx(model.held_out.alone, rel=0.05)
    assert width < 0.3 * alone
    assert said.startswith("What 20 rows can say: for an unseen row the 95% interval of t is")
    sure = np.maximum(ex.prob_positive(), 1 - ex.prob_positive()) >= 0.95
    assert sure[:, 0].mean() > 0.8
    assert said.endswith(
        f"In a typical row the signs of {int(np.median(sure.sum(axis=1)))} of 2 attributions are at"
        f" least 95% certain; most often strong, in {sure[:, 0].mean():.0%} of the rows."
    )
    unsure = replace(ex, distribution=Gaussian(0.0 * ex.values, ex.var))
    assert notes.of_small_table(model, {"": unsure}, 0.95)[0].endswith(
        "In a typical row the sign of no attribution is at least 95% certain."
    )
    few = replace(model, held_out=None)
    assert "there are too few to test" in notes.of_small_table(few, {"": ex}, 0.95)[0]
    old = replace(model, held_out=replace(model.held_out, width=None, alone=None))
    assert "predictions of unseen rows are off by" in notes.of_small_table(old, {"": ex}, 0.95)[0]


def test_fifty_rows_need_no_introduction(line, monkeypatch):
    X, model = line
    ex = Explainer(model.posterior)(X)
    monkeypatch.setattr(notes, "SMALL", 20)
    assert notes.of_small_table(model, {"": ex}, 0.95) == []


def test_classes_of_few_rows(classifier):
    X = pd.DataFrame({"a": [2.0, -2.0], "b": [0.0, 1.0]})
    ex = Explainer(classifier.posterior, output="probability", n_draws=100)(X)
    judged = replace(classifier.held_out, accuracy=0.8, rows=20)
    (said,) = notes.of_small_table(replace(classifier, held_out=judged), {"": ex}, 0.95)
    assert said.startswith("What 20 rows can say: the class of an unseen row is found in 80% ± 9%.")


@pytest.mark.parametrize("score", [-0.2, 0.0, 0.1, None])
def test_a_model_no_better_than_the_mean(line, score):
    model = replace(line[1], held_out=HeldOut(20, score, 1.0, (0.5, 0.8, 0.95)))
    said = notes.of_doubts(model)
    assert len(said) == (score is not None and score <= 0)
    assert notes.of_model(model)[: len(said)] == said
    if said:
        assert "no better than the mean of the targets" in said[0]


def test_a_peer_that_is_clearly_better_is_named(classifier):
    def of(accuracy, most_frequent=0.5, **peers):
        judged = HeldOutClasses(400, accuracy, most_frequent, 0.3, ((0.9, 0.9, 400),), ())
        judged = replace(judged, peers=tuple(peers.items()))
        return notes.of_doubts(replace(classifier, held_out=judged))

    assert of(0.85, forest=0.89, line=0.7) == []
    (said,) = of(0.85, forest=0.93, line=0.91)
    assert said.startswith(
        "On the same held-out rows forest is correct in 93%, this model in 85%: "
    )
    (said,) = of(0.5, most_frequent=0.6, forest=0.58)  # no better than a constant either
    assert "no better than always predicting" in said
    assert of(0.85) == []  # of an older file


def test_the_report_opens_with_it(tmp_path, opened):
    """20 rows of noise: the page begins with what is wrong; what was read comes after."""
    X = pd.DataFrame(RNG.normal(size=(20, 3)).round(3), columns=list("abc"))
    X["t"] = RNG.normal(size=20).round(3)
    X["b"] = X["b"].map("€{:.2f}".format)
    X.to_csv(tmp_path / "noise.csv", index=False)
    asked = ["explain", str(tmp_path / "noise.csv"), "--target", "t", "--dependence", "none"]
    ran = CliRunner().invoke(app, [*asked, "--json", "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)["notes"]
    assert found[0].startswith("The model predicts unseen rows no better than the mean")
    assert found[1].startswith("The model knows little of the baseline")
    assert found[2].startswith("What 20 rows can say: ")
    assert found[3] == "Taken as numbers: b (€)."
    assert len(set(found)) == len(found)
    with opened(tmp_path / "out" / "report.html") as tab:
        assert tab.locator("#opening p").all_inner_texts() == found[:3]
        assert not set(tab.locator("#notes li").all_inner_texts()) & set(found[:3])
        after = tab.evaluate("document.querySelector('h1').nextElementSibling.id")
        assert after == "opening"


def test_a_baseline_that_the_model_does_not_know():
    """In two clusters it is the middle, of one model as of a mixture."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(-9, 1, (30, 1)), rng.normal(9, 1, (30, 1))])
    y = np.sin(X[:, 0])
    model = GPRegressor(SquaredExponential(2.0, 4.0), mean="zero", optimize=False).fit(X, y)
    (said,) = notes.of_unknown_baseline({"": Explainer(model)})
    assert "standard deviation there is 100% of what it is without any data" in said
    assert notes.of_unknown_baseline({"": Explainer(model, X[0])}) == []
    assert notes.of_unknown_baseline({"": Explainer(model, Baselines(X))}) == []
    assert len(notes.of_unknown_baseline({"": Explainer(GPRegressor().fit(X, y))})) == 1


def test_wide_tables_are_explained_without_covariances(line, monkeypatch):
    X, model = line
    assert isinstance(model.posterior, MixturePosterior)
    explainer = explainers.explainers(model, "mean", "mean", 20)[""]

    def of(**options):
        return explainers.explained(explainer, X, lambda parts, n: parts, **options)

    whole = of()
    size = X.size * X.shape[1] * len(model.posterior.components)
    monkeypatch.setattr(explainers, "MOST_COVARIANCES", size)
    assert of().cov is not None
    monkeypatch.setattr(explainers, "MOST_COVARIANCES", size - 1)
    wide = of()
    assert wide.cov is None
    np.testing.assert_allclose(wide.values, whole.values, atol=1e-12)
    np.testing.assert_allclose(wide.var, whole.var, rtol=1e-6, atol=1e-12)
    assert of(full=True).cov is not None
