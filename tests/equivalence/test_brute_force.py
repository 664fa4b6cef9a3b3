"""Attributions against the model's own joint predictive distribution: finite differences of f along
the path, summed up.
"""

import numpy as np
import pytest
import torch
from tests.reference.definition import bend, bend_jacobian, bump, bump_gradient

from gpattr import Explainer
from gpattr.kernels import (
    Cosine,
    FullAdditive,
    Function,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
    White,
    separable,
)
from gpattr.means import Linear as LinearMean
from gpattr.means import Polynomial as PolynomialMean
from gpattr.posteriors import ExactPosterior
from gpattr.special import gauss_legendre

RNG = np.random.default_rng(5)
Z, Y = RNG.normal(size=(9, 2)), RNG.normal(size=9)
B, X = np.array([0.5, -0.25]), np.array([-0.75, 1.0])
Z[0], Z[1] = B + 0.5 * (X - B), X  # on the path, and at its end
STEP = 1e-4

torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))
KERNELS = {
    "SE": SquaredExponential([0.8, 1.3]),
    "Matern52": Matern52([0.8, 1.3]),
    "Matern32": Matern32([0.8, 1.3]),
    "RQ": RationalQuadratic([0.8, 1.3], alpha=0.6),
    "Periodic": Periodic(1.2, [3.0, 4.0]),
    "Cosine": Cosine([3.0, 4.0]),
    "Linear": Linear([1.0, 2.0]),
    "Polynomial": Polynomial(0.5, degree=3),
    "separable": separable(Matern52, [0.8, 1.3]),
    "nested": 0.5 * (Matern52(0.9) + Linear()) * (Select(SquaredExponential(), [1]) + 0.3)
    + White(0.1),
    "FullAdditive": FullAdditive([SquaredExponential(0.7), Matern52(1.1)], [0.5, 1.0]),
    "Warped": Warped(SquaredExponential(), bend, bend_jacobian),
    "deep": Warped(Matern52(1.0), NET),
    "Rescaled": Rescaled(SquaredExponential(), bump, bump_gradient),
    "Function": Function(lambda x, y: torch.exp((x * y).sum(-1) / 4) * torch.cos((x - y).sum(-1))),
}
MEANS = {
    "zero": None,
    "flat": LinearMean([0.0, 0.0], covariance="flat"),
    "Gaussian": LinearMean(
        [1.0, -1.0], 0.5, covariance=[[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 2.0]]
    ),
    "polynomial": PolynomialMean(
        [0.5, 1.0, -0.3], [[1, 0], [1, 1], [0, 3]], covariance=np.diag([0.1, 0.2, 0.3])
    ),
}


def functional():
    """Points and weights (d, points): Σ w f(points) ≈ the attributions, by central differences at
    Gauss–Legendre nodes.
    """
    t, w = gauss_legendre(8, 16)
    points, weights = [], []
    for node, weight in zip(t, w, strict=True):
        for i in range(2):
            for sign in (1, -1):
                points.append(B + node * (X - B) + sign * STEP * np.eye(2)[i])
                weights.append((X - B)[i] * weight * sign / (2 * STEP) * np.eye(2)[i])
    return np.array(points), np.array(weights).T


CASES = [(kernel, "zero") for kernel in KERNELS] + [
    (kernel, mean) for kernel in ("SE", "nested") for mean in list(MEANS)[1:]
]


@pytest.mark.parametrize(("kernel", "mean"), CASES)
def test_against_differences_of_predictions(kernel, mean):
    posterior = ExactPosterior(KERNELS[kernel], Z, Y, noise=0.05, mean=MEANS[mean])
    ex = Explainer(posterior, B)(X[None])
    points, weights = functional()
    predicted, cov = posterior.predict(points, return_cov=True)
    np.testing.assert_allclose(
        ex.values[0], weights @ predicted, rtol=0, atol=1e-6 * max(1.0, np.abs(ex.values).max())
    )
    size = float(posterior.kernel.diagonal(points).max())
    loose = 1e-3 if kernel == "Matern32" else 1e-4
    np.testing.assert_allclose(ex.cov[0], weights @ cov @ weights.T, rtol=0, atol=loose * size)
    difference = posterior.predict(np.stack([X, B]), return_cov=True)[1]
    gain = difference[0, 0] - 2 * difference[0, 1] + difference[1, 1]
    assert abs(ex.cov[0].sum() - gain) <= 1e-9 * max(size, gain)
    assert abs(ex.delta[0]) <= 1e-9 * max(1.0, np.abs(ex.values).max())
