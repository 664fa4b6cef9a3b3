"""Closed forms of the squared-exponential kernel, feature by feature, against 50-digit integration
of the definition.
"""

import numpy as np
import pytest
from tests.conftest import load_table

from gpattr import Baselines, closed_forms
from gpattr.closed_forms import squared_exponential
from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients
from gpattr.special import gauss_legendre

PATHS = load_table("paths.npz")
PAIRS = load_table("pairs.npz")


def tolerance(case: str) -> float:
    """2e-12 up to 30 length-scales, growing with the square of the distance beyond."""
    length = float(case.split("_")[1])
    return 2e-12 * max(1.0, length / 30) ** 2


@pytest.mark.parametrize("case", PATHS)
@pytest.mark.parametrize("method", ["exact", "quadrature"])
def test_cross(case, method):
    table = PATHS[case]
    kernel = SquaredExponential(lengthscale=table["lengthscale"], variance=2.5)
    op = IntegratedGradients(table["b"])
    got = closed_forms.cross(op, kernel, table["x"][None], table["Z"], method=method)[0]
    step = np.abs((table["x"] - table["b"]) / table["lengthscale"]).max()
    assert np.abs(got - 2.5 * table["cross"]).max() <= tolerance(case) * 2.5 * min(1, step)


@pytest.mark.parametrize("case", PATHS)
def test_cross_dot_and_its_error_bound(case):
    table = PATHS[case]
    kernel = SquaredExponential(lengthscale=table["lengthscale"], variance=2.5)
    op = IntegratedGradients(table["b"])
    alpha = np.random.default_rng(1).normal(size=len(table["Z"]))
    X, Z = table["x"][None], table["Z"]
    got = closed_forms.cross_dot(op, kernel, X, Z, alpha)[0]
    truth = 2.5 * table["cross"] @ alpha
    step = np.abs((table["x"] - table["b"]) / table["lengthscale"]).max()
    scale = 2.5 * np.abs(alpha).sum() * min(1, step)
    assert np.abs(got - truth).max() <= tolerance(case) * scale
    bound = closed_forms.error(op, kernel, X, Z, alpha)[0]
    assert np.abs(got - truth).max() <= bound
    assert bound <= tolerance(case) * scale


@pytest.mark.parametrize("case", PATHS)
def test_quadrature_error_bound(case):
    table = PATHS[case]
    kernel = SquaredExponential(lengthscale=table["lengthscale"], variance=2.5)
    op = IntegratedGradients(table["b"])
    alpha = np.random.default_rng(1).normal(size=len(table["Z"]))
    X, Z = table["x"][None], table["Z"]
    got = closed_forms.cross_dot(op, kernel, X, Z, alpha, method="quadrature")[0]
    bound = closed_forms.error(op, kernel, X, Z, alpha, method="quadrature")[0]
    assert np.abs(got - 2.5 * table["cross"] @ alpha).max() <= bound


@pytest.mark.parametrize("case", PATHS)
def test_auto(case):
    table = PATHS[case]
    kernel = SquaredExponential(lengthscale=table["lengthscale"], variance=2.5)
    got = closed_forms.prior_cov(IntegratedGradients(table["b"]), kernel, table["x"][None])[0]
    truth = 2.5 * table["auto"]
    # Entry by entry, to the last digits: nothing cancels, at any length.
    np.testing.assert_allclose(got, truth, rtol=1e-14, atol=0)


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("method", ["exact", "quadrature"])
def test_between(case, method):
    table = PAIRS[case]
    kernel = SquaredExponential(lengthscale=table["lengthscale"], variance=2.5)
    one, two = IntegratedGradients(table["b"]), IntegratedGradients(table["b2"])
    X, X2 = table["x"][None], table["x2"][None]
    got = closed_forms.between(one, kernel, X, X2, op2=two, method=method)[0, :, 0, :]
    # The scale is that of the two priors: each entry is at most the product of the standard
    # deviations.
    scale = np.sqrt(
        np.diagonal(closed_forms.prior_cov(one, kernel, X)[0]).max()
        * np.diagonal(closed_forms.prior_cov(two, kernel, X2)[0]).max()
    )
    assert np.abs(got - 2.5 * table["between"]).max() <= 1e-12 * scale
    swapped = closed_forms.between(two, kernel, X2, X, op2=one, method=method)[0, :, 0, :]
    assert np.abs(swapped.T - got).max() <= 1e-12 * scale


def test_weighted_baselines_against_two_dimensional_integration():
    """Two baselines, one row: the cross-baseline term is the tabulated integral, the others are
    those of single paths.
    """
    for table in PAIRS.values():
        if not np.array_equal(table["x"], table["x2"]):
            continue
        kernel = SquaredExponential(lengthscale=table["lengthscale"])
        X = table["x"][None]
        single = [
            closed_forms.prior_cov(IntegratedGradients(table[b]), kernel, X)[0] for b in ("b", "b2")
        ]
        mixed = table["between"]
        expected = 0.09 * single[0] + 0.49 * single[1] + 0.21 * (mixed + mixed.T)
        op = IntegratedGradients(Baselines(np.array([table["b"], table["b2"]]), [0.3, 0.7]))
        got = closed_forms.prior_cov(op, kernel, X)[0]
        assert np.abs(got - expected).max() <= 1e-11 * max(
            np.abs(single[0]).max(), np.abs(single[1]).max()
        )


def test_an_offset_of_a_million_lengthscales_loses_nothing():
    """With inputs on a grid, shifted differences are the same doubles, and so are all results."""
    rng = np.random.default_rng(3)
    on_grid = lambda *shape: np.round(rng.normal(size=shape) * 2**20) / 2**20  # noqa: E731
    X, Z, b, scale = on_grid(5, 4), on_grid(9, 4), on_grid(4), np.array([0.5, 1.0, 2.0, 0.25])
    X[0] *= 32
    kernel = SquaredExponential(lengthscale=scale)
    far = 2.0**20 * scale
    alpha = rng.normal(size=9)
    for start in (b, b + on_grid(5, 4)):
        near_op, far_op = IntegratedGradients(start), IntegratedGradients(start + far)
        near = closed_forms.cross_dot(near_op, kernel, X, Z, alpha)
        np.testing.assert_allclose(
            closed_forms.cross_dot(far_op, kernel, X + far, Z + far, alpha),
            near,
            rtol=0,
            atol=2e-15 * np.abs(alpha).sum(),
        )
        np.testing.assert_array_equal(
            closed_forms.prior_cov(far_op, kernel, X + far),
            closed_forms.prior_cov(near_op, kernel, X),
        )
        np.testing.assert_array_equal(
            closed_forms.between(far_op, kernel, X + far), closed_forms.between(near_op, kernel, X)
        )


def test_beyond_the_table_nothing_breaks():
    """From denormal steps to 1e150 length-scales: finite numbers, no warning (pytest turns warnings
    into errors).
    """
    kernel = SquaredExponential(lengthscale=[1.0, 1e-3])
    Z = np.array([[0.0, 0.0], [1.0, -1.0], [1e10, 3.0]])
    X = np.array(
        [[size, -0.3 * size] for size in (0.0, 5e-324, 1e-200, 1e-20, 1e4, 1e10, 1e60, 1e147)]
    )
    for op in (
        IntegratedGradients(np.zeros(2)),
        IntegratedGradients(np.linspace(0, 1, 16).reshape(8, 2)),
    ):
        for result in (
            closed_forms.cross(op, kernel, X, Z),
            closed_forms.cross_dot(op, kernel, X, Z, np.ones(3)),
            closed_forms.error(op, kernel, X, Z, np.ones(3)),
            closed_forms.prior_cov(op, kernel, X),
        ):
            assert np.isfinite(result).all()


@pytest.mark.parametrize("length", [30.0, 300.0, 1000.0])
def test_long_crossing_paths_by_either_order_of_integration(length):
    """Which path is integrated in closed form and which by panels must not matter, far beyond what
    2-D tables can reach.
    """
    rng = np.random.default_rng(0)
    for _ in range(5):
        p, q = (
            size * v / np.linalg.norm(v)
            for size, v in zip((length, 0.9 * length), rng.normal(size=(2, 3)), strict=True)
        )
        e = -0.3 * p + 0.6 * q + 0.3 * rng.normal(size=3)
        nodes = gauss_legendre(16, int(length))
        one = squared_exponential._long_pair(p[None], q[None], e[None], *nodes)[0]
        two = squared_exponential._long_pair(q[None], p[None], -e[None], *nodes)[0]
        assert np.abs(one - two).max() <= 1e-12 * np.abs(one).max()
