"""Arithmetic with twice the digits, against that with sixty."""

from __future__ import annotations

import mpmath
import numpy as np

from gpattr.special.double_double import DoubleDouble, Slices

RNG = np.random.default_rng(0)


def exact(number):
    return mpmath.mpf(float(number.hi)) + mpmath.mpf(float(number.lo))


def test_products_and_sums():
    a = RNG.normal(size=1001) * 10.0 ** RNG.uniform(-8, 8, 1001)
    b = RNG.normal(size=1001)
    with mpmath.workdps(60):
        products = [mpmath.mpf(x) * mpmath.mpf(y) for x, y in zip(a.tolist(), b.tolist())]
        known, size = sum(products), max(map(abs, products))
        for found in (DoubleDouble.of(a) * DoubleDouble.of(b), DoubleDouble.of(a).times(b)):
            assert abs(exact(found.sum()) - known) < 1e-28 * size
        square = DoubleDouble.of(a).times(b) * DoubleDouble.of(b)
        known = sum(p * mpmath.mpf(y) for p, y in zip(products, b.tolist()))
        assert abs(exact(square.sum()) - known) < 1e-28 * size
        difference = DoubleDouble.of(a).times(b) - DoubleDouble.of(b).times(a)
        assert not difference.hi.any()
        assert not difference.lo.any()


def test_sums_of_one_and_of_nothing():
    one = DoubleDouble.of(np.array([[1.5], [2.5]])).sum()
    np.testing.assert_array_equal(one.hi, [1.5, 2.5])
    assert DoubleDouble.of(np.zeros((2, 0))).sum().hi.tolist() == [0.0, 0.0]


def test_products_of_matrices():
    for K in (1, 37, 3000):
        V = np.exp(-RNG.uniform(0, 30, size=(K, 6)))
        W = np.exp(-RNG.uniform(0, 3, size=(K, 4)))
        V[:, 0] = 0.0
        left, right = Slices(V), Slices(W)
        found = left.gram(right, slice(0, 6))
        with mpmath.workdps(60):
            known = mpmath.matrix(V.tolist()).T * mpmath.matrix(W.tolist())
            for i in range(6):
                for j in range(4):
                    error = abs(exact(found[i, j]) - known[i, j])
                    assert error <= K * left.rounding * V[:, i].max() * W[:, j].max()
        assert K * left.rounding < 1e-20
        np.testing.assert_array_equal(left.gram(right, slice(2, 5)).hi, found.hi[2:5])
