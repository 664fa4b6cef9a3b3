"""Scans of a margin along one feature or across two, dense enough for a model's length-scales.

A scan has several points a length-scale, as far as the size of the model allows. What may lie
between the points of a plane is looked for too, around local maxima that miss the target, by finer
and finer patches.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

from gpattr._core.array import to_numpy
from gpattr._core.validation import beside
from gpattr.explainer.change_margin import ChangeMargin, ChangePool, pulled

WORK = 4e9  # products that a scan may take: a point takes the square of the model's size
MOST = 129**2  # points of a scan
PER_LENGTHSCALE = 12  # points
LINE, SIDE = 17, 5  # points that are always taken, along one feature and two
PATCHES = 64  # local maxima, and nearest cells, that are looked into
ROUNDS = 6  # of patches
PATCH = np.linspace(-1.0, 1.0, 5)
SPREAD = 4096  # points over all features
NEAREST = 24  # of those that reach the target
BISECTIONS = 50


class Scans:
    """The scans in the space of one ``margin``."""

    def __init__(self, margin: ChangeMargin) -> None:
        self.margin = margin
        self.low, self.high = margin.space.low, margin.space.high
        self.p, self.n_settings = len(self.low), len(margin.space.settings)
        self.affordable = int(min(MOST, WORK / max(margin.posterior.size, 1) ** 2))
        self.spans = self._lengthscales()

    def lines(self) -> tuple[ChangePool, ChangePool]:
        """Return the nearest crossings along single features, and the local maxima of each."""
        c, p = self.n_settings, self.p
        wanted = math.ceil(PER_LENGTHSCALE * self.spans.max())
        count = max(LINE, min(wanted, self.affordable // (c * p)))
        grid = np.linspace(self.low, self.high, count).T  # (p, G)
        grid = np.sort(np.concatenate([grid, np.zeros((p, 1))], axis=1), axis=1)
        values = np.tile(grid, (c, 1))  # (cp, G), of which the one at 0 is the row itself
        feature, setting = np.tile(np.arange(p), c), np.repeat(np.arange(c), p)
        sets = np.eye(p, dtype=bool)
        u = values[:, :, None] * sets[feature][:, None, :]  # (cp, G, p)
        which = np.repeat(setting, values.shape[1])
        g = self.margin.values(u.reshape(-1, p), which).reshape(values.shape)
        padded = np.pad(g, ((0, 0), (1, 1)), constant_values=-np.inf)
        line, top = np.nonzero((g > padded[:, :-2]) & (g >= padded[:, 2:]))
        summits = ChangePool(u[line, top], sets[feature[line]], setting[line], g[line, top])
        ends = [_crossing(values, g, side) for side in (1, -1)]
        line, inner, outer = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        feature, setting = feature[line], setting[line]
        for _ in range(BISECTIONS if len(line) else 0):
            middle = 0.5 * (inner + outer)
            reached = self.margin.values(middle[:, None] * sets[feature], setting) >= 0
            inner, outer = np.where(reached, inner, middle), np.where(reached, middle, outer)
        crossings = ChangePool(
            outer[:, None] * sets[feature], sets[feature], setting, np.zeros(len(line))
        )
        return crossings, summits

    def planes(self, pairs: np.ndarray) -> ChangePool:
        """Return promising points of the planes of ``pairs`` (k, 2) of features."""
        wanted = math.ceil(PER_LENGTHSCALE * self.spans[pairs].max())
        side = max(SIDE, min(math.isqrt(self.affordable // len(pairs)), wanted))
        axes = np.linspace(self.low, self.high, side).T  # (p, G)
        u = np.zeros((len(pairs), side, side, self.p))
        for plane, (i, j) in enumerate(pairs):
            u[plane, :, :, i], u[plane, :, :, j] = axes[i][:, None], axes[j]
        setting = np.zeros(u[..., 0].size, dtype=int)
        g = self.margin.values(u.reshape(-1, self.p), setting).reshape(u.shape[:3])
        sets = np.zeros((len(pairs), self.p), dtype=bool)
        np.put_along_axis(sets, pairs, True, axis=1)
        plane, a, b = _tops_of_planes(g, self._patches())
        width = (axes[:, 1] - axes[:, 0])[pairs[plane]]
        top, height = self._zoomed(u[plane, a, b], pairs[plane], width)
        tops = ChangePool(top, sets[plane], setting[: len(plane)], height)
        plane, a, b = _nearest_cells(g, (u**2).sum(axis=3))
        return tops + ChangePool(u[plane, a, b], sets[plane], setting[: len(plane)], g[plane, a, b])

    def volume(self) -> ChangePool:
        """Return the nearest points of a spread over all features that reach the target.

        The spread is additive: multiples of powers of 1/φ modulo 1, where φ^(p + 1) = φ + 1.
        """
        count = min(SPREAD, self.affordable // 4) if self.p > 2 else 0
        root = 1.5
        for _ in range(60):
            root = (1.0 + root) ** (1.0 / (self.p + 1))
        steps = np.outer(np.arange(1, count + 1), root ** -np.arange(1.0, self.p + 1.0))
        u = self.low + np.mod(0.5 + steps, 1.0) * (self.high - self.low)
        setting = np.zeros(count, dtype=int)
        pool = ChangePool(u, np.ones(u.shape, dtype=bool), setting, self.margin.values(u, setting))
        pool = pool[pool.g >= 0]
        near = np.argsort((pool.u**2).sum(axis=1), kind="stable")[:NEAREST]
        return pulled(self.margin, pool[near])

    def _patches(self) -> int:
        """Return how many local maxima can be afforded; where there are more features, fewer."""
        points = len(PATCH) ** 2 * ROUNDS
        return max(min(PATCHES, self.affordable // (points * (1 if self.p == 2 else 4))), 1)

    def _lengthscales(self) -> np.ndarray:
        """Return how many length-scales lie between the bounds of each feature, (p,)."""
        if not self.p:
            return np.empty(0)
        space, first = self.margin.space, np.zeros(self.p, dtype=int)
        start, stop = (
            beside("x", space.rows(np.diag(end), first), self.margin.posterior.like)
            for end in (self.low, self.high)
        )
        return to_numpy(self.margin.posterior.path_lengths(start, stop))

    def _zoomed(
        self, u: np.ndarray, features: np.ndarray, width: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the highest points (m, p) around u by finer and finer patches, and their margins.

        ``features`` (m, 2) are those that move, by at most ``width`` (m, 2) at first.
        """
        g, m = np.empty(len(u)), np.arange(len(u))
        steps = np.stack(np.meshgrid(PATCH, PATCH), axis=-1).reshape(-1, 2)  # (k, 2)
        for _ in range(ROUNDS if len(u) else 0):
            trial = np.repeat(u[:, None], len(steps), axis=1)  # (m, k, p)
            for j in range(2):
                trial[m, :, features[:, j]] += width[:, j, None] * steps[:, j]
            trial = np.clip(trial, self.low, self.high)
            flat = trial.reshape(-1, self.p)
            values = self.margin.values(flat, np.zeros(len(flat), dtype=int)).reshape(len(u), -1)
            best = values.argmax(axis=1)
            u, g = trial[m, best], values[m, best]
            width = width * (PATCH[1] - PATCH[0])
        return u, g


def _tops_of_planes(g: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    """Return places, (m,) each, of the highest local maxima of g (k, G, G) below 0."""
    places = np.nonzero((g == maximum_filter(g, (1, 3, 3), mode="nearest")) & (g < 0))
    chosen = np.argsort(-g[places], kind="stable")[:count]
    return tuple(place[chosen] for place in places)


def _nearest_cells(g: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return places, (m,) each, in g (k, G, G) that reach 0 nearer than all around, by distance².

    They are the nearest such places of each plane.
    """
    far = np.where(g >= 0, squares, np.inf)
    lowest = (g >= 0) & (far == minimum_filter(far, (1, 3, 3), mode="nearest"))
    far = np.where(lowest, squares, np.inf).reshape(len(g), -1)
    order = np.argsort(far, axis=1, kind="stable")[:, : max(PATCHES // len(g), 1)]
    plane, column = np.nonzero(np.isfinite(np.take_along_axis(far, order, axis=1)))
    return plane, *np.unravel_index(order[plane, column], g.shape[1:])


def _crossing(
    values: np.ndarray, g: np.ndarray, side: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lines that reach the target on one side of 0, and the ends of their first bracket.

    ``values`` (L, G) are sorted and contain 0; ``g`` (L, G) are the margins.
    """
    there = np.where((g >= 0) & (side * values > 0), np.abs(values), np.inf)
    lines = np.flatnonzero(np.isfinite(there.min(axis=1)))
    place = there.argmin(axis=1)[lines]
    return lines, values[lines, place - side], values[lines, place]
