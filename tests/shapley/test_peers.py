"""Shapley values of shap on the same scikit-learn model and background."""

import pytest

pytest.importorskip("shap")

import numpy as np
import shap
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import gpattr
from gpattr import Baselines
from gpattr.operators import Shapley

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 6))
Y = 30.0 + 3.0 * X[:, 0] * X[:, 1] + np.sin(X[:, 2] * X[:, 3]) + X[:, 4] + 0.1 * RNG.normal(size=40)
ROWS, BACKGROUND = X[:3], X[10:30]
KERNELS = {
    "squared exponential": (ConstantKernel(2.0) * RBF(np.linspace(1.0, 3.0, 6)), 1e-9),
    "with linear part and noise": (RBF(2.0) + DotProduct(1.0) + WhiteKernel(0.1), 1e-9),
    "Matérn": (Matern(2.0, nu=1.5), 1e-9),
}


@pytest.fixture(scope="module", params=KERNELS)
def pair(request):
    """A fitted model, and the accuracy of its Shapley values."""
    kernel, accuracy = KERNELS[request.param]
    model = GaussianProcessRegressor(kernel, alpha=0.05, normalize_y=True, optimizer=None)
    return model.fit(X, Y), accuracy


def exact_explainer(model):
    masker = shap.maskers.Independent(BACKGROUND, max_samples=len(BACKGROUND))
    return shap.ExactExplainer(model.predict, masker)


def test_interventional_values(pair):
    model, accuracy = pair
    theirs = exact_explainer(model)(ROWS)
    ours = gpattr.as_posterior(model).apply(Shapley(Baselines(BACKGROUND)), ROWS)
    np.testing.assert_allclose(ours.mean, theirs.values, rtol=0, atol=accuracy)
    explainer = gpattr.Explainer(model, Baselines(BACKGROUND), attribution="shapley")
    explanation = explainer(ROWS)
    np.testing.assert_allclose(explanation.values, theirs.values, rtol=0, atol=accuracy)
    np.testing.assert_allclose(explanation.base_values, theirs.base_values, rtol=0, atol=1e-9)


def test_interactions_are_shapley_taylor(pair):
    model, accuracy = pair
    theirs = exact_explainer(model)(ROWS, interactions=True).values
    explainer = gpattr.Explainer(model, Baselines(BACKGROUND), attribution="shapley")
    ours = explainer.interactions(ROWS, index="taylor")
    np.testing.assert_allclose(ours.values, theirs, rtol=0, atol=accuracy)
    other = explainer.interactions(ROWS)
    assert np.abs(other.values - theirs).max() > 1e-3
    np.testing.assert_allclose(other.values.sum(axis=2), explainer(ROWS).values, rtol=0, atol=1e-10)
