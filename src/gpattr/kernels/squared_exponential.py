"""The squared-exponential kernel, isotropic or with one length-scale per feature (ARD)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace
from gpattr.kernels.base import Pieces, Places, of_columns
from gpattr.kernels.radial import Radial


@dataclass(frozen=True, eq=False)
class SquaredExponential(Radial):
    """k(x, x') = σ² exp(−r²/2), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)².

    ``lengthscale`` ℓ is one number or one per feature, in the units of the inputs; ``variance`` σ²
    is in the units of the squared target. Other libraries call this kernel RBF.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> SquaredExponential(lengthscale=2.0)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.607]])
    """

    even: ClassVar[bool] = True

    def split(self, inside: Places, outside: Places) -> Pieces:
        """SE(S ∪ R) = SE(S) SE(R)."""
        parts = [
            (SquaredExponential(of_columns(self.lengthscale, some)), some)
            for some in (inside, outside)
        ]
        return [(self.variance, [*parts])]

    def profile(self, r2: Array) -> Array:
        return namespace(r2).exp(-0.5 * r2)

    def slope(self, r2: Array) -> Array:
        return -self.profile(r2)

    def curvature(self, r2: Array) -> Array:
        return self.profile(r2)
