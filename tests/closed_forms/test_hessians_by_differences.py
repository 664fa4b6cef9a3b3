"""Integrated Hessians against differences of the model's own predictions, and of polynomials."""

import numpy as np
import pytest
from tests.reference import hessians

from gpattr import Baselines, kernels
from gpattr.bases import Monomials
from gpattr.kernels import Select
from gpattr.operators import IntegratedGradients, IntegratedHessians
from gpattr.posteriors import AffinePosterior, ExactPosterior, WeightSpacePosterior

RNG = np.random.default_rng(2)
Z = RNG.normal(size=(15, 2))
Y = np.sin(Z[:, 0]) + Z[:, 0] * Z[:, 1]
X, B = np.array([[0.9, -0.6], [-1.1, 0.4]]), np.array([-0.4, 0.7])
SE = kernels.SquaredExponential
KERNELS = {
    "squared exponential": SE([1.0, 1.4], 1.3),
    "rational quadratic": kernels.RationalQuadratic([1.5, 2.0], alpha=1.5),
    "Matérn 9/2": kernels.Matern([2.0, 2.5], nu=4.5),
    "polynomial": kernels.Polynomial(0.5, degree=3),
    "linear": kernels.Linear([1.0, 2.0]),
    "sum": 0.5 * SE(1.5) + 0.3 * kernels.Linear() + 2.0 * Select(SE(1.2), [1]),
}
POWERS = [[2, 1, 0], [0, 1, 3], [1, 1, 1], [4, 0, 0], [0, 0, 1]]


def upper(matrix):
    return matrix[np.triu_indices(len(matrix))]


def truth(posterior, x, b):
    """Mean and covariance of the pairs i ≤ j from predictions alone."""
    sums = hessians.integrated_hessian(x, b, 0.1)
    mean, cov = posterior.predict(sums.points, return_cov=True)
    d = len(x)
    some = np.array([i * d + j for i, j in zip(*np.triu_indices(d))])
    joint = sums.joint(cov)[0][:, 0]
    return sums.mean(mean)[0, some], joint[np.ix_(some, some)]


@pytest.mark.parametrize("name", KERNELS)
def test_against_differences(name):
    """Differences leave 1e-7 of the means and 1e-5 of covariances; less smooth kernels more."""
    posterior = ExactPosterior(KERNELS[name], Z, Y, noise=0.1)
    size = float(np.sqrt(KERNELS[name].diagonal(Z).max()))
    result = posterior.apply(IntegratedHessians(B), X)
    loose = 100.0 if name.startswith("Matérn") else 1.0
    for n, x in enumerate(X):
        mean, cov = truth(posterior, x, B)
        np.testing.assert_allclose(result.mean[n], mean, rtol=0, atol=1e-7 * loose * size)
        np.testing.assert_allclose(result.cov[n], cov, rtol=0, atol=1e-5 * loose * size**2)


@pytest.mark.parametrize("name", KERNELS)
def test_rows_add_up_to_integrated_gradients(name):
    """In mean and in variance, for a background set."""
    posterior = ExactPosterior(KERNELS[name], Z, Y, noise=0.1)
    background = Baselines(Z[:3], [0.2, 0.5, 0.3])
    pairs = posterior.apply(IntegratedHessians(background), X)
    gradients = posterior.apply(IntegratedGradients(background), X)
    total = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    size = float(KERNELS[name].diagonal(Z).max())
    np.testing.assert_allclose(pairs.mean @ total, gradients.mean, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(
        total.T @ pairs.cov @ total, gradients.cov, rtol=0, atol=1e-11 * size
    )


@pytest.mark.parametrize("scaled", [False, True])
def test_of_a_known_polynomial(scaled):
    """Exactly, from any baseline; in other units it is the same polynomial."""
    basis = Monomials(POWERS)
    weights = np.array([1.0, -2.0, 0.5, 0.3, 2.0])
    posterior = WeightSpacePosterior(basis, weights, np.diag([0.1, 0.2, 0.3, 0.4, 0.5]))
    rows, b = RNG.normal(size=(3, 3)), np.array([0.3, -0.5, 0.8])
    if scaled:
        posterior = AffinePosterior(posterior, shift=[0.5, 0.0, -1.0], scale=[2.0, 0.5, -3.0])

    def inside(x):
        return (x - [0.5, 0.0, -1.0]) / [2.0, 0.5, -3.0] if scaled else x

    result = posterior.apply(IntegratedHessians(b), rows)
    for n, x in enumerate(rows):
        each = np.array(
            [
                upper(hessians.hessian_of_polynomial([power], [1.0], inside(x), inside(b)))
                for power in POWERS
            ]
        )  # (terms, pairs)
        size = np.abs(each).max()
        np.testing.assert_allclose(result.mean[n], weights @ each, rtol=0, atol=1e-12 * size)
        cov = each.T @ np.diag([0.1, 0.2, 0.3, 0.4, 0.5]) @ each
        np.testing.assert_allclose(result.cov[n], cov, rtol=0, atol=1e-12 * size**2)
