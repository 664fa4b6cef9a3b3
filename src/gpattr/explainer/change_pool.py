"""Changes of a row that a search compares: one by one, and many in a pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr.explainer.change_margin import ChangeMargin

HALVINGS = 20


@dataclass(frozen=True, eq=False)
class Change:
    """A change u (p,) in a ``setting`` of categories: its length and its number of features."""

    u: np.ndarray
    setting: int
    distance: float
    n_features: int


@dataclass(frozen=True, eq=False)
class Pool:
    """Changes u (r, p) of features ``sets`` (r, p) in settings (r,), with their margins (r,)."""

    u: np.ndarray
    sets: np.ndarray
    setting: np.ndarray
    g: np.ndarray

    def __len__(self) -> int:
        return len(self.g)

    def __getitem__(self, chosen: np.ndarray | slice) -> Pool:
        return Pool(self.u[chosen], self.sets[chosen], self.setting[chosen], self.g[chosen])

    def __add__(self, other: Pool) -> Pool:
        mine, theirs = ((pool.u, pool.sets, pool.setting, pool.g) for pool in (self, other))
        return Pool(*(np.concatenate(pair) for pair in zip(mine, theirs, strict=True)))


def pulled(margin: ChangeMargin, pool: Pool) -> Pool:
    """Return what reaches the target, pulled towards the row as far as it keeps reaching it."""
    pool = pool[pool.g >= 0]
    inner, outer, g = np.zeros(len(pool)), np.ones(len(pool)), pool.g
    for _ in range(HALVINGS if len(pool) else 0):
        middle = 0.5 * (inner + outer)
        values = margin.values(middle[:, None] * pool.u, pool.setting)
        reached = values >= 0
        g = np.where(reached, values, g)
        inner, outer = np.where(reached, inner, middle), np.where(reached, middle, outer)
    return Pool(outer[:, None] * pool.u, pool.sets, pool.setting, g)
