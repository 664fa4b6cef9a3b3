"""Integrals over the diagonal of products of factors of any sign, or of series of them.

Kernels of several orders multiply as truncated power series in a few variables θ. A series is a
dictionary from positions to coefficients, which are numbers, arrays, `Pair` or `Quad`. A linear
functional of series, Σ aₙ [θⁿ], is a dictionary from positions to numbers or arrays.

With hⱼ(t) = (1 − t)vⱼ + tuⱼ and the functional L = Σ aₙ [θⁿ]

    φᵢ = ∫₀¹ L((uᵢ − vᵢ) ∏_{j≠i} hⱼ(t)) dt.

Factors may be zero, so nothing is divided by them: the product of those before i goes forwards, the
functional multiplied by those after i goes backwards, and no term is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product as all_combinations
from math import prod
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.shapley.signed_factors import Quad
from gpattr.special.diagonal import nodes_needed
from gpattr.special.quadrature import gauss_legendre

Series = dict[int, Any]
FEW = 6  # nodes, exact, below which it does not pay to find out whether fewer are enough
TINY = 1e-300


class Ring:
    """Series in one variable for each of ``weights``, up to the order that each of them has.

    A position counts the monomials θ₁^n₁ θ₂^n₂ …; the functional Σ aₙ [θⁿ] has the products of
    ``weights`` as coefficients.
    """

    def __init__(self, weights: Sequence[Sequence[float]]) -> None:
        self.weights = [list(some) for some in weights]
        self.lengths = [len(some) for some in self.weights]
        monomials = list(all_combinations(*(range(length) for length in self.lengths)))
        self.places = {monomial: place for place, monomial in enumerate(monomials)}
        self._sums = {
            (self.places[one], self.places[two]): self.places.get(
                tuple(i + j for i, j in zip(one, two, strict=True))
            )
            for one in monomials
            for two in monomials
        }

    @property
    def orders(self) -> int:
        """The sum of the highest orders of all variables."""
        return sum(length - 1 for length in self.lengths)

    @cached_property
    def functional(self) -> Series:
        """The coefficients aₙ that are not zero."""
        values = {
            place: prod(
                (some[n] for some, n in zip(self.weights, monomial, strict=True)), start=1.0
            )
            for monomial, place in self.places.items()
        }
        return {place: value for place, value in values.items() if value != 0.0}

    def place(self, variable: int, order: int) -> int:
        """Return the position of the power of one variable."""
        return self.places[tuple(order if i == variable else 0 for i in range(len(self.lengths)))]

    def times(self, one: Series, two: Series) -> Series:
        """Return the product of two series."""
        result: Series = {}
        for i, a in one.items():
            for j, b in two.items():
                place = self._sums[i, j]
                if place is not None:
                    term = a * b
                    result[place] = result[place] + term if place in result else term
        return result

    def passed(self, functional: Series, factor: Series) -> Series:
        """Return the functional f ↦ L(f · factor)."""
        result: Series = {}
        for i in range(len(self.places)):
            for j, b in factor.items():
                place = self._sums[i, j]
                if place in functional:
                    term = functional[place] * b
                    result[i] = result[i] + term if i in result else term
        return result

    def applied(self, functional: Series, one: Series, two: Series) -> Any:
        """Return L(one · two)."""
        total: Any = 0.0
        for i, a in one.items():
            for j, b in two.items():
                place = self._sums[i, j]
                if place in functional:
                    total = total + functional[place] * (a * b)
        return total


def multiplied(ring: Ring, factors: Sequence[Series]) -> Series:
    """Return the product of one or more series."""
    result = factors[0]
    for factor in factors[1:]:
        result = ring.times(result, factor)
    return result


def leave_one_out(factors: Sequence[Series], ring: Ring, degree: int) -> list[Any]:
    """Return φᵢ for factors of `Pair` coefficients, at most ``degree`` of which vary at a time."""
    steps = [_moving(factor) for factor in factors]
    totals: list[Any] = [0.0] * len(factors)
    nodes = _rule(pair_nodes(factors, degree))
    for t, weight in nodes:
        values = [{i: pair.at(t) for i, pair in factor.items()} for factor in factors]
        before: list[Series] = [{0: weight}]
        for value in values[:-1]:
            before.append(ring.times(before[-1], value))
        functional = ring.functional
        for i in range(len(factors) - 1, -1, -1):
            totals[i] = totals[i] + ring.applied(functional, before[i], steps[i])
            if i:
                functional = ring.passed(functional, values[i])
    return totals


def sizes(factors: Sequence[Series], ring: Ring) -> Any:
    """Return Σᵢ |L|(slackᵢ ∏_{j≠i} sizeⱼ): ε times it is the rounding of any of φᵢ."""
    product: Series = {0: 1.0}
    total: Series = {}
    for factor in factors:
        size = {i: pair.size for i, pair in factor.items()}
        moved = ring.times(product, {i: pair.slack for i, pair in factor.items()})
        total = _added(ring.times(total, size), moved)
        product = ring.times(product, size)
    return sum(
        abs(ring.functional[i]) * value for i, value in total.items() if i in ring.functional
    )


def whole_size(factors: Sequence[Series], ring: Ring) -> Any:
    """Return |L|(∏ⱼ sizeⱼ) of factors of `Pair` or `Quad` coefficients."""
    product: Series = {0: 1.0}
    for factor in factors:
        product = ring.times(product, {i: part.size for i, part in factor.items()})
    return sum(abs(ring.functional[i]) * v for i, v in product.items() if i in ring.functional)


def leave_two_out(
    factors: Sequence[Series], ring: Ring, degree: int, *, symmetric: bool
) -> list[list[Any]]:
    """Return ∫∫ L(DᵢD'ⱼ ∏_{l≠i,j} Bₗ) ds dt, and with the mixed difference where i = j.

    Coefficients are `Quad` of (n,); so are results. In a symmetric problem both sites are the same.
    """
    B, D, other, mixed, weight = _at_nodes(factors, pair_of_nodes(factors, degree))
    p = len(factors)
    before: list[Series] = [{0: 1.0}]
    for value in B[:-1]:
        before.append(ring.times(before[-1], value))
    after: list[Series] = [ring.functional]
    for value in B[:0:-1]:
        after.append(ring.passed(after[-1], value))
    after = after[::-1]

    def integral(functional: Series, one: Series, two: Series) -> Any:
        return (weight * ring.applied(functional, one, two)).sum(axis=-1)

    result: list[list[Any]] = [[None] * p for _ in range(p)]
    for i in range(p):
        result[i][i] = integral(after[i], before[i], mixed[i])
        upper, lower = ring.times(before[i], D[i]), ring.times(before[i], other[i])
        for j in range(i + 1, p):
            result[i][j] = integral(after[j], upper, other[j])
            result[j][i] = result[i][j] if symmetric else integral(after[j], lower, D[j])
            if j + 1 < p:
                upper = ring.times(upper, B[j])
                lower = upper if symmetric else ring.times(lower, B[j])
    return result


def _at_nodes(factors: Sequence[Series], q: int) -> tuple[Any, Any, Any, Any, Array]:
    """Return B, D, D' and the mixed differences of all factors at q² nodes, (n, q²) each."""
    xp = namespace(_some_array(factors))
    t, w = map(xp.asarray, gauss_legendre(q))
    s, t, weight = xp.repeat(t, q) - 0.5, xp.tile(t, q) - 0.5, (w[:, None] * w).reshape(-1)

    def wide(part: Any) -> Any:
        return part if isinstance(part, float) else part[:, None]

    def at_nodes(quad: Quad) -> tuple[Any, Any, Any, Any]:
        mean, left, right, mixed = map(wide, (quad.mean, quad.left, quad.right, quad.mixed))
        left, other = left + t * mixed, right + s * mixed
        ones = 1.0 + 0.0 * t
        return mean + s * left + t * right, left, other, mixed * ones

    parts = [{i: at_nodes(quad) for i, quad in factor.items()} for factor in factors]
    moves = [{i for i, quad in f.items() if not isinstance(quad.mixed, float)} for f in factors]
    B = [{i: some[0] for i, some in part.items()} for part in parts]
    D, other, mixed = (
        [{i: part[i][k] for i in some} for part, some in zip(parts, moves, strict=True)]
        for k in (1, 2, 3)
    )
    return B, D, other, mixed, weight


def pair_nodes(factors: Sequence[Series], degree: int) -> int:
    """Return how many nodes integrate the product of factors of `Pair` coefficients.

    A coefficient of hⱼ is at most (|mean| + |step|/2) exp((A − 1)λ) on the ellipse with half axis
    A, with λ the share of |step|/2 in that sum, and coefficients of products are at most the
    coefficients of products of sums of absolute values.
    """
    if (degree + 1) // 2 <= FEW:
        return max(1, (degree + 1) // 2)
    spread, excess = 0.0, 0.0
    for factor in factors:
        share, over = 0.0, 0.0
        for pair in factor.values():
            if isinstance(pair.step, float):
                continue
            xp, half = namespace(pair.step), 0.5 * pair.step
            total = abs(pair.mean) + abs(half) + TINY
            largest = xp.maximum(abs(pair.mean + half), abs(pair.mean - half)) + TINY
            share = _larger(abs(half) / total, share)
            over = _larger(xp.log(total / largest), over)
        spread, excess = spread + share, excess + over
    return nodes_needed(_top(spread), degree, _top(excess))


def pair_of_nodes(factors: Sequence[Series], degree: int) -> int:
    """Return how many nodes in each direction integrate products of `Quad` coefficients.

    For every t the factor is a pair in s, whose step is at most |left| + |mixed|/2, and so is it
    the other way round.
    """
    if (degree + 1) // 2 <= FEW // 2:
        return max(1, (degree + 1) // 2)
    spreads, excess = [0.0, 0.0], 0.0
    for factor in factors:
        shares, over = [0.0, 0.0], 0.0
        for quad in factor.values():
            if isinstance(quad.mixed, float):
                continue
            xp, total = namespace(quad.mixed), quad.total + TINY
            for side, part in enumerate((quad.left, quad.right)):
                shares[side] = _larger(
                    (0.5 * abs(part) + 0.25 * abs(quad.mixed)) / total, shares[side]
                )
            over = _larger(xp.log(total / (quad.size + TINY)), over)
        spreads = [one + two for one, two in zip(spreads, shares, strict=True)]
        excess = excess + over
    return nodes_needed(max(map(_top, spreads)), degree, _top(excess))


def _rule(q: int) -> list[tuple[float, float]]:
    t, w = gauss_legendre(q)
    return list(zip(t.tolist(), w.tolist(), strict=True))


def _moving(factor: Series) -> Series:
    """Return the steps of the coefficients that are no constants."""
    return {i: pair.step for i, pair in factor.items() if not isinstance(pair.step, float)}


def _added(one: Series, two: Series) -> Series:
    result = dict(one)
    for i, value in two.items():
        result[i] = result[i] + value if i in result else value
    return result


def _larger(values: Array, than: Any) -> Any:
    return namespace(values).maximum(values, than)


def _top(values: Any) -> float:
    return values if isinstance(values, float) else float(values.max())


def _some_array(factors: Sequence[Series]) -> Array:
    return next(
        quad.mixed
        for factor in factors
        for quad in factor.values()
        if not isinstance(quad.mixed, float)
    )
