"""The certainty of signs after a measurement: against integration, and against outcomes that are
simulated and conditioned on.
"""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from gpattr import Explainer
from gpattr.explanation.sign_certainty import (
    expected_sign_certainty,
    prob_settled,
    sign_certainty,
)
from measurements.models import CANDIDATES, ROWS, exact

CASES = [
    (0.0, 1.0, 0.5),
    (0.3, 1.0, 0.9),
    (-1.2, 0.7, 0.1),
    (2.0, 0.5, 0.4999),
    (1e-3, 2.0, 1e-4),
    (-4.0, 1.0, 0.8),
]


def outcomes(m, s, moved):
    """m' given a standard normal z, the density of z, and s₁."""
    m, s, moved = map(mp.mpf, (m, s, moved))
    left = mp.sqrt(s**2 - moved**2)
    return (lambda z: m + moved * z), mp.npdf, left


@pytest.mark.parametrize(("m", "s", "moved"), CASES)
def test_against_integration(m, s, moved):
    with mp.workdps(30):
        later, density, left = outcomes(m, s, moved)
        zero = -mp.mpf(m) / mp.mpf(moved)  # where m' changes its sign: a kink
        ends = sorted({-mp.mpf(12), mp.mpf(12), *[zero] * (abs(zero) < 12)})
        truth = mp.quad(lambda z: density(z) * mp.ncdf(abs(later(z)) / left), ends)
        found = expected_sign_certainty(*map(np.array, (m, s, moved)))
        assert float(abs(found - truth)) < 1e-15
        for level in (0.8, 0.95):
            bound = mp.sqrt(2) * mp.erfinv(2 * mp.mpf(level) - 1) * left
            chance = mp.ncdf((m - bound) / moved) + mp.ncdf((-m - bound) / moved)
            assert float(abs(prob_settled(*map(np.array, (m, s, moved)), level) - chance)) < 1e-14


numbers = st.floats(-5, 5)


@given(numbers, st.floats(0.01, 3), st.floats(0, 1), st.floats(0.51, 0.999))
def test_laws(m, s, part, level):
    m, s, moved = (np.array(value) for value in (m, s, part * s))
    before, after = sign_certainty(m, s), expected_sign_certainty(m, s, moved)
    # Looking can only help, and at most settle it.
    assert before - 1e-14 <= after <= 1.0
    chance = prob_settled(m, s, moved, level)
    assert 0.0 <= chance <= 1.0 + 1e-15
    # Markov's inequality, for certainties between ½ and 1.
    assert (after - 0.5) * 2 >= chance * (2 * level - 1) - 1e-13


def test_limits():
    m, s = np.array([0.7, -0.7, 0.0]), np.ones(3)
    np.testing.assert_allclose(expected_sign_certainty(m, s, 0 * s), ndtr(abs(m)), rtol=1e-15)
    np.testing.assert_array_equal(expected_sign_certainty(m, s, s), 1.0)
    np.testing.assert_array_equal(prob_settled(m, s, s, 0.95), 1.0)
    np.testing.assert_array_equal(prob_settled(m, s, 0 * s, 0.95), 0.0)
    np.testing.assert_array_equal(prob_settled(5 * m, s, 0 * s, 0.95), [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(prob_settled(m, s, 0.5 * s, 0.4), 1.0)
    zero = np.zeros(3)
    np.testing.assert_array_equal(sign_certainty(m, zero), [1.0, 1.0, 0.5])
    np.testing.assert_array_equal(expected_sign_certainty(m, zero, zero), [1.0, 1.0, 0.5])
    np.testing.assert_array_equal(prob_settled(m, zero, zero, 0.95), [1.0, 1.0, 0.0])
    tiny = np.full(3, 1e-310)
    np.testing.assert_array_equal(sign_certainty(m, tiny), [1.0, 1.0, 0.5])


def test_simulated_outcomes():
    """Draw what would be measured, condition on it, and count how certain signs become."""
    posterior, baseline, noise = exact(noise=0.3), np.zeros(3), 0.1
    found = Explainer(posterior, baseline).measure_next(CANDIDATES[:1], ROWS, noise=noise)
    mean, std = posterior.predict(CANDIDATES[:1], return_std=True)
    draws = np.random.default_rng(0).normal(mean[0], np.sqrt(std[0] ** 2 + noise), 400)
    certain = []
    for y in draws:
        after = Explainer(posterior.condition_on(CANDIDATES[0], y, noise), baseline)(ROWS)
        p = after.prob_positive()
        certain.append(np.maximum(p, 1.0 - p))
    certain = np.array(certain)
    for sampled, expected in (
        (certain, found.expected_sign_certainty[0]),
        ((certain > 0.8).astype(float), found.prob_settled(0.8)[0]),
    ):
        error = sampled.std(axis=0) / np.sqrt(len(draws)) + 1e-12
        assert (np.abs(sampled.mean(axis=0) - expected) < 4.5 * error + 1e-3).all()
