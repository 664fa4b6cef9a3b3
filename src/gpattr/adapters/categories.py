"""Kernels on categories: on a library's codes, and on encoded columns, where closed forms exist.

With a = exp(−1/ℓ) and columns e of 0 and 1, one for each category and one of them 1, exp(−[x ≠
x']/ℓ) is a + (1 − a) e·e': a constant and a linear kernel. Between two categories that is a
straight line, which is easy to integrate. It is also the squared exponential of e with the
length-scale √ℓ (two categories are √2 apart), whose products with other squared exponentials have
closed forms.
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
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Product, Select, SquaredExponential


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


def columns_of_codes(kernel: Kernel, seen: Sequence[int]) -> set[int]:
    """Return which of the columns ``seen`` by a kernel are codes of categories."""
    if isinstance(kernel, Hamming):
        return set(seen)
    inner = [seen[i] for i in kernel.features] if isinstance(kernel, Select) else seen
    return set().union(*(columns_of_codes(part, inner) for part in kernel.parts().values()))


def encoded(kernel: Kernel, encoder: Encoder) -> Kernel:
    """Return a kernel on columns with codes as the same kernel on the encoder's columns."""

    def translated(part: Kernel, seen: Sequence[int], linear: bool = False) -> Kernel:
        if isinstance(part, Select):
            return translated(part.kernel, [seen[i] for i in part.features], linear)
        if isinstance(part, Product):
            linear = linear or not _becomes_squared_exponential(part)
        if part.pointwise:
            return part.map_parts(lambda inner: translated(inner, seen, linear))
        if isinstance(part, Constant):
            return part
        names = [encoder.names[i] for i in seen]
        if isinstance(part, Hamming):
            widths = np.broadcast_to(part.lengthscale, (len(seen),)).tolist()
            pairs = list(zip(names, widths, strict=True))
            return _linear(pairs, encoder) if linear else _squared_exponential(pairs, encoder)
        if any(name in encoder.categories for name in names):
            raise UnsupportedModelError(
                f"kernel: {type(part).__name__} of columns with categories is not supported"
            )
        return Select(part, [encoder.places(name)[0] for name in names])

    return translated(kernel, range(len(encoder.names)))


def _squared_exponential(widths: list[tuple[str, float]], encoder: Encoder) -> Kernel:
    """Return exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) of the named features as a squared exponential."""
    columns = [(place, width) for name, width in widths for place in encoder.places(name)]
    lengthscales = [width**0.5 for _, width in columns]
    return Select(SquaredExponential(lengthscales), [place for place, _ in columns])


def _linear(widths: list[tuple[str, float]], encoder: Encoder) -> Kernel:
    """Return exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) as a product of constants plus linear kernels."""
    factors: list[Kernel] = []
    for name, width in widths:
        shared = float(np.exp(-1.0 / width))
        own = Select(Linear(-float(np.expm1(-1.0 / width))), encoder.places(name))
        factors.append(Constant(shared) + own if shared > 0 else own)
    return reduce(mul, factors)


def _becomes_squared_exponential(kernel: Kernel) -> bool:
    """Return whether every leaf is a squared exponential, or becomes one."""
    return all(
        isinstance(leaf, (SquaredExponential, Hamming, Constant)) for leaf in kernel.leaves()
    )
