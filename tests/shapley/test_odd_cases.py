"""Cases in which Shapley values were wrong once."""

import numpy as np
import pytest
from tests.reference import coalitions

from gpattr import Baselines, Explainer, Marginals
from gpattr.kernels import (
    FullAdditive,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.operators import Shapley
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 8))
Y = np.sin(Z[:, 0]) + Z[:, 1] ** 2


def check(posterior, rows, baseline, accuracy=1e-8):
    """Compare with all coalitions under the model's own predictions."""
    result = posterior.apply(Shapley(baseline), rows)
    truth = coalitions.truth(coalitions.joint_of(posterior), rows, baseline)
    size = max(1.0, float(abs(truth.cov).max()))
    np.testing.assert_allclose(result.mean, truth.mean, rtol=0, atol=accuracy * size)
    np.testing.assert_allclose(result.cov, truth.cov, rtol=0, atol=accuracy * size)
    return result


@pytest.mark.parametrize("alpha", [1e4, 1e5, 1e8, 1e14, 1e17])
@pytest.mark.parametrize("baseline", ["point", "marginals"])
def test_rational_quadratic_kernels_that_are_almost_gaussian(alpha, baseline):
    d = 8 if baseline == "point" else 3
    posterior = ExactPosterior(RationalQuadratic(2.0, 1.0, alpha), Z[:, :d], Y, noise=0.1)
    chosen = Z[0, :d] if baseline == "point" else Marginals(Z[:3, :d])
    check(posterior, Z[1:3, :d], chosen)


@pytest.mark.parametrize(
    "other",
    [
        Linear(np.linspace(0.5, 2.0, 8)),
        Polynomial(np.linspace(0.1, 0.3, 8), degree=2),
        FullAdditive([SquaredExponential()] * 8, [1.0, 0.5]),
    ],
    ids=["linear", "polynomial", "full additive"],
)
def test_radial_kernels_times_others(other):
    posterior = ExactPosterior(Matern32(2.0) * other, Z, Y, noise=0.1)
    result = check(posterior, Z[1:3], Z[0])
    assert "scale mixture" in result.method


@pytest.mark.parametrize("far", [1e3, 1e5, 1e8, 1e12])
@pytest.mark.parametrize("kernel", [SquaredExponential(), Matern52()], ids=["SE", "Matérn"])
def test_covariances_of_far_rows(kernel, far):
    """Against a row that is merely far: nothing is left of the kernel at either."""
    inputs = np.arange(6.0)[:, None] * 0.5 * np.ones((1, 2))
    posterior = ExactPosterior(kernel, inputs, np.sin(inputs[:, 0]), noise=1e-2)
    background = Baselines([[0.3, 0.2], [1.0, 1.3]])
    rows = np.array([[far, 0.7], [far + 5.0, 0.7]])
    result = posterior.apply(Shapley(background), rows)
    known = posterior.apply(Shapley(background), np.array([[2e3, 0.7]]))
    np.testing.assert_allclose(result.cov[0], known.cov[0], rtol=0, atol=1e-11)
    if far <= 1e8:  # beyond, five length-scales are rounded away
        truth = coalitions.truth(coalitions.joint_of(posterior), rows, background)
        joint = posterior.joint(Shapley(background), rows)
        np.testing.assert_allclose(joint, truth.joint, rtol=0, atol=1e-7)


def test_phases_of_drawn_baselines():
    """The bound does not depend on the order of the rows that are drawn from."""
    posterior = ExactPosterior(Periodic(1.0, 1.0), Z[:8, :2], Y[:8], noise=0.01)
    rows = np.array([[0.0, 0.0], [1e6 + 0.3, 1e6 + 0.1]])
    one, two = (
        posterior.apply(Shapley(Marginals(some)), Z[1:3, :2]) for some in (rows, rows[::-1])
    )
    np.testing.assert_array_equal(one.error, two.error)
    assert one.error.min() > 1e-10


def test_a_constant_column_under_marginals():
    inputs = Z[:30, :3].copy()
    inputs[:, 2] = 1.0
    posterior = ExactPosterior(SquaredExponential(), inputs, inputs[:, 0], noise=0.1)
    explainer = Explainer(posterior, Marginals(inputs), attribution="shapley")
    ex, pairs = explainer(inputs[1:3]), explainer.interactions(inputs[1:3])
    assert (ex.values[:, 2] == 0).all()
    assert (ex.std[:, 2] == 0).all()
    assert (ex.prob_positive()[:, 2] == 0.5).all()
    assert (pairs.values[:, 2] == 0).all()
    assert (pairs.prob_positive()[:, 2] == 0.5).all()
    assert (ex.values[:, :2] != 0).all()


@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("kernel", [Matern32(), Matern52()], ids=["3/2", "5/2"])
def test_variances_near_the_baseline(kernel, step):
    """The prior variance 2(1 − k(r)) in 50 digits."""
    import mpmath as mp

    posterior = ExactPosterior(kernel, np.array([[1e3]]), np.zeros(1), noise=1.0)  # far: a prior
    result = posterior.apply(Shapley(np.zeros(1)), np.array([[step]]))
    with mp.workdps(50):
        s = mp.sqrt(3 if isinstance(kernel, Matern32) else 5) * mp.mpf(step)
        k = (1 + s + (0 if isinstance(kernel, Matern32) else s * s / 3)) * mp.exp(-s)
        truth = float(2 * (1 - k))
    np.testing.assert_allclose(result.var[0, 0], truth, rtol=1e-13)
