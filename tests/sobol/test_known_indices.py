"""Functions whose Sobol indices are known: two of the literature, and draws from a prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

import gpattr
from gpattr.kernels import Constant, Matern52, Select, SquaredExponential, separable
from gpattr.posteriors import ExactPosterior
from gpattr.sobol.inputs import sobol_points


def ishigami(X):
    return np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def ishigami_indices():
    first = 0.5 * (1 + np.pi**4 / 50) ** 2
    both = 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    parts = np.array([first, 49 / 8, 0.0])
    total = parts.sum() + both
    return parts / total, (parts + [both, 0.0, both]) / total


A = np.array([0.0, 1.0, 4.5, 9.0])


def sobol_g(X):
    return np.prod((np.abs(4 * X - 2) + A) / (1 + A), axis=1)


def sobol_g_indices():
    parts = 1 / 3 / (1 + A) ** 2
    total = np.prod(1 + parts) - 1
    rest = np.array([np.prod(np.delete(1 + parts, i)) for i in range(len(A))])
    return parts / total, parts * rest / total


def indices_of(f, kernel, low, high, d):
    """Return the indices after 300 runs without noise."""
    X = low + (high - low) * sobol_points(300, d, np.random.default_rng(1))
    y = f(X)
    model = gpattr.GPRegressor(y.var() * kernel, hyperparameters="optimal").fit(X, y)
    return gpattr.sobol_indices(model, gpattr.Uniform(low, high))


def test_ishigami():
    # Training starts near the optimum, to be quick.
    kernel = separable(Matern52, [7.0, 14.0, 8.0])
    found = indices_of(ishigami, kernel, -np.pi, np.pi, 3)
    assert found.error.max() < 1e-4
    for known, mean, (low, high) in (
        (ishigami_indices()[0], found.first, found.first_interval()),
        (ishigami_indices()[1], found.total, found.total_interval()),
    ):
        assert np.abs(mean - known).max() < 0.002
        # An index that is 0 is approached from above: variances are positive.
        assert (low <= np.where(known == 0, 1e-4, known)).all()
        assert (known <= high).all()


def test_sobol_g():
    """Stationary kernels do not expect kinks: means are close, intervals too narrow."""
    factors = [Constant(1.0) + Select(Matern52(0.5), [j]) for j in range(4)]
    kernel = factors[0] * factors[1] * factors[2] * factors[3]
    found = indices_of(sobol_g, kernel, 0.0, 1.0, 4)
    assert found.error.max() < 1e-6
    first, total = sobol_g_indices()
    assert np.abs(found.first - first).max() < 0.004
    assert np.abs(found.total - total).max() < 0.004


@pytest.mark.slow
def test_intervals_of_functions_drawn_from_the_prior_hold_the_truth():
    """The 90 % intervals of all four indices, over 150 functions of two features."""
    rng, kernel = np.random.default_rng(0), SquaredExponential([0.5, 0.9])
    t, w = np.polynomial.legendre.leggauss(14)
    t, w = 0.5 + 0.5 * t, 0.5 * w
    nodes = np.array([[a, b] for a in t for b in t])
    X = rng.uniform(size=(12, 2))
    everything = np.concatenate([nodes, X])
    root = np.linalg.cholesky(kernel(everything, everything) + 1e-10 * np.eye(len(everything)))
    held = np.zeros(4, dtype=int)
    for _ in range(150):
        f = root @ rng.standard_normal(len(everything))
        grid = f[: len(nodes)].reshape(14, 14)
        mean = w @ grid @ w
        one, two = ((grid @ w - mean) ** 2) @ w, ((w @ grid - mean) ** 2) @ w
        V = w @ (grid - mean) ** 2 @ w
        known = np.array([one / V, two / V, 1 - two / V, 1 - one / V])
        y = f[len(nodes) :] + 0.1 * rng.standard_normal(len(X))
        found = gpattr.sobol_indices(
            ExactPosterior(kernel, X, y, noise=0.01), gpattr.Uniform(0, 1), n_draws=400
        )
        low, high = (
            np.concatenate([found.first_interval(0.9)[i], found.total_interval(0.9)[i]])
            for i in (0, 1)
        )
        held += (low <= known) & (known <= high)
    assert all(binomtest(int(count), 150, 0.9).pvalue > 0.003 for count in held), held
