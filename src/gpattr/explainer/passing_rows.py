"""Training rows as changes: which of them reach the target, the nearest first."""

from __future__ import annotations

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.validation import beside
from gpattr.explainer.change_margin import ChangeMargin
from gpattr.explainer.change_pool import Pool
from gpattr.explainer.change_space import ChangeSpace

BLOCK = 1000  # rows at a time
WORK = 4e10  # products that variances may take: a row takes the square of the model's size


def passing_rows(margin: ChangeMargin, seen: np.ndarray) -> Pool:
    """Return the nearest rows of ``seen`` (n, D) that reach the target, and the highest tried.

    Features that may not change keep their values, and rows out of bounds are moved to them. A row
    keeps its categories where this is allowed, and else has those of x. Means are cheap, and with a
    level of ½ or more a Gaussian's mean short of the target rules a row out; variances are computed
    in blocks, the nearest rows first, until some of them pass. All rows are tried if WORK allows.
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
    best: list[Pool] = []
    for start in range(0, len(order), BLOCK):
        few = order[start : start + BLOCK]
        g = margin.values(u[few], setting[few])
        chosen = np.union1d(np.flatnonzero(g >= 0), [g.argmax()])
        best.append(Pool(u[few][chosen], u[few][chosen] != 0, setting[few][chosen], g[chosen]))
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
