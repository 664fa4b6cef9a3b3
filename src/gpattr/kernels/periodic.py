"""Kernels of periodic functions: Periodic and Cosine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace
from gpattr._core.validation import check_per_feature, positive, positive_scalar
from gpattr.kernels.base import Kernel, Pieces, Places, of_columns


@dataclass(frozen=True, eq=False)
class Periodic(Kernel):
    """k(x, x') = σ² exp(−2 Σᵢ sin²(π(xᵢ − xᵢ')/pᵢ)/ℓᵢ²): periodic with pᵢ in feature i.

    ``period`` p is in the units of the inputs, ``lengthscale`` ℓ has no unit; both are one number
    or one per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Periodic
    >>> Periodic(period=2.0)(np.zeros((1, 1)), np.array([[1.0], [2.0]])).round(3)
    array([[0.135, 1.   ]])
    """

    lengthscale: float | Array = 1.0
    period: float | Array = 1.0
    variance: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("lengthscale", "period", "variance")

    @property
    def stationary(self) -> bool:
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale))
        object.__setattr__(self, "period", positive("period", self.period))
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    def __call__(self, X: Array, Z: Array) -> Array:
        xp = namespace(X, Z)
        exponent = xp.zeros((X.shape[0], Z.shape[0]))
        lengthscale, period = (
            xp.broadcast_to(xp.asarray(p), X.shape[1:]) for p in (self.lengthscale, self.period)
        )
        # One feature at a time: differences (n, m) rather than (n, m, d).
        for i in range(X.shape[1]):
            exponent += (
                xp.sin(math.pi / period[i] * (X[:, i, None] - Z[:, i])) / lengthscale[i]
            ) ** 2
        return self.variance * xp.exp(-2.0 * exponent)

    def diagonal(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.variance)

    def n_lengthscales(self, step: Array) -> Array:
        xp = namespace(step)
        phase = 2.0 * math.pi * step / xp.asarray(self.period)
        return xp.sqrt(((phase / xp.minimum(xp.asarray(self.lengthscale), 1.0)) ** 2).sum(axis=-1))

    def split(self, inside: Places, outside: Places) -> Pieces:
        """Periodic(S ∪ R) = Periodic(S) Periodic(R)."""
        parts = [
            (Periodic(of_columns(self.lengthscale, some), of_columns(self.period, some)), some)
            for some in (inside, outside)
        ]
        return [(self.variance, [*parts])]

    def check_features(self, d: int) -> None:
        check_per_feature("lengthscale", self.lengthscale, d)
        check_per_feature("period", self.period, d)


@dataclass(frozen=True, eq=False)
class Cosine(Kernel):
    """k(x, x') = σ² cos(2π Σᵢ (xᵢ − xᵢ')/pᵢ): a wave of unknown phase and amplitude.

    Its period along feature i is pᵢ.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Cosine
    >>> Cosine(period=2.0)(np.zeros((1, 1)), np.array([[1.0], [2.0]]))
    array([[-1.,  1.]])
    """

    period: float | Array = 1.0
    variance: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("period", "variance")

    @property
    def stationary(self) -> bool:
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", positive("period", self.period))
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    def phase(self, difference: Array) -> Array:
        """Return 2π Σᵢ δᵢ/pᵢ for differences δ (..., d)."""
        return ((2.0 * math.pi) * difference / namespace(difference).asarray(self.period)).sum(
            axis=-1
        )

    def __call__(self, X: Array, Z: Array) -> Array:
        # Phases relative to the first row of Z keep their digits for data far from the origin.
        return self.variance * namespace(X, Z).cos(
            self.phase(X - Z[0])[:, None] - self.phase(Z - Z[0])
        )

    def diagonal(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.variance)

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).abs(self.phase(step))

    def check_features(self, d: int) -> None:
        check_per_feature("period", self.period, d)
