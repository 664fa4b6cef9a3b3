"""Kernels of polynomials: Linear and Polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from operator import index
from typing import ClassVar

from gpattr._core.array import Array, namespace, product
from gpattr._core.validation import check_per_feature, positive, positive_scalar
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.base import Kernel, Pieces, Places, of_columns


@dataclass(frozen=True, eq=False)
class Linear(Kernel):
    """k(x, x') = Σᵢ σᵢ² xᵢxᵢ': linear functions through the origin, coefficients N(0, σᵢ²).

    ``variance`` is one number or one per feature. Add a `Constant` for an unknown intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Linear
    >>> Linear([1.0, 2.0])(np.ones((1, 2)), np.ones((1, 2)))
    array([[3.]])
    """

    variance: float | Array = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("variance",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive("variance", self.variance))

    @property
    def polynomial_degree(self) -> int:
        return 1

    def __call__(self, X: Array, Z: Array) -> Array:
        return product(X * namespace(X).asarray(self.variance), Z.T)

    def diagonal(self, X: Array) -> Array:
        return (X * X * namespace(X).asarray(self.variance)).sum(axis=1)

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def split(self, inside: Places, outside: Places) -> Pieces:
        """Linear(S ∪ R) = Linear(S) + Linear(R)."""
        return [
            (1.0, [(Linear(of_columns(self.variance, some)), some)]) for some in (inside, outside)
        ]

    def check_features(self, d: int) -> None:
        check_per_feature("variance", self.variance, d)


@dataclass(frozen=True, eq=False, init=False)
class Polynomial(Kernel):
    """k(x, x') = (c + Σᵢ σᵢ² xᵢxᵢ')^degree: polynomials of this degree, interactions included.

    ``offset`` c > 0 lets lower powers in; ``variance`` σ² is one number or one per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Polynomial
    >>> Polynomial(degree=2)(np.ones((1, 2)), np.ones((1, 2)))
    array([[9.]])
    """

    variance: float | Array
    degree: int
    offset: float

    trainable: ClassVar[tuple[str, ...]] = ("variance", "offset")

    def __init__(self, variance: float | Array = 1.0, *, degree: int, offset: float = 1.0) -> None:
        try:
            whole = index(degree)
        except TypeError:
            whole = 0
        if whole < 1 or isinstance(degree, bool):
            raise InvalidInputError(f"degree: expected an integer of 1 or more, got {degree!r}")
        object.__setattr__(self, "variance", positive("variance", variance))
        object.__setattr__(self, "degree", whole)
        object.__setattr__(self, "offset", positive_scalar("offset", offset))

    @property
    def polynomial_degree(self) -> int:
        return self.degree

    def inner(self, X: Array, Z: Array) -> Array:
        """Return c + Σᵢ σᵢ² xᵢzᵢ for every pair, (n, m)."""
        return product(X * namespace(X).asarray(self.variance), Z.T) + self.offset

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.inner(X, Z) ** self.degree

    def diagonal(self, X: Array) -> Array:
        return (
            (X * X * namespace(X).asarray(self.variance)).sum(axis=1) + self.offset
        ) ** self.degree

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def split(self, inside: Places, outside: Places) -> Pieces:
        """(a + b)ᵖ = Σⱼ C(p, j) aʲ bᵖ⁻ʲ with a = Σ_S, b = c + Σ_R."""
        one = Linear(of_columns(self.variance, inside))
        variance = of_columns(self.variance, outside)
        pieces: Pieces = []
        for j in range(self.degree + 1):
            parts: list[tuple[Kernel, Places]] = [(one, inside)] * j
            if j < self.degree:
                rest = Polynomial(variance, degree=self.degree - j, offset=self.offset)
                parts = [*parts, (rest, outside)]
            pieces.append((float(comb(self.degree, j)), parts))
        return pieces

    def check_features(self, d: int) -> None:
        check_per_feature("variance", self.variance, d)
