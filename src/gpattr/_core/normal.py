"""Normal distributions: quantiles, signs, draws and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from gpattr._core.array import Array, LinAlgError, cholesky
from gpattr._core.memory import check_memory
from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError


def check_level(level: float) -> float:
    """Return a credible level, strictly between 0 and 1."""
    if (
        isinstance(level, bool)
        or not isinstance(level, (int, float, np.floating))
        or not 0.0 < level < 1.0
    ):
        raise InvalidInputError(f"level: expected a number between 0 and 1, got {level!r}")
    return float(level)


def standard_draws(name: str, n: int, size: int, random_state: Any) -> Array:
    """Return n standard normal draws of this size, (n, size)."""
    n = check_count(name, n)
    check_memory(f"{name}: the draws", (n, size), "use fewer draws or rows")
    return random_generator(random_state).standard_normal((n, size))


def random_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that ``random_state`` stands for."""
    try:
        if isinstance(random_state, (set, frozenset)):  # NumPy would take its address for a seed
            raise TypeError
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "None, an integer of 0 or more, or a generator"
        raise InvalidInputError(
            f"random_state: expected {expected}, got {random_state!r}"
        ) from None


def prob_positive(mean: Array, var: Array) -> Array:
    """Return P(A > 0) for A ~ N(mean, var); ½ where A is exactly zero."""
    std = np.sqrt(var)
    sure = std <= np.abs(mean) * 1e-300
    z = np.divide(mean, std, out=np.zeros_like(mean), where=~sure)
    return np.where(sure, 0.5 * (1.0 + np.sign(mean)), ndtr(z))


def roots(C: Array) -> Array:
    """Return symmetric A (n, d, d) with A² = C, keeping exact zeros.

    C is singular wherever an attribution is exactly zero.
    """
    values, vectors = np.linalg.eigh(C)
    roots = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
    return roots * (np.diagonal(C, axis1=1, axis2=2) > 0)[:, :, None]


def jittered_root(C: Array) -> Array:
    """Return lower triangular R with RRᵀ = C, for a C that is singular to rounding.

    1e-10 or more is added to the correlations. It takes a tenth of the time of a symmetric root,
    and like that one it hardly changes where C hardly does: with 1e-13 a change in the last digit
    of C moved it by 3e-3, with 1e-10 by 3e-6.
    """
    size = np.sqrt(np.maximum(C.diagonal(), 0.0))
    scale = np.where(size > 0, size, 1.0)
    unit, jitter = C / scale[:, None] / scale, 1e-10
    while True:
        try:
            return size[:, None] * cholesky(unit + jitter * np.eye(len(C)))
        except LinAlgError:
            jitter *= 10.0


def rank_shares(draws: Array) -> Array:
    """Return how often each of d features has each rank in draws (n, s, d): (n, d, d), rank last.

    Rank 0 is the largest.
    """
    n, _, d = draws.shape
    order, result = np.argsort(-draws, axis=2, kind="stable"), np.empty((n, d, d))
    for rank in range(d):
        result[:, :, rank] = (order[:, :, rank, None] == np.arange(d)).mean(axis=1)
    return result


def share_ties(ranks: Array, mean: Array, var: Array) -> Array:
    """Return rank probabilities (n, d, d) in which exactly tied features share ranks evenly."""
    tied = (mean[:, :, None] == mean[:, None, :]) & (var[:, :, None] == 0) & (var[:, None, :] == 0)
    return (tied / tied.sum(axis=2, keepdims=True).clip(1)) @ ranks + np.where(
        var[:, :, None] > 0, ranks, 0.0
    )
