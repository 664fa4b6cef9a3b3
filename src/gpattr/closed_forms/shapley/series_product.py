"""Products over players of positive factors and of power series, at rows, points and baselines.

Positive factors come by their logarithms and are divided by the largest of their values, so that no
product over- or underflows; the exponent of what they were divided by goes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.differences import PAIR_OF_ONES, QUAD_OF_ONES, Pair, Quad
from gpattr.closed_forms.shapley.factors import Factor
from gpattr.closed_forms.shapley.leaves import Leaf
from gpattr.closed_forms.shapley.product import PositiveProduct
from gpattr.closed_forms.shapley.ring import Ring, Series
from gpattr.closed_forms.shapley.signed_factors import contrast, quad_of_corners
from gpattr.operators import Coalitions


class Scaled(NamedTuple):
    """A series of every player, and the exponent of what each was divided by."""

    factors: list[Series]
    exponents: list[Any]

    @property
    def exponent(self) -> Any:
        """The exponent of the product."""
        return sum(self.exponents)


@dataclass(frozen=True, eq=False)
class SeriesProduct:
    """``variance`` times positive ``factors`` times ``leaves``, of some of ``count`` players."""

    variance: float
    factors: tuple[Factor, ...]
    leaves: tuple[Leaf, ...]
    count: int

    @cached_property
    def players(self) -> list[int]:
        """The players that the kernel depends on, in order."""
        parts: Sequence[Factor | Leaf] = (*self.factors, *self.leaves)
        return sorted({player for part in parts for player in part.players})

    @cached_property
    def ring(self) -> Ring:
        """The series that the leaves are coefficients of."""
        return Ring([leaf.weights for leaf in self.leaves if leaf.weights is not None])

    @cached_property
    def degree(self) -> int:
        """How many players can vary at a time in one term of the kernel."""
        parts = [leaf.players for leaf in self.leaves if leaf.weights is None]
        parts += [factor.players for factor in self.factors]
        single = {player for part in parts for player in part}
        return min(len(self.players), len(single) + self.ring.orders)

    @property
    def is_complex(self) -> bool:
        """Whether the kernel is a real part."""
        return any(leaf.is_complex for leaf in self.leaves)

    @property
    def width(self) -> int:
        """How many numbers a pair of a row and a point needs."""
        return len(self.players) * len(self.ring.places)

    def reach(self, *rows: Array) -> float:
        """Return the sum of phases between any of these rows; ε times it is a relative error."""
        return sum(leaf.reach(*rows) for leaf in self.leaves)

    def pairs(self, sites: Coalitions, Z: Array, drawn: Scaled | None) -> Scaled:
        """Return the factors at rows and baselines, (n, m), at all points."""
        if drawn is not None:
            return self._beside(self.values(sites.stop, Z), drawn)
        X, B = sites.stop, sites.start
        factors = self._series(lambda factor: factor.pair(X, B, Z), PAIR_OF_ONES)
        exponents: list[Any] = [0.0] * len(self.players)
        xp = namespace(Z)
        for place, logs in self._logs(X, B, Z).items():
            row, baseline, half = logs
            exponents[place] = xp.maximum(row, baseline + 0.0 * row)
            factors[place] = _times(contrast(xp.tanh(half)), factors[place])
        return Scaled(factors, exponents)

    def _logs(self, X: Array, B: Array, Z: Array) -> dict[int, list[Array]]:
        """Return logarithms of positive factors at rows and baselines, and half their difference.

        They are by position of the player.
        """
        x, b, z = X.T[:, :, None], B.T[:, :, None], Z.T[:, None, :]
        result: dict[int, list[Array]] = {}
        for factor in self.factors:
            logs = factor.pair(*map(factor.taken, (x, b, z)))
            for i, player in enumerate(factor.players):
                place, some = self.players.index(player), [part[i] for part in logs]
                had = result.get(place)
                result[place] = (
                    some if had is None else [a + b for a, b in zip(had, some, strict=True)]
                )
        return result

    def values(self, X: Array, Z: Array) -> Scaled:
        """Return the factors at every pair of rows and points, (n, m), scaled by themselves."""
        x, z = X.T[:, :, None], Z.T[:, None, :]
        exponents: list[Any] = [0.0] * len(self.players)
        for factor in self.factors:
            logs = factor.logs(factor.taken(x), factor.taken(z))
            for player, log in zip(factor.players, logs, strict=True):
                place = self.players.index(player)
                exponents[place] = exponents[place] + log
        return Scaled(self._series(lambda factor: factor.values(X, Z), 1.0), exponents)

    def mean_values(self, points: Array, weights: Array, Z: Array) -> Scaled:
        """Return the weighted mean over points of the factors of each player, (m,), at Z."""
        parts = []
        for some in blocks(len(Z), 32.0 * len(points) * self.width, Z):
            whole = self.values(points, Z[some])
            parts.append([_weighted(*part, weights) for part in zip(*whole, strict=True)])
        factors, exponents = [], []
        for each in zip(*parts, strict=True):  # the blocks of one player
            series, logs = zip(*each, strict=True)
            factors.append({i: _joined([part[i] for part in series]) for i in series[0]})
            exponents.append(_joined(logs))
        return Scaled(factors, exponents)

    def mean_of_means(self, sites: Coalitions, other: Coalitions) -> Scaled:
        """Return the factors averaged over two independent draws of a baseline, (1,)."""
        single = self.mean_values(sites.start, sites.weights, other.start)
        parts = [
            _weighted(
                {i: _column(value) for i, value in series.items()}, _column(log), other.weights
            )
            for series, log in zip(*single, strict=True)
        ]
        return Scaled([part[0] for part in parts], [part[1] for part in parts])

    def quads(self, sites: Coalitions, other: Coalitions) -> Scaled:
        """Return the factors at the four corners of the i-th sites of two batches, (n,)."""
        if sites.weights is not None:
            return self._drawn_quads(sites, other)
        xp, shape = namespace(sites.stop), sites.shape
        X, Y = sites.stop, other.stop
        B, C = (xp.broadcast_to(some.start, shape) for some in (sites, other))
        factors = self._series(lambda factor: factor.quad(X, B, Y, C), QUAD_OF_ONES)
        exponents: list[Any] = [0.0] * len(self.players)
        if self.factors:
            positive = PositiveProduct(1.0, self.factors, self.count)
            corners = positive.corners(sites, other)
            for i, player in enumerate(positive.players):
                quad = quad_of_corners(*(part[:, i] for part in corners[:4]))
                place = self.players.index(player)
                factors[place] = _times(quad, factors[place])
            exponents[0] = xp.log(xp.maximum(corners.top, 1e-320))
        return Scaled(factors, exponents)

    def _drawn_quads(self, sites: Coalitions, other: Coalitions) -> Scaled:
        """Return the same where both baselines are drawn, players apart."""
        xx = self._each(sites.stop, other.stop)
        xb = _turned(self.mean_values(other.start, other.weights, sites.stop))
        bx = self.mean_values(sites.start, sites.weights, other.stop)
        bb = self.mean_of_means(sites, other)
        corners = (xx, xb, bx, bb)
        factors, exponents = [], []
        for place in range(len(self.players)):
            high, scales = _common([corner.exponents[place] for corner in corners])
            exponents.append(high)
            series = [corner.factors[place] for corner in corners]
            factors.append(
                {
                    i: _quad([scale * part[i] for scale, part in zip(scales, series, strict=True)])
                    for i in series[0]
                }
            )
        return Scaled(factors, exponents)

    def _each(self, X: Array, Y: Array) -> Scaled:
        """Return the factors at xᵢ and yᵢ, (n,)."""
        logs: list[Any] = [0.0] * len(self.players)
        for factor in self.factors:
            some = factor.logs(factor.taken(X.T), factor.taken(Y.T))
            for player, log in zip(factor.players, some, strict=True):
                logs[self.players.index(player)] = logs[self.players.index(player)] + log
        quads = self._series(lambda factor: factor.quad(X, X, Y, Y), QUAD_OF_ONES)
        return Scaled([{i: q.mean for i, q in series.items()} for series in quads], logs)

    def _beside(self, row: Scaled, drawn: Scaled) -> Scaled:
        """Return pairs of rows and drawn baselines."""
        factors, exponents = [], []
        for u, v, at_row, at_draws in zip(
            row.factors, drawn.factors, row.exponents, drawn.exponents, strict=True
        ):
            high, (one, two) = _common([at_row, at_draws])
            exponents.append(high)
            factors.append({i: _pair(one * u[i], two * v[i]) for i in u})
        return Scaled(factors, exponents)

    def _series(self, see: Callable[[Any], Any], one: Any) -> list[Series]:
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


def _times(factor: Any, series: Series) -> Series:
    """Return a series times one factor."""
    return {i: factor if _is_one(value) else factor * value for i, value in series.items()}


def _is_one(value: Any) -> bool:
    return value is PAIR_OF_ONES or value is QUAD_OF_ONES


def _turned(part: Scaled) -> Scaled:
    """Return the factors with their arguments exchanged: complex ones are Hermitian."""
    factors = [
        {i: value if isinstance(value, float) else value.conj() for i, value in some.items()}
        for some in part.factors
    ]
    return Scaled(factors, part.exponents)


def _pair(row: Any, baseline: Any) -> Pair:
    """Return the pair of two values; numbers are constants, which are 1."""
    return PAIR_OF_ONES if isinstance(row, float) else Pair.of(row, baseline)


def _quad(values: list[Any]) -> Quad:
    """Return the quad of four values; numbers are constants, which are 1."""
    return QUAD_OF_ONES if isinstance(values[0], float) else Quad.of(*values)


def _weighted(series: Series, log: Any, weights: Array) -> tuple[Series, Any]:
    """Return the weighted mean of a series over the first axis, and its exponent."""
    xp, column, high = namespace(weights), weights[:, None], 0.0
    varies = not isinstance(log, float)
    if varies:
        high = xp.max(log, axis=0)
        column = column * xp.exp(log - high)
    means = {
        i: (column * value).sum(axis=0) if varies or not isinstance(value, float) else value
        for i, value in series.items()
    }
    return means, high


def _column(value: Any) -> Any:
    return value if isinstance(value, float) else value[:, None]


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    return first if isinstance(first, float) else namespace(first).concatenate(list(parts))


def _common(exponents: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the largest exponent, and what values with each exponent are multiplied by."""
    if all(isinstance(exponent, float) for exponent in exponents):
        return 0.0, [1.0] * len(exponents)
    xp = namespace(*exponents)
    high = exponents[0]
    for exponent in exponents[1:]:
        high, exponent = high + 0.0 * exponent, exponent + 0.0 * high
        high = xp.maximum(high, exponent)
    return high, [xp.exp(exponent - high) for exponent in exponents]
