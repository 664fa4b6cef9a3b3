"""Kernels that are coefficients of products of power series over players: the leaves of a term.

k = Σₙ aₙ [θⁿ] ∏_g T_g(θ), with a series T_g of each player g:

    a factor of one player, of any sign     T = k                             aₙ: 1
    FullAdditive, order variances σₙ²       T = ∏ (1 + θ kⱼ) over columns     aₙ = σₙ²
    (c + Σ σⱼ²xⱼzⱼ)^p                       T = exp(θ Σ σⱼ²xⱼzⱼ)              aₙ = p!/(p−n)! c^(p−n)
    Cosine, the real part of                T = σ² exp(i Σ 2π(xⱼ − zⱼ)/pⱼ)    aₙ: 1
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr.closed_forms.shapley.ring import Ring, Series, multiplied
from gpattr.closed_forms.shapley.signed_factors import (
    Bilinear,
    SignedFactor,
    Wave,
    signed_factor,
)
from gpattr.kernels import Cosine, FullAdditive, Kernel, Linear, Polynomial
from gpattr.kernels.white import has_white
from gpattr.operators import Players

See = Callable[[SignedFactor], Any]  # values, a pair or a quad of a factor


@dataclass(frozen=True, eq=False)
class Leaf(ABC):
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
        """Whether the kernel is the real part of what its series are."""
        return False


@dataclass(frozen=True, eq=False)
class FactorLeaf(Leaf):
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
class OrdersLeaf(Leaf):
    """Elementary symmetric polynomials of factors, the lists of which belong to players."""

    factors: dict[int, list[SignedFactor]]

    def factors_of(self, player: int) -> list[SignedFactor]:
        return self.factors[player]

    def series(self, player: int, see: See, one: Any) -> Series:
        assert self.weights is not None
        linear = [{0: one, 1: see(factor)} for factor in self.factors[player]]
        return multiplied(Ring([self.weights]), linear)


@dataclass(frozen=True, eq=False)
class ExponentialLeaf(Leaf):
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


def leaf_of(kernel: Kernel, columns: tuple[int, ...], players: Players) -> Leaf | None:
    """Return a kernel of some columns as a leaf; None where it is not known to be one."""
    if has_white(kernel):
        return None
    owner = tuple(players.owner[column] for column in columns)
    seen = tuple(sorted(set(owner)))
    places = {g: [i for i, other in enumerate(owner) if other == g] for g in seen}

    def some(values: Any, player: int) -> Any:
        """Return a parameter as seen by the columns of one player."""
        array = np.asarray(values)
        return array[places[player]] if array.ndim else values

    mine = {g: tuple(columns[i] for i in places[g]) for g in seen}
    if type(kernel) is FullAdditive:
        lists = {
            g: [signed_factor(kernel.bases[i], (columns[i],), players) for i in places[g]]
            for g in seen
        }
        return OrdersLeaf(seen, [0.0, *map(float, kernel.order_variances)], lists)
    if len(seen) == 1:
        return FactorLeaf(seen, None, {seen[0]: signed_factor(kernel, columns, players)})
    if isinstance(kernel, (Linear, Polynomial)):
        sums = {g: Bilinear(mine[g], some(kernel.variance, g)) for g in seen}
        return ExponentialLeaf(seen, _power_weights(kernel), sums)
    if type(kernel) is Cosine:
        sizes = {g: kernel.variance if g == seen[0] else 1.0 for g in seen}
        return FactorLeaf(
            seen, None, {g: Wave(mine[g], some(kernel.period, g), sizes[g], False) for g in seen}
        )
    return None


def _power_weights(kernel: Linear | Polynomial) -> list[float]:
    """Return p!/(p−n)! c^(p−n), n = 0 … p."""
    if isinstance(kernel, Linear):
        return [0.0, 1.0]
    p, c = kernel.degree, kernel.offset
    return [math.perm(p, n) * c ** (p - n) for n in range(p + 1)]
