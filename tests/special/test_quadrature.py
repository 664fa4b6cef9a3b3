import numpy as np
import pytest

from gpattr.special import gauss_legendre, integrate


@pytest.mark.parametrize(("order", "panels"), [(1, 1), (5, 1), (12, 3), (16, 7)])
def test_exact_for_polynomials(order, panels):
    nodes, weights = gauss_legendre(order, panels)
    assert len(nodes) == order * panels
    assert nodes.min() > 0
    assert nodes.max() < 1
    for power in range(2 * order):
        assert weights @ nodes**power == pytest.approx(1 / (power + 1), rel=1e-14)


def test_rules_are_shared_and_read_only():
    nodes, weights = gauss_legendre(6)
    assert gauss_legendre(6)[0] is nodes
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        weights[0] = 0.0


def test_integrate_knows_its_error():
    rates = np.array([0.1, 10.0, 300.0])
    value, error = integrate(lambda t: np.exp(-rates * t[:, None]))
    truth = -np.expm1(-rates) / rates
    assert np.all(np.abs(value - truth) <= error)
    assert np.all(error <= 1e-12 * truth)


def test_integrate_reports_what_it_could_not_reach():
    """A jump defeats any polynomial rule: the error says so instead of hiding it."""
    value, error = integrate(lambda t: (t > 1 / 3).astype(float), max_panels=8)
    assert abs(value - 2 / 3) <= error
    assert error > 1e-4
