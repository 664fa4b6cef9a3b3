"""How many inducing inputs, and where: centres of clusters, or the rows that are hardest to predict from each other."""

from __future__ import annotations

import numpy as np

from gpattr.kernels import Kernel, Radial

FEWEST, MOST = 200, 1000  # inducing inputs by default; 1000 take one pass of some seconds over 100 000 rows
CLUSTERED = 10_000  # rows that are clustered; more say no more about where the data lie
KNOWN = 1e-10  # a share of the prior variance: what is left of it at a row that others determine


def default_number(n: int) -> int:
    """Return how many inducing inputs, or frequencies, n rows are given by default: 10√n, at least 200 and at most 1000."""
    return min(MOST, max(FEWEST, int(10.0 * n**0.5)))


def placed(how: str, kernel: Kernel, X: np.ndarray, m: int, spread: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return at most m inducing inputs for a kernel that is known; clusters are those in units of its length-scales.

    A kernel without length-scales of its own is given clusters in units of the ``spread`` of each feature.
    """
    if how == "greedy":
        some = X if len(X) <= CLUSTERED else X[generator.permutation(len(X))[:CLUSTERED]]
        return greedy(kernel, some, m)
    scale = kernel.lengthscale if isinstance(kernel, Radial) else spread
    return k_means(X / scale, m, generator) * scale


def k_means(X: np.ndarray, m: int, generator: np.random.Generator) -> np.ndarray:
    """Return the centres of at most m clusters of the rows, (m, d)."""
    from sklearn.cluster import KMeans

    chosen = X if len(X) <= CLUSTERED else X[generator.permutation(len(X))[:CLUSTERED]]
    distinct = np.unique(chosen, axis=0)
    if len(distinct) <= m:
        return distinct
    seed = int(generator.integers(2**31))
    clusters = KMeans(m, n_init=1, max_iter=50, random_state=seed)  # pyright: ignore[reportArgumentType]
    return clusters.fit(chosen).cluster_centers_


def greedy(kernel: Kernel, X: np.ndarray, m: int) -> np.ndarray:
    """Return at most m rows, each the one with the largest prior variance given those before it: a pivoted Cholesky factor."""
    left = np.array(kernel.diagonal(X))
    known, pivots = KNOWN * left.max(), []
    factor = np.empty((m, len(X)))
    for i in range(m):
        pivot = int(left.argmax())
        if left[pivot] <= known:
            break
        row = kernel(X[pivot : pivot + 1], X)[0] - factor[:i, pivot] @ factor[:i]
        factor[i] = row / left[pivot] ** 0.5
        left = np.maximum(left - factor[i] ** 2, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    return X[pivots]
