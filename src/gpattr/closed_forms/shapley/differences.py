"""Factors at a row and at a baseline, as means and differences that multiply without cancellation.

Along the diagonal of a multilinear extension a factor with the values u at the row and v at the
baseline is (1 − t)v + tu = mean + (t − ½) step, mean = (u + v)/2 and step = u − v. Both follow for
products from those of the factors, so that steps keep their digits where row and baseline are
close:

    mean(ab) = mean a · mean b + ¼ step a · step b,
    step(ab) = mean a · step b + step a · mean b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpattr._core.array import Array, namespace


@dataclass(frozen=True, slots=True)
class Pair:
    """A factor at a row and at a baseline; arrays of one shape, or numbers.

    ``size`` is at least |u| and |v|, ``slack`` at least |step|: ε times them is what rounding does
    to the values and to the step.
    """

    __array_ufunc__: ClassVar[None] = None  # an array times a pair is a pair

    mean: Any
    step: Any
    size: Any
    slack: Any

    @classmethod
    def of(cls, row: Array, baseline: Array) -> Pair:
        """Return the pair of two values whose difference has the rounding of both."""
        one, two = abs(row), abs(baseline)
        size = namespace(one).maximum(one, two + 0.0 * one)
        return cls(0.5 * (row + baseline), row - baseline, size, one + two)

    @classmethod
    def exact(cls, mean: Array, step: Array) -> Pair:
        """Return a real pair whose step is known to its own last digits."""
        slack = abs(step)
        return cls(mean, step, abs(mean) + 0.5 * slack, slack)

    def __mul__(self, other: Pair) -> Pair:
        return Pair(
            self.mean * other.mean + 0.25 * (self.step * other.step),
            self.mean * other.step + self.step * other.mean,
            self.size * other.size,
            self.size * other.slack + self.slack * other.size,
        )

    def __add__(self, other: Pair) -> Pair:
        return Pair(
            self.mean + other.mean,
            self.step + other.step,
            self.size + other.size,
            self.slack + other.slack,
        )

    def __rmul__(self, factor: Any) -> Pair:  # of factors that are not negative
        parts = (self.mean, self.step, self.size, self.slack)
        return Pair(*(factor * part for part in parts))

    def at(self, t: float) -> Array:
        """Return (1 − t)v + tu."""
        return self.mean + (t - 0.5) * self.step


@dataclass(frozen=True, slots=True)
class Quad:
    """A factor k(x, x') at both ends of two steps: x or b on the left, x' or b' on the right.

    ``mean`` is that of the four values, ``left`` the difference x − b averaged over the right,
    ``right`` x' − b' averaged over the left, ``mixed`` the difference of differences; the factor is
    mean + (s − ½) left + (t − ½) right + (s − ½)(t − ½) mixed.
    """

    __array_ufunc__: ClassVar[None] = None

    mean: Any
    left: Any
    right: Any
    mixed: Any

    @classmethod
    def of(cls, xx: Array, xb: Array, bx: Array, bb: Array) -> Quad:
        """Return the quad of four values k(x, x'), k(x, b'), k(b, x') and k(b, b')."""
        mean = 0.25 * ((xx + xb) + (bx + bb))
        left, right = 0.5 * ((xx - bx) + (xb - bb)), 0.5 * ((xx - xb) + (bx - bb))
        return cls(mean, left, right, (xx - xb) - (bx - bb))

    def __mul__(self, other: Quad) -> Quad:
        m, x, y, e = self.mean, self.left, self.right, self.mixed
        n, u, v, f = other.mean, other.left, other.right, other.mixed
        return Quad(
            m * n + 0.25 * (x * u + y * v) + 0.0625 * (e * f),
            m * u + x * n + 0.25 * (y * f + e * v),
            m * v + y * n + 0.25 * (x * f + e * u),
            m * f + e * n + x * v + y * u,
        )

    def __add__(self, other: Quad) -> Quad:
        return Quad(
            self.mean + other.mean,
            self.left + other.left,
            self.right + other.right,
            self.mixed + other.mixed,
        )

    def __rmul__(self, factor: Any) -> Quad:
        return Quad(*(factor * part for part in (self.mean, self.left, self.right, self.mixed)))

    @property
    def total(self) -> Array:
        """The sum of the sizes of the parts."""
        return abs(self.mean) + 0.5 * (abs(self.left) + abs(self.right)) + 0.25 * abs(self.mixed)

    @property
    def size(self) -> Array:
        """The largest of the four values, or of what is between them."""
        xp, result = namespace(self.mixed), abs(self.mean)
        for s in (-0.5, 0.5):
            for t in (-0.5, 0.5):
                value = abs(self.mean + s * self.left + t * self.right + s * t * self.mixed)
                result = (
                    max(result, value) if isinstance(value, float) else xp.maximum(result, value)
                )
        return result


PAIR_OF_ONES = Pair(1.0, 0.0, 1.0, 0.0)
QUAD_OF_ONES = Quad(1.0, 0.0, 0.0, 0.0)


def separable(one: Pair, two: Pair) -> Quad:
    """Return the quad of f(x)g(x') from the pairs of f and g."""
    return Quad(one.mean * two.mean, one.step * two.mean, one.mean * two.step, one.step * two.step)


def zero_where(same: Array, step: Array) -> Array:
    """Return a step with exact zeros where nothing moves."""
    return namespace(step).where(same, 0.0, step)
