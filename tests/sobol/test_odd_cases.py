"""Sobol indices where numbers are huge, tiny or few, and what results keep to themselves."""

from __future__ import annotations

import numpy as np
import pytest

import gpattr
from gpattr import Normal, Uniform
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Matern52, SquaredExponential

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(40, 3))
y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(40)


def model(kernel=None, X=X, y=y, noise=0.01):
    kernel = SquaredExponential([0.3, 0.6, 1.0]) if kernel is None else kernel
    return gpattr.GPRegressor(kernel, noise_variance=noise, optimize=False).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SquaredExponential(0.5), Matern52(0.5)])
def test_a_large_offset_of_the_target(kernel):
    """Unix times as target: variances do not see the offset."""
    plain = gpattr.sobol_indices(model(kernel))
    moved = gpattr.sobol_indices(model(kernel, y=y + 1.7e9))
    np.testing.assert_allclose(moved.first, plain.first, atol=1e-5)


def test_units_of_the_target():
    plain = gpattr.sobol_indices(model())
    for scale in (1e-30, 1e30):
        kernel = SquaredExponential([0.3, 0.6, 1.0], variance=scale**2)
        found = gpattr.sobol_indices(model(kernel, y=y * scale, noise=0.01 * scale**2))
        np.testing.assert_allclose(found.first, plain.first, rtol=1e-9)
        np.testing.assert_allclose(found.total_std, plain.total_std, rtol=1e-6)
    for scale in (1e-60, 1e-80, 1e-100, 1e60, 1e100):
        kernel = SquaredExponential([0.3, 0.6, 1.0], variance=scale**2)
        with pytest.raises(InvalidInputError, match="^model: .* use other units"):
            gpattr.sobol_indices(model(kernel, y=y * scale, noise=0.01 * scale**2))


@pytest.mark.parametrize("inputs", [Uniform(0, 1e-300), Uniform(0, 1e-12)])
def test_inputs_that_hardly_vary(inputs):
    with pytest.raises(InvalidInputError, match="^inputs: the model's function hardly varies"):
        gpattr.sobol_indices(model(), inputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "inputs", [Uniform(-1e300, 1e300), Uniform(0, 1e300), Normal(0, 1e300), Normal(1e300, 1)]
)
def test_inputs_beyond_all_length_scales(inputs):
    with pytest.raises(InvalidInputError, match="expected rows within"):
        gpattr.sobol_indices(model(), inputs)


def test_results_cannot_be_written_to():
    found = gpattr.sobol_indices(model(), pairs=True)
    arrays = [found.first, found.total, found.plug_in_first, found.first_draws, found.pairs.values]
    arrays += [found.effects.expected, found.effects.draws, found.effects.error]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9.0


def test_pairs_of_three_features_are_those_that_were_asked_for():
    """The others of one feature are a pair as well, which is not one that anybody wants to see."""
    with pytest.raises(InvalidInputError, match="computed without pairs"):
        _ = gpattr.sobol_indices(model()).pairs
    one = gpattr.sobol_indices(model(), pairs=[(0, 2)])
    assert one.pairs.pairs == ((0, 2),)
    assert len(gpattr.sobol_indices(model(), pairs=True).pairs.to_frame()) == 3


def test_one_feature_has_no_pairs():
    found = gpattr.sobol_indices(model(SquaredExponential(0.5), X[:, :1]), pairs=True)
    np.testing.assert_allclose([found.first[0], found.total[0]], 1.0, rtol=1e-12)
    assert not len(found.pairs.to_frame())
    assert repr(found.pairs)


@pytest.mark.slow
def test_plug_in_indices_have_an_error_of_their_own():
    """They are ratios by the variance of the mean, which is small where little is known."""
    rng, wrong = np.random.default_rng(4), 0
    t, w = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0, 1, 41)
    nodes = (edges[:-1, None] + 0.5 * (t + 1) / 40).ravel()
    weights = np.tile(w / 80, 40)
    grid = np.array([[a, b] for a in nodes for b in nodes])
    for _ in range(4):
        Z = rng.uniform(size=(25, 2))
        f = np.sin(6 * Z[:, 0]) + Z[:, 1] ** 2 + 0.05 * rng.standard_normal(25)
        own = model(Matern52([0.02, 0.05]), Z, f, 1e-3)
        found = gpattr.sobol_indices(own, Uniform(0, 1), n_draws=100)
        mean = own.predict(grid).reshape(480, 480)
        mean = mean - weights @ mean @ weights
        V = weights @ mean**2 @ weights
        known = np.array([weights @ (mean @ weights) ** 2, weights @ (weights @ mean) ** 2]) / V
        wrong += (np.abs(found.plug_in_first - known) > found.plug_in_error).sum()
        assert (found.plug_in_error > found.error).all()
    assert wrong <= 1
