"""Shapley values of squared exponentials to the last digits, against 50-digit arithmetic."""

import mpmath as mp
import numpy as np
import pytest
from tests.reference import coalitions, size_by_size

from gpattr import closed_forms
from gpattr.kernels import Periodic, SquaredExponential
from gpattr.operators import Shapley

RNG = np.random.default_rng(1)


def test_the_reference_agrees_with_coalitions():
    d = 4
    u, v = RNG.uniform(0.1, 1.0, size=(2, d))
    inside = coalitions.members(d)
    truth = coalitions.shapley_weights(d) @ np.where(inside, u, v).prod(axis=1)
    found = size_by_size.values(size_by_size.exactly(u), size_by_size.exactly(v))
    np.testing.assert_allclose(found.astype(float), truth, atol=1e-15)
    corners = RNG.uniform(0.1, 1.0, size=(4, d))
    one, two = inside[:, None, :], inside[None, :, :]
    K = np.where(
        one, np.where(two, corners[0], corners[1]), np.where(two, corners[2], corners[3])
    ).prod(axis=2)
    weights = coalitions.shapley_weights(d)
    for i, j in ((0, 0), (0, 1), (3, 2)):
        found = size_by_size.covariance(*map(size_by_size.exactly, corners), i, j)
        assert float(found) == pytest.approx((weights @ K @ weights.T)[i, j], abs=1e-15)


def problem(d, step, m=2):
    """A row, a baseline ``step`` length-scales away, and points near some of the corners."""
    scale = np.exp(RNG.normal(size=d))
    b = RNG.normal(size=d) * scale
    direction = RNG.normal(size=d)
    x = b + step * scale * direction * np.sqrt(d) / np.linalg.norm(direction)
    corner = np.where(RNG.random(size=(m, d)) < 0.5, x, b)
    return scale, x, b, corner + 0.5 * scale * RNG.normal(size=(m, d))


@pytest.mark.parametrize(
    ("step", "accuracy"),
    [(1e-8, 2e-14), (1e-4, 2e-14), (0.1, 2e-14), (1.0, 2e-14), (10.0, 1e-13), (100.0, 1e-12)],
)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 11, 20, pytest.param(50, marks=pytest.mark.slow)])
def test_covariances_with_points(d, step, accuracy):
    """Of every z relative to the largest entry, however small that is."""
    scale, x, b, Z = problem(d, step)
    computed = closed_forms.cross(Shapley(b), SquaredExponential(scale, 1.7), x[None], Z)[0]
    for column, z in zip(computed.T, Z):
        u, v = (size_by_size.squared_exponential(p, z, scale) for p in (x, b))
        truth = size_by_size.values(u, v) * mp.mpf(1.7)
        largest = max(abs(t) for t in truth)
        off = max(abs(mp.mpf(float(c)) - t) for c, t in zip(column, truth))
        assert off <= accuracy * largest + mp.mpf(1e-320)


@pytest.mark.parametrize("step", [1e-8, 1e-3, 1.0, 10.0])
@pytest.mark.parametrize("d", [1, 2, 5, pytest.param(16, marks=pytest.mark.slow)])
def test_prior_covariances(d, step):
    """Along one row relative to √(ΣᵢᵢΣⱼⱼ), and between two rows to the largest entry."""
    scale, x, b, _ = problem(d, step)
    kernel = SquaredExponential(scale)
    y, c = x + 0.3 * step * scale * RNG.normal(size=d), b - 0.2 * step * scale * RNG.normal(size=d)
    along = closed_forms.prior_cov(Shapley(b), kernel, x[None])[0]
    apart = closed_forms.between(Shapley(b), kernel, x[None], y[None], op2=Shapley(c))[0, :, 0]

    def truth(x, b, y, c, i, j):
        pairs = ((x, y), (x, c), (b, y), (b, c))
        corners = [size_by_size.squared_exponential(p, q, scale) for p, q in pairs]
        return float(size_by_size.covariance(*corners, i, j))

    for i, j in {(0, 0), (0, d - 1), (d // 2, d // 3)}:
        size = np.sqrt(truth(x, b, x, b, i, i) * truth(x, b, x, b, j, j))
        assert abs(along[i, j] - truth(x, b, x, b, i, j)) <= 1e-14 * size
        assert abs(apart[i, j] - truth(x, b, y, c, i, j)) <= 1e-13 * np.abs(apart).max()


@pytest.mark.slow
def test_many_features_and_few_nodes():
    """d = 200: fewer nodes than ⌈d/2⌉ are enough, as the a-priori bound says."""
    for step in (1e-3, 0.1, 1.0):
        scale, x, b, Z = problem(200, step, m=1)
        computed = closed_forms.cross(Shapley(b), SquaredExponential(scale), x[None], Z)[0, :, 0]
        u, v = (size_by_size.squared_exponential(p, Z[0], scale) for p in (x, b))
        truth = size_by_size.values(u, v).astype(float)
        assert np.abs(computed - truth).max() <= 3e-14 * np.abs(truth).max()


@pytest.mark.parametrize("step", [1e-8, 0.1, 3.0])
def test_periodic_factors(step):
    d = 6
    scale, x, b, Z = problem(d, step, m=1)
    period = 5.0 * scale
    kernel = Periodic(1.3, period)
    computed = closed_forms.cross(Shapley(b), kernel, x[None], Z)[0, :, 0]

    def factors(p):
        turns = (size_by_size.exactly(p) - size_by_size.exactly(Z[0])) / size_by_size.exactly(
            period
        )
        return np.array([mp.exp(-2 * (mp.sin(mp.pi * t) / mp.mpf(1.3)) ** 2) for t in turns])

    truth = size_by_size.values(factors(x), factors(b)).astype(float)
    np.testing.assert_allclose(computed, truth, rtol=0, atol=3e-13 * np.abs(truth).max())
