"""Demonstrations of the seven axioms of integrated gradients, on GPs with 80 training points."""

from __future__ import annotations

import math

import numpy as np

from gpattr import kernels
from gpattr.bases import Monomials
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Gradient
from gpattr.paper.models import std_of
from gpattr.posteriors import ExactPosterior, WeightSpacePosterior

NOISE = 0.01
KERNEL = kernels.SquaredExponential(lengthscale=[0.8, 1.2, 1.0], variance=2.0)
# Training rows and explained rows.
Z, X = np.split(np.random.default_rng(0).uniform(-2, 2, (105, 3)), [80])
B = np.array([0.4, -0.2, 0.7])


def target(Z: np.ndarray) -> np.ndarray:
    """Return a smooth function with interactions."""
    return np.sin(Z[:, 0]) + Z[:, 0] * Z[:, 1] + 0.3 * Z[:, 2] ** 2


def trained(y: np.ndarray, kernel: kernels.Kernel = KERNEL) -> ExactPosterior:
    """Return the Gaussian process conditioned on these targets."""
    return ExactPosterior(kernel, Z, y, noise=NOISE)


def explained(model: object) -> Explanation:
    """Explain the rows X against the baseline B."""
    return Explainer(model, B)(X)


def sensitivity() -> dict[str, float]:
    """Check rows with one changed feature, whose attribution must be the whole difference."""
    rows = np.repeat(B[None], 3, axis=0) + np.diag([1.0, -0.7, 0.4])
    ex = Explainer(trained(target(Z)), B)(rows)
    own, change = np.diagonal(ex.values), ex.predictions - ex.base_values
    violation = max(np.abs(own - change).max(), np.abs(ex.values - np.diag(own)).max())
    return {
        "1 sensitivity (a): smallest |attribution| of a change that counts": float(
            np.abs(own).min()
        ),
        "1 sensitivity (a): distance from the change in F": float(violation / np.abs(own).max()),
    }


def dummy() -> dict[str, float]:
    """Return mean and standard deviation of the attribution of an unused feature."""
    ex = explained(trained(target(Z), kernels.Select(kernels.SquaredExponential(), [0, 1])))
    total = np.abs(ex.values[:, 2]) + std_of(ex)[:, 2]
    return {"2 sensitivity (b), dummy: |mean| + sd": float(total.max())}


def implementation_invariance() -> dict[str, float]:
    """Compare k(x, x') = (x·x' + 1)² in function space with ten monomials in weight space."""
    y, basis = target(Z), Monomials.up_to(2, 3, constant=True)
    prior = np.array(
        [
            math.factorial(2) / math.prod(map(math.factorial, [*p, 2 - sum(p)]))
            for p in basis.powers.astype(int)
        ]
    )
    features = basis(Z)
    cov = np.linalg.inv(features.T @ features / NOISE + np.diag(1.0 / prior))
    one = explained(trained(y, kernels.Polynomial(degree=2, offset=1.0)))
    two = explained(WeightSpacePosterior(basis, cov @ (features.T @ y) / NOISE, covariance=cov))
    assert one.cov is not None
    assert two.cov is not None
    return {
        "3 implementation invariance, mean": float(
            np.abs(one.values - two.values).max() / np.abs(one.values).max()
        ),
        "3 implementation invariance, covariance": float(
            np.abs(one.cov - two.cov).max() / np.abs(one.cov).max()
        ),
    }


def linearity() -> dict[str, float]:
    """Compare the attributions of 2F₁ − 3F₂ with 2 and −3 times those of F₁ and F₂."""
    y1, y2 = target(Z), np.cos(Z[:, 1] + Z[:, 2])
    both = explained(trained(2 * y1 - 3 * y2)).values
    apart = both - (2 * explained(trained(y1)).values - 3 * explained(trained(y2)).values)
    return {"4 linearity": float(np.abs(apart).max() / np.abs(both).max())}


def completeness() -> dict[str, float]:
    """Compare the sums of means and covariances with F(x) − F(b) and its variance."""
    model = trained(target(Z))
    ex = explained(model)
    assert ex.cov is not None
    _, joint = model.predict(np.vstack([X, B]), return_cov=True)
    var = np.diagonal(joint)[:-1] + joint[-1, -1] - 2 * joint[:-1, -1]
    return {
        "5 completeness, mean": float(np.abs(ex.delta).max() / np.abs(ex.values).max()),
        "5 completeness, variance": float(np.abs(ex.cov.sum(axis=(1, 2)) - var).max() / var.max()),
    }


def symmetry() -> dict[str, float]:
    """Compare the attributions of x₁ and x₂, for a model of data symmetric in both."""
    swap = [1, 0, 2]
    inputs, y = np.vstack([Z, Z[:, swap]]), np.tile(target(Z), 2)
    model = ExactPosterior(kernels.SquaredExponential(), inputs, y, noise=NOISE)
    ex = Explainer(model, [0.3, 0.3, -0.5])(X[:, [0, 0, 2]])
    return {
        "6 symmetry": float(
            np.abs(ex.values[:, 0] - ex.values[:, 1]).max() / np.abs(ex.values).max()
        )
    }


def positivity() -> dict[str, float]:
    """Return the smallest slope and the smallest attribution of an increasing model."""
    kernel = kernels.SquaredExponential(lengthscale=3.0, variance=10.0)
    model = trained((Z + np.tanh(Z)).sum(axis=1), kernel)
    low, rows = np.full(3, -1.0), np.abs(X) / 2
    between = np.random.default_rng(2).uniform(-1.0, 1.0, (500, 3))
    slopes = model.apply(Gradient(), between).mean
    return {
        "7 non-decreasing positivity: smallest slope": float(slopes.min()),
        "7 non-decreasing positivity: smallest attribution": float(
            Explainer(model, low)(rows).values.min()
        ),
    }
