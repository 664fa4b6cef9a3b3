"""Normal distributions: quantiles, signs, draws and ranks."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, owens_t

from gpattr._core.array import Array, LinAlgError, cholesky
from gpattr._core.memory import check_memory
from gpattr._core.randomness import RandomLike, random_generator
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


def standard_draws(name: str, n: int, size: int, random_state: RandomLike) -> Array:
    """Return n standard normal draws of this size, (n, size)."""
    n = check_count(name, n)
    check_memory(f"{name}: the draws", (n, size), "use fewer draws or rows")
    return random_generator(random_state).standard_normal((n, size))


def prob_positive(mean: Array, var: Array) -> Array:
    """Return P(A > 0) for A ~ N(mean, var); ½ where A is exactly zero."""
    std = np.sqrt(var)
    sure = std <= np.abs(mean) * 1e-300
    z = np.divide(mean, std, out=np.zeros_like(mean), where=~sure)
    return np.where(sure, 0.5 * (1.0 + np.sign(mean)), ndtr(z))


def prob_opposite(mean: Array, var: Array, mean2: Array, var2: Array, cov: Array) -> Array:
    """Return P(AB < 0) for normal A and B with these moments and this covariance.

    It is P(A > 0) + P(B > 0) − 2P(A > 0, B > 0), the last by Owen's T function:

        P = ½Φ(h) + ½Φ(k) − T(h, (k/h − ρ)/r) − T(k, (h/k − ρ)/r) − ½[hk < 0],   r = √(1 − ρ²)
    """
    positive, positive2 = prob_positive(mean, var), prob_positive(mean2, var2)
    known = (var > 0) & (var2 > 0)
    std, std2 = (np.sqrt(np.where(known, part, 1.0)) for part in (var, var2))
    rho = np.clip(np.where(known, cov / (std * std2), 0.0), -1.0, 1.0)
    h, k = (np.where(part == 0, 1e-300, part) for part in (mean / std, mean2 / std2))
    r = np.sqrt((1.0 - rho) * (1.0 + rho))
    sharp = r < 1e-8  # one is a multiple of the other
    r = np.where(sharp, 1.0, r)
    with np.errstate(over="ignore"):
        both = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, (k / h - rho) / r)
        both -= owens_t(k, (h / k - rho) / r) + 0.5 * ((h > 0) != (k > 0))
    chance = ndtr(h) + ndtr(k) - 2.0 * both
    straight = np.where(rho > 0, np.abs(ndtr(h) - ndtr(k)), 1.0 - np.abs(ndtr(h) - ndtr(-k)))
    chance = np.where(sharp, straight, chance)
    apart = positive * (1.0 - positive2) + (1.0 - positive) * positive2
    return np.clip(np.where(known, chance, apart), 0.0, 1.0)


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
