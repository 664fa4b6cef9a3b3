"""Figures of held-out rows: what a model says of itself, and what rows say that took no part in
training.
"""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score

from gpattr.datasets import load_taipei_housing, load_wine_quality
from gpattr.estimators import GPRegressor
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior
from gpattr.report.facts import left_out
from gpattr.tables import Columns, TableModel
from gpattr.tables.held_out import HeldOut

ESTIMATORS = ("exact", "sparse", "random-features")
needs_data = pytest.mark.skipif("GPATTR_DATA_DIR" not in os.environ, reason="needs GPATTR_DATA_DIR")


def diabetes():
    data = load_diabetes(as_frame=True, scaled=False)
    return data.data, data.target.to_numpy(dtype=float)


def houses():
    data = load_taipei_housing()
    return data.data, data.target.to_numpy(dtype=float)


def wines():
    data = load_wine_quality()
    return data.data, data.target.to_numpy(dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("data", "folds", "score"),
    [
        (diabetes, 5, 0.45),
        pytest.param(houses, 5, 0.6, marks=needs_data),
        pytest.param(wines, 3, 0.35, marks=needs_data),
    ],
)
def test_intervals_hold_what_they_promise_of_rows_that_took_no_part(data, folds, score, estimator):
    X, y = data()
    columns = Columns(tuple(X.columns), {}, "target")
    parts = np.array_split(np.random.default_rng(0).permutation(len(y)), folds)
    means, variances = [], []
    for part in parts:
        others = np.delete(np.arange(len(y)), part)
        model = TableModel.fit(X.iloc[others], y[others], columns, estimator=estimator)
        mean, std = model.predict(X.iloc[part], return_std=True)
        means.append(mean)
        variances.append(std**2 + model.regressor.noise_variance_)
    seen = HeldOut.of(y[np.concatenate(parts)], np.concatenate(means), np.concatenate(variances))
    assert 0.92 <= seen.inside[-1] <= 0.98
    assert seen.score > score
    said = model.held_out
    assert said.score == pytest.approx(seen.score, abs=0.1)
    assert said.inside[-1] == pytest.approx(seen.inside[-1], abs=0.03)


def test_an_exact_model_leaves_each_row_out():
    """What it says of each row is what its models say that are formed without it, with the same
    hyperparameters, weighted by their evidence without it.
    """
    X, y = diabetes()
    X, y = X.iloc[:40], y[:40]
    columns = Columns(tuple(X.columns), {}, "target")
    model = TableModel.fit(X, y, columns)
    means, below = [], []
    for row in range(40):
        others = np.delete(np.arange(40), row)
        logs, found = [], []
        for weight, part in model.posterior.components:
            noise = part.noise_variance
            rest = ExactPosterior(
                part.kernel, X.iloc[others], y[others], noise=noise, mean=part.prior_mean
            )
            mean, std = rest.predict(X.iloc[[row]], return_std=True)
            found.append(norm(mean[0], np.hypot(std[0], noise**0.5)))
            logs.append(np.log(weight) - found[-1].logpdf(y[row]))
        weights = np.exp(np.array(logs) - max(logs))
        weights /= weights.sum()
        means.append(sum(w * one.mean() for w, one in zip(weights, found)))
        below.append(sum(w * one.cdf(y[row]) for w, one in zip(weights, found)))
    expected = HeldOut.of_positions(y, np.array(means), np.array(below))
    said = left_out(model.posterior)
    assert said.rows == 40
    assert said.score == pytest.approx(expected.score, rel=1e-6)
    assert said.inside == expected.inside


def test_one_row_that_decides_is_held_out_several_times():
    """Whether a far row is predicted depends on which others are left out with it."""
    rng, together = np.random.default_rng(5), np.random.default_rng(0).permutation(40)[:2]
    X = pd.DataFrame({"a": rng.normal(size=40)})
    X.loc[together, "a"] = 5.0, 5.2
    y = X["a"].to_numpy() ** 2 + rng.normal(size=40)
    model = GPRegressor(SquaredExponential(1.0, 100.0), mean="zero", optimize=False)
    generator, scores = np.random.default_rng(0), []
    for _ in range(4):
        mean = np.empty(40)
        for fold in np.array_split(generator.permutation(40), 5):
            others = np.setdiff1d(np.arange(40), fold)
            mean[fold] = clone(model).fit(X.iloc[others], y[others]).predict(X.iloc[fold])
        scores.append(r2_score(y, mean))
    assert np.ptp(scores) > 0.1
    judged = HeldOut.of_folds(model, X, y)
    assert judged.rows == 40
    assert judged.score == pytest.approx(np.mean(scores), rel=1e-9)


def test_held_out_rows_are_unknown_to_the_hyperparameters():
    """Pure noise: a model that has seen the rows fits them, and new ones not at all."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 6)), columns=list("abcdef"))
    y = rng.normal(size=30)
    columns = Columns(tuple(X.columns), {}, "target")
    judged = TableModel.fit(X, y, columns).held_out
    assert judged.rows == 30
    assert judged.score < 0.1
    # An interval that knows no feature is Student's, of a further target.
    scale = y.std(ddof=1) * np.sqrt(1 + 1 / 30)
    assert judged.alone == pytest.approx(np.diff(t(29, y.mean(), scale).interval(0.95))[0])
    assert 0.8 * judged.alone < judged.width < 1.5 * judged.alone
    content = judged.to_content()
    assert HeldOut.of_content(content) == judged
    del content["width"], content["alone"]  # as older files
    assert HeldOut.of_content(content) == replace(judged, width=None, alone=None)
    order = np.array_split(np.random.default_rng(0).permutation(30), 5)[0]
    others = np.setdiff1d(np.arange(30), order)
    fold = GPRegressor().fit(X.iloc[others], y[others])
    changed = y.copy()
    changed[order] += 5.0  # the first fold's predictions do not see its own targets
    before, after = (HeldOut.of_folds(GPRegressor(), X, each).error for each in (y, changed))
    assert after > before
    np.testing.assert_array_equal(
        fold.predict(X), GPRegressor().fit(X.iloc[others], changed[others]).predict(X)
    )
    assert HeldOut.of_folds(GPRegressor(), X[:9], y[:9]) is None
    assert HeldOut.of_folds(GPRegressor(), X, np.r_[1.0, np.zeros(29)]) is None


def test_little_noise_does_not_break_it():
    """A target that determines its own prediction leaves nothing of σ² − S but rounding."""
    X, _ = diabetes()
    X = X.iloc[:60, :2]
    y = np.sin(X.to_numpy() @ [0.1, 1.0])
    columns = Columns(tuple(X.columns), {}, "target")
    judged = TableModel.fit(X, y, columns, estimator="sparse").held_out
    assert np.isfinite([judged.score, judged.error, *judged.inside]).all()
