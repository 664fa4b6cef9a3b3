"""Where inducing inputs start: centres of clusters, or the rows that are hardest to predict from each other."""

from __future__ import annotations

import numpy as np

from gpattr.kernels import Kernel

CLUSTERED = 10_000  # rows that are clustered; more say no more about where the data lie
STEPS = 50  # of Lloyd's at most: inducing inputs are moved afterwards
BLOCK = 1024  # rows whose distances are formed at once
KNOWN = 1e-10  # a share of the prior variance: what is left of it at a row that others determine


def k_means(X: np.ndarray, m: int, generator: np.random.Generator) -> np.ndarray:
    """Return the centres of at most m clusters of the rows, (m, d), by Lloyd's steps from k-means++.

    scikit-learn's own changes warning filters and the number of threads of BLAS while it runs, for the whole process.
    """
    chosen = X if len(X) <= CLUSTERED else X[generator.permutation(len(X))[:CLUSTERED]]
    distinct = np.unique(chosen, axis=0)
    if len(distinct) <= m:
        return distinct
    origin = chosen.mean(axis=0)
    rows = chosen - origin
    centres, labels = _spread_out(rows, m, generator), None
    for _ in range(STEPS):
        before = labels
        labels = _nearest(rows, centres)
        if before is not None and np.array_equal(labels, before):
            break
        sizes = np.bincount(labels, minlength=m)
        sums = np.stack([np.bincount(labels, weights=column, minlength=m) for column in rows.T], axis=1)
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)  # without rows it stays
    return centres + origin


def _spread_out(rows: np.ndarray, m: int, generator: np.random.Generator) -> np.ndarray:
    """Return m rows to start from: each the best of a few that are drawn with the squared distance to those before."""
    places = [int(generator.integers(len(rows)))]
    squares = ((rows - rows[places[0]]) ** 2).sum(axis=1)
    for _ in range(m - 1):
        some = generator.choice(len(rows), size=2 + int(np.log(m)), p=squares / squares.sum())
        closer = np.minimum(squares, np.stack([((rows - rows[i]) ** 2).sum(axis=1) for i in some]))
        best = int(closer.sum(axis=1).argmin())
        places.append(int(some[best]))
        squares = closer[best]
    return rows[places]


def _nearest(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the nearest centre of each row, (n,)."""
    half = 0.5 * (centres**2).sum(axis=1)
    return np.concatenate([(half - rows[i : i + BLOCK] @ centres.T).argmin(axis=1) for i in range(0, len(rows), BLOCK)])


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
