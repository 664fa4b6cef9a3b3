"""Variances of the posterior mean, αᵀQ_Sα, in twice the digits of float64.

The coefficients α are squared, and with them the rounding of Q_S: with little noise α is large, and
nothing is left. But Q_S is the product over features of VⱼᵀVⱼ, with the sections Vⱼ at the nodes of
a rule. Computed without rounding from these, αᵀQ_Sα is the integral of the square of a function
whose values are rounded, Σ αᵢ∏V: its error is that of predictions, 2ε‖Σ|α|k‖‖μ_S‖.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from operator import mul

import numpy as np

from gpattr._core.array import EPS, Array, product
from gpattr._core.memory import blocks
from gpattr.sobol.conditioning import Conditioning
from gpattr.sobol.quadratic_forms import Subset, Tables, products_of
from gpattr.special.double_double import DoubleDouble, Slices

ROUNDING = 4 * EPS  # of the values of a section
WORK = 4e8  # products with twice the digits that take seconds


@dataclass(frozen=True, eq=False)
class Squares:
    """V_S of the posterior mean for subsets, (k,), and its error, (k,)."""

    values: Array
    error: Array


def mean_squares(state: Conditioning, subsets: Sequence[Subset]) -> Squares | None:
    """Return V_S of the posterior mean for subsets of players; None where it takes too long."""
    T, P = len(state.sections.terms.terms), state.sections.inputs.n_players
    if T * (T + 1) / 2 * len(state.data) ** 2 * (3 * P + 2 * len(subsets)) > WORK:
        return None
    return _Sums(state, subsets).found()


class _Sums:
    """Sums over pairs of terms and tiles of Q_S."""

    def __init__(self, state: Conditioning, subsets: Sequence[Subset]) -> None:
        self.sections, self.alpha, self.subsets = state.sections, state.posterior.alpha, subsets
        tables, (T, D) = Tables(state, data_only=True), self.sections.shape
        self.averaged = tables.averaged
        self.slices = [[Slices(tables.values(t, j)) for j in range(D)] for t in range(T)]
        self.squares = [DoubleDouble.of(np.zeros(()))] * len(subsets)
        self.sizes = np.zeros((2, len(subsets)))

    def found(self) -> Squares:
        """Return ∫μ_S² − (∫μ)² and its error."""
        m, sections, scales = len(self.alpha), self.sections, self.sections.terms.scales
        for s, t in combinations_with_replacement(range(len(scales)), 2):
            scale = scales[s] * scales[t] * (1.0 if s == t else 2.0)
            for rows in blocks(m, 16.0 * (2 * self.averaged.shape[1] + 16) * m):
                self._add(s, t, scale * self.alpha[rows], rows)
        mean = DoubleDouble.of(self.alpha).times(scales @ self.averaged.prod(axis=1)).sum()
        V = np.array([max(float((square - mean * mean).hi), 0.0) for square in self.squares])
        relative = ROUNDING + sum(rule.error for rule in sections.rules)
        size, rounded = np.sqrt(self.sizes)
        error = 2.0 * relative * size * (np.sqrt(V) + abs(float(mean.hi)))
        # What is rounded in spite of all is independent from entry to entry.
        left = sum(max(part.rounding for part in own) for own in zip(*self.slices, strict=True))
        return Squares(V, error + left * rounded)

    def _add(self, s: int, t: int, alpha: Array, rows: slice) -> None:
        """Add what rows of the tables of two terms contribute."""
        members = self.sections.inputs.members
        left, right = self.slices[s], self.slices[t]
        ones = DoubleDouble.of(np.ones((len(alpha), len(self.alpha))))
        parts = [
            reduce(mul, [left[j].gram(right[j], rows) for j in some], ones) for some in members
        ]
        for i, table in products_of(parts, self.subsets):
            rest = [p for p in range(len(members)) if p not in self.subsets[i]]
            u = alpha * self.averaged[s, rest][:, rows].prod(axis=0)
            v = self.alpha * self.averaged[t, rest].prod(axis=0)
            self.squares[i] = self.squares[i] + table.times(v).sum().times(u).sum()
            self.sizes[0, i] += float(np.abs(u) @ product(np.abs(table.hi), np.abs(v)))
            self.sizes[1, i] += float(u**2 @ product(table.hi**2, v**2))
