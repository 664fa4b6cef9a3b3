"""Maps of one column with their slopes and inverses: affine, logarithmic, Kumaraswamy's warping."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.exceptions import InvalidInputError

LOG_10 = math.log(10.0)


class ScalarMap(ABC):
    """A monotone map of one column."""

    @abstractmethod
    def value(self, x: Array) -> Array:
        """Return h(x), (n,)."""

    @abstractmethod
    def slope(self, x: Array) -> Array:
        """Return h'(x), (n,)."""

    @abstractmethod
    def inverse(self, u: Array) -> Array:
        """Return x with h(x) = u, (n,)."""


@dataclass(frozen=True)
class Affine(ScalarMap):
    """u = (x − ``shift``)/``scale``."""

    shift: float
    scale: float

    def value(self, x: Array) -> Array:
        return (x - self.shift) / self.scale

    def slope(self, x: Array) -> Array:
        return 0.0 * x + 1.0 / self.scale

    def inverse(self, u: Array) -> Array:
        return self.shift + self.scale * u


@dataclass(frozen=True)
class Log10(ScalarMap):
    """u = log₁₀ x of the column called ``name``, larger than 0."""

    name: str

    def value(self, x: Array) -> Array:
        return namespace(x).log(self._positive(x)) / LOG_10

    def slope(self, x: Array) -> Array:
        return 1.0 / (LOG_10 * self._positive(x))

    def inverse(self, u: Array) -> Array:
        return namespace(u).exp(LOG_10 * u)

    def _positive(self, x: Array) -> Array:
        if not bool((x > 0).all()):
            raise InvalidInputError(
                f"X: the model takes the logarithm of column {self.name}; expected values larger"
                f" than 0 on the whole path, got {float(to_numpy(x).min()):.3g}"
            )
        return x


@dataclass(frozen=True)
class Kumaraswamy(ScalarMap):
    """u = 1 − (1 − z^a)^b, z = (1 − 2ε)x + ε within [ε, 1 − ε], the distribution function.

    Beyond the interval it is constant. With a or b below 1 the slope at its ends is as large as
    ε^(a − 1).
    """

    a: float
    b: float
    eps: float

    def value(self, x: Array) -> Array:
        return 1.0 - (1.0 - self._inside(x) ** self.a) ** self.b

    def slope(self, x: Array) -> Array:
        z, width = self._inside(x), 1.0 - 2.0 * self.eps
        rate = self.a * self.b * z ** (self.a - 1.0) * (1.0 - z**self.a) ** (self.b - 1.0)
        return namespace(x).where((x >= 0.0) & (x <= 1.0), width * rate, 0.0)

    def inverse(self, u: Array) -> Array:
        z = (1.0 - (1.0 - u) ** (1.0 / self.b)) ** (1.0 / self.a)
        return namespace(u).clip((z - self.eps) / (1.0 - 2.0 * self.eps), 0.0, 1.0)

    def _inside(self, x: Array) -> Array:
        z = (1.0 - 2.0 * self.eps) * x + self.eps
        return namespace(x).clip(z, self.eps, 1.0 - self.eps)


@dataclass(frozen=True)
class Inverse(ScalarMap):
    """The inverse of another map."""

    inner: ScalarMap

    def value(self, x: Array) -> Array:
        return self.inner.inverse(x)

    def slope(self, x: Array) -> Array:
        rate = self.inner.slope(self.inner.inverse(x))
        return namespace(x).where(rate > 0, 1.0 / namespace(x).where(rate > 0, rate, 1.0), 0.0)

    def inverse(self, u: Array) -> Array:
        return self.inner.value(u)


def value(maps: Sequence[ScalarMap], x: Array) -> Array:
    """Return hₖ(…h₁(x)), (n,)."""
    for part in maps:
        x = part.value(x)
    return x


def slope(maps: Sequence[ScalarMap], x: Array) -> Array:
    """Return the slope of hₖ(…h₁(x)), (n,)."""
    rate = 0.0 * x + 1.0
    for part in maps:
        rate, x = rate * part.slope(x), part.value(x)
    return rate


def inverse(maps: Sequence[ScalarMap], u: Array) -> Array:
    """Return x with hₖ(…h₁(x)) = u, (n,)."""
    for part in reversed(maps):
        u = part.inverse(u)
    return u


def as_affine(maps: Sequence[ScalarMap]) -> Affine | None:
    """Return one affine map in place of several; None if one of them is not affine."""
    shift, scale = 0.0, 1.0
    for part in maps:
        affine = part.inner if isinstance(part, Inverse) else part
        if not isinstance(affine, Affine):
            return None
        if part is affine:
            shift, scale = shift + scale * affine.shift, scale * affine.scale
        else:
            # (x − shift)/scale is multiplied and then moved.
            scale = scale / affine.scale
            shift = shift - scale * affine.shift
    return Affine(shift, scale) if np.isfinite(shift) and scale != 0 else None
