"""Radial kernels times linear factors against the general quadrature, and against mpmath."""

import mpmath
import numpy as np
import pytest

from gpattr import closed_forms
from gpattr.closed_forms.linear_factors import LONGEST, factorised, linear_factor_formulas
from gpattr.closed_forms.quadrature.numeric import quadrature
from gpattr.kernels import (
    Constant,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Select,
    SquaredExponential,
)
from gpattr.operators import IntegratedGradients, Paths

RNG = np.random.default_rng(0)


def mixed(kind, scale=1.0):
    numbers = Select(kind(np.array([0.7, 1.2, 1.0]) * scale, 2.0), [0, 2, 3])
    first = Constant(0.3) + Select(Linear(0.7), [1, 4])
    second = Constant(0.5) + Select(Linear(0.5), [5])
    return numbers * first * second * 1.5


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
@pytest.mark.parametrize("scale", [0.3, 1.0, 30.0])
@pytest.mark.parametrize("shared", [True, False])
def test_as_the_general_quadrature(kind, scale, shared):
    kernel = mixed(kind, scale)
    X, b, Z, w = (RNG.normal(size=size) for size in ((5, 6), (5, 6), (7, 6), (7, 2)))
    Z[0], Z[1], X[2] = X[0], 0.3 * X[1] + 0.7 * b[1], b[2]  # on paths, and one of no length
    X[3] = b[3] + 1e-8 * X[3]
    paths = Paths(b[:1] if shared else b, X)
    other = Paths(b[::-1], X[::-1])
    found, general = factorised(kernel), quadrature(kernel)
    assert found is not None
    fast = linear_factor_formulas(found, general)
    for verb, args in (
        ("cross", (paths, Z)),
        ("contract", (paths, Z, w)),
        ("prior_cov", (paths,)),
        ("between", (paths, other)),
    ):
        one, two = (getattr(formulas, verb)(*args) for formulas in (fast, general))
        gap = np.abs(one.value - two.value).reshape(5, -1).max(axis=1)
        assert (gap <= one.error + two.error).all(), verb
        assert one.error.max() < 1e-6


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
def test_against_many_digits(kind):
    kernel = Select(kind(0.6, 1.3), [0]) * (Constant(0.2) + Select(Linear(0.8), [1]))
    b, x, z = np.array([0.1, -0.4]), np.array([1.3, 0.9]), np.array([0.7, 1.1])

    def profile(r2):
        r = mpmath.sqrt(r2)
        if kind is SquaredExponential:
            return mpmath.exp(-r2 / 2)
        return (1 + mpmath.sqrt(5) * r + 5 * r2 / 3) * mpmath.exp(-mpmath.sqrt(5) * r)

    def value(u, v):
        return (
            mpmath.mpf(1.3)
            * profile(((u - mpmath.mpf(z[0])) / mpmath.mpf(0.6)) ** 2)
            * (mpmath.mpf(0.2) + mpmath.mpf(0.8) * v * mpmath.mpf(z[1]))
        )

    with mpmath.workdps(30):
        start, step = [mpmath.mpf(v) for v in b], [mpmath.mpf(v) for v in x - b]
        middle = (mpmath.mpf(z[0]) - start[0]) / step[0]  # where the path is closest to z
        truth = [
            step[i]
            * mpmath.quad(
                lambda t: mpmath.diff(
                    value, [start[j] + t * step[j] for j in (0, 1)], [int(i == 0), int(i == 1)]
                ),
                [0, middle, 1],
            )
            for i in (0, 1)
        ]
    got = closed_forms.cross(IntegratedGradients(b), kernel, x[None], z[None])[0, :, 0]
    np.testing.assert_allclose(got, np.array(truth, dtype=float), rtol=0, atol=2e-15)


def test_other_kernels_are_not_taken():
    numbers, labels = Select(Matern52(), [0]), Constant(0.5) + Select(Linear(0.5), [1])
    assert factorised(numbers * labels) is not None
    for kernel in (
        Select(Matern32(), [0]) * labels,  # too rough for these panels
        numbers * Select(Polynomial(degree=2), [1]),
        numbers * Select(Matern52(), [1]) * labels,
        numbers,
    ):
        assert factorised(kernel) is None


def test_long_paths_are_left_to_the_general_quadrature():
    kernel = Select(SquaredExponential(), [0]) * (Constant(0.5) + Select(Linear(0.5), [1]))
    x, Z = np.array([[LONGEST + 1.0, 1.0]]), np.ones((2, 2))
    op = IntegratedGradients(np.zeros(2))
    got = closed_forms.cross(op, kernel, x, Z)
    np.testing.assert_allclose(
        got.sum(axis=1), kernel(x, Z) - kernel(np.zeros((1, 2)), Z), atol=1e-12
    )
