"""Truncated power series in a few variables θ, in which kernels of several orders multiply.

A series is a dictionary from positions to coefficients, which are numbers, arrays, `Pair` or
`Quad`. A linear functional of series, Σ aₙ [θⁿ], is a dictionary from positions to numbers or
arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product as all_combinations
from math import prod
from typing import Any

Series = dict[int, Any]


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
