"""Importance of more rows and features than are drawn together: against joint draws of all, and
against the truth.
"""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpattr import Baselines, Explainer, RandomFeatureGPRegressor, memory_budget
from gpattr.bases import Fourier
from gpattr.closed_forms import apply_to_basis
from gpattr.explainer import importance
from gpattr.explainer.importance import importance_of
from gpattr.explainer.importance_measures import calibrated, folded_mean, folded_var
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Linear
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import AffinePosterior, ExactPosterior, WeightSpacePosterior

RNG = np.random.default_rng(3)
D, N = 12, 200
TRAIN, ROWS = RNG.normal(size=(40, D)), RNG.normal(size=(N, D))
TARGETS = np.sin(TRAIN[:, 0]) + TRAIN[:, 1] * TRAIN[:, 2]
EXPLAINER = Explainer(
    ExactPosterior(SquaredExponential(np.linspace(1.5, 6.0, D)), TRAIN, TARGETS, noise=0.05)
)


def test_what_remains_of_a_row_is_its_deviation_from_the_slope_of_the_others():
    known, influence = (RNG.normal(size=8) for _ in range(2))
    known, influence = known - known.mean(), influence - influence.mean()
    _, rest = calibrated(np.zeros(1), influence[:, None], known[None, :, None], np.zeros((1, 1)))
    for row, each in enumerate(rest[:, 0]):
        others = np.arange(8) != row
        slope = known[others] @ influence[others] / (known[others] @ known[others])
        assert each == pytest.approx(influence[row] - slope * known[row], rel=1e-12)


@pytest.fixture
def limits(monkeypatch):
    """A function that sets how much is drawn together, and how many rows are drawn."""

    def set_limits(together, rows=300, fewest=40, guide=None):
        for name, value in {
            "TOGETHER": together,
            "GUIDE": guide or together,
            "ROWS": rows,
            "FEWEST": fewest,
        }.items():
            monkeypatch.setattr(importance, name, value)

    return set_limits


@pytest.fixture(scope="module")
def brute():
    """Draws of mean |attribution| over all rows, from the joint covariance of everything."""
    C = EXPLAINER.joint(ROWS).reshape(N * D, N * D)
    root = np.linalg.cholesky(C + 1e-10 * np.eye(len(C)))
    draws = (
        EXPLAINER(ROWS, uncertainty="none").values.ravel()
        + np.random.default_rng(0).normal(size=(4000, N * D)) @ root.T
    )
    return np.abs(draws).reshape(-1, N, D).mean(axis=1)


def test_features_drawn_one_by_one(brute, limits):
    limits(600)
    got = EXPLAINER.importance(ROWS, n_samples=4000)
    ex = EXPLAINER(ROWS)
    assert (got.n_rows, got.n_joint_rows, got.note) == (N, N, "")
    np.testing.assert_allclose(got.values, folded_mean(ex.values, ex.var).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(got.values, brute.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(got.std, brute.std(axis=0), rtol=0.06)
    for mine, theirs in zip(
        got.interval(0.9), np.quantile(brute, [0.05, 0.95], axis=0), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, atol=0.25 * brute.std(axis=0).max())


@pytest.mark.slow
def test_what_features_share_is_kept(brute, limits):
    limits(600)
    got = EXPLAINER.importance(ROWS, n_samples=4000)
    truth, mine = np.corrcoef(brute.T), np.corrcoef(got.samples.T)
    between = np.triu_indices(D, 1)
    assert np.abs(truth[between]).max() > 0.25  # there is something to keep
    assert np.corrcoef(truth[between], mine[between])[0, 1] > 0.7
    np.testing.assert_allclose(mine, truth, atol=0.2)
    limits(600, guide=D - 1)  # no row fits: then features are independent
    alone = EXPLAINER.importance(ROWS, n_samples=4000)
    assert np.abs(np.corrcoef(alone.samples.T)[between]).max() < 0.1
    np.testing.assert_allclose(alone.std, got.std, rtol=1e-12)  # the same draws in another order


@pytest.mark.slow
@pytest.mark.parametrize("together", [600, 1300])
def test_rows_that_are_sampled(brute, limits, together):
    """With 1300 the rows of the sample are drawn with all features together, with 600 feature by
    feature.
    """
    limits(together, rows=100)
    found = [EXPLAINER.importance(ROWS, n_samples=2000, random_state=k) for k in range(4)]
    ex = EXPLAINER(ROWS)
    for got in found:
        assert (got.n_rows, got.n_joint_rows) == (N, max(100, together // D))
        np.testing.assert_allclose(
            got.values, folded_mean(ex.values, ex.var).mean(axis=0), rtol=1e-12
        )
        np.testing.assert_allclose(got.std, brute.std(axis=0), rtol=0.25)
        np.testing.assert_allclose(
            got.samples.mean(axis=0), got.values, atol=0.1 * brute.std(axis=0).max()
        )
        assert (got.samples >= 0).all()
    assert not np.array_equal(found[0].samples, found[1].samples)
    np.testing.assert_allclose(
        np.mean([got.std for got in found], axis=0), brute.std(axis=0), rtol=0.1
    )


APART = Explainer(ExactPosterior(SquaredExponential(0.1), [[1e3]], [0.0], noise=0.1), [0.0])
FAR_ROWS = (
    np.arange(400.0)[:, None],
    np.arange(400.0)[:, None] + 0.4,
)  # and where their ways start: far from each other


def test_rows_that_share_nothing_average_out(limits):
    """The mean over n independent rows has 1/n of the variance of one."""
    single = APART.importance(FAR_ROWS[0][:1], FAR_ROWS[1][:1], n_samples=4000).std[0]
    limits(60, rows=60)
    got = APART.importance(*FAR_ROWS, n_samples=4000)
    assert got.n_joint_rows == 60
    assert (
        0.99 * single / 20 < got.std[0] < 1.35 * single / 20
    )  # a hundredth of the sample's variance is kept in any case


@pytest.mark.slow
def test_it_covers_the_truth(limits):
    """Functions drawn from the prior: their own mean |attribution| over all rows is in 90 % of the
    90 % intervals.
    """
    rng = np.random.default_rng(1)
    basis = Fourier(rng.normal(size=(12, 3)))
    Z, X, baseline = rng.normal(size=(15, 3)), rng.normal(size=(400, 3)), np.zeros(3)
    phi, F = basis(Z), apply_to_basis(IntegratedGradients(baseline), basis, X)
    limits(150, rows=50)
    inside, widths = [], []
    for k in range(150):
        w = rng.normal(size=len(basis))
        y = phi @ w + 0.3 * rng.normal(size=15)
        S = np.linalg.inv(np.eye(len(w)) + phi.T @ phi / 0.09)
        posterior = WeightSpacePosterior(basis, S @ phi.T @ y / 0.09, 0.5 * (S + S.T))
        got = Explainer(posterior, baseline).importance(X, n_samples=400, random_state=k)
        low, high = got.interval(0.9)
        truth = np.abs(F @ w).mean(axis=0)
        inside.append((low <= truth) & (truth <= high))
        widths.append((high - low) / got.values)
    assert got.n_joint_rows == 50
    assert np.mean(widths) > 0.2  # there is something to be unsure of
    assert 0.86 < np.mean(inside) < 0.94


FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=90),
        "kind": RNG.choice(["a", "b", "c"], 90),
        "age": RNG.normal(size=90),
    }
)


def pipeline():
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["size", "age"]), ("labels", OneHotEncoder(), ["kind"])]
    )
    model = make_pipeline(
        columns, GaussianProcessRegressor(RBF(np.ones(5)) + WhiteKernel(0.1), optimizer=None)
    )
    return Explainer(
        model.fit(FRAME[:30], np.sin(FRAME["size"][:30]) + (FRAME["kind"][:30] == "a"))
    )


def cases():
    X = RNG.normal(size=(90, 3))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    kernel = SquaredExponential([1.0, 1.5, 2.0])
    exact = ExactPosterior(kernel, X[:25], y[:25], noise=0.05)
    twice = AffinePosterior(exact, np.zeros(3), [1.0, 2.0, 3.0], source=[0, 1, 0], n_features=2)
    trend = Linear(np.zeros(3), covariance=np.eye(4))
    tensors = torch.tensor(X[:25]), torch.tensor(y[:25])
    waves = RandomFeatureGPRegressor(25, ensemble=3, random_state=0).fit(X, y)
    yield "one point", Explainer(exact), X, None
    yield "a baseline for each row", Explainer(exact), X, X[::-1].copy()
    yield "weighted baselines", Explainer(exact, Baselines(X[:3], [0.5, 0.3, 0.2])), X, None
    yield "mixture", Explainer(waves), X, None
    yield "a column used twice", Explainer(twice), X[:, :2], None
    yield "categories", pipeline(), FRAME, None
    yield (
        "an uncertain trend",
        Explainer(ExactPosterior(kernel, X[:25], y[:25], noise=0.05, mean=trend)),
        X,
        None,
    )
    yield "tensors", Explainer(ExactPosterior(kernel, *tensors, noise=0.05)), torch.tensor(X), None
    yield (
        "quadrature",
        Explainer(ExactPosterior(Matern52([1.0, 1.5, 2.0]), X[:25], y[:25], noise=0.05)),
        X[:60],
        None,
    )


CASES = {name: case for name, *case in cases()}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_model_is_drawn_alike_in_parts(name, limits):
    explainer, X, baselines = CASES[name]
    limits(10**6)
    whole = explainer.importance(X, baselines, n_samples=3000)
    ex = explainer(X, baselines)
    mixed = ex.component_weights is not None
    parts = (
        zip(ex.component_values, ex.component_var, strict=True) if mixed else [(ex.values, ex.var)]
    )
    expected = np.mean([folded_mean(*part).mean(axis=0) for part in parts], axis=0)
    order = [ex.feature_names.index(feature) for feature in whole.feature_names]
    np.testing.assert_allclose(whole.values, expected[order], rtol=1e-12, atol=1e-14)
    limits(60)
    alone = explainer.importance(X, baselines, n_samples=3000)
    assert alone.n_joint_rows == len(X)
    limits(60, rows=50)
    some = [explainer.importance(X, baselines, n_samples=1000, random_state=k) for k in range(4)]
    assert (some[0].n_rows, some[0].n_joint_rows) == (len(X), 50)
    for got in (alone, *some):
        np.testing.assert_allclose(got.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(alone.std, whole.std, rtol=0.08)
    np.testing.assert_allclose(np.mean([got.std for got in some], axis=0), whole.std, rtol=0.2)


@pytest.mark.parametrize("name", ["one point", "a baseline for each row", "mixture", "categories"])
def test_an_explanation_that_is_there_already_is_not_computed_again(name, limits):
    explainer, X, baselines = CASES[name]
    limits(60, rows=50)
    expected = explainer.importance(X, baselines)
    known = importance_of(explainer.task, X, baselines, explainer(X, baselines))
    assert known.feature_names == expected.feature_names
    np.testing.assert_allclose(known.values, expected.values, rtol=1e-12)
    np.testing.assert_allclose(known.samples, expected.samples, atol=1e-6)


@pytest.mark.slow
def test_few_draws_do_not_spoil_the_spread(limits):
    """The variance that is scaled is estimated from more draws than are asked for."""
    limits(60, rows=60)
    asked = [APART.importance(*FAR_ROWS, n_samples=2, random_state=k).samples for k in range(70)]
    wide = APART.importance(*FAR_ROWS, n_samples=4000).std
    np.testing.assert_allclose(np.std(asked, axis=(0, 1)), wide, rtol=0.25)
    assert APART.importance(*FAR_ROWS, n_samples=1).samples.shape == (1, 1)


def test_no_draw_is_below_zero(limits):
    """Where a sample has more of the rows that move than all have, its deviations reach farther
    down than the mean.
    """
    rows = np.concatenate([np.zeros((100, 1)), np.full((20, 1), 0.05)])
    limits(40, rows=40)
    found = [APART.importance(rows, n_samples=500, random_state=k).samples.min() for k in range(6)]
    assert min(found) == 0.0


def test_many_draws_come_in_blocks(limits):
    explainer, X, _ = CASES["one point"]
    whole = explainer.importance(X[:20], n_samples=500)
    with memory_budget(working=10_000):
        np.testing.assert_allclose(
            explainer.importance(X[:20], n_samples=500).samples, whole.samples, atol=1e-6
        )


def test_folded_var():
    mean, std = (
        np.array([0.0, 1.0, -2.0, 3.0, -3.0, 0.0]),
        np.array([1.0, 2.0, 0.5, 0.0, 1e-200, 0.0]),
    )
    draws = np.abs(mean + std * np.random.default_rng(0).standard_normal((400_000, 6))).var(axis=0)
    np.testing.assert_allclose(folded_var(mean, std**2), draws, atol=0.01)
    np.testing.assert_array_equal(folded_var(mean, std**2)[3:], 0.0)


def test_the_number_of_rows_is_said(limits):
    limits(60, rows=50)
    explainer, X, _ = CASES["one point"]
    got = explainer.importance(np.tile(X, (20, 1)), n_samples=50)
    assert got.note == "spread from 50 of 1,800 rows"
    assert (
        repr(got).splitlines()[0]
        == "Importance: expected mean |attribution| over 1,800 rows ± one standard deviation"
        " (spread from 50 of 1,800 rows)"
    )


@pytest.mark.parametrize(
    ("n", "columns", "terms", "pair_cost", "expected"),
    [
        (200, 5, 1, 500, 200),
        (10**6, 5, 1, 500, 600),
        (10**6, 50, 1, 500, 300),
        (10**6, 500, 1, 500, 89),
        (10**6, 5000, 1, 500, 40),
        (30, 5000, 9, 500, 30),
        (10**6, 5, 1, 5e5, 63),
    ],
)
def test_how_many_rows_are_drawn(n, columns, terms, pair_cost, expected):
    assert importance.sample_size(n, columns, terms, pair_cost) == expected


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="the peak of a process is read from /proc"
)
@pytest.mark.slow
def test_memory_stays_bounded():
    """The joint covariance of 600 rows of 60 features alone would take 10 GB."""
    code = (
        "import numpy as np, gpattr\nrng = np.random.default_rng(0)\nX, Z = rng.normal(size=(600,"
        " 60)), rng.normal(size=(100, 60))\np ="
        " gpattr.posteriors.ExactPosterior(gpattr.kernels.SquaredExponential(8.0), Z, Z[:, 0],"
        " noise=0.1)\ngot = gpattr.Explainer(p).importance(X, n_samples=200)\nassert got.n_rows =="
        " 600 and got.n_joint_rows == 300\nprint(next(line.split()[1] for line in"
        " open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(found.stdout) < 800_000  # kB
