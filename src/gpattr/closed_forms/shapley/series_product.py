"""Kernels that are coefficients of products of power series over players.

A term is a product of leaves k = Σₙ aₙ [θⁿ] ∏_g T_g(θ), with a series T_g of each player g:

    a product of factors of players         T = k                             aₙ: 1
    FullAdditive, order variances σₙ²       T = ∏ (1 + θ kⱼ) over columns     aₙ = σₙ²
    (c + Σ σⱼ²xⱼzⱼ)^p                       T = exp(θ Σ σⱼ²xⱼzⱼ)              aₙ = p!/(p−n)! c^(p−n)
    Cosine, the real part of                T = exp(i Σ 2π(xⱼ − zⱼ)/pⱼ)       aₙ: 1
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.signed_factors import (
    PAIR_OF_ONES,
    QUAD_OF_ONES,
    Bilinear,
    Composed,
    Pair,
    Quad,
    SignedFactor,
    Wave,
    signed_factor,
)
from gpattr.closed_forms.shapley.signed_integrals import Ring, Series, multiplied
from gpattr.kernels import Cosine, FullAdditive, Kernel, Linear, Polynomial
from gpattr.kernels.base import of_columns
from gpattr.kernels.factors import Factor, KernelProduct, separated
from gpattr.kernels.white import has_white
from gpattr.operators import Coalitions, Players

See = Callable[[SignedFactor], Any]  # values, a pair or a quad of a factor


@dataclass(frozen=True, eq=False)
class SeriesLeaf(ABC):
    """A kernel as a coefficient of a product over ``players``.

    ``weights`` are a₀, a₁, … of its own variable θ; None if it has none.
    """

    players: tuple[int, ...]
    weights: list[float] | None

    @abstractmethod
    def series(self, player: int, see: See, one: Any) -> Series:
        """Return T of a player by orders of θ, as ``see`` sees its factors; ``one`` is 1."""

    @abstractmethod
    def factors_of(self, player: int) -> list[SignedFactor]:
        """Return the factors that the series of a player is made of."""

    def reach(self, *rows: Any) -> float:
        """Return the sum of phases between any of these rows; ε times it is a relative error."""
        return sum(f.reach(*rows) for player in self.players for f in self.factors_of(player))

    @property
    def is_complex(self) -> bool:
        """Whether the kernel is the real part of its series."""
        return False


@dataclass(frozen=True, eq=False)
class FactorLeaf(SeriesLeaf):
    """Factors, one for each player, that are multiplied."""

    factors: dict[int, SignedFactor]

    def factors_of(self, player: int) -> list[SignedFactor]:
        return [self.factors[player]]

    def series(self, player: int, see: See, one: Any) -> Series:
        return {0: see(self.factors[player])}

    @property
    def is_complex(self) -> bool:
        return any(isinstance(f, Wave) and not f.real for f in self.factors.values())


@dataclass(frozen=True, eq=False)
class OrdersLeaf(SeriesLeaf):
    """Elementary symmetric polynomials of factors, the lists of which belong to players."""

    factors: dict[int, list[SignedFactor]]

    def factors_of(self, player: int) -> list[SignedFactor]:
        return self.factors[player]

    def series(self, player: int, see: See, one: Any) -> Series:
        assert self.weights is not None
        linear = [{0: one, 1: see(factor)} for factor in self.factors[player]]
        return multiplied(Ring([self.weights]), linear)


@dataclass(frozen=True, eq=False)
class ExponentialLeaf(SeriesLeaf):
    """Powers of a sum of factors, one for each player."""

    factors: dict[int, Bilinear]

    def factors_of(self, player: int) -> list[SignedFactor]:
        return [self.factors[player]]

    def series(self, player: int, see: See, one: Any) -> Series:
        assert self.weights is not None
        value = see(self.factors[player])
        result: Series = {0: one, 1: value}
        for order in range(2, len(self.weights)):
            result[order] = (1.0 / order) * (result[order - 1] * value)
        return result


@dataclass(frozen=True, eq=False)
class SeriesProduct:
    """``variance`` times ``leaves``, of some of ``count`` players.

    What its methods return has a series for every player that it depends on.
    """

    variance: float
    leaves: tuple[SeriesLeaf, ...]
    count: int

    @cached_property
    def players(self) -> list[int]:
        """The players that the kernel depends on, in order."""
        return sorted({player for leaf in self.leaves for player in leaf.players})

    @cached_property
    def ring(self) -> Ring:
        """The series that the leaves are coefficients of."""
        return Ring([leaf.weights for leaf in self.leaves if leaf.weights is not None])

    @cached_property
    def degree(self) -> int:
        """The number of players that can vary at a time in one term of the kernel."""
        parts = [leaf.players for leaf in self.leaves if leaf.weights is None]
        single = {player for part in parts for player in part}
        return min(len(self.players), len(single) + self.ring.orders)

    @property
    def width(self) -> int:
        """The number of numbers that a pair of a row and a point needs."""
        return len(self.players) * len(self.ring.places)

    def reach(self, *rows: Array) -> float:
        """Return the sum of phases between any of these rows; ε times it is a relative error."""
        return sum(leaf.reach(*rows) for leaf in self.leaves)

    def pairs(self, sites: Coalitions, Z: Array, drawn: list[Series] | None) -> list[Series]:
        """Return the factors at rows and baselines, (n, m), at all points."""
        if drawn is not None:
            return _each(_pair, self.values(sites.stop, Z), drawn)
        return self._series(lambda factor: factor.pair(sites.stop, sites.start, Z), PAIR_OF_ONES)

    def values(self, X: Array, Z: Array) -> list[Series]:
        """Return the factors at every pair of rows and points, (n, m)."""
        return self._series(lambda factor: factor.values(X, Z), 1.0)

    def mean_values(self, points: Array, weights: Array, Z: Array) -> list[Series]:
        """Return the weighted mean over points of the factors of each player, (m,), at Z."""
        parts = []
        for some in blocks(len(Z), 32.0 * len(points) * self.width, Z):
            parts.append(_each(lambda value: _mean(value, weights), self.values(points, Z[some])))
        return _each(lambda *values: _joined(values), *parts)

    def mean_of_means(self, sites: Coalitions, other: Coalitions) -> list[Series]:
        """Return the factors averaged over two independent draws of a baseline, (1,)."""
        single = self.mean_values(sites.start, sites.weights, other.start)
        return _each(lambda value: _mean(_column(value), other.weights), single)

    def quads(self, sites: Coalitions, other: Coalitions) -> list[Series]:
        """Return the factors at the four corners of the i-th sites of two batches, (n,)."""
        xp, shape = namespace(sites.stop), sites.shape
        X, Y = sites.stop, other.stop
        if sites.weights is None:
            B, C = (xp.broadcast_to(some.start, shape) for some in (sites, other))
            return self._series(lambda factor: factor.quad(X, B, Y, C), QUAD_OF_ONES)
        # Both baselines are drawn, players apart.
        xx = self._series(lambda factor: factor.quad(X, X, Y, Y), QUAD_OF_ONES)
        xb = self.mean_values(other.start, other.weights, X)
        bx = self.mean_values(sites.start, sites.weights, Y)
        return _each(_quad, xx, xb, bx, self.mean_of_means(sites, other))

    def _series(self, see: See, one: Any) -> list[Series]:
        """Return the product of the leaves' series for every player."""
        ring, variables = self.ring, 0
        result: list[Series | None] = [None] * len(self.players)
        for leaf in self.leaves:
            for player in leaf.players:
                own = leaf.series(player, see, one)
                if leaf.weights is not None:
                    own = {ring.place(variables, order): value for order, value in own.items()}
                place = self.players.index(player)
                had = result[place]
                result[place] = own if had is None else ring.times(had, own)
            variables += leaf.weights is not None
        return [{0: one} if series is None else series for series in result]


def _each(function: Callable[..., Any], *parts: list[Series]) -> list[Series]:
    """Return a function of the coefficients of several series of every player."""
    return [
        {i: function(*(series[i] for series in some)) for i in some[0]}
        for some in zip(*parts, strict=True)
    ]


def _pair(row: Any, baseline: Any) -> Pair:
    """Return the pair of two values; numbers are constants, which are 1."""
    return PAIR_OF_ONES if isinstance(row, float) else Pair.of(row, baseline)


def _quad(xx: Quad, xb: Any, bx: Any, bb: Any) -> Quad:
    """Return the quad of four values, complex ones Hermitian; numbers are constants, 1."""
    return QUAD_OF_ONES if isinstance(xb, float) else Quad.of(xx.mean, xb.conj(), bx, bb)


def _mean(value: Any, weights: Array) -> Any:
    """Return the weighted mean over the first axis; numbers are constants."""
    return value if isinstance(value, float) else (weights[:, None] * value).sum(axis=0)


def _column(value: Any) -> Any:
    return value if isinstance(value, float) else value[:, None]


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    return first if isinstance(first, float) else namespace(first).concatenate(list(parts))


def leaf_of(
    kernel: Kernel, columns: tuple[int, ...], players: Players
) -> tuple[float, SeriesLeaf] | None:
    """Return a kernel of some columns as a leaf and a scale; None where it is not known to be one.

    A kernel that is one product over players has one factor for each of them.
    """
    if has_white(kernel):
        return None
    seen = tuple(sorted({players.owner[column] for column in columns}))
    places = {g: tuple(i for i, c in enumerate(columns) if players.owner[c] == g) for g in seen}
    mine = {g: tuple(columns[i] for i in places[g]) for g in seen}
    if type(kernel) is FullAdditive:
        lists = {
            g: [signed_factor(kernel.bases[i], (columns[i],), players) for i in places[g]]
            for g in seen
        }
        return 1.0, OrdersLeaf(seen, [0.0, *map(float, kernel.order_variances)], lists)
    if len(seen) > 1 and isinstance(kernel, (Linear, Polynomial)):
        sums = {g: Bilinear(mine[g], of_columns(kernel.variance, places[g])) for g in seen}
        return 1.0, ExponentialLeaf(seen, _power_weights(kernel), sums)
    if len(seen) > 1 and type(kernel) is Cosine:
        waves = {g: Wave(mine[g], of_columns(kernel.period, places[g]), real=False) for g in seen}
        return kernel.variance, FactorLeaf(seen, None, {**waves})
    product = KernelProduct(1.0, (Factor(kernel, columns),))
    terms = separated(product, [mine[g] for g in seen])
    if terms is None or len(terms) > 1 or None in (f.group for f in terms[0].factors):
        return None
    factors: dict[int, SignedFactor] = {}
    for part, some, group in terms[0].factors:
        assert some is not None
        assert group is not None
        own, g = signed_factor(part, some, players), seen[group]
        factors[g] = Composed(own.columns, (factors[g], own), mul) if g in factors else own
    return terms[0].scale, FactorLeaf(seen, None, factors)


def _power_weights(kernel: Linear | Polynomial) -> list[float]:
    """Return p!/(p−n)! c^(p−n), n = 0 … p."""
    if isinstance(kernel, Linear):
        return [0.0, 1.0]
    p, c = kernel.degree, kernel.offset
    return [math.perm(p, n) * c ** (p - n) for n in range(p + 1)]
