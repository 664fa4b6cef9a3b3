"""Improvement functions against 50 digits, where the expectation itself underflows."""

import mpmath as mp
import numpy as np
import pytest

from gpattr.special.improvement import hazard, log_expected_improvement, mean_improvement


@pytest.mark.parametrize(
    "u", [-1e8, -1e4, -300.0, -38.0, -10.0, -5.0 - 1e-9, -5.0, -4.9, -1.0, 0.0, 0.3, 5.0, 20.0, 1e3]
)
def test_against_mpmath(u):
    with mp.workdps(50):
        x = mp.mpf(u)
        if u < -1e3:  # beyond the range of mpmath's erfc: the asymptotic series of Mills' ratio
            mills = mp.nsum(lambda k: (-1) ** int(k) * mp.fac2(2 * k - 1) / x ** (2 * k), [0, 8])
            log_phi = -x * x / 2 - mp.log(2 * mp.pi) / 2 + mp.log(mills / -x)
            rho = -x / mills
        else:
            phi = mp.erfc(-x / mp.sqrt(2)) / 2
            log_phi, rho = mp.log(phi), mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) / phi
        gamma = rho + x
        expected = [float(rho), float(gamma), float(log_phi + mp.log(gamma))]
    at = np.array([u])
    found = [hazard(at)[0], mean_improvement(at)[0], log_expected_improvement(at)[0]]
    np.testing.assert_allclose(found, expected, rtol=5e-14, atol=1e-300)


def test_it_is_smooth_where_the_formulas_meet():
    u = np.linspace(-5.001, -4.999, 41)
    second = np.diff(mean_improvement(u), 2)
    assert (np.abs(second) < 1e-8).all()


def test_it_raises_no_warning_anywhere():
    u = np.array([-np.inf, -1e200, -1e15, 0.0, 1e15, 1e200])
    with np.errstate(all="raise", over="ignore"):
        assert (mean_improvement(u[1:]) > 0).all()
