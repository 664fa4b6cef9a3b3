"""Indices of functions whose Sobol indices are known, from 300 runs without noise."""

from __future__ import annotations

import numpy as np
import pytest

import gpattr
from gpattr.kernels import Matern12, Matern52, separable
from gpattr.sobol.inputs import Inputs, Uniform, sobol_points
from gpattr.sobol.product_effects import product_effects


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


CASES = {
    "ishigami": (ishigami, ishigami_indices, (-np.pi, np.pi), Matern52, [7.0, 14.0, 8.0]),
    "sobol g": (sobol_g, sobol_g_indices, (0.0, 1.0), Matern12, [1.0, 2.7, 8.0, 15.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_known_indices_lie_in_the_intervals(name):
    f, indices, (low, high), kind, lengthscale = CASES[name]
    d = len(lengthscale)
    X = low + (high - low) * sobol_points(300, d, np.random.default_rng(3))
    y = f(X)
    # Training starts near the optimum, to be quick.
    kernel = y.var() * separable(kind, lengthscale)
    model = gpattr.GPRegressor(kernel, noise_variance=1e-6).fit(X, y)
    players = tuple(range(d))
    without = tuple(tuple(j for j in players if j != i) for i in players)
    subsets = (*((i,) for i in players), *without, players)
    inputs = Inputs.single([Uniform(low, high)] * d)
    found = product_effects(model.posterior_, inputs, subsets, 2000, np.random.default_rng(0))
    assert found is not None
    first, total = indices()
    V, draws = found.expected[-1], found.draws / found.draws[:, -1:]
    known = np.concatenate([first, total])
    estimate = np.concatenate([found.expected[:d] / V, 1 - found.expected[d : 2 * d] / V])
    drawn = np.concatenate([draws[:, :d], 1 - draws[:, d : 2 * d]], axis=1)
    assert np.abs(estimate - known).max() < 0.01
    assert found.error.max() < 1e-3 * V
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    # An index that is 0 is approached from above: variances are positive.
    assert (low <= np.where(known == 0, 1e-3, known)).all()
    assert (known <= high).all()
