"""Scalar integrals against 50-digit integration (tests/reference/generate.py)."""

import numpy as np
import pytest
from tests.conftest import REFERENCE

from gpattr.special import centred_moments, g0, g2, path_moments, path_products
from gpattr.special.gaussian import rows_by_length

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def table():
    with np.load(REFERENCE / "scalars.npz") as file:
        return {name: file[name] for name in file.files}


def moments(a, beta, c0, c1):
    """J₀ and J₁ of every row, by the branch its length asks for."""
    J0, J1 = np.empty_like(beta), np.empty_like(beta)
    for rows, is_short in rows_by_length(a, 50):
        J0[rows], J1[rows] = path_moments(
            a[rows], beta[rows], c0[rows], None if is_short else c1[rows]
        )
    return J0, J1


def test_rows_by_length_takes_every_row_once():
    a = np.random.default_rng(0).exponential(4.0, size=101)
    chunks = list(rows_by_length(a, 10))
    assert sorted(np.concatenate([rows for rows, _ in chunks])) == list(range(101))
    assert all(((a[rows] <= 4) == is_short).all() for rows, is_short in chunks)
    assert max(len(rows) for rows, _ in chunks) == 10


def test_products_are_those_of_the_moments(table):
    a, beta, c0, c1 = (column[:, None] * np.ones(3) for column in table["moments"].T[:4])
    right = np.random.default_rng(0).normal(size=(3, 5))
    for rows, is_short in rows_by_length(a[:, 0], 64):
        arguments = a[rows, 0], beta[rows], c0[rows], None if is_short else c1[rows]
        for moment, product in zip(
            path_moments(*arguments), path_products(*arguments, right), strict=True
        ):
            np.testing.assert_allclose(product, moment @ right, rtol=0, atol=2e-15)


def test_path_moments(table):
    a, beta, c0, c1, J0, J1 = table["moments"].T
    got0, got1 = moments(a, beta[:, None], c0[:, None], c1[:, None])
    # The doubles a, β, c determine ρ² = c − β²/a only to ε·a: no evaluation can do better.
    bound = 4 * EPS * (1 + a)
    assert np.all(np.abs(got0[:, 0] - J0) <= bound)
    assert np.all(np.abs(got1[:, 0] - J1) <= bound)
    short = a <= 4
    assert np.abs(got0[short, 0] - J0[short]).max() <= 8e-16
    assert np.abs(got1[short, 0] - J1[short]).max() <= 8e-16


def test_path_moments_at_a_peak_of_either_zero():
    """β = ±0.0 (point at the baseline) and a + β = ±0.0 (at the row) are ordinary points."""
    a = np.array([9.0, 9.0, 9.0])
    beta = np.array([[0.0], [-0.0], [-9.0]])
    c0, c1 = np.array([[0.0], [0.0], [9.0]]), np.array([[9.0], [9.0], [0.0]])
    J0, _ = moments(a, beta, c0, c1)
    np.testing.assert_allclose(
        J0, np.sqrt(np.pi / 18) * 0.9973002039367398, rtol=1e-15
    )  # √(π/2a) erf(3/√2)


def test_branches_meet(table):
    """On both sides of every branch point the two formulas give the same numbers."""
    for edge in (0.01, 0.25, 1.0, 4.0):
        a = np.array([edge, np.nextafter(edge, 10)])
        beta = -0.4 * a[:, None]
        c = np.full((2, 1), 0.3 + 0.16 * edge)
        J0, J1 = moments(a, beta, c, a[:, None] + 2 * beta + c)
        assert abs(J0[0] - J0[1]) < 5e-15
        assert abs(J1[0] - J1[1]) < 5e-15


def test_centred_moments_relative_to_the_peak(table):
    a, beta, rho2, *expected = table["centred"].T
    got = centred_moments(a, beta, rho2)
    # A relative error of the exponents, at most ~60 where anything is left, times the size of τᵏ
    # where it is.
    scale = np.exp(-rho2 / 2)
    for power, (mine, truth) in enumerate(zip(got, expected, strict=True)):
        width = np.maximum(1 / np.sqrt(a), np.minimum(1, np.abs(beta / a) + 1) * (a < 9)) ** power
        assert np.all(np.abs(mine - truth) <= 2e-14 * scale * width)


@pytest.mark.parametrize(("function", "column"), [(g0, 1), (g2, 2)])
def test_g_has_full_relative_precision(table, function, column):
    a, expected = table["g"][:, 0], table["g"][:, column]
    np.testing.assert_allclose(function(a), expected, rtol=8 * EPS, atol=0)
