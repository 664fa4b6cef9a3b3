"""Kernels made of kernels: Scale, Sum, Select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from gpattr._array import Array, namespace
from gpattr._validation import positive_scalar
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Scale(Kernel):
    """k(x, x') = σ² k₁(x, x')."""

    kernel: Kernel
    variance: float = 1.0

    def __post_init__(self) -> None:
        _require_kernel("Scale", self.kernel)
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.variance * self.kernel(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.variance * self.kernel.diagonal(X)

    def span(self, step: Array) -> Array:
        return self.kernel.span(step)

    def check_features(self, d: int) -> None:
        self.kernel.check_features(d)


@dataclass(frozen=True, eq=False, init=False)
class Sum(Kernel):
    """k(x, x') = k₁(x, x') + k₂(x, x') + …: independent functions added. Nested sums are flattened."""

    kernels: tuple[Kernel, ...]

    def __init__(self, *kernels: Kernel) -> None:
        for kernel in kernels:
            _require_kernel("Sum", kernel)
        if not kernels:
            raise InvalidInputError("Sum: expected at least one kernel, got none")
        flat = (part for kernel in kernels for part in (kernel.kernels if isinstance(kernel, Sum) else (kernel,)))
        object.__setattr__(self, "kernels", tuple(flat))

    def _build(self, fields: dict[str, Any]) -> Sum:
        return Sum(*fields["kernels"])

    def __call__(self, X: Array, Z: Array) -> Array:
        return reduce(lambda total, kernel: total + kernel(X, Z), self.kernels[1:], self.kernels[0](X, Z))

    def diagonal(self, X: Array) -> Array:
        return sum(kernel.diagonal(X) for kernel in self.kernels)  # pyright: ignore[reportReturnType]  (never empty)

    def span(self, step: Array) -> Array:
        xp = namespace(step)
        return reduce(xp.maximum, (kernel.span(step) for kernel in self.kernels))

    def check_features(self, d: int) -> None:
        for kernel in self.kernels:
            kernel.check_features(d)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@dataclass(frozen=True, eq=False)
class Select(Kernel):
    """k(x, x') = k₁(x[features], x'[features]): a kernel that sees only some of the columns, given by position."""

    kernel: Kernel
    features: tuple[int, ...]

    def __init__(self, kernel: Kernel, features: Sequence[int]) -> None:
        _require_kernel("Select", kernel)
        try:
            if any(isinstance(i, (bool, np.bool_)) for i in features):  # a mask is not positions
                raise TypeError
            chosen = tuple(index(i) for i in features)
        except TypeError:
            raise InvalidInputError(f"features: expected column positions (integers), got {features!r}") from None
        if not chosen or min(chosen) < 0 or len(set(chosen)) != len(chosen):
            raise InvalidInputError(
                f"features: expected different column positions, 0 or larger, at least one; got {list(chosen)}"
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "features", chosen)

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.kernel(self.columns(X), self.columns(Z))

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(self.columns(X))

    def span(self, step: Array) -> Array:
        return self.kernel.span(self.columns(step))

    def columns(self, X: Array) -> Array:
        """Return the columns of X, (n, d), that the kernel sees, (n, len(features))."""
        return X[:, list(self.features)]

    def check_features(self, d: int) -> None:
        if max(self.features) >= d:
            raise InvalidInputError(f"features: column {max(self.features)} is selected, but the inputs have {d} columns")
        self.kernel.check_features(len(self.features))


def _require_kernel(name: str, kernel: object) -> None:
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"{name}: expected a gpattr kernel, got {type(kernel).__name__}")
