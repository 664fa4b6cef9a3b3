"""Every kernel against tables of the definition (50 digits): a thousand paths with their bounds,
paths that cross, long paths.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.reference import definition
from tests.reference.generate_kernels import CASES, case_of, crossing_cases

from gpattr import Explainer, closed_forms
from gpattr.closed_forms.quadrature import kinks
from gpattr.exceptions import ToleranceError
from gpattr.kernels import (
    FullAdditive,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    Select,
    SquaredExponential,
    Warped,
    separable,
)
from gpattr.operators import IntegratedGradients, Paths
from gpattr.posteriors import ExactPosterior

OPERATOR = IntegratedGradients(np.zeros(1))

HERE = Path(__file__).parents[1] / "reference"


@pytest.mark.slow
def test_reported_bounds_hold_on_a_thousand_cases():
    truth = np.load(HERE / "kernels.npz")["cross"]
    assert len(truth) == CASES == 1000
    for number, expected in enumerate(truth):
        kernel, b, x, z = case_of(number)
        value, bound = closed_forms.contract(
            IntegratedGradients(b), kernel, x[None], z[None], np.ones((1, 1))
        )
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
            got = closed_forms.formulas_for(OPERATOR, kernel, method).between(one, two).value[0]
            np.testing.assert_allclose(
                got, expected, rtol=0, atol=1e-9, err_msg=f"{kernel} {method}"
            )


def complete(kernel, X, b, got):
    origin = b[None]
    expected = kernel(X, X) - kernel(X, origin) - kernel(origin, X) + kernel(origin, origin)
    return np.abs(got.sum(axis=(1, 3)) - expected).max() / float(
        kernel.diagonal(np.vstack([X, origin])).max()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        separable(Matern32, [0.1, 5.0]),
        Matern52(10.0) * Periodic(1.0, 0.6),
        Select(Matern52(), [0]) * Select(SquaredExponential(0.05), [1]),
        FullAdditive([Matern32(), SquaredExponential(0.05)], [1.0, 1.0]),
        Select(Periodic(1.0, 1.0), [0]) * Select(Matern52(), [1]),
    ],
    ids=repr,
)
def test_rows_of_one_baseline_where_one_part_is_narrow(kernel):
    rows = np.array([[1.5, -1.0], [1.3, -1.2], [0.2, 2.0]])
    got = closed_forms.between(IntegratedGradients(np.zeros(2)), kernel, rows)
    assert complete(kernel, rows, np.zeros(2), got) < 1e-9
    assert np.linalg.eigvalsh(got.reshape(6, 6))[0] > -1e-9
    apart = closed_forms.between(
        IntegratedGradients(np.array([[0.0, 1e-9], [0.0, 0.0], [1e-9, 0.0]])), kernel, rows
    )
    np.testing.assert_allclose(
        got, apart, atol=1e-5
    )  # by nested panels, for baselines that differ by nothing much


@pytest.mark.parametrize("kernel", [Matern32(), Matern52(), RationalQuadratic(alpha=0.5)], ids=repr)
@pytest.mark.parametrize("length", [1e2, 1e3, 1e4])
def test_long_paths_that_are_nearly_parallel(kernel, length):
    rows = np.array([[0.6, 0.8, 0.1], [0.61, 0.8, 0.1], [0.3, -0.2, 0.9], [0.6, 0.8, 0.1]]) * length
    op = IntegratedGradients(np.zeros(3))
    got = closed_forms.between(op, kernel, rows)
    assert complete(kernel, rows, np.zeros(3), got) < 1e-10
    np.testing.assert_allclose(got[0, :, 3], closed_forms.prior_cov(op, kernel, rows)[0], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-4, 1e-3, 0.03, 1.0, 1e3])
def test_every_shape_of_the_rational_quadratic(alpha):
    rows, Z = (
        np.array([[1.5, -1.0], [0.3, 0.02], [14.0, 9.0]]),
        np.array([[0.7, -0.5], [1.5, -1.0], [-3.0, 2.0]]),
    )
    kernel, op = RationalQuadratic(0.3, alpha=alpha), IntegratedGradients(np.zeros(2))
    verbs = [(closed_forms.cross, (Z,)), (closed_forms.prior_cov, ()), (closed_forms.between, ())]
    for verb, more in verbs[
        : 3 if alpha > 0.01 else 2
    ]:  # double integrals of a kernel so narrow take too many panels
        one, two = (
            verb(op, kernel, rows, *more, method=method) for method in ("auto", "quadrature")
        )
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-11)


def test_paths_too_long_for_quadrature_are_refused():
    op = IntegratedGradients(np.zeros(2))
    with pytest.raises(
        ToleranceError,
        match=r"a path covers 1e\+08 length-scales, and this kernel has no closed form",
    ):
        closed_forms.cross(op, Periodic(1.0, 2 * np.pi), np.array([[1e8, 0.0]]), np.ones((1, 2)))
    with pytest.raises(
        ToleranceError, match='squares of panels.* uncertainty="none" explains without it'
    ):
        closed_forms.prior_cov(op, SquaredExponential() * Linear(), np.array([[2e3, 0.0]]))


def circle(X):
    return np.hstack([np.sin(3 * X), np.cos(3 * X)])


def circle_slopes(X):
    return np.stack([3 * np.cos(3 * X), -3 * np.sin(3 * X)], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [
        Warped(Matern52(), circle, circle_slopes),
        Warped(Matern52(), circle, circle_slopes) * Matern52(),
        Warped(Matern32(), np.sin, lambda X: np.cos(X)[:, :, None]),
    ],
    ids=repr,
)
def test_a_warped_path_that_comes_back_to_itself(kernel):
    """Kinks then lie away from s = t too, where the kernel cannot say: squares are quartered until
    they add up.
    """
    rows = np.linspace(-3, 3, 8)[:, None]
    posterior = ExactPosterior(kernel, rows, np.sin(3 * rows[:, 0]), noise=0.1)
    explainer, points = Explainer(posterior, [-2.0]), np.array([[2.5], [1.0]])
    ex = explainer(points)
    assert np.abs(ex.delta).max() <= ex.error.max() < 1e-6
    D = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    expected = D @ posterior.predict([[2.5], [1.0], [-2.0]], return_cov=True)[1] @ D.T
    np.testing.assert_allclose(ex.cov[:, 0, 0], np.diagonal(expected), atol=1e-6)
    np.testing.assert_allclose(explainer.joint(points)[:, 0, :, 0], expected, atol=1e-6)


def test_kinks_of_single_features_that_cross(monkeypatch):
    """Where two kinks cross inside the square there is an edge: forty times as many panels change
    nothing.
    """
    kernel = separable(Matern32, [1.0, 0.7])
    one = Paths(np.array([[-0.5, -0.25]]), np.array([[0.75, 0.5]]))
    two = Paths(np.array([[0.62, -0.5]]), np.array([[-0.3, 0.77]]))
    coarse = kinks.between_with_kinks(kernel, one, two)
    monkeypatch.setattr(kinks, "PER_SPAN", {False: 0.025})
    np.testing.assert_allclose(
        coarse, kinks.between_with_kinks(kernel, one, two), rtol=0, atol=1e-13
    )


@pytest.mark.slow
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
