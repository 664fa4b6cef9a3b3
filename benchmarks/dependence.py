"""Cost of partial dependence, Sobol indices and importance: all curves of a data set, many rows."""

from __future__ import annotations

import numpy as np
from timing import best_time, row

import gpattr
from gpattr import Explainer
from gpattr.kernels import Kernel, Matern52, SquaredExponential
from gpattr.means import Constant
from gpattr.posteriors import ExactPosterior

GRID = 50


def dependence(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Red wine: the curves of all features with bands, next to the predictions they average."""
    m = 300 if quick else len(X)
    lines, features = [], range(X.shape[1])
    for kind in (SquaredExponential, Matern52):
        posterior = _of_wine(kind, X[:m], y[:m])
        explainer = Explainer(posterior)
        seconds = best_time(lambda e=explainer: [e.dependence(i) for i in features], repeat=2)
        points = np.tile(X[:m], (GRID, 1))  # those of one feature: every row at every value
        other = X.shape[1] * best_time(lambda p=posterior, Z=points: p.predict(Z), repeat=1)
        name = f"{kind.__name__}, all {X.shape[1]} curves with their covariances"
        lines.append(row(name, seconds, "predictions at grid × background, no bands", other))
    return f"Partial dependence, red wine, {m} training points, background of {m} rows", lines


def _of_wine(kind: type[Kernel], X: np.ndarray, y: np.ndarray) -> ExactPosterior:
    kernel = kind(lengthscale=3.0 * X.std(axis=0), variance=0.6)
    return ExactPosterior(kernel, X, y, noise=0.3, mean=Constant(float(y.mean())))


def sobol(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Simulated data: first and total indices of 20 features with their spread."""
    m, d = (200 if quick else 1000), 20
    rng = np.random.default_rng(0)
    Z = rng.uniform(size=(m, d))
    kernel = SquaredExponential(lengthscale=np.linspace(0.5, 4.0, d))
    f = np.sin(4.0 * Z[:, 0]) + Z[:, 1] * Z[:, 2]
    posterior = ExactPosterior(kernel, Z, f, noise=1e-4)
    inputs = gpattr.Uniform(0.0, 1.0)
    seconds = best_time(lambda: gpattr.sobol_indices(posterior, inputs, pairs=False), repeat=2)
    other = best_time(lambda: ExactPosterior(kernel, Z, f, noise=1e-4), repeat=2)
    lines = [row("first and total with 95 % intervals", seconds, "fitting the posterior", other)]
    return f"Sobol indices, {m} training points × {d} features", lines
