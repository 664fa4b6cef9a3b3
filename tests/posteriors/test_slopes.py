"""Gradients of posterior mean and variance against differences of predictions and `Gradient`."""

import numpy as np
import pytest

from gpattr.bases import Fourier
from gpattr.kernels import (
    Cosine,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.means import Linear as LinearMean
from gpattr.operators import Gradient
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    ExactPosterior,
    SparsePosterior,
    WeightSpacePosterior,
)

D = 3
SE = SquaredExponential(lengthscale=np.array([1.0, 0.7, 1.9]), variance=1.3)
KERNELS = {
    "squared exponential": SE,
    "Matérn": Matern52(lengthscale=1.2) + 0.3 * Matern32(lengthscale=np.array([2.0, 1.0, 3.0])),
    "rational quadratic": RationalQuadratic(lengthscale=1.5, alpha=0.8),
    "product": Select(Matern52(), [0])
    * Select(SquaredExponential(), [1, 2])
    * Linear(variance=0.5),
    "polynomial": Polynomial(degree=3, offset=1.0, variance=0.2) + 0.5,
    "by pairs": Periodic(period=3.0) + Cosine(period=4.0) * SE,
}


def data(seed=0, n=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) + 3.0
    return X, np.sin(X).sum(axis=1), rng.normal(size=(5, D)) + 3.0


def exact(kernel=SE, mean=None):
    X, y, _ = data()
    return ExactPosterior(kernel, X, y, noise=0.05, mean=mean)


def sparse():
    X, y, _ = data(n=30)
    return SparsePosterior.fit(SE, X[::4], X, y, noise=0.05)


def weights(**given):
    basis = Fourier(np.random.default_rng(1).normal(size=(8, D)))
    p = len(basis)
    L = np.tril(np.random.default_rng(2).normal(size=(p, p))) + 3 * np.eye(p)
    options = {"precision_factor": L} if "root" not in given else {"root": L[:, :4]}
    return WeightSpacePosterior(basis, np.linspace(-1, 1, p), **options)


POSTERIORS = {
    **{name: lambda kernel=kernel: exact(kernel) for name, kernel in KERNELS.items()},
    "linear mean": lambda: exact(mean=LinearMean(np.array([1.0, -2.0, 0.5]), 0.3)),
    "uncertain trend": lambda: exact(mean=LinearMean([0.0] * D, covariance="flat")),
    "sparse": sparse,
    "weights, precision": weights,
    "weights, root": lambda: weights(root=True),
    "affine": lambda: AffinePosterior(
        exact(), [1.0, 0.5, 0.0], [2.0, 0.5, 1.5], source=[2, 0, 0], n_features=D
    ),
    "combination": lambda: CombinationPosterior(
        [exact(), exact(KERNELS["Matérn"])], [0.7, -1.2], mean=LinearMean(np.ones(D), 0.0)
    ),
}


@pytest.mark.parametrize("name", POSTERIORS)
def test_slopes_are_derivatives_of_predictions(name):
    posterior, (_, _, X) = POSTERIORS[name](), data()
    mean, var, gradient, cov = posterior.slopes(X)
    expected, std = posterior.predict(X, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(var, std**2, rtol=1e-10, atol=1e-14)
    known = posterior.apply(Gradient(), X, uncertainty="none").mean
    np.testing.assert_allclose(gradient, known, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(cov, half_differences(posterior, X), rtol=1e-6, atol=1e-8)


def half_differences(posterior, X, h=1e-3):
    """½∇σ² by differences of the fourth order."""

    def variance(step):
        return posterior.predict(X + step, return_std=True)[1] ** 2

    result = np.empty(X.shape)
    for i, e in enumerate(h * np.eye(X.shape[1])):
        near, far = variance(e) - variance(-e), variance(2 * e) - variance(-2 * e)
        result[:, i] = (8 * near - far) / (24 * h)
    return result


def test_slopes_on_tensors():
    torch = pytest.importorskip("torch")
    X, y, at = data()
    kernel = KERNELS["product"] + KERNELS["by pairs"]
    one = ExactPosterior(kernel, X, y, noise=0.05)
    two = ExactPosterior(kernel, *(torch.as_tensor(part) for part in (X, y)), noise=0.05)
    for here, there in zip(one.slopes(at), two.slopes(torch.as_tensor(at)), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-10, atol=1e-12)
