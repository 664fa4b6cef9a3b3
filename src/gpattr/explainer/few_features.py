"""The search for small changes of few features that bring a prediction past its target.

For each number of changed features the nearest change is wanted. One feature is scanned along all
of its bounds, two on a grid of both, and the crossings found are refined; three and four extend the
best of one fewer; all features start from the nearest training rows that reach the target, and from
what fewer features found. With changed categories one other feature is tried, or all of them.
Whatever reaches the target, a training row or a point of a scan, stays in the pool to the end, so
that the answer is never farther.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from gpattr.explainer.change_margin import ChangeMargin
from gpattr.explainer.change_pool import Change, Pool, pulled
from gpattr.explainer.nearest_points import approach, climb, refine
from gpattr.explainer.passing_rows import passing_rows
from gpattr.explainer.scans import Scans

MOST_PAIRED = 12  # features whose pairs are tried, all of them if there are no more
EXTENDED, BEST = 4, 3  # features up to which sets are extended, and sets that are
MOST_SEEN = 1000  # training rows that are tried
STARTS = 6  # for all features
PROMISING = 8  # settings of categories in which these are tried, and pairs that do not reach it yet
NEARLY = 0.02  # of the missing margin: what refinement makes up for
RIVAL = 0.03  # by which a change may be longer than another, and be refined too
UNREFINED = 0.01  # by which changes that were approached may be too long
CLOSER = 0.05  # a change of more features is kept if it is shorter by this share
SHORTER = 1e-3  # and the nearest of all by this one
MOST_TRIED = 12  # changes that are refined until three of them reach the target
NEGLIGIBLE = 1e-6  # of the largest change, below which a feature is left as it was


class Search:
    """The search in the space of one ``margin``; ``seen`` (n, D) are training rows."""

    def __init__(self, margin: ChangeMargin, seen: np.ndarray | None) -> None:
        self.margin, self.space, self.seen = margin, margin.space, seen
        self.low, self.high = self.space.low, self.space.high
        self.p, self.n_settings = len(self.low), len(self.space.settings)
        everything = np.arange(self.n_settings)
        u = np.zeros((self.n_settings, self.p))
        self.bare = Pool(u, u > 0, everything, margin.values(u, everything))
        self.missing = max(-float(self.bare.g[0]), 0.0)
        known = np.empty((0, self.p)) if seen is None else self.space.units(seen)
        self.scans = Scans(margin, known)

    def run(self) -> tuple[list[Change], Change | None]:
        """Return the nearest changes by number of features, and, if there is none, the best."""
        if self.missing == 0:
            return [self._change(self.bare.u[0], 0)], None
        rows = self.bare[:0] if self.seen is None else passing_rows(self.margin, self.seen)
        starts = rows[self._order(rows)[:STARTS]]
        pool = self.bare + rows + pulled(self.margin, starts)
        if self.p:
            crossings, summits = self.scans.lines()
            pool = pool + crossings + summits
            if self.p > 1:
                pool = pool + self._pairs(summits)
            if self.p > 2 or (self.p == 2 and self.n_settings > 1):
                spread = self.scans.volume()
                first = np.concatenate([starts.u[starts.setting == 0], spread.u])
                pool = pool + spread + self._all(pool, first)
            if self.p > 3:
                pool = pool + self._trimmed(pool)
                for count in range(3, min(EXTENDED, self.p - 1) + 1):
                    pool = pool + self._extended(pool, count)
        found = self._front(pool)
        if found:
            return found, None
        best, tops = self._highest(pool)
        found = self._front(tops)
        return found, None if found else best

    def _pairs(self, summits: Pool) -> Pool:
        """Return what is found with two features, and the categories as they are.

        If there are only two, these are tried with all categories.
        """
        own = summits[summits.setting == 0]
        leading = np.argsort(-own.g, kind="stable")
        chosen: list[int] = []
        for feature in own.sets[leading].argmax(axis=1):
            if feature not in chosen and len(chosen) < MOST_PAIRED:
                chosen.append(int(feature))
        pairs = np.array(list(combinations(sorted(chosen), 2)))
        settings = np.arange(self.n_settings if self.p == 2 else 1)
        starts = self.scans.planes(pairs, settings)
        again = starts[self._order(starts)[:PROMISING]]
        u = np.concatenate([starts.u, np.zeros_like(again.u)])
        sets = np.concatenate([starts.sets, again.sets])
        near = self._approached(u, sets, np.concatenate([starts.setting, again.setting]))
        return starts + pulled(self.margin, starts) + near

    def _trimmed(self, pool: Pool) -> Pool:
        """Return what is found with those features that change most when all may."""
        u = self._whole(pool)
        counts = range(3, min(self.p, MOST_PAIRED + 1))
        rank = np.argsort(np.argsort(-np.abs(u), kind="stable"))
        sets = np.array([rank < count for count in counts])
        return self._approached(np.where(sets, u, 0.0), sets, np.zeros(len(sets), dtype=int))

    def _whole(self, pool: Pool) -> np.ndarray:
        """Return the best change of all features, with the categories as they are."""
        whole = pool[(pool.setting == 0) & pool.sets.all(axis=1)]
        return whole.u[self._order(whole)[0]]

    def _extended(self, pool: Pool, count: int) -> Pool:
        """Return what is found with one feature more than the best sets of ``count`` − 1."""
        before = pool[(pool.setting == 0) & (pool.sets.sum(axis=1) == count - 1)]
        order, whole = self._order(before), self._whole(pool)
        sets, start, seen = [], [], set()
        for i in order:
            if len(seen) == BEST:
                break
            key = before.sets[i].tobytes()
            if key in seen:
                continue
            seen.add(key)
            for j in np.flatnonzero(~before.sets[i]):
                wider = before.sets[i].copy()
                wider[j] = True
                sets.append(wider)
                start.append(before.u[i])
                if len(seen) == 1:
                    sets.append(wider)
                    start.append(np.where(wider, whole, 0.0))
        return self._approached(np.array(start), np.array(sets), np.zeros(len(sets), dtype=int))

    def _all(self, pool: Pool, first: np.ndarray) -> Pool:
        """Return what is found with all features, from ``first`` (r, p) too."""
        starts, settings = [], []
        promising = np.unique(pool.setting[self._order(pool)][: 4 * PROMISING])[:PROMISING]
        for setting in np.unique(np.append(promising, 0)):
            own = pool[pool.setting == setting]
            top = own.u[self._order(own)[: 2 if setting else STARTS]]
            near = self._near_rows(int(setting), 2) if setting else first
            u = np.concatenate([np.zeros((1, self.p)), top, near])
            starts.append(u)
            settings.append(np.full(len(u), setting))
        u, setting = np.concatenate(starts), np.concatenate(settings)
        return self._approached(u, np.ones(u.shape, dtype=bool), setting)

    def _near_rows(self, setting: int, count: int) -> np.ndarray:
        """Return the nearest training rows that reach the target, and the one that is highest."""
        if self.seen is None:
            return np.empty((0, self.p))
        u = self.space.units(seen_rows(self.seen))
        g = self.margin.values(u, np.full(len(u), setting))
        distance = np.where(g >= 0, (u**2).sum(axis=1), np.inf)
        nearest = np.argsort(distance, kind="stable")[:count]
        chosen = np.append(nearest[np.isfinite(distance[nearest])], g.argmax())
        return u[chosen]

    def _approached(self, start: np.ndarray, sets: np.ndarray, setting: np.ndarray) -> Pool:
        low, high = np.where(sets, self.low, 0.0), np.where(sets, self.high, 0.0)
        u, g = approach(self.margin.slopes, start, low, high, setting)
        return Pool(u, sets, setting, g)

    def _order(self, pool: Pool) -> np.ndarray:
        """Return positions by distance of what about reaches the target, then by margin."""
        reached = pool.g >= -NEARLY * self.missing
        distance = self.space.distances(pool.u, pool.setting)
        return np.lexsort((np.where(reached, distance, -pool.g), ~reached))

    def _front(self, pool: Pool) -> list[Change]:
        """Return the nearest change for each number of features that brings it closer."""
        pool = pool[pool.g >= -NEARLY * self.missing]
        count = pool.sets.sum(axis=1) + self.space.n_switched[pool.setting]
        front: list[Change] = []
        for k in np.unique(count):
            change = self._nearest(pool[count == k], CLOSER, front)
            if change is not None:
                front.append(change)
        change = self._nearest(pool, SHORTER, front)
        return front if change is None else [*front, change]

    def _nearest(self, pool: Pool, share: float, front: list[Change]) -> Change | None:
        """Return the nearest change, if it is shorter by a ``share`` than those found before.

        Changes that cannot be refined until they reach the target are skipped, and the nearest that
        reaches it as it is needs no refinement.
        """
        limit = (1.0 - share) * front[-1].distance if front else np.inf
        distance = self.space.distances(pool.u, pool.setting)
        sure = np.flatnonzero((pool.g >= 0) & (distance < limit))
        best = self._first(pool, sure[np.argsort(distance[sure], kind="stable")])
        tried = done = 0
        for i in self._different(pool, self._order(pool)):
            bound = (1.0 + UNREFINED) * limit if best is None else (1.0 + RIVAL) * best.distance
            if distance[i] > bound or tried == MOST_TRIED or done == BEST:
                break
            change = self._refined(pool, i)
            tried, done = tried + 1, done + (change is not None)
            if change is not None and change.distance < limit:
                best = change if best is None else min(best, change, key=_length)
        return best

    def _first(self, pool: Pool, order: np.ndarray) -> Change | None:
        """Return the first that reaches the target by itself too, not only among others."""
        for i in order:
            u, setting = pool.u[i], int(pool.setting[i])
            if self.margin.values(u[None], np.array([setting]))[0] >= 0:
                return self._change(u, setting)
        return None

    def _different(self, pool: Pool, order: np.ndarray) -> Iterator[int]:
        """Yield those of these positions that are not about the same change as one before."""
        chosen: list[int] = []
        for i in order:
            near = np.linalg.norm(pool.u[chosen] - pool.u[i], axis=1)
            same = (near < 2.0 * UNREFINED * np.linalg.norm(pool.u[i])) & (
                pool.setting[chosen] == pool.setting[i]
            )
            if not same.any():
                chosen.append(int(i))
                yield int(i)

    def _refined(self, pool: Pool, i: int) -> Change | None:
        """Return a change refined to rounding that reaches the target; None if there is none."""
        chosen, setting = pool.sets[i], int(pool.setting[i])
        low, high = np.where(chosen, self.low, 0.0), np.where(chosen, self.high, 0.0)
        options = [pool.u[i]]
        if chosen.sum() > 1:
            u = refine(self.margin.slopes, pool.u[i], low, high, setting)
            bare = np.where(np.abs(u) < NEGLIGIBLE * np.abs(u).max(initial=0.0), 0.0, u)
            options = [bare, u, pool.u[i]]
        best = None
        for u in options:
            kept = self._repaired(u, low, high, setting)
            if kept is None:
                continue
            change = self._change(kept, setting)
            if best is None or change.distance < (1.0 - NEGLIGIBLE) * best.distance:
                best = change
        return best

    def _repaired(
        self, u: np.ndarray, low: np.ndarray, high: np.ndarray, setting: int
    ) -> np.ndarray | None:
        """Return a point beside u at which the target is reached, as `predict` has it."""
        which = np.array([setting])
        for attempt in range(4):
            g = float(self.margin.values(u[None], which)[0])
            if g >= 0:
                return u
            slope = np.where(u != 0, self.margin.slopes(u[None], which)[1][0], 0.0)
            free = np.where(((u >= high) & (slope > 0)) | ((u <= low) & (slope < 0)), 0.0, slope)
            size = float(free @ free)
            if not size:
                return None
            rise = (1.0 + 10.0 ** (attempt - 4)) * -g + 1e-13 * 100.0**attempt * self.missing
            u = np.clip(u + rise * free / size, low, high)
        return u if float(self.margin.values(u[None], which)[0]) >= 0 else None

    def _highest(self, pool: Pool) -> tuple[Change, Pool]:
        """Return the change of the highest probability, and all tops that were climbed."""
        order = np.argsort(-self.margin.heights(pool.u, pool.setting), kind="stable")[: STARTS - 1]
        tops = [
            climb(self.margin.scores, pool.u[i], self.low, self.high, int(pool.setting[i]))
            for i in order
        ]
        u, setting = np.array([*tops, *pool.u[order]]), np.tile(pool.setting[order], 2)
        best = int(
            self.margin.heights(u, setting).argmax()
        )  # probabilities may all be 0 in float64
        whole = np.ones(u.shape, dtype=bool)
        reached = Pool(u, whole, setting, self.margin.values(u, setting))
        return self._change(u[best], int(setting[best])), reached

    def _change(self, u: np.ndarray, setting: int) -> Change:
        which = np.array([setting])
        distance = float(self.space.distances(u[None], which)[0])
        count = int((u != 0).sum() + self.space.n_switched[setting])
        return Change(u, setting, distance, count)


def seen_rows(inputs: np.ndarray) -> np.ndarray:
    """Return training rows to start from, a sample of many that is always the same."""
    if len(inputs) <= MOST_SEEN:
        return inputs
    return inputs[np.sort(np.random.default_rng(0).permutation(len(inputs))[:MOST_SEEN])]


def _length(change: Change) -> tuple[float, int]:
    return change.distance, change.n_features
