"""The rational-quadratic kernel: a mixture of squared exponentials over length-scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive_scalar
from gpattr.kernels.radial import Radial

GAUSSIAN = 1e16  # α beyond which the kernel equals a squared exponential to the last digit


@dataclass(frozen=True, eq=False)
class RationalQuadratic(Radial):
    """k(x, x') = σ² (1 + r²/2α)^(−α), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)²; a squared exponential for α → ∞.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5)(np.zeros((1, 1)), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.707]])
    """

    alpha: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("lengthscale", "variance", "alpha")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", positive_scalar("alpha", self.alpha))

    @property
    def core(self) -> float:
        return 2.0 * min(self.alpha, GAUSSIAN)

    def _power(self, r2: Array, exponent: float) -> Array:
        xp = namespace(r2)
        if self.alpha > GAUSSIAN:
            return xp.exp(-0.5 * r2)
        return xp.exp(exponent * xp.log1p(r2 / (2.0 * self.alpha)))

    def profile(self, r2: Array) -> Array:
        return self._power(r2, -self.alpha)

    def slope(self, r2: Array) -> Array:
        return -self._power(r2, -self.alpha - 1.0)

    def curvature(self, r2: Array) -> Array:
        return (1.0 + 1.0 / self.alpha) * self._power(r2, -self.alpha - 2.0)

    def n_lengthscales(self, step: Array) -> Array:
        # Singular at r² = −2α, so with a small α it varies faster than its length-scale suggests.
        return super().n_lengthscales(step) * max(1.0, self.alpha**-0.5)
