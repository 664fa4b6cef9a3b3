"""Integrated gradients of quantities against 4000-step integration of autograd gradients."""

import numpy as np
import pytest
import torch
from tests.quantities.reference import Model, improvement, integrated_gradients

from gpattr import Explainer
from gpattr import quantities as q
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior, MixturePosterior

BEST = 0.7
QUANTITIES = {
    "std": (q.StandardDeviation(), lambda m, s: s),
    "variance": (q.Variance(), lambda m, s: s**2),
    "upper": (q.UpperConfidenceBound(1.96), lambda m, s: m + 1.96 * s),
    "lower": (q.LowerConfidenceBound(0.5), lambda m, s: m - 0.5 * s),
    "improvement": (q.ExpectedImprovement(BEST), lambda m, s: improvement(m, s, BEST)),
    "less is better": (
        q.ExpectedImprovement(-BEST, maximize=False),
        lambda m, s: improvement(-m, s, BEST),
    ),
    "log": (q.LogExpectedImprovement(BEST), lambda m, s: torch.log(improvement(m, s, BEST))),
    "probability": (
        q.ProbabilityOfImprovement(BEST),
        lambda m, s: 0.5 * torch.erfc((BEST - m) / s / 2**0.5),
    ),
}


def data(seed=0, n=25, d=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1], rng.uniform(-2.5, 2.5, size=(4, d))


@pytest.mark.parametrize("noise", [0.1, 1e-4])
@pytest.mark.parametrize("name", QUANTITIES)
def test_against_autograd(name, noise):
    quantity, function = QUANTITIES[name]
    X, y, rows = data()
    scale = np.array([0.8, 1.5, 2.5])
    model = Model(X, y, scale, noise)
    posterior = ExactPosterior(SquaredExponential(lengthscale=scale), X, y, noise=noise)
    ex = Explainer(posterior, X.mean(axis=0), quantity=quantity)(rows)
    expected = np.stack(
        [
            integrated_gradients(lambda x: function(*model.moments(x)), X.mean(axis=0), row)
            for row in rows
        ]
    )
    size = np.abs(expected).max()
    np.testing.assert_allclose(ex.values, expected, rtol=0.0, atol=1e-8 * size)
    value = function(*model.moments(torch.as_tensor(rows))).numpy()
    np.testing.assert_allclose(ex.predictions, value, rtol=1e-8, atol=1e-12)
    # The stated error is that of integration; autograd's own rounding comes to it.
    assert (np.abs(ex.values - expected).max(axis=1) <= ex.error + 1e-11 * size / noise**0.5).all()
    assert np.abs(ex.delta).max() <= 1e-10 * size


@pytest.mark.parametrize("name", QUANTITIES)
def test_mixtures_against_autograd(name):
    """An improvement is averaged over the models, a bound is that of the mixture's moments."""
    quantity, function = QUANTITIES[name]
    X, y, rows = data(1)
    scales, weights = (np.array([0.8, 1.5, 2.5]), np.array([2.0, 1.0, 1.0])), np.array([0.3, 0.7])
    models = [Model(X, y, scale, 0.05) for scale in scales]
    posterior = MixturePosterior(
        [ExactPosterior(SquaredExponential(lengthscale=s), X, y, noise=0.05) for s in scales],
        weights,
    )

    def of_mixture(x):
        means, stds = zip(*(model.moments(x) for model in models), strict=True)
        if name in ("improvement", "less is better", "probability"):
            return sum(w * function(m, s) for w, m, s in zip(weights, means, stds, strict=True))
        if name == "log":
            total = sum(
                w * torch.exp(function(m, s)) for w, m, s in zip(weights, means, stds, strict=True)
            )
            return torch.log(total)
        mean = sum(w * m for w, m in zip(weights, means, strict=True))
        second = sum(w * (s**2 + m**2) for w, m, s in zip(weights, means, stds, strict=True))
        return function(mean, torch.sqrt(second - mean**2))

    ex = Explainer(posterior, np.zeros(3), quantity=quantity)(rows)
    expected = np.stack([integrated_gradients(of_mixture, np.zeros(3), row) for row in rows])
    size = np.abs(expected).max()
    np.testing.assert_allclose(ex.values, expected, rtol=0.0, atol=1e-8 * size)
    np.testing.assert_allclose(
        ex.predictions, of_mixture(torch.as_tensor(rows)).numpy(), rtol=1e-9, atol=1e-12
    )
