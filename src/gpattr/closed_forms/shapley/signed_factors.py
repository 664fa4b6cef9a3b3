"""Factors of any sign that belong to one player: values, and differences that keep their digits.

Rows are (n, D) arrays of all columns. `values` belong to every pair of a row and a point, (n, m);
`pair` compares rows with baselines, (n, D) or (1, D), at every point; `quad` takes the i-th row of
four arrays together, (n,).

Factors at a row and at a baseline (`Pair`) are means and differences that multiply without
cancellation. Along the diagonal of a multilinear extension a factor with the values u at the row
and v at the baseline is (1 − t)v + tu = mean + (t − ½) step, mean = (u + v)/2 and step = u − v.
Both follow for products from mean and step of the factors, so that steps keep their digits where
row and baseline are close:

    mean(ab) = mean a · mean b + ¼ step a · step b,
    step(ab) = mean a · step b + step a · mean b.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any, ClassVar

from gpattr._core.array import Array, namespace, product
from gpattr.closed_forms.shapley.factors import LogFactor, factor_of, variance_of
from gpattr.closed_forms.shapley.product import PositiveProduct
from gpattr.kernels import Cosine, Kernel, Linear, Polynomial, Product, Scale, Sum
from gpattr.operators import Coalitions, Players

BLOCK = 32  # rows of which a kernel that takes matrices only is evaluated at the same time


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

    ``mean`` is the mean of the four values, ``left`` the difference x − b averaged over the right,
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
        """The largest of the four values, or of the values between them."""
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


@dataclass(frozen=True, eq=False)
class SignedFactor(ABC):
    """A factor of some ``columns``, all of one player."""

    columns: tuple[int, ...]

    @abstractmethod
    def values(self, X: Array, Z: Array) -> Array:
        """Return k(xₙ, zₘ), (n, m)."""

    @abstractmethod
    def pair(self, X: Array, B: Array, Z: Array) -> Pair:
        """Return k(xₙ, zₘ) and k(bₙ, zₘ), (n, m)."""

    @abstractmethod
    def quad(self, X: Array, B: Array, Y: Array, C: Array) -> Quad:
        """Return k at xᵢ or bᵢ and yᵢ or cᵢ, (n,)."""

    def taken(self, X: Array) -> Array:
        """Return the columns of this factor, (n, C)."""
        return X[:, list(self.columns)]

    def reach(self, *rows: Array) -> float:
        """Return the largest phase between any of these rows; ε times it is an error."""
        return 0.0


@dataclass(frozen=True, eq=False)
class Bilinear(SignedFactor):
    """offset + Σ σ²xz over the columns, to a power: the kernels Linear and Polynomial."""

    variance: Any
    offset: float = 0.0
    degree: int = 1

    def _scaled(self, X: Array) -> Array:
        xp = namespace(X)
        variance = xp.asarray(self.variance)
        return self.taken(X) * variance

    def values(self, X: Array, Z: Array) -> Array:
        return (product(self._scaled(X), self.taken(Z).T + 0.0) + self.offset) ** self.degree

    def pair(self, X: Array, B: Array, Z: Array) -> Pair:
        xp, z = namespace(X), self.taken(Z).T + 0.0
        x, b = self._scaled(X), self._scaled(B)
        step = self._scaled(X - B)
        mean = product(0.5 * x + 0.5 * b, z) + self.offset
        size = product(xp.maximum(abs(x), abs(b) + 0.0 * x), abs(z)) + self.offset
        linear = Pair(mean, product(step, z), size, product(abs(step), abs(z)))
        return _power(linear, self.degree)

    def quad(self, X: Array, B: Array, Y: Array, C: Array) -> Quad:
        middle, step = self._scaled(0.5 * X + 0.5 * B), self._scaled(X - B)
        other, change = self.taken(0.5 * Y + 0.5 * C), self.taken(Y - C)
        parts = [(middle, other), (step, other), (middle, change), (step, change)]
        mean, left, right, mixed = ((one * two).sum(axis=1) for one, two in parts)
        return _power(Quad(mean + self.offset, left, right, mixed), self.degree)


def _power(base: Any, degree: int) -> Any:
    result = base
    for _ in range(degree - 1):
        result = result * base
    return result


@dataclass(frozen=True, eq=False)
class Wave(SignedFactor):
    """exp(i Σ 2π(x − z)/p) over the columns, or its real part: the kernel Cosine.

    Differences are e^{ia} − e^{ib} = 2i sin((a − b)/2) e^{i(a + b)/2}.
    """

    period: Any
    variance: float = 1.0
    real: bool = True

    def _phase(self, difference: Array) -> Array:
        period = namespace(difference).asarray(self.period)
        return (2.0 * math.pi * self.taken(difference) / period).sum(axis=1)

    def _part(self, wave: Array) -> Array:
        return wave.real if self.real else wave

    def reach(self, *rows: Array) -> float:
        period, xp = namespace(rows[0]).asarray(self.period), namespace(rows[0])
        spans = [2.0 * math.pi * abs(self.taken(part - rows[0][:1])) / period for part in rows]
        return 2.0 * max(float(xp.max(span.sum(axis=1), axis=0)) for span in spans)

    def _moving(self, X: Array, B: Array, origin: Array) -> Pair:
        """Return the wave at rows and baselines, seen from the origin, (n,)."""
        xp = namespace(X)
        half = 0.5 * self._phase(X - B)
        middle = self._phase(0.5 * (X - origin) + 0.5 * (B - origin))
        wave = xp.exp(1j * middle)
        step = 2j * (xp.sin(half) * wave)
        return Pair(xp.cos(half) * wave, step, 1.0 + 0.0 * half, abs(step))

    def values(self, X: Array, Z: Array) -> Array:
        phase = self._phase(X - Z[:1])[:, None] - self._phase(Z - Z[:1])
        return self.variance * self._part(namespace(X).exp(1j * phase))

    def pair(self, X: Array, B: Array, Z: Array) -> Pair:
        moving = self._moving(X, B, Z[:1])
        still = self.variance * namespace(X).exp(-1j * self._phase(Z - Z[:1]))
        mean, step = (self._part(part[:, None] * still) for part in (moving.mean, moving.step))
        size, slack = (part[:, None] * abs(still) for part in (moving.size, moving.slack))
        return Pair(mean, step, size, slack)

    def quad(self, X: Array, B: Array, Y: Array, C: Array) -> Quad:
        one, two = self._moving(X, B, Y[:1]), self._moving(Y, C, Y[:1])
        conjugate = Pair(two.mean.conj(), two.step.conj(), two.size, two.slack)
        both = separable(one, conjugate)
        parts = (both.mean, both.left, both.right, both.mixed)
        return Quad(*(self.variance * self._part(part) for part in parts))


@dataclass(frozen=True, eq=False)
class Positive(SignedFactor):
    """σ² times a positive factor of one player, by its logarithm."""

    factor: LogFactor
    variance: float

    def _first(self, X: Array) -> Array:
        return self.taken(X).T

    def values(self, X: Array, Z: Array) -> Array:
        x, z = self._first(X)[:, :, None], self._first(Z)[:, None, :]
        return self.variance * namespace(X).exp(self.factor.logs(x, z)[0])

    def pair(self, X: Array, B: Array, Z: Array) -> Pair:
        xp = namespace(X)
        x, b, z = self._first(X)[:, :, None], self._first(B)[:, :, None], self._first(Z)[:, None]
        logs = self.factor.pair(x, b, z)
        high = xp.maximum(logs.at_row, logs.at_baseline + 0.0 * logs.at_row)[0]
        pair = contrast(xp.tanh(logs.half[0]))
        top = self.variance * xp.exp(high)
        # A logarithm is rounded in proportion to its size.
        lost = top * (1.0 - 0.125 * high)
        return Pair(top * pair.mean, top * pair.step, lost * pair.size, lost * pair.slack)

    def quad(self, X: Array, B: Array, Y: Array, C: Array) -> Quad:
        players = Players((0,) * X.shape[1], 1)
        factor = type(self.factor)(self.factor.kernel, self.columns, (0,) * len(self.columns))
        whole = PositiveProduct(self.variance, (factor,), 1)
        corners = whole.corners(Coalitions(B, X, players), Coalitions(C, Y, players))
        return corners.top * quad_of_corners(*(part[:, 0] for part in corners[:4]))


def contrast(c: Array) -> Pair:
    """Return the pair of a positive factor, over its larger value, from c = (u − v)/(u + v)."""
    mean = 1.0 / (1.0 + abs(c))
    return Pair.exact(mean, 2.0 * c * mean)


def quad_of_corners(base: Array, left: Array, right: Array, mixed: Array) -> Quad:
    """Return the quad of k(b, b') and of its differences at b and b'."""
    mean = base + 0.5 * (left + right) + 0.25 * mixed
    return Quad(mean, left + 0.5 * mixed, right + 0.5 * mixed, mixed)


@dataclass(frozen=True, eq=False)
class Direct(SignedFactor):
    """Any kernel of the columns, by its values."""

    kernel: Kernel

    def values(self, X: Array, Z: Array) -> Array:
        return self.kernel(self.taken(X), self.taken(Z))

    def pair(self, X: Array, B: Array, Z: Array) -> Pair:
        row, baseline = self.values(X, Z), self.values(B, Z)
        both = Pair.of(row, baseline + 0.0 * row)
        same = self._same(X, B)[:, None]
        return Pair(both.mean, zero_where(same, both.step), both.size, both.slack)

    def quad(self, X: Array, B: Array, Y: Array, C: Array) -> Quad:
        four = Quad.of(*(self._each(one, two) for one in (X, B) for two in (Y, C)))
        left, right = self._same(X, B), self._same(Y, C)
        return Quad(
            four.mean,
            zero_where(left, four.left),
            zero_where(right, four.right),
            zero_where(left | right, four.mixed),
        )

    def _same(self, X: Array, B: Array) -> Array:
        return (self.taken(X) == self.taken(B)).all(axis=1)

    def _each(self, X: Array, Y: Array) -> Array:
        """Return k(xᵢ, yᵢ), (n,), from small blocks of rows."""
        xp, result = namespace(X), namespace(X).zeros(len(X))
        for start in range(0, len(X), BLOCK):
            some = slice(start, start + BLOCK)
            K = self.kernel(self.taken(X[some]), self.taken(Y[some]))
            result[some] = xp.diagonal(K, axis1=0, axis2=1)
        return result


@dataclass(frozen=True, eq=False)
class Composed(SignedFactor):
    """The sum or the product of factors, times σ²."""

    parts: tuple[SignedFactor, ...]
    combine: Callable[[Any, Any], Any]
    variance: float = 1.0

    def values(self, X: Array, Z: Array) -> Array:
        return self.variance * reduce(self.combine, (part.values(X, Z) for part in self.parts))

    def pair(self, X: Array, B: Array, Z: Array) -> Pair:
        return self.variance * reduce(self.combine, (part.pair(X, B, Z) for part in self.parts))

    def quad(self, X: Array, B: Array, Y: Array, C: Array) -> Quad:
        return self.variance * reduce(self.combine, (part.quad(X, B, Y, C) for part in self.parts))

    def reach(self, *rows: Array) -> float:
        return sum(part.reach(*rows) for part in self.parts)


def signed_factor(kernel: Kernel, columns: tuple[int, ...], players: Players) -> SignedFactor:
    """Return a kernel of some columns, all of one player, as a factor."""
    if type(kernel) is Linear:
        return Bilinear(columns, kernel.variance)
    if type(kernel) is Polynomial:
        return Bilinear(columns, kernel.variance, kernel.offset, kernel.degree)
    if type(kernel) is Cosine:
        return Wave(columns, kernel.period, kernel.variance)
    if type(kernel) in (Sum, Product, Scale):
        parts = tuple(signed_factor(part, columns, players) for part in kernel.parts().values())
        scale = kernel.variance if isinstance(kernel, Scale) else 1.0
        return Composed(columns, parts, add if type(kernel) is Sum else mul, scale)
    factor = factor_of(kernel, columns, players)
    if factor is not None:
        return Positive(columns, factor, variance_of(kernel))
    return Direct(columns, kernel)
