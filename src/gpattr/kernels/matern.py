"""The Matérn kernels with half-integer smoothness: functions that are rough, once, or twice differentiable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpattr._array import Array, namespace
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels.base import Kink
from gpattr.kernels.radial import Radial

ROOT3, ROOT5 = 3.0**0.5, 5.0**0.5
ROUGH = (
    "Matern12 has no gradients: its functions are nowhere differentiable, and the variance of their attributions does not exist "
    "(it diverges); it predicts, but cannot be explained by integrated gradients. Use Matern32 or Matern52"
)


@dataclass(frozen=True, eq=False)
class Matern12(Radial):
    """k(x, x') = σ² exp(−r), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)²: continuous, nowhere differentiable functions.

    It has values and predictions only. Gradients, and so integrated gradients, are refused: their variance does not exist.
    """

    def profile(self, r2: Array) -> Array:
        xp = namespace(r2)
        return xp.exp(-xp.sqrt(r2))

    def slope(self, r2: Array) -> Array:
        raise UnsupportedModelError(ROUGH)

    def bend(self, r2: Array) -> Array:
        raise UnsupportedModelError(ROUGH)


@dataclass(frozen=True, eq=False)
class Matern32(Radial):
    """k(x, x') = σ² (1 + √3 r) exp(−√3 r), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)²: once differentiable functions."""

    digits: ClassVar[float] = 12.5  # its branch points are weak, like r, so one more comes out
    kink_floor: ClassVar[float] = 1e-6  # what is odd in r, ∫r over this radius, is below 1e-12

    def profile(self, r2: Array) -> Array:
        xp = namespace(r2)
        r = ROOT3 * xp.sqrt(r2)
        return (1.0 + r) * xp.exp(-r)

    def slope(self, r2: Array) -> Array:
        xp = namespace(r2)
        r = xp.sqrt(r2)
        r *= -ROOT3
        value = xp.exp(r)
        value *= -3.0
        return value

    def bend(self, r2: Array) -> Array:
        xp = namespace(r2)
        r = xp.sqrt(xp.maximum(r2, 1e-200))  # at r = 0 it is multiplied by uᵢuⱼ = 0
        return (3.0 * ROOT3) * xp.exp(-ROOT3 * r) / r

    def kinks(self) -> tuple[Kink, ...]:
        return (Kink(None, self.lengthscale, self.kink_floor),)


@dataclass(frozen=True, eq=False)
class Matern52(Radial):
    """k(x, x') = σ² (1 + √5 r + 5r²/3) exp(−√5 r), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)²: twice differentiable functions."""

    digits: ClassVar[float] = 11.5  # its branch points are weak, like r³, so two more come out
    kink_floor: ClassVar[float] = 1e-3  # ∫r³ over this radius is below 1e-12

    def profile(self, r2: Array) -> Array:
        xp = namespace(r2)
        r = ROOT5 * xp.sqrt(r2)
        return (1.0 + r + (5.0 / 3.0) * r2) * xp.exp(-r)

    def slope(self, r2: Array) -> Array:
        xp = namespace(r2)
        r = xp.sqrt(r2)
        r *= -ROOT5
        value = xp.exp(r)
        r -= 1.0
        value *= r
        value *= 5.0 / 3.0
        return value

    def bend(self, r2: Array) -> Array:
        xp = namespace(r2)
        return (25.0 / 3.0) * xp.exp(-ROOT5 * xp.sqrt(r2))

    def kinks(self) -> tuple[Kink, ...]:
        return (Kink(None, self.lengthscale, self.kink_floor),)
