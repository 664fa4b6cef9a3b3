"""Kernels of categories: on codes as a library has them, and on encoded columns, where everything
is known of them.

With a = exp(−1/ℓ) and columns e of 0 and 1, one for each category and one of them 1, exp(−[x ≠
x']/ℓ) is a + (1 − a) e·e': a constant and a linear kernel. Between two categories that is a
straight line, so nothing is hard to integrate. It is also the squared exponential of e with the
length-scale √ℓ (two categories are √2 apart), which has a closed form beside its like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Product, Scale, Select, SquaredExponential, Sum


@dataclass(frozen=True, eq=False)
class Hamming(Kernel):
    """k(x, x') = exp(−Σᵢ [xᵢ ≠ x'ᵢ]/ℓᵢ) of columns of codes: it has values, and no gradients."""

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
    if isinstance(kernel, Select):
        return columns_of_codes(kernel.kernel, [seen[i] for i in kernel.features])
    return set().union(*(columns_of_codes(part, seen) for part in kernel.parts().values()))


def encoded(kernel: Kernel, encoder: Encoder) -> Kernel:
    """Return a kernel of columns, some of which are codes, as one of the columns that the encoder
    makes of them.
    """

    def made(part: Any, seen: Sequence[int], beside_others: bool = False) -> Kernel:
        if isinstance(part, Select):
            return made(part.kernel, [seen[i] for i in part.features], beside_others)
        if isinstance(part, Scale):
            return part.variance * made(part.kernel, seen, beside_others)
        if isinstance(part, (Sum, Product)):
            others = beside_others or (
                isinstance(part, Product) and not _like_squared_exponentials(part)
            )
            parts: list[Any] = [made(inner, seen, others) for inner in part.kernels]
            return reduce(add if isinstance(part, Sum) else mul, parts)
        if isinstance(part, Constant):
            return part
        names = [encoder.names[i] for i in seen]
        if isinstance(part, Hamming):
            widths = np.broadcast_to(part.lengthscale, (len(seen),)).tolist()
            if not beside_others:
                columns = [
                    (place, width)
                    for name, width in zip(names, widths, strict=True)
                    for place in encoder.places(name)
                ]
                return Select(
                    SquaredExponential([width**0.5 for _, width in columns]),
                    [place for place, _ in columns],
                )
            factors: list[Any] = []
            for name, width in zip(names, widths, strict=True):
                shared = float(np.exp(-1.0 / width))
                own = Select(Linear(-float(np.expm1(-1.0 / width))), encoder.places(name))
                factors.append(Constant(shared) + own if shared > 0 else own)
            return reduce(mul, factors)
        if any(name in encoder.categories for name in names):
            raise UnsupportedModelError(
                f"kernel: {type(part).__name__} of columns with categories is not known"
            )
        return Select(part, [encoder.places(name)[0] for name in names])

    return made(kernel, range(len(encoder.names)))


def _like_squared_exponentials(kernel: Kernel) -> bool:
    """Tell whether every leaf is a squared exponential, or becomes one."""
    parts = kernel.parts().values()
    if parts:
        return all(map(_like_squared_exponentials, parts))
    return isinstance(kernel, (SquaredExponential, Hamming, Constant))
