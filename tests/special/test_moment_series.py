"""Path moments by power series in β, against 40-digit integration and against the rule."""

import mpmath
import numpy as np
import pytest

from gpattr.special import moment_series, path_moments
from gpattr.special.gaussian import _rule_moments

EPS = np.finfo(float).eps


def exact(a, beta, c, k):
    with mpmath.workdps(40):
        a, beta, c = map(mpmath.mpf, (a, beta, c))
        return float(
            mpmath.quad(lambda t: t**k * mpmath.exp(-(a * t * t + 2 * beta * t + c) / 2), [0, 1])
        )


@pytest.mark.parametrize("bound", [bound for bound, _ in moment_series.REACHES])
def test_against_mpmath(bound):
    a = np.array([0.0, 1e-9, 0.3, 1.0, 4.0])
    beta = np.broadcast_to(bound * np.array([-1.0, -0.6, -1e-8, 0.0, 0.3, 1.0]), (5, 6)).copy()
    c0 = np.full((5, 6), bound**2)  # at least β²/a for a = 1
    terms = dict(moment_series.REACHES)[bound]
    found = moment_series.series(a, beta, c0, bound, terms)
    for k, moment in enumerate(found):
        for i, j in np.ndindex(beta.shape):
            expected = exact(a[i], beta[i, j], c0[i, j], k)
            assert abs(moment[i, j] - expected) <= 16 * EPS * expected


def test_pairs_beyond_the_reach_are_left_to_the_rule():
    rng = np.random.default_rng(0)
    a, beta = rng.uniform(0, 4, 50), rng.normal(size=(50, 200))
    beta[7, 11], beta[20, 3] = -30.0, 1e100
    c0 = beta**2 / a[:, None] + 1.0
    beyond = moment_series.reach(beta)[2]
    assert {(7, 11), (20, 3)} <= set(map(tuple, beyond.T.tolist()))
    found, expected = path_moments(a, beta, c0, None), _rule_moments(a[:, None], beta, c0)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=4e-15)


def test_many_long_pairs_take_the_rule():
    beta = np.random.default_rng(0).normal(size=(5, 40)) * 20
    assert moment_series.reach(beta) is None


def test_results_are_the_callers():
    """The buffers of a thread are reused; what `path_moments` returns is not in them."""
    a, c0 = np.array([1.0, 2.0]), np.full((2, 3), 9.0)
    first = path_moments(a, np.zeros((2, 3)), c0, None)
    kept = [moment.copy() for moment in first]
    path_moments(a, np.ones((2, 3)), c0, None)
    for one, two in zip(first, kept, strict=True):
        np.testing.assert_array_equal(one, two)
