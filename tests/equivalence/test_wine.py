"""The red wine data of the paper, all 1599 rows: completeness, and every feature against an
integral that does not use it.
"""

import numpy as np
import pytest

from gpattr import Explainer, closed_forms
from gpattr.kernels import SquaredExponential
from gpattr.means import Constant
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior


@pytest.fixture(scope="module")
def model(wine):
    X, y = wine.drop(columns="quality"), wine["quality"]
    kernel = SquaredExponential(lengthscale=2.5 * X.std().to_numpy(), variance=0.6)
    return ExactPosterior(kernel, X, y, noise=0.3, mean=Constant(float(y.mean())))


@pytest.fixture(scope="module")
def explained(model):
    return Explainer(model)(model.inputs)


def test_completeness_in_mean(model, explained):
    scale = model.kernel.variance * np.abs(model.alpha).sum()
    assert np.abs(explained.delta).max() <= 1e-10 * np.abs(explained.predictions).max()
    assert np.abs(explained.delta).max() <= 1e-10 * scale


def test_completeness_in_variance(model, explained):
    b = explained.baselines[0]
    for start in range(0, 1599, 400):
        rows = slice(start, min(start + 400, 1599))
        _, cov = model.predict(np.vstack([model.inputs[rows], b]), return_cov=True)
        expected = np.diagonal(cov)[:-1] - 2 * cov[:-1, -1] + cov[-1, -1]
        assert (
            np.abs(explained.cov[rows].sum(axis=(1, 2)) - expected).max()
            <= 1e-10 * model.kernel.variance
        )


@pytest.mark.slow
def test_every_feature_by_an_integral_that_knows_nothing_of_completeness(model, explained):
    op = IntegratedGradients(explained.baselines[0])
    values = closed_forms.cross_dot(
        op, model.kernel, model.inputs[::8], model.inputs, model.alpha, method="quadrature"
    )
    assert np.abs(values - explained.values[::8]).max() <= 1e-10
    rows = np.linspace(0, 1598, 12).astype(int)
    by_quadrature = Explainer(model, method="quadrature")(model.inputs[rows])
    assert np.abs(by_quadrature.cov - explained.cov[rows]).max() <= 1e-10 * model.kernel.variance
    assert np.all(
        np.abs(by_quadrature.values - explained.values[rows]).max(axis=1) <= by_quadrature.error
    )


def test_both_branches_of_the_moments_are_exercised(model, explained):
    """Most wines lie within two length-scales of the mean, and some far beyond: the test covers
    both formulas.
    """
    a = (((explained.data - explained.baselines) / model.kernel.lengthscale) ** 2).sum(axis=1)
    assert (a <= 4).sum() > 100
    assert (a > 4).sum() > 100
