"""Kernels on categories: on a library's codes, and on encoded columns, where closed forms exist.

With a = exp(−1/ℓ) and columns e of 0 and 1, one for each category and one of them 1, exp(−[x ≠
x']/ℓ) is a + (1 − a) e·e': a constant and a linear kernel. Between two categories that is a
straight line, which is easy to integrate. It is also the squared exponential of e with the
length-scale √ℓ (two categories are √2 apart), whose products with other squared exponentials have
closed forms. A covariance between categories B = FFᵀ is a linear kernel of the rows of F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive
from gpattr.kernels import Constant, Kernel, Linear, Select, SquaredExponential


@dataclass(frozen=True, eq=False)
class Hamming(Kernel):
    """k(x, x') = exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) of columns of codes: it has values but no gradients."""

    lengthscale: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale))

    def __call__(self, X: Array, Z: Array) -> Array:
        xp = namespace(X, Z)
        return xp.exp(-((X[:, None, :] != Z) / xp.asarray(self.lengthscale)).sum(axis=-1))

    def diagonal(self, X: Array) -> Array:
        return namespace(X).ones(X.shape[0])

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass


@dataclass(frozen=True, eq=False)
class Index(Kernel):
    """k(t, t') = B[t, t'] of one column of codes 0, 1, …: a ``covariance`` B between categories."""

    covariance: Array

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.covariance[_positions(X)][:, _positions(Z)]

    def diagonal(self, X: Array) -> Array:
        return self.covariance.diagonal()[_positions(X)]

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass

    def factor(self, codes: Any) -> Array:
        """Return F with FFᵀ = B, one row for each of the codes."""
        values, vectors = np.linalg.eigh(self.covariance)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        return factor[_positions(np.asarray(codes, dtype=np.float64)[:, None])]


def _positions(X: Array) -> Array:
    return np.round(X[:, 0]).astype(np.int64)


def columns_of_codes(kernel: Kernel, seen: Sequence[int]) -> set[int]:
    """Return which of the columns ``seen`` by a kernel are codes of categories."""
    if isinstance(kernel, (Hamming, Index)):
        return set(seen)
    inner = [seen[i] for i in kernel.features] if isinstance(kernel, Select) else seen
    return set().union(*(columns_of_codes(part, inner) for part in kernel.parts().values()))


def squared_exponential(widths: Sequence[tuple[list[int], float]]) -> Kernel:
    """Return exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) as a squared exponential of columns of 0 and 1.

    ``widths`` are the places of the columns of each feature, and its ℓ.
    """
    columns = [(place, width) for places, width in widths for place in places]
    lengthscales = [width**0.5 for _, width in columns]
    return Select(SquaredExponential(lengthscales), [place for place, _ in columns])


def linear(widths: Sequence[tuple[list[int], float]]) -> Kernel:
    """Return exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) as a product of constants plus linear kernels."""
    factors: list[Kernel] = []
    for places, width in widths:
        shared = float(np.exp(-1.0 / width))
        own = Select(Linear(-float(np.expm1(-1.0 / width))), places)
        factors.append(Constant(shared) + own if shared > 0 else own)
    return reduce(mul, factors)


def becomes_squared_exponential(kernel: Kernel) -> bool:
    """Return whether every leaf is a squared exponential, or becomes one."""
    return all(
        isinstance(leaf, (SquaredExponential, Hamming, Constant)) for leaf in kernel.leaves()
    )
