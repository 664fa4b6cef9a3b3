"""Rules for the weight −ln s against their moments, ∫₀¹ (−ln s) sᵏ ds = 1/(k + 1)²."""

import mpmath
import numpy as np
import pytest

from gpattr.special.log_paths import (
    FINE,
    INNER,
    graded_nodes,
    interpolatory_weights,
    log_panels,
    log_rule,
    path_correlations,
    shared_rule,
)
from gpattr.special.quadrature import gauss_legendre


def moment(k):
    return pytest.approx(1.0 / (k + 1) ** 2, rel=2e-15)


@pytest.mark.parametrize("order", [1, 2, 5, 11, 16, 24])
def test_gauss_rule_is_exact(order):
    nodes, weights = log_rule(order)
    for k in range(2 * order):
        assert weights @ nodes**k == moment(k)
    assert abs(weights @ nodes ** (2 * order) * (2 * order + 1) ** 2 - 1.0) > 1e-15 or order > 11
    assert log_rule(order)[0] is nodes
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 0.0


@pytest.mark.parametrize("panels", [1, 2, 7, 40])
def test_composite_rule(panels):
    nodes, weights = log_panels(panels)
    assert (weights > 0).all()
    for k in range(32):
        assert weights @ nodes**k == moment(k)


def test_interpolatory_weights():
    nodes, weights = gauss_legendre(10)[0], interpolatory_weights(10)
    for k in range(10):
        assert weights @ nodes**k == moment(k)


@pytest.mark.parametrize("length", [1e-3, 0.3, 1.7, 4.0, 11.0])
@pytest.mark.parametrize("position", [-0.5, 0.0, 0.01, 0.6, 1.0])
def test_shared_rule_resolves_a_squared_exponential(length, position):
    nodes, weights = shared_rule(length, gaussian=True)
    with mpmath.workdps(25):
        truth = mpmath.quad(
            lambda s: -mpmath.log(s) * mpmath.exp(-((length * (s - position)) ** 2) / 2),
            [0, 0.01, 0.1, 0.3, 0.6, 1],
        )
    value = weights @ np.exp(-0.5 * (length * (nodes - position)) ** 2)
    assert value == pytest.approx(float(truth), abs=2e-14)


@pytest.mark.parametrize(("grading", "accuracy"), [(FINE, 1e-14), (INNER, 1e-9)])
def test_graded_nodes_of_any_length(grading, accuracy):
    centre = np.array([0.0, 1.0, 0.3, 1e-5, 0.7])
    length = np.array([1.0, 5.0, 100.0, 1e4, 1e8])
    nodes = graded_nodes(centre, length, 0.0 * centre, grading=grading)
    for power in (0, 1):
        values = nodes.s**power * np.exp(-0.5 * (nodes.v * length[nodes.owner][:, None]) ** 2)
        sums = nodes.sums(nodes.weights * values, 5)
        for c, size, value in zip(centre, length, sums, strict=True):
            ends = {min(max(c + k / size, 0.0), 1.0) for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)}
            with mpmath.workdps(25):
                truth = mpmath.quad(
                    lambda s, c=c, size=size: (
                        -mpmath.log(s) * s**power * mpmath.exp(-(((s - c) * size) ** 2) / 2)
                    ),
                    sorted(map(mpmath.mpf, ends | {0.0, 1e-9, 1e-6, 1e-3, 1.0})),
                )
            assert value == pytest.approx(float(truth), rel=accuracy)


def test_correlations_along_one_path():
    v, second, first = path_correlations()
    assert 2.0 * first.sum() == pytest.approx(1.0, abs=2e-15)
    assert 2.0 * second.sum() == pytest.approx(1.0 / 16.0, abs=2e-15)
    s, w = log_panels(40)
    gap = np.abs(s[:, None] - s)
    for a in (0.3, 30.0, 2000.0):
        kernel = np.exp(-0.5 * a * gap * gap)
        assert 2.0 * first @ np.exp(-0.5 * a * v * v) == pytest.approx(w @ kernel @ w, rel=1e-13)
        truth = (w * s) @ kernel @ (w * s)
        assert 2.0 * second @ np.exp(-0.5 * a * v * v) == pytest.approx(truth, rel=1e-13)
