"""A posterior as finitely many functions with normal weights, and the remainder.

    f = m + Σⱼ ξⱼ gⱼ + r,     ξ ~ N(0, I),     g(x) = L⁻¹ C(X_M, x),     LLᵀ = C(X_M, X_M)

with posterior mean m and covariance C: m + Σⱼ ξⱼgⱼ is f given its values at M rows X_M, and r,
which is independent of it, has the covariance C(x, x′) − g(x)·g(x′). The rows are chosen by
a pivoted Cholesky factorisation: each is the one where most variance is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from gpattr._core.array import Array, cholesky, product, solve_upper, to_numpy
from gpattr._core.memory import blocks
from gpattr._core.validation import beside
from gpattr.posteriors import AffinePosterior, EncodedPosterior, FunctionSpacePosterior, Posterior
from gpattr.posteriors.wrapper import WrapperPosterior

CANDIDATES, MOST = 512, 160  # rows among which X_M are chosen, and how many at most
LEFT = 1e-4  # the share of the variance that r may have
ROUNDING = 1e-12  # of the variance at the first pivot: what is below is not a direction


@dataclass(frozen=True, eq=False)
class DrawnFunctions:
    """The functions m and g of a ``posterior``: rows (n, columns) to values (n, 1 + M).

    ``rows`` are X_M; ``root`` is L.
    """

    posterior: Posterior
    rows: Array
    root: Array

    @classmethod
    def of(cls, posterior: Posterior, candidates: Array) -> DrawnFunctions:
        """Return the functions for rows chosen among ``candidates``."""
        C = joint(posterior, candidates)[1]
        chosen = pivots(C)
        root = to_numpy(cholesky(_regular(C[np.ix_(chosen, chosen)])))
        inner, rows = unwrapped(posterior, candidates[chosen])
        if isinstance(inner, FunctionSpacePosterior) and inner.trend is None:
            return KernelFunctions.around(inner, posterior, rows, root)
        return cls(posterior, candidates[chosen], root)

    def __len__(self) -> int:
        return 1 + len(self.rows)

    @property
    def cost(self) -> float:
        """The work for one row, in entries of a covariance matrix."""
        size = sum(_entries(part) for _, part in self.posterior.components)
        return size + (0.0 if len(self) == 1 else 256.0 + 5.0 * len(self))

    def __call__(self, X: Array) -> Array:
        """Return m and g at rows, (n, 1 + M)."""
        M = len(self.rows)
        if not M:
            return to_numpy(self.posterior.moments(_beside(self.posterior, X)))[:, None]
        values = np.empty((len(X), 1 + M))
        step = max(4 * M, 256)  # rows in one covariance matrix with X_M
        for start in range(0, len(X), step):
            some = slice(start, start + step)
            mean, C = joint(self.posterior, np.concatenate([self.rows, X[some]]))
            values[some, 0] = mean[M:]
            values[some, 1:] = solve_triangular(self.root, C[:M, M:], lower=True).T
        return values

    def left(self, X: Array) -> Array:
        """Return the covariance of r between the points of each row, (n, p, p), for X (n, p, d)."""
        n, p, d = X.shape
        result = np.empty((n, p, p))
        together = max(1, 256 // p)  # points in one covariance matrix: more would be for nothing
        for start in range(0, n, together):
            some = X[start : start + together]
            flat = some.reshape(-1, d)
            C, g = joint(self.posterior, flat)[1], self(flat)[:, 1:]
            C = (C - product(g, g.T)).reshape(len(some), p, len(some), p)
            each = np.arange(len(some))
            result[start : start + together] = C[each, :, each]
        return result


@dataclass(frozen=True, eq=False)
class KernelFunctions(DrawnFunctions):
    """Drawn functions of a posterior in function space: m and g are sums of kernels.

    m(x) = prior mean + k(x, Z) α and C(x, X_M) = k(x, X_M) − k(x, Z) U, so that values at a row
    cost a product, and no solution of triangular systems. ``inner`` is the posterior whose inputs
    the kernel has, ``weights`` (m, 1 + M) are the weights of k(x, Z).
    """

    inner: FunctionSpacePosterior
    weights: Array
    inverse: Array

    @classmethod
    def around(
        cls, inner: FunctionSpacePosterior, posterior: Posterior, rows: Array, root: Array
    ) -> KernelFunctions:
        """Return the functions for X_M = ``rows`` in the units of the kernel."""
        T = inner.solve(inner.kernel(rows, inner.inputs) + 0.0)
        if inner.root is not None:
            T = T - product(product(T, inner.root), inner.root.T)
        U = to_numpy(solve_upper(inner.factor, T.T))
        if inner.column_scale is not None:
            U = U * to_numpy(inner.column_scale)[:, None]
        inverse = solve_triangular(root, np.eye(len(root)), lower=True).T
        weights = np.column_stack([to_numpy(inner.alpha), -product(U, inverse)])
        like = inner.inputs
        return cls(posterior, rows, root, inner, beside("", weights, like), inverse)

    @property
    def cost(self) -> float:
        return _entries(self.posterior) + 4.0 * len(self)

    def __call__(self, X: Array) -> Array:
        inner, X = unwrapped(self.posterior, X)
        assert inner is self.inner
        self.inner.check_range(X)
        values = np.empty((len(X), len(self)))
        for some in blocks(len(X), 40.0 * (len(self.weights) + len(self)), X):
            k = self.inner.kernel(X[some], self.inner.inputs)
            values[some] = to_numpy(product(k, self.weights))
            values[some, 0] += to_numpy(self.inner.mean(X[some]))
            if len(self.rows):
                near = to_numpy(self.inner.kernel(X[some], self.rows))
                values[some, 1:] += product(near, self.inverse)
        return values


def joint(posterior: Posterior, X: Array) -> tuple[Array, Array]:
    """Return mean (n,) and covariance (n, n) of f at rows."""
    mean, C = posterior.moments(_beside(posterior, X), return_cov=True)
    return to_numpy(mean), to_numpy(C)


def unwrapped(posterior: Posterior, X: Array) -> tuple[Posterior, Array]:
    """Return the posterior inside scalers and encodings, and rows as it sees them."""
    X = _beside(posterior, X)
    while isinstance(posterior, (AffinePosterior, EncodedPosterior)):
        if isinstance(posterior, AffinePosterior):
            X = posterior.units.inside(X)
        posterior = posterior.posterior
    return posterior, X


def _entries(posterior: Posterior) -> int:
    """Return the kernel evaluations for one value of the mean; a small model counts as 64 rows."""
    inner = posterior
    while isinstance(inner, WrapperPosterior):
        inner = inner.posterior
    known = isinstance(inner, FunctionSpacePosterior)
    return max(posterior.size, 64) * (len(list(inner.kernel.leaves())) if known else 1)


def pivots(C: Array, most: int = MOST) -> list[int]:
    """Return the rows whose values leave least variance, in the order of the largest variance."""
    left = C.diagonal().copy()
    chosen: list[int] = []
    total, first = left.sum(), left.max(initial=0.0)
    factor = np.empty((min(most, len(C)), len(C)))
    while len(chosen) < len(factor) and first > 0 and left.sum() > LEFT * total:
        best = int(left.argmax())
        if left[best] <= ROUNDING * first:
            break
        k = len(chosen)
        row = (C[best] - factor[:k, best] @ factor[:k]) / np.sqrt(left[best])
        factor[k] = row
        left = np.maximum(left - row * row, 0.0)
        left[best] = 0.0
        chosen.append(best)
    return chosen


def _regular(C: Array) -> Array:
    """Return a matrix with a little added to its diagonal, for a Cholesky factorisation."""
    return C + ROUNDING * np.eye(len(C)) * C.diagonal().max(initial=0.0)


def _beside(posterior: Posterior, X: Array) -> Array:
    return beside("inputs", X, posterior.like)
