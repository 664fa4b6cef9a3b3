"""The number and places of inducing inputs: cluster centres, or rows of a pivoted Cholesky."""

from __future__ import annotations

import numpy as np

from gpattr._core.array import product, squared_distances
from gpattr._core.memory import blocks
from gpattr.estimators.training_rows import drawn
from gpattr.kernels import Kernel, Radial

# Inducing inputs by default; 1000 take one pass of some seconds over 100 000 rows.
FEWEST, MOST = 200, 1000
CLUSTERED = 10_000  # rows that are clustered; more carry no more information on where the data lie
PASSES = 50  # over the rows, at most
KNOWN = 1e-10  # share of the prior variance left at a row that is determined by others


def default_number(n: int) -> int:
    """Return the default number of inducing inputs, or frequencies: 10√n, from 200 to 1000."""
    return min(MOST, max(FEWEST, int(10.0 * n**0.5)))


def placed(
    how: str,
    kernel: Kernel,
    X: np.ndarray,
    m: int,
    std: np.ndarray,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return at most m inducing inputs for a given kernel, clustered in its length-scales.

    A kernel without length-scales of its own is given clusters in units of the ``std`` of each
    feature.
    """
    if how == "greedy":
        some = X if len(X) <= CLUSTERED else X[drawn(len(X), CLUSTERED, generator)]
        return greedy(kernel, some, m)
    scale = kernel.lengthscale if isinstance(kernel, Radial) else std
    return k_means(X / scale, m, generator) * scale


def k_means(X: np.ndarray, m: int, generator: np.random.Generator) -> np.ndarray:
    """Return the centres of at most m clusters of rows, (m, d): Lloyd's algorithm after k-means++.

    (scikit-learn's k-means would change the number of linear-algebra threads of the whole process
    while it runs.)
    """
    chosen = X if len(X) <= CLUSTERED else X[drawn(len(X), CLUSTERED, generator)]
    distinct = np.unique(chosen, axis=0)
    if len(distinct) <= m:
        return distinct
    middle = chosen.mean(axis=0)
    rows = chosen - middle
    centres = _spread_out(rows, m, generator)
    nearest = np.empty(len(rows), dtype=np.intp)
    for _ in range(PASSES):
        sizes = 0.5 * (centres**2).sum(axis=1)
        for some in blocks(len(rows), 16.0 * m):
            nearest[some] = (sizes - product(rows[some], centres.T)).argmin(axis=1)
        counts = np.bincount(nearest, minlength=m)
        sums = np.stack([np.bincount(nearest, column, minlength=m) for column in rows.T], axis=1)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        settled = np.allclose(moved, centres, rtol=0.0, atol=1e-3 * rows.std())
        centres = moved
        if settled:
            break
    return centres + middle


def _spread_out(rows: np.ndarray, m: int, generator: np.random.Generator) -> np.ndarray:
    """Return m different rows, drawn by their squared distance from earlier rows (k-means++)."""
    found = [int(generator.integers(len(rows)))]
    distance = squared_distances(rows[found], rows, 1.0)[0]
    while len(found) < m:
        share = np.cumsum(distance)
        found.append(int(np.searchsorted(share, generator.uniform() * share[-1], side="right")))
        distance = np.minimum(distance, squared_distances(rows[found[-1:]], rows, 1.0)[0])
    return rows[found]


def greedy(kernel: Kernel, X: np.ndarray, m: int) -> np.ndarray:
    """Return at most m rows, each of the largest variance given earlier rows (pivoted Cholesky)."""
    left = np.array(kernel.diagonal(X))
    known, pivots = KNOWN * left.max(), []
    factor = np.empty((m, len(X)))
    for i in range(m):
        pivot = int(left.argmax())
        if left[pivot] <= known:
            break
        row = kernel(X[pivot : pivot + 1], X)[0] - product(factor[:i, pivot], factor[:i])
        factor[i] = row / left[pivot] ** 0.5
        left = np.maximum(left - factor[i] ** 2, 0.0)
        left[pivot] = 0.0
        pivots.append(pivot)
    return X[pivots]
