"""Cost of Shapley values: relative to integrated gradients, with many features, other kernels."""

from __future__ import annotations

import numpy as np
from timing import best_time, row

from gpattr.kernels import Kernel, Matern52, SquaredExponential
from gpattr.means import Constant
from gpattr.operators import IntegratedGradients, Shapley
from gpattr.posteriors import ExactPosterior


def shapley(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Red wine: means and covariances next to integrated gradients, Matérn next to the squared
    exponential.
    """
    m, n, few = (300, 100, 5) if quick else (1000, 1000, 20)
    posterior, matern = (_of_wine(kind, X[:m], y[:m]) for kind in (SquaredExponential, Matern52))
    b = X[:m].mean(axis=0)
    values, gradients, rows = Shapley(b), IntegratedGradients(b), X[:n]
    lines = []
    for what, uncertainty in (("means", "none"), ("means and covariances", "cov")):
        seconds, other = (
            best_time(lambda op=op, u=uncertainty: posterior.apply(op, rows, uncertainty=u))
            for op in (values, gradients)
        )
        lines.append(row(f"{what} of {len(rows)} rows", seconds, "integrated gradients", other))
    for what, uncertainty in (("means", "none"), ("means and covariances", "cov")):
        seconds, other = (
            best_time(lambda p=p, u=uncertainty: p.apply(values, X[:few], uncertainty=u), repeat=3)
            for p in (matern, posterior)
        )
        name = f"Matern52, {what} of {few} rows"
        lines.append(row(name, seconds, "squared exponential", other))
    return f"Shapley values, red wine, {m} training points × {X.shape[1]} features", lines


def _of_wine(kind: type[Kernel], X: np.ndarray, y: np.ndarray) -> ExactPosterior:
    kernel = kind(lengthscale=3.0 * X.std(axis=0), variance=0.6)
    return ExactPosterior(kernel, X, y, noise=0.3, mean=Constant(float(y.mean())))


def shapley_of_many_features(
    X: np.ndarray, y: np.ndarray, quick: bool
) -> tuple[str, list[dict[str, str]]]:
    """Simulated data, as many features as points; the time of integrated gradients beside it."""
    m = 200 if quick else 1000
    rng, lines = np.random.default_rng(0), []
    for d, n in ((100, 100), (1000, 1)):
        Z = rng.normal(size=(m, d))
        kernel = SquaredExponential(lengthscale=np.full(d, 2.0 * d**0.5))
        posterior = ExactPosterior(kernel, Z, np.sin(Z[:, 0]) + Z[:, 1], noise=0.01)
        b, rows = Z.mean(axis=0), rng.normal(size=(n, d))
        for what, uncertainty in (("means", "none"), ("means and covariances", "cov")):
            seconds, other = (
                best_time(
                    lambda p=posterior, op=op, r=rows, u=uncertainty: p.apply(op, r, uncertainty=u),
                    repeat=3,
                )
                for op in (Shapley(b), IntegratedGradients(b))
            )
            name = f"{d} features, {what} of {n} row{'s' * (n > 1)}"
            lines.append(row(name, seconds, "integrated gradients", other))
    return f"Shapley values with many features, {m} training points", lines
