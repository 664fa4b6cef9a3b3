"""Kernels that are products of positive factors, one for each player: k = σ² ∏ⱼ kⱼ.

With uⱼ = kⱼ(xⱼ, zⱼ), vⱼ = kⱼ(bⱼ, zⱼ) and cⱼ = (uⱼ − vⱼ)/(uⱼ + vⱼ), a factor of the multilinear
extension is max(uⱼ, vⱼ) hⱼ(s), hⱼ(s) = (1 + s cⱼ)/(1 + |cⱼ|) in (0, 1], for s = 2t − 1.

For baselines that are drawn, each player from its own columns, means of factors over them

    log E kⱼ(bⱼ, zⱼ) and log E kⱼ(bⱼ, b'ⱼ) for independent draws b and b'

are all that a product needs to know of a background set, and do not depend on the rows that
are explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpattr._core.array import Array, chunk_rows, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.factors import LogFactor
from gpattr.operators import Coalitions

TILE = 2  # chunks at a time: calls, not the cache, are what small tiles would spend time on
Logs = Callable[[Array, Array], Array]  # log kⱼ(x, z), (p, ...), for x, z (D, ...)


class Contrast(NamedTuple):
    """Contrasts of a product at pairs of rows and points: ``c`` (p, r, k) and ``top`` (r, k).

    ``top`` is σ² ∏ⱼ max(uⱼ, vⱼ); ``rows`` and ``points`` are where the pairs stand.
    """

    rows: slice
    points: slice
    c: Array
    top: Array


class Corners(NamedTuple):
    """The four values of each factor for pairs of rows, (n, p), divided by the largest.

    ``base`` is k(b, b'), ``left`` k(x, b') − k(b, b'), ``right`` k(b, x') − k(b, b') and ``mixed``
    k(x, x') − k(x, b') − k(b, x') + k(b, b'); ``top`` (n,) is σ² times the product of the largest.
    """

    base: Array
    left: Array
    right: Array
    mixed: Array
    top: Array


@dataclass(frozen=True, eq=False)
class PositiveProduct:
    """σ² = ``variance`` times the product of ``factors``, each of some of ``count`` players."""

    variance: float
    factors: tuple[LogFactor, ...]
    count: int

    @cached_property
    def players(self) -> list[int]:
        """The players that the kernel depends on, in order."""
        return sorted({player for factor in self.factors for player in factor.players})

    def contrasts(self, sites: Coalitions, Z: Array, rows: slice) -> Iterator[Contrast]:
        """Yield the pairs of some rows with all points, in tiles that fit into the cache."""
        xp = namespace(Z)
        for here, some, half, top in self.logarithms(sites, Z, rows):
            yield Contrast(here, some, xp.tanh(half), self.variance * xp.exp(top))

    def logarithms(self, sites: Coalitions, Z: Array, rows: slice) -> Iterator[Contrast]:
        """Yield the same as logarithms: ½ log(u/v) = artanh c, and log of ``top`` without σ²."""
        x, b, z = map(_players_first, (sites[rows].stop, sites[rows].start, Z))
        moving = sites[rows].moving[:, self.players]
        width = TILE * chunk_rows(Z, len(self.players))
        points = min(len(Z), max(width, 1))
        height = max(1, width // max(points, 1))
        for left in range(0, len(Z), points):
            some = slice(left, min(left + points, len(Z)))
            near = z[:, None, some]
            drawn = None if sites.weights is None else self.drawn.means(sites, Z)[:, None, some]
            for low in range(0, x.shape[1], height):
                here = slice(low, min(low + height, x.shape[1]))
                start = b[:, :, None] if sites.shared_start else b[:, here, None]
                half, top = self._contrast(x[:, here, None], start, near, drawn)
                if drawn is not None:  # a player whose draws are all at the row changes nothing
                    half = half * moving[here].T[:, :, None]
                place = slice(rows.start + here.start, rows.start + here.stop)
                yield Contrast(place, some, half, top)

    def _contrast(self, x: Array, b: Array, z: Array, drawn: Array | None) -> tuple[Array, Array]:
        """Return ½ log(u/v), (p, ...), and Σ max(log u, log v), with v drawn where it is given."""
        if drawn is None and len(self.factors) == 1:
            factor = self.factors[0]
            return factor.contrast(*map(factor.taken, (x, b, z)))
        if drawn is None:
            parts = [factor.pair(*map(factor.taken, (x, b, z))) for factor in self]
            row, base, half = (self._added(list(some)) for some in zip(*parts, strict=True))
        else:
            row = self.logs(x, z)
            base, half = drawn, 0.5 * (row - drawn)
        return half, namespace(x).maximum(row, base).sum(axis=0)

    def logs(self, x: Array, z: Array) -> Array:
        """Return log kⱼ(x, z), (p, ...), for x, z (D, ...)."""
        return self._added([factor.logs(factor.taken(x), factor.taken(z)) for factor in self])

    @cached_property
    def drawn(self) -> DrawnFactors:
        """Means of the factors over baselines that are drawn."""
        return DrawnFactors(self.logs)

    def _added(self, parts: list[Array]) -> Array:
        """Return the sums over factors of each factor's values for its players, (p, ...)."""
        if len(parts) == 1:
            return parts[0]
        xp = namespace(parts[0])
        shape = np.broadcast_shapes(*(tuple(part.shape[1:]) for part in parts))
        total = xp.zeros((len(self.players), *shape))
        for factor, part in zip(self.factors, parts, strict=True):
            total[[self.players.index(player) for player in factor.players]] += part
        return total

    def __iter__(self) -> Iterator[LogFactor]:
        return iter(self.factors)

    def falls(self, sites: Coalitions) -> Array:
        """Return ωⱼ = 1 − kⱼ(xⱼ, bⱼ) of every player, (n, p)."""
        xp = namespace(sites.stop)
        step = sites.step.T
        return -xp.expm1(self.logs(step, 0.0 * step)).T

    def phases(self, sites: Coalitions, Z: Array) -> Array:
        """Return by how many ε the phases of waves, far from their origin, change them, (n,)."""
        xp = namespace(Z)
        low, high = xp.min(Z, axis=0), xp.max(Z, axis=0)
        ends = [sites.stop, sites.start]
        if sites.weights is not None:
            ends[1:] = [xp.min(sites.start, axis=0)[None], xp.max(sites.start, axis=0)[None]]
        span = 0.0 * sites.stop
        for end in ends:
            span = xp.maximum(span, xp.maximum(abs(end - low), abs(end - high)))
        result = xp.zeros(len(sites.stop))
        for factor in self:
            result = result + factor.phase(factor.taken(span.T))
        return result

    def mean(self, sites: Coalitions, Z: Array) -> Array:
        """Return σ² ∏ⱼ E kⱼ(bⱼ, zⱼ) for a baseline that is drawn, (m,)."""
        return self.variance * namespace(Z).exp(self.drawn.means(sites, Z).sum(axis=0))

    def mean_of_means(self, sites: Coalitions) -> Array:
        """Return σ² ∏ⱼ E kⱼ(bⱼ, b'ⱼ) for two independent draws of a baseline."""
        xp = namespace(sites.start)
        return self.variance * xp.exp(self.drawn.mean_of_means(sites).sum())

    def corners(self, sites: Coalitions, other: Coalitions) -> Corners:
        """Return the values of each factor at the four corners of the i-th sites of two batches."""
        if sites.weights is not None:
            return self._drawn_corners(sites, other)
        xp, shape = namespace(sites.stop), sites.shape
        x, b, y, c = (
            xp.broadcast_to(part, shape).T
            for part in (sites.stop, sites.start, other.stop, other.start)
        )
        bb, xb, bx, xx = (self.logs(*pair) for pair in ((b, c), (x, c), (b, y), (x, y)))
        left = 2.0 * self._added([f.pair(*map(f.taken, (x, b, c))).half for f in self])
        right = 2.0 * self._added([f.pair(*map(f.taken, (y, c, b))).half for f in self])
        mixed = self._added([f.mixed(*map(f.taken, (x, b, y, c))) for f in self])
        highest = xp.maximum(xp.maximum(bb, xb), xp.maximum(bx, xx))
        base = xp.exp(bb - highest)
        near = abs(left) + abs(right) + abs(mixed) < 1.0
        # Far from each other the corners differ by so much that differences lose nothing.
        far = (xp.exp(xx - highest) - xp.exp(xb - highest)) - (xp.exp(bx - highest) - base)
        a, e, g = (xp.where(near, part, 0.0 * part) for part in (left, right, mixed))
        close = base * (xp.expm1(a) * xp.expm1(e) + xp.exp(a + e) * xp.expm1(g))
        top = self.variance * xp.exp(highest.sum(axis=0))
        rises = (
            _rise(left, xp.maximum(bb, xb) - highest),
            _rise(right, xp.maximum(bb, bx) - highest),
        )
        return Corners(base.T, rises[0].T, rises[1].T, xp.where(near, close, far).T, top)

    def _drawn_corners(self, sites: Coalitions, other: Coalitions) -> Corners:
        """Return the same where both baselines are drawn from the same rows, players apart."""
        xp, both = namespace(sites.stop), self.logs(sites.stop.T, other.stop.T)
        bb = self.drawn.mean_of_means(sites)[:, None]
        xb = self.drawn.means_at(sites, sites.stop)
        yb = xb if other is sites else self.drawn.means_at(sites, other.stop)
        highest = xp.maximum(xp.maximum(both, bb + 0.0 * both), xp.maximum(xb, yb))
        both, bb, xb, yb = (xp.exp(part - highest) for part in (both, bb, xb, yb))
        top = self.variance * xp.exp(highest.sum(axis=0))
        mixed = (both - xb) - (yb - bb)
        left, right = (some.moving[:, self.players] for some in (sites, other))
        return Corners(bb.T, (xb - bb).T * left, (yb - bb).T * right, mixed.T * left * right, top)

    @property
    def stationary(self) -> bool:
        """Whether every factor is 1 at x = x'."""
        return all(factor.stationary for factor in self.factors)


def _rise(difference: Array, larger: Array) -> Array:
    """Return u − v from the ``difference`` of their logarithms and the logarithm of the larger."""
    xp = namespace(difference)
    return xp.where(difference > 0, -1.0, 1.0) * xp.exp(larger) * xp.expm1(-abs(difference))


def _players_first(x: Array) -> Array:
    """Return x (n, D) as (D, n), of which each row is contiguous: sums run over the first axis."""
    result = namespace(x).empty((x.shape[1], len(x)))
    result[:] = x.T
    return result


@dataclass(eq=False)
class DrawnFactors:
    """Means of the factors ``logs`` over a drawn baseline; means at the data are remembered."""

    logs: Logs
    at: tuple[Array, Array, Array] | None = None
    twice: tuple[Array, Array] | None = None

    def means(self, sites: Coalitions, Z: Array) -> Array:
        """Return log E kⱼ(bⱼ, zⱼ), (p, m)."""
        known = self.at
        if known is None or known[0] is not sites.start or known[1] is not Z:
            known = self.at = (sites.start, Z, self.means_at(sites, Z))
        return known[2]

    def means_at(self, sites: Coalitions, Z: Array) -> Array:
        """Return the same for points that are not asked for again."""
        b, (K, D) = sites.start.T[:, :, None], sites.start.shape
        parts = [
            log_mean(self.logs(b, Z[some].T[:, None, :]), sites.weights, axis=1)
            for some in blocks(len(Z), 24.0 * D * K, Z)
        ]
        return namespace(Z).concatenate(parts, axis=1)

    def mean_of_means(self, sites: Coalitions) -> Array:
        """Return log E kⱼ(bⱼ, b'ⱼ), (p,)."""
        known = self.twice
        if known is None or known[0] is not sites.start:
            inner = self.means_at(sites, sites.start)
            known = self.twice = (sites.start, log_mean(inner, sites.weights, axis=1))
        return known[1]


def log_mean(logs: Array, weights: Array, axis: int) -> Array:
    """Return log Σₖ wₖ exp(logsₖ) along an axis."""
    xp = namespace(logs)
    shape = [1] * logs.ndim
    shape[axis] = -1
    highest = xp.max(logs, axis=axis)
    shifted = xp.exp(logs - highest[(slice(None),) * axis + (None,)])
    return highest + xp.log((shifted * weights.reshape(shape)).sum(axis))
