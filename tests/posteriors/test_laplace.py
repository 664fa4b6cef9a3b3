"""Latent functions of a classifier: against scikit-learn's, against the definition of the mode, and
at the edges.
"""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from gpattr import Explainer
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Matern52, SquaredExponential, White
from gpattr.means import Constant, Linear
from gpattr.posteriors import LaplacePosterior

RNG = np.random.default_rng(4)
N, D = 70, 3
X = RNG.normal(size=(N, D))
Y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=N) > 0.8).astype(float)
ROWS, B = RNG.normal(size=(6, D)), RNG.normal(size=D)
KERNEL = SquaredExponential(lengthscale=[1.0, 2.0, 0.7], variance=5.0)


def test_the_latent_function_is_scikit_learns():
    theirs = GaussianProcessClassifier(
        ConstantKernel(5.0) * RBF([1.0, 2.0, 0.7]), optimizer=None
    ).fit(X, Y)
    base = theirs.base_estimator_
    ours = LaplacePosterior(KERNEL, X, Y)
    mean, std = ours.predict(ROWS, return_std=True)
    cross = base.kernel_(base.X_train_, ROWS)
    np.testing.assert_allclose(mean, cross.T @ (base.y_train_ - base.pi_), rtol=1e-6)
    solved = np.linalg.solve(base.L_, base.W_sr_[:, None] * cross)
    np.testing.assert_allclose(std**2, base.kernel_.diag(ROWS) - (solved**2).sum(axis=0), rtol=1e-6)
    assert ours.log_marginal_likelihood == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-8
    )


@pytest.mark.parametrize(
    "mean",
    [Constant(0.0), Constant(-2.0), Linear([1.0, 0.0, -1.0], 0.5)],
    ids=["zero", "constant", "linear"],
)
def test_the_mode_is_where_the_gradient_vanishes(mean):
    posterior = LaplacePosterior(KERNEL, X, Y, mean=mean)
    f, K = posterior.mode, KERNEL(X, X)
    np.testing.assert_allclose(
        f - mean(X), K @ (Y - expit(f)), rtol=0, atol=1e-10
    )  # K⁻¹(f − m) = ∇ log p(y | f)
    np.testing.assert_allclose(posterior.predict(X), f, rtol=0, atol=1e-10)

    def negative(a):
        z = (2 * Y - 1) * (mean(X) + K @ a)
        return np.logaddexp(0, -z).sum() + 0.5 * a @ K @ a

    def slope(a):
        return K @ (a - Y + expit(mean(X) + K @ a))

    best = minimize(negative, np.zeros(N), jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(mean(X) + K @ best, f, atol=1e-4)


def test_attributions_are_complete_in_mean_and_variance():
    posterior = LaplacePosterior(KERNEL, X, Y, mean=Constant(-0.5))
    ex = Explainer(posterior, B)(ROWS)
    mean, cov = posterior.predict(np.vstack([ROWS, B]), return_cov=True)
    np.testing.assert_allclose(ex.values.sum(axis=1), mean[:-1] - mean[-1], rtol=0, atol=1e-9)
    var = np.diagonal(cov)[:-1] + cov[-1, -1] - 2 * cov[:-1, -1]
    np.testing.assert_allclose(ex.cov.sum(axis=(1, 2)), var, rtol=1e-9)
    assert ex.method == "closed form"


def test_extreme_data():
    """Labels that can be told apart at any price, one class only, huge and tiny prior variances: no
    warning, a mode.
    """
    separable = (X[:, 0] > 0).astype(float)
    for variance in (1e-8, 1.0, 1e6, 1e12):
        for labels in (separable, np.ones(N), np.zeros(N)):
            posterior = LaplacePosterior(SquaredExponential(1.5, variance), X, labels)
            pull = np.where(labels == 1, expit(-posterior.mode), -expit(posterior.mode))
            gap = posterior.mode - SquaredExponential(1.5, variance)(X, X) @ pull
            assert np.abs(gap).max() <= 1e-6 * (1 + np.abs(posterior.mode).max())
            ex = Explainer(posterior)(ROWS)
            assert np.isfinite(ex.cov).all()
            assert np.isfinite(posterior.log_marginal_likelihood)
    repeated = LaplacePosterior(KERNEL, np.repeat(X[:5], 4, axis=0), np.tile([0, 1, 1, 1], 5))
    assert np.isfinite(repeated.mode).all()


def test_frames_tensors_and_booleans():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    posterior = LaplacePosterior(Matern52(2.0), frame, Y.astype(bool))
    ex = Explainer(posterior)(frame[["c", "a", "b"]][:3])
    np.testing.assert_allclose(
        ex.values, Explainer(LaplacePosterior(Matern52(2.0), X, Y))(X[:3]).values, rtol=1e-10
    )
    tensors = LaplacePosterior(KERNEL, torch.tensor(X), torch.tensor(Y))
    np.testing.assert_allclose(
        Explainer(tensors)(torch.tensor(ROWS)).cov,
        Explainer(LaplacePosterior(KERNEL, X, Y))(ROWS).cov,
        rtol=0,
        atol=1e-10,
    )
    assert repr(posterior).startswith("LaplacePosterior(70 rows × 3 features")
    assert posterior.training_inputs is posterior.inputs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LaplacePosterior(KERNEL, X, Y + 1), "y: expected labels 0 and 1, got 2"),
        (lambda: LaplacePosterior(KERNEL, X, Y[:4]), "y: expected 70 labels"),
        (
            lambda: LaplacePosterior(KERNEL, X, np.where(Y > 0, "yes", "no")),
            "y: expected labels 0 and 1, got text",
        ),
        (lambda: LaplacePosterior("SE", X, Y), "kernel: expected a gpattr kernel"),
        (lambda: LaplacePosterior(KERNEL + White(1.0), X, Y), "kernel: White is noise"),
        (lambda: LaplacePosterior(KERNEL, X, Y, mean=1.0), "mean: expected a gpattr mean or None"),
        (
            lambda: LaplacePosterior(KERNEL, X, Y, mean=Linear(np.zeros(D), covariance="flat")),
            "mean: expected one with known",
        ),
        (lambda: LaplacePosterior(KERNEL, X * np.nan, Y), "X: expected finite"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
