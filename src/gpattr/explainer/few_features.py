"""The search for small changes of few features that bring a prediction past its target.

For each number of changed features the nearest change is wanted. One feature is scanned along all
of its bounds, two on a grid of both, and the crossings found are refined; three and four extend the
best of one fewer; all features start from what fewer features, training rows and a spread of points
found. With changed categories one other feature is tried, or all of them. Whatever reaches the
target, a training row or a point of a scan, stays in the pool to the end.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.validation import beside
from gpattr.explainer.change_margin import Change, ChangeMargin, ChangePool, pulled
from gpattr.explainer.change_space import ChangeSpace
from gpattr.explainer.nearest_points import approach, climb, refine
from gpattr.explainer.scans import Scans

MOST_PAIRED = 12  # features whose pairs are tried, all of them if there are no more
EXTENDED, BEST = 4, 3  # features up to which sets are extended, and sets that are
STARTS = 12  # changes from which all features start
NEARLY = 0.02  # of the missing margin: what refinement makes up for
CLOSER = 0.05  # a change of more features is kept if it is shorter by this share
SHORTER = 1e-3  # and the nearest of all by this one
MOST_TRIED = 12  # changes that nearly reach the target and are refined
NEGLIGIBLE = 1e-6  # of the largest change, below which a feature is left as it was
BLOCK = 1000  # rows at a time
WORK = 4e10  # products that variances may take: a row takes the square of the model's size


class ChangeSearch:
    """The search in the space of one ``margin``; ``seen`` (n, D) are training rows."""

    def __init__(self, margin: ChangeMargin, seen: np.ndarray | None) -> None:
        self.margin, self.space, self.seen = margin, margin.space, seen
        self.low, self.high = self.space.low, self.space.high
        self.p, self.n_settings = len(self.low), len(self.space.settings)
        everything = np.arange(self.n_settings)
        u = np.zeros((self.n_settings, self.p))
        self.bare = ChangePool(u, u > 0, everything, margin.values(u, everything))
        self.missing = max(-float(self.bare.g[0]), 0.0)
        self.scans = Scans(margin)

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
                spread = self.scans.volume()
                pool = pool + spread + self._all(pool, spread)
            if self.p > 3:
                pool = pool + self._trimmed(pool)
                for count in range(3, min(EXTENDED, self.p - 1) + 1):
                    pool = pool + self._extended(pool, count)
        found = self._front(pool)
        return found, None if found else self._highest(pool)

    def _pairs(self, summits: ChangePool) -> ChangePool:
        """Return changes of two features, with the categories as they are."""
        own = summits[summits.setting == 0]
        leading = np.argsort(-own.g, kind="stable")
        chosen: list[int] = []
        for feature in own.sets[leading].argmax(axis=1):
            if feature not in chosen and len(chosen) < MOST_PAIRED:
                chosen.append(int(feature))
        pairs = np.array(list(combinations(sorted(chosen), 2)))
        starts = self.scans.planes(pairs)
        near = self._approached(starts.u, starts.sets, starts.setting)
        return starts + pulled(self.margin, starts) + near

    def _trimmed(self, pool: ChangePool) -> ChangePool:
        """Return changes of the features that change most when all features may."""
        u = self._whole(pool)
        counts = range(3, min(self.p, MOST_PAIRED + 1))
        rank = np.argsort(np.argsort(-np.abs(u), kind="stable"))
        sets = np.array([rank < count for count in counts])
        return self._approached(np.where(sets, u, 0.0), sets, np.zeros(len(sets), dtype=int))

    def _whole(self, pool: ChangePool) -> np.ndarray:
        """Return the best change of all features, with the categories as they are."""
        whole = pool[(pool.setting == 0) & pool.sets.all(axis=1)]
        return whole.u[self._order(whole)[0]]

    def _extended(self, pool: ChangePool, count: int) -> ChangePool:
        """Return changes of one feature more than the best sets of ``count`` − 1 features."""
        before = pool[(pool.setting == 0) & (pool.sets.sum(axis=1) == count - 1)]
        before = before[self._order(before)]
        first = np.sort(np.unique(before.sets, axis=0, return_index=True)[1])[:BEST]
        wider = (before.sets[first, None] | np.eye(self.p, dtype=bool)).reshape(-1, self.p)
        start = np.repeat(before.u[first], self.p, axis=0)
        more = wider.sum(axis=1) == count
        return self._approached(start[more], wider[more], np.zeros(more.sum(), dtype=int))

    def _all(self, pool: ChangePool, spread: ChangePool) -> ChangePool:
        """Return changes of all features, searched from the best so far and a ``spread``."""
        starts = spread
        for which in (pool.setting == 0, pool.setting != 0):
            own = pool[which]
            starts = starts + own[self._order(own)[:STARTS]]
        return self._approached(starts.u, np.ones(starts.u.shape, dtype=bool), starts.setting)

    def _approached(self, start: np.ndarray, sets: np.ndarray, setting: np.ndarray) -> ChangePool:
        low, high = np.where(sets, self.low, 0.0), np.where(sets, self.high, 0.0)
        u, g = approach(self.margin.slopes, start, low, high, setting)
        return ChangePool(u, sets, setting, g)

    def _order(self, pool: ChangePool) -> np.ndarray:
        """Return positions by distance of changes that about reach the target, then by margin."""
        reached = pool.g >= -NEARLY * self.missing
        distance = self.space.distances(pool.u, pool.setting)
        return np.lexsort((np.where(reached, distance, -pool.g), ~reached))

    def _front(self, pool: ChangePool) -> list[Change]:
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

    def _nearest(self, pool: ChangePool, share: float, front: list[Change]) -> Change | None:
        """Return the nearest change, if it is shorter by a ``share`` than the changes found before.

        Changes that cannot be refined until they reach the target are skipped; where many nearly
        do, as far from the data, most are not tried.
        """
        limit = (1.0 - share) * front[-1].distance if front else np.inf
        order = self._order(pool)
        first = np.arange(len(pool)) < MOST_TRIED
        for i in order[first | (pool.g[order] >= 0)]:
            change = self._refined(pool, i)
            if change is not None:
                return change if change.distance < limit else None
        return None

    def _refined(self, pool: ChangePool, i: int) -> Change | None:
        """Return a change refined to rounding that reaches the target; None if there is none."""
        chosen, setting, u = pool.sets[i], int(pool.setting[i]), pool.u[i]
        low, high = np.where(chosen, self.low, 0.0), np.where(chosen, self.high, 0.0)
        if chosen.sum() > 1:
            u = refine(self.margin.slopes, u, low, high, setting)
            u = np.where(np.abs(u) < NEGLIGIBLE * np.abs(u).max(initial=0.0), 0.0, u)
        kept = self._repaired(u, low, high, setting)
        return None if kept is None else self._change(kept, setting)

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
            size = float(slope @ slope)
            if not size:
                return None
            rise = (1.0 + 10.0 ** (attempt - 4)) * -g + 1e-13 * 100.0**attempt * self.missing
            u = np.clip(u + rise * slope / size, low, high)
        return u if float(self.margin.values(u[None], which)[0]) >= 0 else None

    def _highest(self, pool: ChangePool) -> Change:
        """Return the change of the highest probability that is found from the highest so far."""
        heights = self.margin.heights(pool.u, pool.setting)  # probabilities may be 0 in float64
        chosen = np.argsort(-heights, kind="stable")[:STARTS]
        setting = pool.setting[chosen]
        tops = np.array(
            [
                climb(self.margin.scores, u, self.low, self.high, int(k))
                for u, k in zip(pool.u[chosen], setting, strict=True)
            ]
        )
        best = int(self.margin.heights(tops, setting).argmax())
        return self._change(tops[best], int(setting[best]))

    def _change(self, u: np.ndarray, setting: int) -> Change:
        which = np.array([setting])
        distance = float(self.space.distances(u[None], which)[0])
        count = int((u != 0).sum() + self.space.n_switched[setting])
        return Change(u, setting, distance, count)


def passing_rows(margin: ChangeMargin, seen: np.ndarray) -> ChangePool:
    """Return the nearest rows of ``seen`` (n, D) that reach the target, and the highest tried.

    Features that may not change keep their values, and rows out of bounds are moved to them. A row
    keeps its categories where allowed, and else has those of x. Means are cheap, and with a level
    of ½ or more a Gaussian's mean short of the target rules a row out; variances are computed in
    blocks, the nearest rows first, until some of them pass. All rows are tried if WORK allows.
    """
    space = margin.space
    u, setting = space.units(seen), own_settings(space, seen)
    distance = space.distances(u, setting)
    order = np.argsort(distance, kind="stable")
    if len(order) > BLOCK:
        above = np.empty(len(u))
        for start in range(0, len(u), BLOCK):
            part = slice(start, start + BLOCK)
            rows = beside("x", space.rows(u[part], setting[part]), margin.posterior.like)
            above[part] = margin.sign * (to_numpy(margin.posterior.moments(rows)) - margin.target)
        if margin.z >= 0 and len(margin.weights) == 1:
            order = order[above[order] >= 0] if (above >= 0).any() else order[:BLOCK]
        most = max(BLOCK, int(WORK / max(margin.posterior.size, 1) ** 2))
        if len(order) > most:
            high = order[np.argsort(-above[order], kind="stable")[: most // 2]]
            order = np.concatenate([order[: most - most // 2], high])
    best: list[ChangePool] = []
    for start in range(0, len(order), BLOCK):
        few = order[start : start + BLOCK]
        g = margin.values(u[few], setting[few])
        chosen = np.union1d(np.flatnonzero(g >= 0), [g.argmax()])
        best.append(
            ChangePool(u[few][chosen], u[few][chosen] != 0, setting[few][chosen], g[chosen])
        )
        if (g >= 0).any():
            break
    result = best[0]
    for pool in best[1:]:
        result = result + pool
    return result


def own_settings(space: ChangeSpace, seen: np.ndarray) -> np.ndarray:
    """Return the setting of categories of each row (n,); 0 where its own is not among them."""
    switched = np.flatnonzero((space.settings != space.row).any(axis=0))
    own = np.zeros(len(seen), dtype=int)
    for i in range(1, len(space.settings)):
        own[(seen[:, switched] == space.settings[i, switched]).all(axis=1)] = i
    return own
