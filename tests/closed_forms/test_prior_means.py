"""Integrated gradients of prior means whose gradients jump, against networks of one ReLU layer.

Their attributions are known: a unit that is active on a share of the path adds that share of its
slope.
"""

import numpy as np
import pytest

from gpattr import closed_forms, means
from gpattr.exceptions import ToleranceError
from gpattr.explainer import Explainer
from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior
from gpattr.special.quadrature import gauss_lobatto


class Network:
    """m(x) = Σₖ vₖ max(wₖ·x + cₖ, 0)."""

    def __init__(self, weights, offsets, heights):
        self.weights, self.offsets, self.heights = map(np.asarray, (weights, offsets, heights))

    def mean(self):
        def value(X):
            return np.maximum(X @ self.weights.T + self.offsets, 0.0) @ self.heights

        def gradient(X):
            return (X @ self.weights.T + self.offsets > 0) * self.heights @ self.weights

        return means.Function(value, gradient)

    def attributions(self, start, stop):
        at_start, at_stop = (x @ self.weights.T + self.offsets for x in (start, stop))
        with np.errstate(divide="ignore", invalid="ignore"):
            active = np.where(at_start * at_stop < 0, np.abs(at_stop / (at_stop - at_start)), 1.0)
        active = np.where(at_start > 0, np.where(at_stop > 0, 1.0, 1.0 - active), active)
        active = np.where((at_start <= 0) & (at_stop <= 0), 0.0, active)
        return (active * self.heights) @ self.weights * (stop - start)


def random_network(rng, d, units):
    return Network(rng.normal(size=(units, d)), rng.normal(size=units), rng.normal(size=units))


@pytest.mark.parametrize(("d", "units"), [(1, 3), (3, 16), (60, 200)])
def test_networks(d, units):
    rng = np.random.default_rng(d)
    network, start, stop = (
        random_network(rng, d, units),
        rng.normal(size=d),
        rng.normal(size=(7, d)),
    )
    found = closed_forms.apply_to_mean(IntegratedGradients(start), network.mean(), stop)
    truth = network.attributions(start, stop)
    np.testing.assert_allclose(found.value, truth, rtol=0, atol=1e-11 * np.abs(truth).max())
    assert (np.abs(found.value - truth).max(axis=1) <= found.error + 1e-14).all()
    assert (found.error <= 1e-10 * np.abs(truth).max()).all()


@pytest.mark.parametrize("place", [1e-9, 1e-4, 0.0065, 0.5, 1.0 - 1e-6])
def test_a_jump_that_no_node_sees(place):
    """The slope changes at one point of the path, also beyond the outermost nodes of a rule."""
    network = Network([[1.0, 0.5], [3.0, -1.0]], [0.0, 0.0], [1.0, 0.0])
    step = np.array([[2.0, 1.0]])
    start = -place * step[0]  # w·x is 0 where a share ``place`` of the path is behind
    found = closed_forms.apply_to_mean(IntegratedGradients(start), network.mean(), start + step)
    truth = network.attributions(start, start + step)
    np.testing.assert_allclose(found.value, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("offset", "slope", "rest"), [(1e6, 1e-5, 1e-3), (100.0, 1e-9, 2e-4), (0.0, 1e-12, 2e-4)]
)
def test_a_jump_along_the_path(offset, slope, rest):
    """A kink nearly parallel to the path changes single gradients, but hardly the values."""

    def above(X):
        return 100.0 * (X[:, 0] - X[:, 1]) + slope * (X[:, 0] - (1.0 - rest))

    def gradient(X):
        active = 1.0 * (above(X) > 0)
        return np.stack([active * (100.0 + slope) + 0.1, -100.0 * active], axis=1)

    mean = means.Function(lambda X: offset + np.maximum(above(X), 0.0) + 0.1 * X[:, 0], gradient)
    found = closed_forms.apply_to_mean(IntegratedGradients(np.zeros(2)), mean, np.ones((1, 2)))
    truth = [[0.1 + rest * (100.0 + slope), -100.0 * rest]]
    np.testing.assert_allclose(found.value, truth, rtol=0, atol=1e-12)


def test_the_error_holds_under_a_large_offset():
    rng = np.random.default_rng(2)
    network, start, stop = random_network(rng, 5, 32), rng.normal(size=5), rng.normal(size=(40, 5))
    plain = network.mean()
    mean = means.Function(lambda X: 1e6 + plain(X), plain.gradient)
    found = closed_forms.apply_to_mean(IntegratedGradients(start), mean, stop)
    off = np.abs(found.value - network.attributions(start, stop)).max(axis=1)
    assert (off <= found.error).all()
    assert found.error.max() < 1e-8


@pytest.mark.parametrize("order", [4, 10])
def test_rules_with_both_ends(order):
    t, w = gauss_lobatto(order)
    assert t[0] == 0.0
    assert t[-1] == 1.0
    for power in range(2 * order - 2):
        np.testing.assert_allclose(w @ t**power, 1.0 / (power + 1), rtol=2e-15)


def test_rows_at_the_baseline_are_zero():
    network = random_network(np.random.default_rng(0), 3, 16)
    rows = np.zeros((2, 3))
    found = closed_forms.apply_to_mean(IntegratedGradients(np.zeros(3)), network.mean(), rows)
    assert (found.value == 0).all()


def test_a_model_with_such_a_mean():
    rng = np.random.default_rng(5)
    X, network = rng.normal(size=(30, 3)), random_network(rng, 3, 16)
    posterior = ExactPosterior(
        SquaredExponential(1.5), X, np.sin(X[:, 0]), noise=0.1, mean=network.mean()
    )
    ex = Explainer(posterior, "zeros")(X[:5])
    assert ex.error.max() < 1e-10
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-11)


def test_a_mean_that_is_rough_everywhere_is_refused():
    X = np.random.default_rng(1).normal(size=(10, 2))
    wild = means.Function(
        lambda X: np.sin(1e9 * X[:, 0]),
        lambda X: np.stack([1e9 * np.cos(1e9 * X[:, 0]), 0.0 * X[:, 0]], axis=1),
    )
    posterior = ExactPosterior(SquaredExponential(1.0), X, X[:, 0], noise=0.1, mean=wild)
    with pytest.raises(ToleranceError, match="The kernel or the prior mean changes too fast"):
        Explainer(posterior, "zeros")(X[:2])
