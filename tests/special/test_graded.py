"""Graded panels: integrands with kinks and near-singular points, against their antiderivatives."""

import numpy as np
import pytest

from gpattr import memory_budget
from gpattr.special.graded import approach, integrate_graded

UNIT = np.array([[0.0, 1.0]])


@pytest.mark.parametrize("centre", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.1, 3.0])
def test_a_branch_point_beside_the_path(centre, rho):
    """∫√(ρ² + (t − c)²) dt."""

    def antiderivative(u):
        return 0.5 * (u * np.hypot(u, rho) + rho * rho * np.arcsinh(u / rho))

    def evaluate(rows, t, w):
        return (w * np.hypot(t - centre, rho)).sum(axis=1)

    got = integrate_graded(evaluate, UNIT, np.array([[centre]]), np.array([[max(rho, 1e-7)]]), 8.0)
    expected = antiderivative(1 - centre) - antiderivative(-centre)
    np.testing.assert_allclose(got, [expected], rtol=1e-13)


def test_edges_alone_are_enough_for_kinks():
    centres = np.array([[0.2, 0.7], [0.5, 0.5]])
    seen = []

    def evaluate(rows, t, w):
        seen.append(t.shape)
        kinks = np.abs(t - centres[rows, :1]) * np.abs(t - centres[rows, 1:])
        return (w * kinks)[:, :, None].sum(axis=1)

    edges = np.repeat(UNIT, 2, axis=0)
    got = integrate_graded(evaluate, edges, centres, np.zeros((2, 2)), 8.0)
    t = np.linspace(0, 1, 2_000_001)
    brute = [np.trapezoid(np.abs(t - a) * np.abs(t - b), t) for a, b in centres]
    np.testing.assert_allclose(got[:, 0], brute, atol=1e-12)
    assert max(width for _, width in seen) <= 36  # three panels, and none for what does not exist


def test_blocks_change_nothing():
    rng = np.random.default_rng(0)
    centres, deltas = rng.uniform(size=(50, 2)), 10.0 ** rng.uniform(-6, 1, size=(50, 2))
    edges = np.repeat(np.array([[0.0, 0.4, 1.0]]), 50, axis=0)

    def evaluate(rows, t, w):
        r = np.hypot(t[:, :, None] - centres[rows][:, None, :], deltas[rows][:, None, :])
        return (w[:, :, None] * r).sum(axis=1)

    plenty = integrate_graded(evaluate, edges, centres, deltas, 8.0)
    with memory_budget(working=1.0):
        np.testing.assert_allclose(
            integrate_graded(evaluate, edges, centres, deltas, 8.0), plenty, rtol=1e-14
        )


def test_approach():
    p, e = (
        np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 0.0], [1.0, 0.0]]),
        np.array([[-1.0, 0.5], [3.0, 0.0], [1.0, 1.0], [-0.5, 0.0]]),
    )
    nearest, distance = approach(p, e, 1e-3)
    np.testing.assert_allclose(nearest[[0, 1, 3]], [0.5, 0.0, 0.5])
    np.testing.assert_allclose(distance, [0.25, 1.5, np.inf, 0.0])
    nearest, distance = approach(p[:, :1], e[:, :1], 1e-3)
    assert distance.tolist() == [0.0, 1.5, np.inf, 0.0]
