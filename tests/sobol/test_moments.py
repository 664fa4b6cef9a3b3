"""Moments of kernels against distributions of inputs, against 50 digits and other rules."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from gpattr.kernels import (
    Constant,
    FullAdditive,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.operators import AffineMap
from gpattr.sobol import gaussian_moments
from gpattr.sobol.inputs import Empirical, Inputs, Normal, Tied, Uniform
from gpattr.sobol.sections import Sections
from gpattr.sobol.terms import discrete_gauss, terms_of

mp.mp.dps = 50
WIDTHS = (1e-8, 1e-3, 0.3, 1.0, 3.0, 10.0, 1e3)
OUTSIDE = (0.0, 0.3, 1.0, 5.0, 20.0, 35.0)


def gaussian_mean(distribution, ell, z):
    """m(z) in 50 digits."""
    ell, z = mp.mpf(ell), mp.mpf(z)
    if isinstance(distribution, Normal):
        total = ell**2 + mp.mpf(distribution.std) ** 2
        return ell / mp.sqrt(total) * mp.exp(-((z - mp.mpf(distribution.mean)) ** 2) / 2 / total)
    low, high = mp.mpf(distribution.low) - z, mp.mpf(distribution.high) - z
    near, far = max(low, -high), max(high, -low)
    root = mp.sqrt(2) * ell
    return ell * mp.sqrt(mp.pi / 2) * (mp.erfc(near / root) - mp.erfc(far / root)) / (high - low)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_means_of_squared_exponentials_far_out_and_for_all_widths(width, kind):
    distribution = Uniform(0.0, width) if kind == "uniform" else Normal(0.5 * width, width)
    for outside in OUTSIDE:
        for z in (-outside, 0.25 * width, width + outside):
            got = gaussian_moments.mean(distribution, 1.0, np.array([z]))[0]
            expected = gaussian_mean(distribution, 1.0, z)
            # Rounding of the exponent is ε times its size.
            size = 1.0 + min(outside, 40.0) ** 2
            assert abs(got / expected - 1) < 2e-15 * size


@pytest.mark.parametrize("distribution", [Uniform(-1.0, 2.0), Normal(0.3, 0.7), Uniform(0, 1e-6)])
@pytest.mark.parametrize("other", [0.8, 0.05, 30.0])
def test_products_and_double_integrals_of_squared_exponentials(distribution, other):
    ell, z, w = 0.8, 0.37, -0.9
    got = gaussian_moments.products(distribution, (ell, other), np.array([z]), np.array([w]))[0]
    nu = mp.mpf(ell) ** 2 + mp.mpf(other) ** 2
    centre = (mp.mpf(z) * mp.mpf(other) ** 2 + mp.mpf(w) * mp.mpf(ell) ** 2) / nu
    narrow = mp.mpf(ell) * mp.mpf(other) / mp.sqrt(nu)
    expected = mp.exp(-((mp.mpf(z) - mp.mpf(w)) ** 2) / 2 / nu)
    expected *= gaussian_mean(distribution, narrow, centre)
    # Far out the exponent itself is rounded: its size counts.
    exponent = float(-mp.log(expected)) + 1.0
    assert abs(got / expected - 1) < 1e-15 * max(exponent, 2.0) * 4

    def inner(x):
        return gaussian_mean(distribution, ell, x)

    if isinstance(distribution, Uniform):
        low, high = mp.mpf(distribution.low), mp.mpf(distribution.high)
        expected = mp.quad(inner, [low, (low + high) / 2, high]) / (high - low)
    else:
        expected = ell / mp.sqrt(mp.mpf(ell) ** 2 + 2 * mp.mpf(distribution.std) ** 2)
    assert abs(gaussian_moments.double(distribution, ell) / expected - 1) < 1e-14


KERNELS = {
    "matern 1/2": (Matern12(0.4), lambda r: mp.exp(-r / mp.mpf(0.4))),
    "matern 3/2": (
        Matern32(0.7),
        lambda r: (1 + mp.sqrt(3) * r / mp.mpf(0.7)) * mp.exp(-mp.sqrt(3) * r / mp.mpf(0.7)),
    ),
    "matern 5/2": (
        Matern52(2.0),
        lambda r: (1 + mp.sqrt(5) * r / 2 + 5 * r**2 / 12) * mp.exp(-mp.sqrt(5) * r / 2),
    ),
    "rational quadratic": (
        RationalQuadratic(0.5, alpha=0.75),
        lambda r: (1 + r**2 / (2 * mp.mpf(0.75) * mp.mpf(0.5) ** 2)) ** mp.mpf(-0.75),
    ),
    "periodic": (
        Periodic(0.75, 1.25),
        lambda r: mp.exp(-2 * mp.sin(mp.pi * r / mp.mpf(1.25)) ** 2 / mp.mpf(0.75) ** 2),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("distribution", [Uniform(-1.0, 1.5), Normal(0.25, 0.75)])
def test_rules_for_factors_without_closed_form(name, distribution):
    kernel, profile = KERNELS[name]
    Z = np.random.default_rng(0).normal(size=(30, 1))
    inputs = Inputs.single([distribution])
    terms = terms_of(kernel, inputs)
    assert terms is not None
    sections = Sections(terms, inputs, Z)
    rule = sections.rules[0]
    assert rule.error < 1e-12
    z, w = Z[3, 0], Z[9, 0]
    with mp.workdps(25):
        if isinstance(distribution, Uniform):
            low, high = distribution.low, distribution.high
            density = lambda x: 1 / (mp.mpf(high) - mp.mpf(low))  # noqa: E731
        else:
            mean, std = mp.mpf(distribution.mean), mp.mpf(distribution.std)
            low, high = mean - 12 * std, mean + 12 * std
            density = lambda x: mp.npdf(x, mean, std)  # noqa: E731
        kinks = [v for v in (z, w) if low < v < high]
        edges = sorted([*map(mp.mpf, kinks), *mp.linspace(mp.mpf(low), mp.mpf(high), 13)])
        m = mp.quad(lambda x: profile(abs(x - z)) * density(x), edges)
        M = mp.quad(lambda x: profile(abs(x - z)) * profile(abs(x - w)) * density(x), edges)
        if isinstance(distribution, Uniform):
            width = mp.mpf(high) - mp.mpf(low)
            parts = mp.linspace(0, 1, 9)
            c = mp.quad(lambda u: 2 * (1 - u) * profile(width * u), parts)
        else:
            parts = mp.linspace(0, 16 * std, 17)
            c = mp.quad(lambda r: 2 * profile(r) * mp.npdf(r, 0, mp.sqrt(2) * std), parts)
    assert abs(sections.mean(0, 0, Z)[3] - m) < 1e-14
    E = terms.factor(0, 0, rule.nodes, Z)
    assert abs((E[:, 3] * rule.weights) @ E[:, 9] - M) < 1e-14
    assert abs(sections.doubles[0, 0] - c) < 1e-12


def test_empirical_distributions_are_compressed_without_loss():
    rng = np.random.default_rng(1)
    values = rng.normal(size=400)
    distribution = Empirical(values)
    Z = rng.normal(size=(25, 1))
    inputs = Inputs.single([distribution])
    sections = Sections(terms_of(SquaredExponential(0.7), inputs), inputs, Z)
    rule = sections.rules[0]
    assert len(rule.weights) < 100
    E = sections.terms.factor(0, 0, rule.nodes, Z)
    full = sections.terms.factor(0, 0, values[:, None], Z)
    np.testing.assert_allclose(rule.weights @ E, full.mean(axis=0), rtol=0, atol=3e-15)
    np.testing.assert_allclose((E.T * rule.weights) @ E, full.T @ full / 400, rtol=0, atol=3e-15)


def test_gauss_rules_of_few_values_are_those_values():
    nodes, weights = discrete_gauss(np.array([0.0, 1.0, 5.0]), np.array([0.2, 0.3, 0.5]), 8)
    np.testing.assert_allclose(nodes, [0, 1, 5], atol=1e-13)
    np.testing.assert_allclose(weights, [0.2, 0.3, 0.5], atol=1e-13)


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential([0.5, 1.0, 2.0], 3.0),
        Linear([1.0, 2.0, 3.0]),
        Polynomial([1.0, 2.0, 0.5], degree=3, offset=0.7),
        Periodic([0.5, 1.0, 2.0], [1.0, 2.0, 3.0], 2.0) * SquaredExponential(1.5),
        FullAdditive([SquaredExponential(0.5), Matern32(1.0), Linear(1.0)], [1.0, 0.5, 0.0]),
        Select(Matern52(0.5), [1]) * Constant(2.0) + Select(SquaredExponential([1.0, 2.0]), [2, 0]),
        (Constant(2.0) + Select(Matern52(0.5), [1])) * (Constant(1.0) + Select(Linear(), [2])),
        Select(SquaredExponential(0.8), [0]) * (3.0 * (Constant(1.0) + Select(Linear(), [2]))),
    ],
)
def test_terms_add_up_to_the_kernel(kernel):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    inputs = Inputs.single([Uniform(0, 1)] * 3)
    terms = terms_of(kernel, inputs)
    assert terms is not None
    total = sum(
        term.scale * value
        for term, value in zip(terms.terms, terms.products([0, 1, 2], A, B), strict=True)
    )
    np.testing.assert_allclose(total, kernel(A, B), rtol=0, atol=1e-13)


def test_a_kernel_that_is_no_product_has_no_terms():
    from gpattr.kernels import Cosine

    for kernel in (Cosine(1.0), Matern52([0.5, 1.0]), RationalQuadratic(1.0, alpha=1.5)):
        assert terms_of(kernel, Inputs.single([Uniform(0, 1)] * 2)) is None


def test_inputs_in_other_units():
    rng = np.random.default_rng(0)
    distributions = [Uniform(0, 1), Normal(1, 2), Empirical(rng.normal(size=(9, 2))), Uniform(0, 3)]
    inputs = Inputs.single(distributions)
    units = AffineMap(
        np.array([1.0, 2.0, 3.0, 0.5]), np.array([2.0, -4.0, 1.0, 3.0]), (1, 0, 1, 3), 5
    )
    inside = inputs.in_units(units)
    assert inside.columns == ((1,), (0, 2), (3,))
    assert inside.owner == (0, 1, 2)
    assert isinstance(inside.distributions[1], Tied)
    assert inside.n_players == 4
    levels = rng.uniform(size=(50, 4))
    X = inputs.rows(levels)
    expected = np.sort(units.inside(X)[:, :3], axis=0)
    got = np.sort(inside.rows(levels[:, :3])[:, :3], axis=0)
    np.testing.assert_allclose(got[:, [0, 2]], expected[:, [0, 2]], atol=1e-14)
    # A negative scale turns a uniform distribution around.
    u = inside.distributions[0]
    assert isinstance(u, Uniform)
    assert (u.low, u.high) == (0.25, 0.5)


def test_quasi_random_points_have_the_moments_of_the_inputs():
    inputs = Inputs.single([Uniform(-1, 3), Normal(2, 0.5), Empirical([0.0, 1.0], [0.25, 0.75])])
    X = inputs.points(4096, np.random.default_rng(0))
    np.testing.assert_allclose(X.mean(axis=0), [1.0, 2.0, 0.75], atol=2e-3)
    np.testing.assert_allclose(X.var(axis=0), [16 / 12, 0.25, 0.1875], atol=5e-3)
