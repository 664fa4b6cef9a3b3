"""Sparse regression: the bound and its gradient, against the exact GP, and everything a regressor
must do.
"""

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
import torch
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import Explainer, GPRegressor, SparseGPRegressor
from gpattr.estimators.evidence.marginal_likelihood import FREE, NOISE
from gpattr.estimators.evidence.sparse_bound import SparseObjective
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.inducing import greedy, k_means
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
    White,
)
from gpattr.means import Linear as LinearMean
from gpattr.posteriors import SparsePosterior

RNG = np.random.default_rng(2)
N, D, M = 120, 3, 9
X = RNG.normal(size=(N, D)) * [1.0, 10.0, 0.1]
Y = np.sin(2 * X[:, 0]) + 0.1 * X[:, 1] + 5.0 + 0.1 * RNG.normal(size=N)
ROWS = X[:6] + 0.01
LEVELS = RNG.uniform(0.005, 0.05, N)
CENTRED, Z = X / X.std(axis=0), RNG.normal(size=(M, D))
KERNELS = {
    "ARD": SquaredExponential([1.0, 2.0, 0.7], 1.7),
    "one length-scale": Matern52(1.3, 0.6),
    "sum": 2.0 * Matern52(1.3) + Select(SquaredExponential([0.5, 0.6]), [2, 0]) + Constant(0.4),
    "rational quadratic": RationalQuadratic([1.2, 1.0, 2.0], alpha=2.0),
    "product and trend": (
        Matern32([1.0, 2.0, 0.7]) * (Select(Periodic(1.1, 3.0), [1]) + 0.2)
        + Linear([0.3, 0.2, 0.1])
    ),
    "polynomial": Polynomial(degree=2, offset=0.7, variance=0.3) + 0.5 * SquaredExponential(2.0),
}


@parametrize_with_checks([SparseGPRegressor(), SparseGPRegressor(inducing="greedy", move=False)])
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API=1 set before SciPy is imported")
    check(estimator)


@pytest.mark.parametrize("free_mean", [False, True])
@pytest.mark.parametrize("known", [None, LEVELS], ids=["noise learned", "noise per row"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_gradient_is_that_of_the_bound(name, known, free_mean):
    kernel, noise = KERNELS[name], 0.2 if known is None else None
    objective = SparseObjective(CENTRED, Y, known, free_mean, 1e-9)
    value, gradient = objective(kernel, noise, Z.ravel())
    if not free_mean:
        posterior = SparsePosterior.fit(
            kernel, Z, CENTRED, Y, noise=noise if known is None else known, jitter=1e-9
        )
        assert value == pytest.approx(posterior.bound, rel=1e-11)
    h = 1e-5

    def slope(at):
        return (objective.at(*at(h)).value - objective.at(*at(-h)).value) / (2 * h)

    size = np.abs(gradient[FREE]).max()
    for i in range(M * D):
        assert slope(lambda e: (kernel, noise, Z.ravel() + e * np.eye(M * D)[i])) == pytest.approx(
            gradient[FREE][i], abs=1e-6 * size
        )
    for part, start in trainable(kernel).items():
        for i in range(len(start)):

            def changed(e):
                values = start * np.exp(e * np.eye(len(start))[i])
                new = values if np.ndim(kernel.get_params()[part]) else float(values[0])
                return kernel.with_params(**{part: new}), noise, Z.ravel()

            assert slope(changed) == pytest.approx(
                np.atleast_1d(gradient[part])[i], abs=1e-6 * size
            )
    if noise is not None:
        assert slope(lambda e: (kernel, noise * np.exp(e), Z.ravel())) == pytest.approx(
            gradient[NOISE], rel=1e-6
        )


@pytest.mark.parametrize("inducing", ["k-means", "greedy"])
def test_it_approaches_the_exact_process(inducing):
    exact = GPRegressor(hyperparameters="optimal").fit(X, Y)
    reference = Explainer(exact)(ROWS)
    bounds, distances = [], []
    for m in (3, 10, 40):
        model = SparseGPRegressor(m, inducing=inducing, random_state=0).fit(X, Y)
        ex = Explainer(model)(ROWS)
        bounds.append(model.bound_)
        distances.append(np.abs(ex.values - reference.values).max())
        assert np.abs(ex.delta).max() < 1e-7
        assert model.inducing_.shape == (m, D)
    assert bounds[0] < bounds[1] < bounds[2] < exact.log_marginal_likelihood_ + 1e-6
    assert exact.log_marginal_likelihood_ - bounds[2] < 0.1
    assert distances[2] < 0.02 * np.abs(reference.values).max()
    np.testing.assert_allclose(Explainer(model)(ROWS).std, reference.std, rtol=0.1)
    assert model.noise_variance_ == pytest.approx(exact.noise_variance_, rel=0.02)


def test_training_moves_inducing_inputs_and_gains():
    still = SparseGPRegressor(5, move=False, random_state=0).fit(X, Y)
    moved = SparseGPRegressor(5, random_state=0).fit(X, Y)
    assert moved.bound_ > still.bound_ + 1.0
    taken = SparseGPRegressor(inducing=X[:5], optimize=False).fit(X, Y)
    np.testing.assert_allclose(taken.inducing_, X[:5], rtol=1e-12)


@pytest.mark.slow
def test_known_noise_kernel_mean_and_bounds():
    exact = GPRegressor(mean="zero", hyperparameters="optimal").fit(X, Y, noise=LEVELS)
    model = SparseGPRegressor(60, mean="zero", random_state=0).fit(X, Y, noise=LEVELS)
    np.testing.assert_array_equal(model.noise_variance_, LEVELS)
    assert model.bound_ == pytest.approx(exact.log_marginal_likelihood_, abs=0.5)
    assert model.bound_ < exact.log_marginal_likelihood_
    kernel = SquaredExponential([1.0, 30.0, 1.0], 4.0) + Constant(1.0)
    model = SparseGPRegressor(
        20, kernel, bounds={"0__lengthscale": "fixed"}, noise_variance=0.01, random_state=0
    ).fit(X, Y)
    np.testing.assert_array_equal(model.kernel_.kernels[0].lengthscale, [1.0, 30.0, 1.0])
    assert model.noise_variance_ == 0.01
    trend = LinearMean([0.0, 0.1, 0.0], 5.0)
    model = SparseGPRegressor(20, RationalQuadratic, mean=trend, random_state=0).fit(X, Y)
    assert model.mean_ is trend
    assert model.kernel_.alpha > 10.0  # the data are smooth: it becomes a squared exponential
    options = {
        "kernel": Linear(),
        "optimize": False,
        "noise_variance": 0.1,
    }  # any kernel can be used as it is
    sparse, exact = (
        SparseGPRegressor(20, random_state=0, **options).fit(X, Y),
        GPRegressor(**options, hyperparameters="optimal").fit(X, Y),
    )
    np.testing.assert_allclose(sparse.predict(ROWS), exact.predict(ROWS), rtol=1e-5)


def test_units_do_not_matter():
    model = SparseGPRegressor(10, random_state=0).fit(X, Y)
    scaled = SparseGPRegressor(10, random_state=0).fit(X * [1e3, 1e-3, 1.0] + 7.0, 100.0 * Y)
    np.testing.assert_allclose(
        Explainer(scaled)(ROWS * [1e3, 1e-3, 1.0] + 7.0).values / 100.0,
        Explainer(model)(ROWS).values,
        rtol=0,
        atol=1e-3,
    )


@pytest.mark.slow
def test_frames_tensors_files_and_copies(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SparseGPRegressor(10, random_state=0).fit(frame, Y)
    ex = Explainer(model)(frame[["c", "a", "b"]][:4])
    plain = SparseGPRegressor(10, random_state=0).fit(X, Y)
    np.testing.assert_allclose(ex.values, Explainer(plain)(X[:4]).values, rtol=1e-9)
    tensors = SparseGPRegressor(10, random_state=0).fit(torch.tensor(X), torch.tensor(Y))
    np.testing.assert_allclose(
        Explainer(tensors)(torch.tensor(X[:4])).values, ex.values, rtol=1e-6, atol=1e-8
    )
    model.save(tmp_path / "m.json")
    loaded = SparseGPRegressor.load(tmp_path / "m.json")
    again = Explainer(loaded)(frame[:4])
    np.testing.assert_array_equal(again.values, Explainer(model)(frame[:4]).values)
    np.testing.assert_array_equal(again.cov, Explainer(model)(frame[:4]).cov)
    assert loaded.bound_ == model.bound_
    assert clone(model).get_params()["n_inducing"] == 10
    with pytest.raises(InvalidInputError):
        model.predict(frame[["a", "b"]])
    noisy = SparseGPRegressor(10, random_state=0).fit(X, Y, noise=LEVELS)
    noisy.save(tmp_path / "n.json")
    np.testing.assert_array_equal(
        SparseGPRegressor.load(tmp_path / "n.json").noise_variance_, LEVELS
    )


def test_repeated_rows_and_a_constant_column():
    repeated = np.repeat(X[:10], 6, axis=0)
    repeated[:, 1] = 3.0
    y = np.repeat(Y[:10], 6) + 0.01 * RNG.normal(size=60)
    for inducing in ("k-means", "greedy"):
        model = SparseGPRegressor(30, inducing=inducing, random_state=0).fit(repeated, y)
        assert len(model.inducing_) <= 30
        assert np.isfinite(Explainer(model)(repeated[:3]).cov).all()


def test_centres_of_clusters():
    generator = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]]) + 1e6
    rows = np.repeat(middles, 50, axis=0) + 0.1 * generator.normal(size=(200, 2))
    centres = k_means(rows, 4, generator)
    found = centres[np.lexsort(np.round(centres).T)]
    expected = rows.reshape(4, 50, 2).mean(axis=1)
    np.testing.assert_allclose(found, expected[np.lexsort(np.round(expected).T)], atol=1e-9)


def test_clustering_changes_no_threads(monkeypatch):
    limited = []
    monkeypatch.setattr(
        threadpoolctl.ThreadpoolController, "limit", lambda *a, **k: limited.append(k)
    )
    SparseGPRegressor(5, optimize=False).fit(X, Y)
    assert not limited


def test_where_inducing_inputs_start():
    generator = np.random.default_rng(0)
    assert k_means(X[:4], 10, generator).shape == (4, D)
    assert k_means(RNG.normal(size=(12_000, 2)), 5, generator).shape == (5, 2)
    kernel = SquaredExponential(0.5)
    chosen = greedy(kernel, CENTRED, 8)
    left = [kernel(CENTRED, CENTRED)[0, 0]]
    for k in range(1, 8):  # each is the row the others before it know least about
        A = kernel(chosen[:k], chosen[:k])
        var = 1.0 - np.einsum(
            "nm,mn->n", kernel(CENTRED, chosen[:k]), np.linalg.solve(A, kernel(chosen[:k], CENTRED))
        )
        own = 1.0 - kernel(chosen[k : k + 1], chosen[:k]) @ np.linalg.solve(
            A, kernel(chosen[:k], chosen[k : k + 1])
        )
        assert own[0, 0] == pytest.approx(var.max(), abs=1e-9)
        left.append(own[0, 0])
    assert left == sorted(left, reverse=True)
    assert len(greedy(kernel, np.repeat(X[:2], 3, axis=0), 5)) == 2


def test_progress(capsys):
    SparseGPRegressor(5, random_state=0, verbose=1).fit(X, Y)
    assert "training" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_inducing": N + 1}, "n_inducing: expected at most one per row, 120, got 121"),
        ({"n_inducing": 0}, "n_inducing: expected an integer of 1 or more, got 0"),
        ({"n_inducing": 2.5}, "n_inducing: expected an integer"),
        ({"inducing": "random"}, "inducing: expected one of 'k-means', 'greedy', got 'random'"),
        ({"inducing": X[:5, :2]}, "inducing: expected 3 columns, got 2"),
        (
            {"inducing": X[:5], "n_inducing": 4},
            "n_inducing: expected None or 5, the rows of inducing, got 4",
        ),
        ({"mean": "linear"}, "mean: expected 'constant', 'zero' or a gpattr mean, got 'linear'"),
        (
            {"mean": LinearMean(np.zeros(D), covariance="flat")},
            "mean: expected one with known coefficients",
        ),
        (
            {"noise_variance": 0.0},
            "noise_variance: expected variances larger than 0; without noise use GPRegressor",
        ),
        ({"n_restarts": -1}, "n_restarts: expected an integer of 0 to 1000000"),
        ({"bounds": {"period": (1, 2)}}, "bounds: expected hyperparameters among"),
        ({"kernel": "SE"}, "kernel: expected a gpattr kernel"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InvalidInputError, match=message):
        SparseGPRegressor(**options).fit(X, Y)


def test_bad_data():
    with pytest.raises(
        InvalidInputError, match=r"noise: expected 120 variances \(one per row of X\), got 5"
    ):
        SparseGPRegressor(5).fit(X, Y, noise=LEVELS[:5])
    with pytest.raises(InvalidInputError, match="noise: expected variances, 0 or larger"):
        SparseGPRegressor(5).fit(X, Y, noise=-LEVELS)
    with pytest.raises(InvalidInputError, match="y: expected targets that differ"):
        SparseGPRegressor(5).fit(X, np.ones(N))
    with pytest.raises(UnsupportedModelError, match="Unknown has no registered derivatives"):
        SparseGPRegressor(3, Unknown()).fit(X, Y)


@pytest.mark.parametrize("kernel", [Matern12(), SquaredExponential() + White(0.1)])
def test_kernels_without_derivatives_are_refused(kernel):
    with pytest.raises(UnsupportedModelError, match=type(kernel.parts().get("1", kernel)).__name__):
        SparseGPRegressor(5, kernel, noise_variance=0.1).fit(X, Y)


class Unknown(SquaredExponential):
    """A kernel of a user who has not said how it changes with its hyperparameters."""


def test_kernels_without_a_quick_way_learn_too():
    """A trend and a product: at least the bound of the better of its two parts."""
    kernel = SquaredExponential(np.full(D, 2.0)) * RationalQuadratic(2.0) + Linear(np.ones(D))
    model = SparseGPRegressor(12, kernel, random_state=0).fit(X, Y)
    start = SparseGPRegressor(12, kernel, random_state=0, optimize=False).fit(X, Y)
    assert model.bound_ > start.bound_ + 10.0
    assert model.kernel_ != kernel
    ex = Explainer(model)(X[:3])
    assert ex.delta == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(("n", "d", "m"), [(60, 1, 7), (300, 3, 40), (2500, 2, 30)])
def test_clusters_are_as_good_as_those_of_scikit_learn(n, d, m):
    rows = 1e3 + np.random.default_rng(n).normal(size=(n, d)) * np.geomspace(1.0, 3.0, d)
    centres = k_means(rows, m, np.random.default_rng(0))
    distances = ((rows[:, None] - centres) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1)
    assert len(centres) == m
    assert set(labels) == set(range(m))
    best = min(KMeans(m, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(5))
    assert distances.min(axis=1).sum() < 1.15 * best
    np.testing.assert_array_equal(k_means(rows, m, np.random.default_rng(0)), centres)


def test_the_share_of_variance_that_inducing_inputs_miss(tmp_path):
    options = {
        "kernel": SquaredExponential([1.0, 10.0, 0.1], 1.0),
        "noise_variance": 0.01,
        "optimize": False,
    }
    model = SparseGPRegressor(inducing=X[:6], **options).fit(X, Y)
    Z, kernel = X[:6], model.kernel_
    left = 1.0 - np.einsum("nm,mn->n", kernel(X, Z), np.linalg.solve(kernel(Z, Z), kernel(Z, X)))
    assert model.missed_share_ == pytest.approx(
        left.sum() / (model.predict(X, return_std=True)[1] ** 2).sum(), rel=1e-5
    )
    assert SparseGPRegressor(inducing=X, **options).fit(X, Y).missed_share_ < 1e-4
    assert model.advice_ == ""  # nothing was learned with them
    short = SquaredExponential([0.5, 5.0, 0.05])
    few = SparseGPRegressor(3, short, bounds={"lengthscale": "fixed"}, random_state=0).fit(X, Y)
    assert few.missed_share_ > 0.5
    assert "because 3 inducing inputs miss it" in few.advice_
    assert "(n_inducing=6)" in few.advice_
    few.save(tmp_path / "m.json")
    assert SparseGPRegressor.load(tmp_path / "m.json").advice_ == few.advice_
    assert SparseGPRegressor(random_state=0).fit(X, Y).advice_ == ""
