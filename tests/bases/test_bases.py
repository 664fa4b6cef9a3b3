"""Bases and what operators make of them, against 50 digits of the definition."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from gpattr import closed_forms
from gpattr.bases import Basis, Combined, Fourier, Hilbert, Monomials
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators import Gradient, IntegratedGradients
from gpattr.special.trigonometric import sin_cos, sinc

RNG = np.random.default_rng(2)
FOURIER = Fourier(RNG.normal(size=(4, 3)), [0.3, -0.2, 0.1])
MONOMIALS = Monomials(
    [[2, 0, 1], [0, 0, 0], [1, 3, 0], [0, 1, 1]], origin=[0.5, 0.0, -1.0], scale=[1.0, 2.0, 0.5]
)
BOXES = [
    Hilbert([0.2], [3.0], (5,)),
    Hilbert([0.2, -0.3], [3.0, 2.5], (3, 2)),
    Hilbert([0.2, -0.3, 0.0], [3.0, 2.5, 4.0], (2, 1, 3)),
]
ADDITIVE = Combined((BOXES[1], Fourier([[0.7], [-1.3]])), ((2, 0), (1,)), 3)
ALL = [FOURIER, MONOMIALS, *BOXES, ADDITIVE]


def values_of(basis, x):
    """φ(x) for a list of mpmath numbers, written down once more."""
    if isinstance(basis, Fourier):
        origin = np.zeros(basis.n_features) if basis.origin is None else basis.origin
        phases = [
            sum(mp.mpf(v) * (xi - mp.mpf(o)) for v, xi, o in zip(row, x, origin))
            for row in basis.frequencies.tolist()
        ]
        return [mp.sin(p) for p in phases] + [mp.cos(p) for p in phases]
    if isinstance(basis, Monomials):
        u = [
            (xi - mp.mpf(o)) / mp.mpf(s)
            for xi, o, s in zip(x, basis.origin.tolist(), basis.scale.tolist())
        ]
        return [mp.fprod(ui ** int(k) for ui, k in zip(u, row)) for row in basis.powers]
    if isinstance(basis, Combined):
        parts = zip(basis.parts, basis.columns)
        return [value for part, some in parts for value in values_of(part, [x[i] for i in some])]
    sides = list(zip(x, basis.centre.tolist(), basis.half_width.tolist()))
    return [
        mp.fprod(
            mp.sin(mp.pi * int(j) * (xi - mp.mpf(c) + mp.mpf(L)) / (2 * mp.mpf(L)))
            for j, (xi, c, L) in zip(row, sides)
        )
        for row in basis.indices
    ]


def attributions_of(basis, x, b):
    """(xᵢ − bᵢ) ∫ ∂φⱼ/∂xᵢ dt from values alone: derivatives are differences 1e-20 apart, with 60
    digits.
    """
    x, b = ([mp.mpf(v) for v in point.tolist()] for point in (x, b))
    d, h = len(x), mp.mpf(10) ** -20
    nodes = mp.calculus.quadrature.GaussLegendre(mp.mp).calc_nodes(6, 220)
    result = np.empty((d, len(basis)))
    for i in range(d):
        total = [mp.mpf(0)] * len(basis)
        for t, w in nodes:
            point = [bk + (1 + t) / 2 * (xk - bk) for xk, bk in zip(x, b)]
            up, down = ([*point[:i], point[i] + s * h, *point[i + 1 :]] for s in (1, -1))
            slopes = zip(values_of(basis, up), values_of(basis, down))
            total = [a + w / 2 * (p - m) / (2 * h) for a, (p, m) in zip(total, slopes)]
        result[i] = [float((x[i] - b[i]) * value) for value in total]
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    "basis",
    [FOURIER, MONOMIALS, *BOXES, ADDITIVE],
    ids=lambda basis: f"{type(basis).__name__}{basis.n_features}",
)
def test_features_against_the_definition(basis):
    d = basis.n_features
    X, b = RNG.uniform(-1.5, 1.5, size=(3, d)), RNG.uniform(-1.5, 1.5, size=d)
    X[1] = b
    X[1, 0] += 1e-7
    with mp.workdps(60):
        values = np.array(
            [[float(v) for v in values_of(basis, [mp.mpf(xi) for xi in x.tolist()])] for x in X]
        )
        expected = np.stack([attributions_of(basis, x, b) for x in X])
    assert np.abs(basis(X) - values).max() <= 1e-14 * np.abs(values).max()
    for method in ("auto", "quadrature"):
        found = closed_forms.apply_to_basis(IntegratedGradients(b), basis, X, method=method)
        for x, one, two in zip(X, found, expected):
            assert np.abs(one - two).max() <= 2e-14 * np.abs(two).max(), (method, x)
    w = RNG.normal(size=len(basis))
    mean, error = closed_forms.contract_basis(IntegratedGradients(b), basis, X, w)
    assert np.abs(mean - expected @ w).max(axis=1) == pytest.approx(0, abs=1e-13)
    assert np.all(np.abs(mean - expected @ w).max(axis=1) <= error)
    assert np.all(error <= 1e-11)


@pytest.mark.parametrize(
    "basis",
    [FOURIER, MONOMIALS, *BOXES, ADDITIVE],
    ids=lambda basis: f"{type(basis).__name__}{basis.n_features}",
)
def test_gradients(basis):
    X = RNG.uniform(-1.5, 1.5, size=(4, basis.n_features))
    found = closed_forms.apply_to_basis(Gradient(), basis, X)
    for i in range(basis.n_features):
        h = 1e-5 * np.eye(basis.n_features)[i]
        assert found[:, i] == pytest.approx((basis(X + h) - basis(X - h)) / 2e-5, abs=1e-8)


@pytest.mark.parametrize("small", [0.0, 5e-324, 1e-300, 1e-200, 1e-100, 1e-30, 1e-16, 1e-8, 1e-3])
def test_frequencies_orthogonal_to_the_path_lose_no_digit(small):
    """v·(x − b) = small × 0.7: what the printed formula divides by."""
    V = np.array([[1.0, 1.0, 0.7], [3.0, 3.0, 0.7], [0.0, 0.0, 0.7]])
    b, x = np.array([0.25, 0.5, 0.0]), np.array([1.25, -0.5, small])
    found = closed_forms.apply_to_basis(IntegratedGradients(b), Fourier(V), x[None])[0]
    with mp.workdps(400):
        for m, v in enumerate(V.tolist()):
            start, stop = (
                mp.fsum(mp.mpf(vi) * mp.mpf(pi) for vi, pi in zip(v, point.tolist()))
                for point in (b, x)
            )
            theta = stop - start
            ratios = (mp.cos(start), -mp.sin(start))
            if theta != 0:
                ratios = (
                    (mp.sin(stop) - mp.sin(start)) / theta,
                    (mp.cos(stop) - mp.cos(start)) / theta,
                )
            for i in range(3):
                for column, ratio in zip((m, m + 3), ratios):
                    exact = float((mp.mpf(x[i]) - mp.mpf(b[i])) * mp.mpf(v[i]) * ratio)
                    assert abs(found[i, column] - exact) <= 4e-16 * abs(x[i] - b[i]) * abs(v[i]), (
                        v,
                        i,
                    )


def test_the_error_of_a_sum_that_cancels_is_not_relative_to_what_is_left():
    """x⁴ from −1 to 1 + 10⁻⁹: the slopes cancel to 10⁻⁹ of their size."""
    b, x = np.array([-1.0]), np.array([[1.0 + 1e-9]])
    value, error = closed_forms.contract_basis(
        IntegratedGradients(b), Monomials([[4]]), x, np.ones(1)
    )
    exact = Fraction(float(x[0, 0])) ** 4 - 1
    assert abs(float(Fraction(float(value[0, 0])) - exact)) <= error[0]
    assert error[0] > 1e-16


def test_origin_keeps_the_digits_of_data_far_away():
    V, X, b = RNG.normal(size=(5, 2)), RNG.normal(size=(4, 2)), np.zeros(2)
    far = np.array([2.0**26, -(2.0**25)])
    near = closed_forms.apply_to_basis(IntegratedGradients(b), Fourier(V), X)
    rounded = (X + far) - far
    moved = closed_forms.apply_to_basis(IntegratedGradients(far), Fourier(V, far), rounded + far)
    assert (
        np.abs(
            moved - closed_forms.apply_to_basis(IntegratedGradients(b), Fourier(V), rounded)
        ).max()
        <= 1e-15
    )
    assert np.abs(moved - near).max() <= 1e-7


def test_sines_and_cosines_keep_their_digits():
    x = np.concatenate(
        [
            RNG.normal(size=2000) * 10,
            RNG.uniform(-1e4, 1e4, 1000),
            np.pi / 2 * np.arange(-60, 60),
            10.0 ** -np.arange(300),
        ]
    )
    both = sin_cos(x[:, None])
    assert np.abs(both[:, 0] - np.sin(x)).max() <= 4e-16
    assert np.abs(both[:, 1] - np.cos(x)).max() <= 4e-16
    assert sin_cos(np.zeros((1, 1))).tolist() == [[0.0, 1.0]]
    with mp.workdps(40):
        t = np.array([1e-300, 1e-9, 1e-4, 0.1, 1.0, 3.0, 1e3, -2.0])
        assert sinc(t) == pytest.approx(
            [float(mp.sin(v) / v) for v in map(mp.mpf, t.tolist())], rel=1e-15, abs=1e-16
        )
    assert sinc(np.array([0.0, -0.0, 5e-324])).tolist() == [1.0, 1.0, 1.0]


def test_monomials_are_those_of_scikit_learn():
    X = RNG.normal(size=(5, 3))
    for degree in (1, 2, 3, 4):
        for constant in (True, False):
            reference = PolynomialFeatures(degree, include_bias=constant).fit(X)
            basis = Monomials.up_to(degree, 3, constant=constant)
            assert np.array_equal(basis.powers, reference.powers_)
            assert basis(X) == pytest.approx(reference.transform(X), rel=1e-13)
    assert Monomials.up_to(3, 1, constant=False).degree == 3


def test_eigenfunctions_are_orthogonal_and_vanish_at_the_walls():
    box = Hilbert([1.0], [2.0], (6,))
    t, w = np.polynomial.legendre.leggauss(60)
    values = box(1.0 + 2.0 * t[:, None])
    assert values.T @ (2.0 * w[:, None] * values) == pytest.approx(2.0 * np.eye(6), abs=1e-13)
    assert np.abs(box(np.array([[-1.0], [3.0]]))).max() <= 1e-14
    box.check_rows("X", np.array([[-1.0], [3.0]]))
    with pytest.raises(InvalidInputError, match="outside of the box"):
        box.check_rows("X", np.array([[3.01]]))
    assert box.frequencies[:, 0] == pytest.approx(np.arange(1, 7) * math.pi / 4)


class Own(Basis):
    n_features = 2

    def __len__(self):
        return 1

    def __call__(self, X):
        return X[:, :1] * X[:, 1:]


def test_basis_of_ones_own():
    basis, X, b = Own(), RNG.normal(size=(4, 2)), np.array([0.1, 0.2])
    with pytest.raises(
        UnsupportedModelError,
        match="Own: there is no formula for its mean gradient;"
        r" gpattr\.closed_forms\.register_mean_gradient adds one",
    ):
        closed_forms.apply_to_basis(IntegratedGradients(b), basis, X)
    closed_forms.register_mean_gradient(
        Own, lambda basis, paths: 0.5 * (paths.start + paths.stop)[:, ::-1, None]
    )
    try:
        found = closed_forms.apply_to_basis(IntegratedGradients(b), basis, X)
    finally:
        del closed_forms.MEAN_GRADIENTS[Own]
    assert found.sum(axis=1) == pytest.approx(basis(X) - basis(b[None]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fourier([1.0, 2.0]), "frequencies: expected rows"),
        (lambda: Fourier([[1.0, np.nan]]), "frequencies: expected finite numbers"),
        (lambda: Fourier([[1.0, 2.0]], [0.0]), "origin: expected 2 numbers"),
        (lambda: Monomials([[1.5, 0.0]]), "powers: expected whole numbers"),
        (
            lambda: Monomials([[1, 0]], scale=[1.0, 0.0]),
            "scale: expected finite numbers larger than 0",
        ),
        (lambda: Hilbert([0.0], [-1.0], (2,)), "half_width: expected finite numbers larger than 0"),
        (lambda: Hilbert([0.0, 0.0], [1.0, 1.0], (2,)), "n_basis: expected 2 integers"),
        (lambda: Hilbert([0.0], [1.0], (0,)), "n_basis: expected 1 integers of 1 or more"),
        (
            lambda: Combined((BOXES[0],), ((0, 1),), 3),
            "columns: expected 1 different positions below 3",
        ),
        (
            lambda: Combined((BOXES[0],), ((3,),), 3),
            "columns: expected 1 different positions below 3",
        ),
        (lambda: Combined((BOXES[0],), (), 3), "columns: expected one list for each of 1 parts"),
        (
            lambda: FOURIER.check_rows("X", np.array([[0.0] * 3, [1e300, 0, 0]])),
            "X: row 1 lies so far out",
        ),
        (
            lambda: MONOMIALS.check_rows("X", np.array([[0.0] * 3, [0, 1e200, 0]])),
            "X: row 1 lies so far out",
        ),
        (
            lambda: BOXES[1].check_rows("X", np.array([[0.0, 9.0]])),
            r"X: row 0 has 9 in column 1, outside of the box from -2.8",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()
