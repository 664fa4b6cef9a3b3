"""Every kernel against tables of the definition (50 digits): a thousand paths with their bounds, paths that cross, long paths."""

from pathlib import Path

import numpy as np
import pytest
from tests.reference import definition
from tests.reference.generate_kernels import CASES, case_of, crossing_cases

from gpattr import closed_forms
from gpattr.closed_forms import kinks
from gpattr.kernels import Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential, separable
from gpattr.operators import IntegratedGradients, Paths

HERE = Path(__file__).parents[1] / "reference"


def test_reported_bounds_hold_on_a_thousand_cases():
    truth = np.load(HERE / "kernels.npz")["cross"]
    assert len(truth) == CASES == 1000
    for number, expected in enumerate(truth):
        kernel, b, x, z = case_of(number)
        value, bound = closed_forms.estimate(IntegratedGradients(b), kernel, x[None], z[None], np.ones((1, 1)))
        error = np.abs(value[0, :, 0] - expected).max()
        size = max(float(kernel.diagonal(np.stack([b, x, z])).max()), 1e-300)
        assert error <= 2 * bound[0], (number, kernel)
        assert error <= 1e-9 * size, (number, kernel)
        assert bound[0] <= 1e-8 * size, (number, kernel)


def test_paths_that_cross():
    truth = np.load(HERE / "crossings.npz")["between"]
    for expected, (kernel, b, x, b2, x2) in zip(truth, crossing_cases(), strict=True):
        one, two = Paths(b[None], x[None]), Paths(b2[None], x2[None])
        for method in ("auto", "quadrature"):
            got = closed_forms.rule_for(IntegratedGradients, kernel, method).between(one, two)[0]
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9, err_msg=f"{kernel} {method}")


def test_kinks_of_single_features_that_cross(monkeypatch):
    """Where two kinks cross inside the square there is an edge: fifty times as many panels change nothing."""
    kernel = separable(Matern32, [1.0, 0.7])
    one = Paths(np.array([[-0.5, -0.25]]), np.array([[0.75, 0.5]]))
    two = Paths(np.array([[0.62, -0.5]]), np.array([[-0.3, 0.77]]))
    coarse = kinks.between_with_kinks(kernel, one, two)
    monkeypatch.setattr(kinks, "PER_SPAN", 0.02)
    np.testing.assert_allclose(coarse, kinks.between_with_kinks(kernel, one, two), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern32([1.0, 0.5]),
        Matern52([1.0, 0.5]),
        RationalQuadratic([1.0, 0.5], alpha=0.5),
        separable(Matern32, [1.0, 0.5]),
        Matern52([1.0, 0.5]) * SquaredExponential(2.0),
        Matern32(1.0) * Linear(0.01),
    ],
    ids=repr,
)
@pytest.mark.parametrize("aside", [0.0, 1e-8, 0.01, 1.0])
def test_a_hundred_lengthscales(kernel, aside):
    b, x = np.array([-40.0, 3.0]), np.array([40.0, -30.0])
    across = np.array([33.0, 80.0]) / np.hypot(33.0, 80.0)
    z = b + 0.3125 * (x - b) + aside * across
    got = closed_forms.cross(IntegratedGradients(b), kernel, x[None], z[None])[0, :, 0]
    expected = definition.cross(kernel, b, x, z, 52, order=16)
    size = float(kernel.diagonal(np.stack([b, x, z])).max())
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9 * size)
    gain = kernel(x[None], z[None]) - kernel(b[None], z[None])
    assert abs(got.sum() - gain[0, 0]) <= 1e-9 * size
