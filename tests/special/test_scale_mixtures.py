"""Scale mixtures against the kernels themselves, and against their derivatives."""

import mpmath
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Matern, Matern12, Matern32, Matern52
from gpattr.special.scale_mixtures import matern_mixture, rational_quadratic_mixture

R = np.concatenate([[0.0], np.logspace(-8, 3, 6000)])
TOLERANCES = (1e-3, 1e-6, 1e-9, 1e-11)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(
    ("nu", "kernel"),
    [
        (0.5, Matern12(1.0)),
        (1.5, Matern32(1.0)),
        (2.5, Matern52(1.0)),
        (1.2, Matern(1.0, nu=1.2)),
        (7.0, Matern(1.0, nu=7.0)),
        (50.0, Matern(1.0, nu=50.0)),
    ],
)
@pytest.mark.parametrize("derivatives", [0, 1, 2])
def test_matern_within_its_bound(nu, kernel, tolerance, derivatives):
    if nu <= derivatives:
        return
    mixture = matern_mixture(nu, tolerance, derivatives)
    gap = np.abs(mixture(R * R) - kernel.profile(R * R)).max()
    assert gap <= mixture.bound + 1e-14 <= tolerance + 1e-14  # Bessel functions round, too
    assert mixture.constant == 0.0
    assert (mixture.weights >= 0).all()


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0])
@pytest.mark.parametrize("derivatives", [0, 1, 2])
def test_rational_quadratic_within_its_bound(alpha, tolerance, derivatives):
    mixture = rational_quadratic_mixture(alpha, tolerance, derivatives)
    gap = np.abs(mixture(R * R) - (1.0 + R * R / (2.0 * alpha)) ** -alpha).max()
    assert gap <= mixture.bound <= tolerance
    assert mixture.constant + mixture.weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_radius_is_what_the_constant_is_good_for():
    near = rational_quadratic_mixture(0.5, 1e-10, radius=10.0)
    r2 = np.linspace(0.0, 10.0, 500) ** 2
    assert np.abs(near(r2) - (1.0 + r2) ** -0.5).max() <= near.bound
    assert len(near.scales) < len(rational_quadratic_mixture(0.5, 1e-10).scales)


def derivative(mixture, r, order):
    """(−1)ⁿ Σ wλ^(−n/2) Heₙ(r/√λ) exp(−r²/2λ), for n > 0."""
    v = r[:, None] / np.sqrt(mixture.scales)
    wave = hermeval(v, [0.0] * order + [1.0]) * np.exp(-0.5 * v * v)
    return (-1.0) ** order * (wave * mixture.weights * mixture.scales ** (-order / 2)).sum(axis=1)


def true_derivatives(profile, r, order):
    with mpmath.workdps(40):
        return np.array([float(mpmath.diff(profile, mpmath.mpf(at), order)) for at in r])


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
@pytest.mark.parametrize(("half", "derivatives"), [(5, 1), (5, 2), (7, 2)])
def test_derivatives_of_matern_within_the_bound(half, derivatives, tolerance):
    def profile(r):
        s = mpmath.sqrt(half) * r
        if half == 5:
            return (1 + s + s * s / 3) * mpmath.exp(-s)
        return (1 + s + 2 * s**2 / 5 + s**3 / 15) * mpmath.exp(-s)

    mixture = matern_mixture(half / 2, tolerance, derivatives)
    r = np.logspace(-3, 1.5, 60)
    for order in range(1, 2 * derivatives + 1):
        gap = np.abs(derivative(mixture, r, order) - true_derivatives(profile, r, order)).max()
        assert gap <= mixture.bound <= tolerance


@pytest.mark.parametrize("tolerance", [1e-4, 1e-9])
@pytest.mark.parametrize("alpha", [0.3, 2.0, 30.0])
def test_derivatives_of_rational_quadratic_within_the_bound(alpha, tolerance):
    mixture = rational_quadratic_mixture(alpha, tolerance, 2)
    r = np.linspace(0.0, 20.0, 60)
    for order in (1, 2, 3, 4):
        truth = true_derivatives(lambda x: (1 + x * x / (2 * alpha)) ** -alpha, r, order)
        assert np.abs(derivative(mixture, r, order) - truth).max() <= mixture.bound <= tolerance


def test_a_rough_matern_reports_what_it_cannot_reach():
    mixture = matern_mixture(2.01, 1e-9, 2)
    assert mixture.bound > 1e-9
    # Its fourth derivative at 0 is 3ν²/((ν − 1)(ν − 2)).
    truth = 3 * 2.01**2 / (1.01 * 0.01)
    assert abs(derivative(mixture, np.zeros(1), 4)[0] - truth) <= mixture.bound


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, 1e-6, 2), "nu: expected more than 2 for 4 derivatives"),
        ((1.5, 1e-6, 3), "derivatives: expected 0, 1 or 2, got 3"),
        ((1.5, 0.5), "tolerance: expected 1e-14 to 0.1, got 0.5"),
        ((-1.0, 1e-6), "nu"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        matern_mixture(*arguments)
