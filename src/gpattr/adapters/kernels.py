"""Kernels that translations need: of categories, of rescaled inputs, and products over features.

With ρ = exp(−1/ℓ) and columns e of 0 and 1, one for each category and one of them 1, exp(−[x ≠
x']/ℓ) is ρ + (1 − ρ) e·e', our `Categorical`. Between two categories that is a straight line, which
is easy to integrate. It is also the squared exponential of e with the length-scale √ℓ (two
categories are √2 apart), whose products with other squared exponentials have closed forms. A
covariance between categories B = FFᵀ is a linear kernel of the rows of F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Categorical,
    Constant,
    Cosine,
    Kernel,
    Linear,
    Periodic,
    Polynomial,
    Radial,
    Select,
    SquaredExponential,
    Warped,
)


class KernelOfCodes(Kernel):
    """A kernel that compares codes of categories: it has values but no gradients."""

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass


@dataclass(frozen=True, eq=False)
class Hamming(KernelOfCodes):
    """k(x, x') = exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) of columns of codes."""

    lengthscale: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale))

    def __call__(self, X: Array, Z: Array) -> Array:
        xp = namespace(X, Z)
        return xp.exp(-((X[:, None, :] != Z) / xp.asarray(self.lengthscale)).sum(axis=-1))

    def diagonal(self, X: Array) -> Array:
        return namespace(X).ones(X.shape[0])


@dataclass(frozen=True, eq=False)
class Index(KernelOfCodes):
    """k(t, t') = B[t, t'] of one column of codes 0, 1, …: a ``covariance`` B between categories."""

    covariance: Array

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.covariance[_positions(X)][:, _positions(Z)]

    def diagonal(self, X: Array) -> Array:
        return self.covariance.diagonal()[_positions(X)]

    def factor(self, codes: Any) -> Array:
        """Return F with FFᵀ = B, one row for each of the codes."""
        values, vectors = np.linalg.eigh(self.covariance)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        return factor[_positions(np.asarray(codes, dtype=np.float64)[:, None])]


def _positions(X: Array) -> Array:
    return np.round(X[:, 0]).astype(np.int64)


def columns_of_codes(kernel: Kernel, seen: Sequence[int]) -> set[int]:
    """Return which of the columns ``seen`` by a kernel are codes of categories."""
    if isinstance(kernel, KernelOfCodes):
        return set(seen)
    inner = [seen[i] for i in kernel.features] if isinstance(kernel, Select) else seen
    return set().union(*(columns_of_codes(part, inner) for part in kernel.parts().values()))


def hamming_as_squares(widths: Sequence[tuple[list[int], float]]) -> Kernel:
    """Return exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) as a squared exponential of columns of 0 and 1.

    ``widths`` are the places of the columns of each feature, and its ℓ.
    """
    columns = [(place, width) for places, width in widths for place in places]
    lengthscales = [width**0.5 for _, width in columns]
    return Select(SquaredExponential(lengthscales), [place for place, _ in columns])


def hamming_as_lines(widths: Sequence[tuple[list[int], float]]) -> Kernel:
    """Return exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) as a product of kernels that are linear between labels."""
    parts: list[Any] = [Select(Categorical(width**0.5), places) for places, width in widths]
    return reduce(mul, parts)


def becomes_squared_exponential(kernel: Kernel) -> bool:
    """Return whether every leaf is a squared exponential, or becomes one."""
    return all(
        isinstance(leaf, (SquaredExponential, Hamming, Constant)) for leaf in kernel.leaves()
    )


def rescaled(kernel: Kernel, factors: Any, d: int) -> Kernel:
    """Return k(a∘x, a∘x') for factors a, one number or (d,), by changing the length-scales of k."""
    signed = np.broadcast_to(np.asarray(factors, dtype=np.float64), (d,))
    a = np.abs(signed)
    if not (a > 0).all():
        raise UnsupportedModelError(
            "kernel: inputs scaled by 0 are not supported; drop them (Subspace)"
        )
    if isinstance(kernel, Radial):
        return kernel.with_params(lengthscale=np.asarray(kernel.lengthscale) / a)
    if isinstance(kernel, (Linear, Polynomial)):
        return kernel.with_params(variance=np.asarray(kernel.variance) * a**2)
    if isinstance(kernel, (Periodic, Cosine)):
        return kernel.with_params(period=np.asarray(kernel.period) / a)
    if isinstance(kernel, Constant):
        return kernel
    if isinstance(kernel, Select):
        return kernel.map_parts(
            lambda part: rescaled(part, kernel.columns(signed), len(kernel.features))
        )
    if kernel.pointwise:
        return kernel.map_parts(lambda part: rescaled(part, signed, d))
    return mapped(kernel, np.diag(signed))


def mapped(kernel: Kernel, matrix: np.ndarray) -> Kernel:
    """Return k(Ax, Ax') for a matrix A, (D, d)."""
    return Warped(
        kernel,
        lambda X: X @ matrix.T,
        lambda X: np.broadcast_to(matrix, (*X.shape[:-1], *matrix.shape)),
    )


def product_of(kind: Callable[[float], Kernel], rates: Any) -> Kernel:
    """Return ∏ᵢ k(xᵢ, x'ᵢ; 1/rateᵢ) over the features whose ``rates`` (d,) are not zero.

    ``kind`` makes a kernel of one feature from its length-scale.
    """
    rates = np.asarray(rates, dtype=np.float64)
    if len(rates) == 1 and rates[0] > 0:
        return kind(float(1.0 / rates[0]))
    parts: list[Any] = [
        Select(kind(float(1.0 / rate)), [i]) for i, rate in enumerate(rates) if rate > 0
    ]
    return reduce(mul, parts) if parts else Constant(1.0)


def product_of_squares(rates: Any) -> Kernel:
    """Return exp(−½ Σᵢ (rateᵢ (xᵢ − x'ᵢ))²) over the features whose ``rates`` (d,) are not zero."""
    rates = np.asarray(rates, dtype=np.float64)
    used = np.flatnonzero(rates > 0)
    if not len(used):
        return Constant(1.0)
    kernel = SquaredExponential(1.0 / rates[used])
    return kernel if len(used) == len(rates) else Select(kernel, used.tolist())
