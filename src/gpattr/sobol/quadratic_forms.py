"""Quadratic forms of kernel sections: closed forms of variances of conditional expectations.

With coefficients a of sections at points Z, f = Σ aᵢ k(·, zᵢ) and Q_S = ∏_{j∈S} Mⱼ ∏_{j∉S} mⱼmⱼᵀ

    ∫f_S² = aᵀQ_S a,      E∫f_S² − ∫μ_S² = q_S − tr(B Q_S)

Sums of products add the same over pairs of terms. Q_S is formed in tiles of rows, for all subsets
of players together; leave-one-out products multiply the players before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from gpattr._core.array import EPS, Array, product
from gpattr._core.memory import blocks
from gpattr.sobol import gaussian_moments
from gpattr.sobol.sections import Conditioning, SectionSites
from gpattr.special.double_double import DoubleDouble

FEW_NODES = 256  # beyond, the closed form of a table is faster than a product of matrices
# Roundings of the entries of Q are independent of each other: they add up like random numbers.
ROUNDING = 4 * EPS
Subset = tuple[int, ...]
Tile = TypeVar("Tile", "Array | None", DoubleDouble)


@dataclass(frozen=True, eq=False)
class Form:
    """V_S as a quadratic form: with c = (1, ζ), cᵀHc, and the expectation of the remainder.

    ``matrix`` H (1 + q, 1 + q): first the mean, then loadings, of which the last belong to the
    trend. ``unknown`` is E[V_S] − V_S(μ) without the trend's. ``error`` is the error of V_S(μ), the
    first entry of H, ``unknown_error`` of ``unknown``, ``draw_error`` of the draws.
    """

    matrix: Array
    unknown: float
    error: float
    unknown_error: float
    draw_error: float

    def with_mean(self, square: float, error: float) -> Form:
        """Return the form with another V_S(μ)."""
        H = self.matrix.copy()
        H[0, 0] = square
        return replace(self, matrix=H, error=error)


class Tables:
    """M between the factors of two terms, at all sites, by feature."""

    def __init__(self, state: Conditioning, *, data_only: bool = False) -> None:
        self.sections = state.sections
        self.sites: tuple[SectionSites, ...] = (state.data, *(() if data_only else state.groups))
        self.count = sum(map(len, self.sites))
        self._values: dict[tuple[int, int], Array] = {}

    @cached_property
    def means(self) -> Array:
        """∏ of m over features that are averaged anyway, and m of the others: (T, D, n)."""
        parts = [
            np.stack(
                [
                    [self._mean(t, j, s) for j in range(self.sections.shape[1])]
                    for t in range(self.sections.shape[0])
                ]
            )
            for s in self.sites
        ]
        return np.concatenate(parts, axis=2)

    @cached_property
    def averaged(self) -> Array:
        """The product of m over the features of each player, (T, P, n)."""
        members = self.sections.inputs.members
        return np.stack([self.means[:, list(some)].prod(axis=1) for some in members], axis=1)

    def _mean(self, t: int, j: int, sites: SectionSites) -> Array:
        """Return ∫ of a section over feature j: m(z), or c where it is averaged."""
        if j in sites.free:
            return sites.means[t, j]
        return np.full(len(sites), self.sections.doubles[t, j])

    def values(self, t: int, j: int) -> Array:
        """Return sections at the nodes of a feature, (K, n), times the roots of weights."""
        if (t, j) not in self._values:
            rule, columns = self.sections.rules[j], list(self.sections.inputs.columns[j])
            parts = []
            for s in self.sites:
                if j in s.free:
                    parts.append(self.sections.terms.factor(t, j, rule.nodes, s.rows[:, columns]))
                else:
                    averaged = self.sections.averages(t, j, rule.nodes)
                    parts.append(np.repeat(averaged[:, None], len(s), axis=1))
            found = np.concatenate(parts, axis=1)
            found *= np.sqrt(rule.weights)[:, None]
            self._values[t, j] = found
        return self._values[t, j]

    def tile(self, s: int, t: int, j: int, rows: slice) -> Array | None:
        """Return rows of M, (b, n); None where both factors are 1."""
        seen = self.sections.terms.seen
        if not seen[s, j] and not seen[t, j]:
            return None
        closed = self._closed(s, t, j)
        if closed is not None:
            return self._closed_tile(s, t, j, rows, *closed)
        return product(np.ascontiguousarray(self.values(s, j)[:, rows].T), self.values(t, j))

    def _closed(self, s: int, t: int, j: int) -> tuple[float, float] | None:
        """Return the length-scales of two squared exponentials whose rule would be long."""
        distribution = self.sections.inputs.distributions[j]
        terms = self.sections.terms
        if len(self.sections.rules[j].weights) <= FEW_NODES or not gaussian_moments.known(
            distribution
        ):
            return None
        if not (terms.seen[s, j] and terms.seen[t, j]):
            return None
        one, two = terms.gaussian(s, j), terms.gaussian(t, j)
        return None if one is None or two is None else (one, two)

    def _closed_tile(self, s: int, t: int, j: int, rows: slice, one: float, two: float) -> Array:
        """Return rows of M: in closed form between points, by the rule for averages."""
        at = np.concatenate([np.full(len(part), j in part.free) for part in self.sites])
        z = np.concatenate(
            [part.rows[:, self.sections.inputs.columns[j][0]] for part in self.sites]
        )
        result = np.empty((len(z[rows]), self.count))
        here, distribution = at[rows], self.sections.inputs.distributions[j]
        result[np.ix_(here, at)] = gaussian_moments.products(
            distribution, (one, two), z[rows][here, None], z[at]
        )
        left, right = self.values(s, j), self.values(t, j)
        if not at.all():
            result[:, ~at] = product(np.ascontiguousarray(left[:, rows].T), right[:, ~at][:, :1])
        if not here.all():
            result[~here] = product(np.ascontiguousarray(left[:, rows][:, ~here][:, :1].T), right)
        return result


def quadratic_forms(state: Conditioning, subsets: Sequence[Subset]) -> list[Form]:
    """Return V_S for subsets of players by closed forms."""
    return _Forms(state, subsets).found()


class _Forms:
    """Sums over tiles for all subsets."""

    def __init__(self, state: Conditioning, subsets: Sequence[Subset]) -> None:
        self.state, self.subsets, self.sections = state, subsets, state.sections
        self.tables = Tables(state)
        self.m, self.n = len(state.data), self.tables.count
        self.P = state.sections.inputs.n_players
        C = np.zeros((self.n, 1))
        C[: self.m, 0] = state.posterior.alpha
        trend = np.zeros((self.n, state.trend.shape[1]))
        trend[: self.m] = state.trend
        self.C = np.concatenate([C, state.loadings, trend], axis=1)
        spread = np.zeros(self.n)
        spread[: self.m] = np.sqrt(np.maximum(state.inverse.diagonal(), 0.0))
        loads = np.sqrt((self.C[:, 1:] ** 2).sum(axis=1))
        self.sizes = np.stack([C[:, 0], spread, loads], axis=1) ** 2  # of mean, trace and draws
        self.coefficients = np.abs([C[:, 0], loads]).sum(axis=1)
        k, q = len(subsets), self.C.shape[1]
        self.H, self.trace, self.size = np.zeros((k, q, q)), np.zeros(k), np.zeros((k, 4))

    def found(self) -> list[Form]:
        self._accumulate()
        H0, trace0 = self._averages()
        forms, sections = [], self.sections
        rules = sum(rule.error for rule in sections.rules)
        prior0 = sections.variance(frozenset())
        for i, subset in enumerate(self.subsets):
            prior = sections.variance(self._features(subset))
            unknown = prior - prior0 - (self.trace[i] - trace0)
            H = 0.5 * (self.H[i] + self.H[i].T) - H0
            # An error of a rule changes functions in proportion, whatever their coefficients.
            changed = 2.0 * rules * prior * self.coefficients * np.sqrt(np.abs(self.H[i, 0, 0]))
            square, trace, *draws = (ROUNDING * np.sqrt(self.size[i])).tolist()
            trace += (ROUNDING + 2.0 * rules * self.m**0.5) * prior
            error, drawn = square + changed[0], sum(draws) + changed[1]
            forms.append(Form(H, float(unknown), error, trace, drawn))
        return forms

    def _features(self, subset: Subset) -> frozenset[int]:
        members = self.sections.inputs.members
        return frozenset(j for player in subset for j in members[player])

    def _averages(self) -> tuple[Array, float]:
        """Return the forms of the mean of f over all features, a square."""
        section = self.sections.terms.scales @ self.tables.means.prod(axis=1)
        mean, data = product(section, self.C), section[: self.m]
        return np.outer(mean, mean), float(data @ product(self.state.inverse, data))

    def _accumulate(self) -> None:
        """Add up the forms of all subsets over tiles of rows of Q_S."""
        k = len(self.subsets)
        for rows in blocks(self.n, 8.0 * (2 * self.P + 6 + k) * self.n):
            tiles = np.zeros((k, len(range(*rows.indices(self.n))), self.n))
            for s in range(len(self.sections.terms.terms)):
                for t in range(s, len(self.sections.terms.terms)):
                    self._add(tiles, s, t, rows)
            for i, tile in enumerate(tiles):
                self._contract(i, rows, tile)

    def _add(self, tiles: Array, s: int, t: int, rows: slice) -> None:
        """Add the contribution of a pair of terms to the tiles of Q_S, twice for different ones.

        Q_S is not symmetric then, but the forms of its symmetric part are the same.
        """
        scales = self.sections.terms.scales
        scale = scales[s] * scales[t] * (1.0 if s == t else 2.0)
        members = self.sections.inputs.members
        parts = [self._player_tile(s, t, some, rows) for some in members]
        for i, value in products_of(parts, self.subsets):
            rest = [p for p in range(self.P) if p not in self.subsets[i]]
            u = scale * self.tables.averaged[s, rest][:, rows].prod(axis=0)
            v = self.tables.averaged[t, rest].prod(axis=0)
            if value is None:
                tiles[i] += u[:, None] * v
            else:
                tiles[i] += value * u[:, None] * v

    def _player_tile(self, s: int, t: int, features: Subset, rows: slice) -> Array | None:
        """Return the product of M over the features of a player; None where it is 1."""
        tiles = [self.tables.tile(s, t, j, rows) for j in features]
        known = [tile for tile in tiles if tile is not None]
        for tile in known[1:]:
            known[0] *= tile
        return known[0] if known else None

    def _contract(self, i: int, rows: slice, tile: Array) -> None:
        """Add rows of Q_S to the forms of subset i."""
        self.H[i] += product(np.ascontiguousarray(self.C[rows].T), product(tile, self.C))
        sizes, here = product(tile * tile, self.sizes), self.sizes[rows]
        self.size[i, :3] += (here * sizes).sum(axis=0)
        self.size[i, 3] += 4.0 * float(here[:, 2] @ sizes[:, 0])
        stop = min(rows.stop, self.m)
        if rows.start < stop:
            own = tile[: stop - rows.start, : self.m]
            self.trace[i] += float((self.state.inverse[rows.start : stop] * own).sum())


def products_of(parts: list[Tile], subsets: Sequence[Subset]) -> Iterator[tuple[int, Tile]]:
    """Yield the number of each subset with the product of its players' parts; None stands for 1."""
    P = len(parts)
    without = {
        next(p for p in range(P) if p not in subset): i
        for i, subset in enumerate(subsets)
        if len(subset) == P - 1 and P > 2
    }
    for i, subset in enumerate(subsets):
        if i not in without.values():
            yield i, _multiplied([parts[p] for p in subset])
    if not without:
        return
    before: list[Any] = [None]
    for part in parts[:-1]:
        before.append(_multiplied([before[-1], part]))
    after: Any = None
    for p in reversed(range(P)):
        if p in without:
            yield without[p], _multiplied([before[p], after])
        after = _multiplied([after, parts[p]])


def _multiplied(parts: list[Any]) -> Any:
    known = [part for part in parts if part is not None]
    if len(known) < 2:
        return known[0] if known else None
    value = known[0] * known[1]
    for part in known[2:]:
        value *= part
    return value
