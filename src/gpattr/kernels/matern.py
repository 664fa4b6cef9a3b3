"""The Matérn kernels: ν = 1/2, 3/2, 5/2 and general ν."""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma
from typing import ClassVar

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.validation import check_count, positive_scalar
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels.base import Kink
from gpattr.kernels.radial import Radial

ROOT3, ROOT5 = 3.0**0.5, 5.0**0.5
SMOOTH = 6.5  # ν beyond which r^(2ν − 2) is too smooth to affect an integral
# The order from which, and the argument up to which, a Bessel function is a power series.
HIGH_ORDER, SERIES = 8.0, 0.1
ROUGH = (
    "Matern12 has no gradients: its functions are nowhere differentiable, and the variance of their"
    " attributions does not exist (it diverges); it can predict, but not be explained by integrated"
    " gradients. Use Matern32 or Matern52"
)


@dataclass(frozen=True, eq=False)
class Matern12(Radial):
    """k(x, x') = σ² exp(−r), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)²: continuous functions without gradients.

    It has values and predictions only. Gradients, and so integrated gradients, are refused: their
    variance does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Matern12
    >>> Matern12(lengthscale=2.0)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.368]])
    """

    nu: ClassVar[float] = 0.5

    def profile(self, r2: Array) -> Array:
        xp = namespace(r2)
        return xp.exp(-xp.sqrt(r2))

    def slope(self, r2: Array) -> Array:
        raise UnsupportedModelError(ROUGH)

    def curvature(self, r2: Array) -> Array:
        raise UnsupportedModelError(ROUGH)


@dataclass(frozen=True, eq=False)
class Matern32(Radial):
    """k(x, x') = σ² (1 + √3 r) exp(−√3 r): once differentiable functions.

    r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)².

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Matern32
    >>> Matern32(lengthscale=2.0)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.483]])
    """

    nu: ClassVar[float] = 1.5

    @property
    def digits(self) -> float:
        return 12.5  # branch points like r are weak: one more digit comes out

    @property
    def kink_floor(self) -> float:
        return 1e-6  # ∫r over this radius is below 1e-12

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

    def curvature(self, r2: Array) -> Array:
        xp = namespace(r2)
        r = xp.sqrt(xp.maximum(r2, 1e-200))  # at r = 0 it is multiplied by uᵢuⱼ = 0
        return (3.0 * ROOT3) * xp.exp(-ROOT3 * r) / r

    def kinks(self) -> tuple[Kink, ...]:
        return (Kink(None, self.lengthscale, self.kink_floor),)


@dataclass(frozen=True, eq=False)
class Matern52(Radial):
    """k(x, x') = σ² (1 + √5 r + 5r²/3) exp(−√5 r): twice differentiable functions.

    r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)².

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Matern52
    >>> Matern52(lengthscale=2.0)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.524]])
    """

    nu: ClassVar[float] = 2.5

    @property
    def digits(self) -> float:
        return 11.5  # branch points like r³ are weak: two more digits come out

    @property
    def kink_floor(self) -> float:
        return 1e-3  # ∫r³ over this radius is below 1e-12

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

    def curvature(self, r2: Array) -> Array:
        xp = namespace(r2)
        return (25.0 / 3.0) * xp.exp(-ROOT5 * xp.sqrt(r2))

    def kinks(self) -> tuple[Kink, ...]:
        return (Kink(None, self.lengthscale, self.kink_floor),)


@dataclass(frozen=True, eq=False)
class Matern(Radial):
    """k(x, x') = σ² 2^(1−ν)/Γ(ν) s^ν K_ν(s), s = √(2ν) r, for any ``nu`` ν from 1.05 to 50.

    r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)². Its functions have ⌈ν⌉ − 1 derivatives. With ν = 3/2 and 5/2 it is
    `Matern32` and `Matern52`, which are far faster: this one needs Bessel functions, which only
    SciPy has, so that tensors are computed on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Matern
    >>> Matern(lengthscale=2.0, nu=3.5)(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.545]])
    """

    one_sided: ClassVar[bool] = False

    nu: float = 3.5

    def __post_init__(self) -> None:
        super().__post_init__()
        nu = positive_scalar("nu", self.nu)
        if not 1.05 <= nu <= 50.0:
            raise InvalidInputError(
                f"nu: expected 1.05 to 50, got {nu:g}; functions with nu <= 1 have no gradients"
                " (Matern12 can predict), and a large nu approaches SquaredExponential"
            )
        object.__setattr__(self, "nu", nu)

    @property
    def digits(self) -> float:
        """Branch points like r^(2ν − 2) are the weaker, the smoother the functions."""
        return 13.0 if self.nu < 1.5 else 12.5 if self.nu < 2.5 else 11.5

    @property
    def kink_floor(self) -> float:
        """∫r^(2ν − 2) over this radius is below 1e-12."""
        return 10.0 ** (-12.0 / (2.0 * self.nu - 1.0))

    @property
    def steep(self) -> bool:
        return self.nu > 2.5

    def _bessel(self, r2: Array, order: float, factor: float) -> Array:
        """Return factor · 2^(1−ν)/Γ(ν) s^order K_order(s)."""
        from scipy.special import kve

        s = np.sqrt(2.0 * self.nu * to_numpy(r2))
        scale = factor * 2.0 ** (1.0 - self.nu) / gamma(self.nu)
        # Where s is clipped, the value has reached its limit at 0, or is 0; of a high order it
        # would overflow before it has.
        least = SERIES if order >= HIGH_ORDER else 10.0 ** (-200.0 / max(order, 2.0))
        least = least if order >= 0.0 else 1e-60  # where it diverges, but not beyond float64
        at = np.clip(s, least, 1e4)
        value = scale * at**order * np.exp(-at) * kve(order, at)
        if order >= HIGH_ORDER:
            # Γ(μ) 2^(μ−1) Σₖ (−s²/4)ᵏ/(k! (μ − 1)⋯(μ − k)), what follows being of the size s^2μ
            term, total = 1.0, 1.0
            for k in range(1, 8):
                term = (
                    term * (-0.25 * np.minimum(s, SERIES) ** 2) / (k * (order - k))
                    if k < order
                    else 0.0
                )
                total = total + term
            value = np.where(s < SERIES, scale * gamma(order) * 2.0 ** (order - 1.0) * total, value)
        return namespace(r2).asarray(value)

    def profile(self, r2: Array) -> Array:
        return self._bessel(r2, self.nu, 1.0)

    def slope(self, r2: Array) -> Array:
        return self._bessel(r2, self.nu - 1.0, -2.0 * self.nu)

    def curvature(self, r2: Array) -> Array:
        return self._bessel(r2, self.nu - 2.0, (2.0 * self.nu) ** 2)

    def derivative(self, r2: Array, order: int) -> Array:
        """Return the derivative of order 0 to 4 of g by r²/2; 1 and 2 are slope and curvature."""
        check_count("order", order, least=0, most=4)
        return self._bessel(r2, self.nu - order, (-2.0 * self.nu) ** order)

    def profiles(self, r2: Array, second: bool) -> tuple[Array, Array, Array | None]:
        h = self.slope(r2)
        if not second:
            return self.profile(r2), h, None
        # K_ν = K_ν−2 + 2(ν − 1)/s K_ν−1: one Bessel function less.
        b = self.curvature(r2)
        return (r2 * b - 2.0 * (self.nu - 1.0) * h) / (2.0 * self.nu), h, b

    def kinks(self) -> tuple[Kink, ...]:
        if self.nu > SMOOTH:
            return ()
        return (Kink(None, self.lengthscale, self.kink_floor, self.one_sided),)
