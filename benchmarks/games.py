"""Cooperative games of features: all coalitions, and the points at which they are worth f."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import factorial

import numpy as np


@cache
def coalitions(d: int) -> tuple[np.ndarray, np.ndarray]:
    """All 2ᵈ sets of features, (2ᵈ, d), and the matrix (d, 2ᵈ) that makes Shapley values of their
    worths.
    """
    sets = np.array(list(product([False, True], repeat=d)))
    size = sets.sum(axis=1)
    joins = np.array(
        [factorial(s) * factorial(d - s - 1) / factorial(d) if s < d else 0.0 for s in range(d + 1)]
    )
    return sets, np.where(sets, joins[size - 1][:, None], -joins[size][:, None]).T


def mixtures(x: np.ndarray, b: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """A point per set: the row's values for the features in it, the baseline's for the others."""
    return np.where(sets, x, b)
