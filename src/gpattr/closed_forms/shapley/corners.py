"""Shapley values from the values of a function at coalitions: all of them, or sampled ones.

For any kernel, basis or mean, φᵢf = Σ_S Aᵢ_S f(x_S, b_−S) with a matrix A of players by coalitions.
Up to `MOST_PLAYERS` players all 2^p coalitions are used, and the result is exact. Beyond, those on
the way of random permutations of the players are, each with its reverse (antithetic pairs): what
permutations differ by is the sampling error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Kernel
from gpattr.operators import Coalitions, Players

MOST_PLAYERS = 12
DEVIATIONS = 4.0  # standard errors that bound a sampling error


@dataclass(frozen=True, eq=False)
class Design:
    """Coalitions ``members`` (c, players) of 0 and 1, and the matrix ``weights`` A (players, c).

    Of sampled coalitions ``groups`` (G, players, c) are the estimates whose average A is, one for
    each pair of permutations.
    """

    members: Array
    weights: Array
    groups: Array | None = None

    @property
    def method(self) -> str:
        """What these coalitions are, in words."""
        if self.groups is None:
            return "enumeration"
        return f"permutations ({len(self.groups)} antithetic pairs)"


@lru_cache(maxsize=64)
def all_coalitions(players: Players) -> Design:
    """Return the design of all coalitions of the players that have columns."""
    p, seen = len(players.seen), list(players.seen)
    inside = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    size = inside.sum(axis=1)
    share = np.array([1.0 / (p * math.comb(p - 1, s)) for s in range(p)] or [1.0])
    members, weights = np.zeros((2**p, players.count)), np.zeros((players.count, 2**p))
    members[:, seen] = inside
    joined, left = share[np.maximum(size - 1, 0)], share[np.minimum(size, p - 1)]
    weights[seen] = np.where(inside == 1, joined[:, None], -left[:, None]).T
    return Design(members, weights)


@lru_cache(maxsize=64)
def sampled_coalitions(players: Players, pairs: int) -> Design:
    """Return the design of random permutations of the players that have columns.

    The same permutations serve every call, so that results can be repeated and compared.
    """
    p, seen = len(players.seen), np.array(players.seen)
    generator = np.random.default_rng(0)
    orders = np.stack([generator.permutation(p) for _ in range(pairs)])
    inside = np.zeros((2 * pairs, p + 1, p))  # who has joined after k steps
    both = np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * pairs, p)
    rank = np.argsort(both, axis=1)
    inside[:] = np.arange(p + 1)[None, :, None] > rank[:, None, :]
    flat, index = np.unique(inside.reshape(-1, p), axis=0, return_inverse=True)
    index = index.reshape(2 * pairs, p + 1)
    groups = np.zeros((pairs, players.count, len(flat)))
    pair = np.repeat(np.arange(pairs), 2)[:, None]
    np.add.at(groups, (pair, seen[both], index[:, 1:]), 0.5)
    np.add.at(groups, (pair, seen[both], index[:, :-1]), -0.5)
    members = np.zeros((len(flat), players.count))
    members[:, seen] = flat
    return Design(members, groups.mean(axis=0), groups)


def corner_formulas(kernel: Kernel, design: Design, prior: Any = None) -> Formulas:
    """Return the formulas of Shapley values for any kernel, from its values at coalitions."""

    def values(sites: Coalitions, Z: Array) -> Array:
        """Return k(x_S, z), (n, c, m)."""
        corners = sites.corners(design.members)
        n, c, d = corners.shape
        return kernel(corners.reshape(n * c, d), Z).reshape(n, c, len(Z))

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        xp, n, m = namespace(Z), len(sites.stop), len(Z)
        result, error = xp.empty((n, len(design.weights), m)), xp.empty(n)
        weights = xp.asarray(design.weights)
        for rows in blocks(n, _bytes(design, m), Z):
            K = values(sites[rows], Z)
            result[rows] = weights @ K
            size = xp.max(abs(K), axis=1)
            spread = _spread(design, K)
            deviation = 32.0 * EPS * size if spread is None else xp.max(spread, axis=1)
            error[rows] = (deviation * deviation).sum(axis=1) ** 0.5
        return Bounded(result, error)

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        xp, n = namespace(Z), len(sites.stop)
        result, error = xp.empty((n, len(design.weights), w.shape[1])), xp.empty(n)
        weights = xp.asarray(design.weights)
        for rows in blocks(n, _bytes(design, len(Z)), Z):
            K = values(sites[rows], Z)
            sums = product(K, w)
            result[rows] = weights @ sums
            spread = _spread(design, sums)
            rounding = 32.0 * EPS * xp.max(product(abs(K), abs(w)), axis=(1, 2))
            error[rows] = rounding
            if spread is not None:
                error[rows] = rounding + xp.max(spread, axis=(1, 2))
        return Bounded(result, error)

    def prior_cov(sites: Coalitions) -> Bounded:
        return between(sites, sites)

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        xp, n, p = namespace(sites.stop), len(sites.stop), len(design.weights)
        result, error = xp.empty((n, p, p)), xp.empty(n)
        for row in range(n):
            one, two = (some[[row]].corners(design.members)[0] for some in (sites, other))
            result[row], error[row] = _covariance(kernel, design, one, two)
        return Bounded(result, error)

    return Formulas(cross, contract, prior_cov, between, frozenset({design.method}))


def _covariance(kernel: Kernel, design: Design, one: Array, two: Array) -> tuple[Array, Array]:
    """Return A k(one, two) Aᵀ, (p, p), and a bound on its error, with k formed by blocks."""
    xp = namespace(one)
    weights, groups = xp.asarray(design.weights), design.groups
    total, size = xp.zeros(weights.shape[:1] * 2), 0.0
    each = None if groups is None else xp.zeros((len(groups), *weights.shape[:1] * 2))
    for some in blocks(len(one), 24.0 * len(two), one):
        K = kernel(one[some], two)
        right = product(K, weights.T + 0.0)
        total = total + product(weights[:, some] + 0.0, right)
        size = max(size, float(abs(K).max()))
        if groups is not None and each is not None:
            G = xp.asarray(groups)
            each = each + (G[:, :, some] @ K) @ xp.swapaxes(G, 1, 2)
    error = xp.asarray(32.0 * EPS * size)
    if groups is not None and each is not None:
        # The covariance of the average is too large by what single pairs differ by, over their
        # number (on average), and varies about that.
        excess = abs(each.mean(axis=0) - total) / max(1, len(groups) - 1)
        error = error + DEVIATIONS * excess.max()
    return total, error


def _spread(design: Design, values: Array) -> Array | None:
    """Return the sampling error of A values, (n, p, k), for values (n, c, k); None if exact."""
    if design.groups is None:
        return None
    xp, G = namespace(values), len(design.groups)
    mean, square = 0.0, 0.0
    for group in xp.asarray(design.groups):
        part = group @ values
        mean, square = mean + part, square + part * part
    variance = xp.maximum(square / G - (mean / G) ** 2, 0.0) / max(1, G - 1)
    return DEVIATIONS * xp.sqrt(variance)


def _bytes(design: Design, m: int) -> float:
    return 24.0 * len(design.members) * m + 24.0 * design.members.size
