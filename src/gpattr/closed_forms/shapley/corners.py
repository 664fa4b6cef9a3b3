"""Shapley values from the values of a function at coalitions: all of them, or sampled ones.

For any kernel, basis or mean, φᵢf = Σ_S Aᵢ_S f(x_S, b_−S) with a matrix A of players by coalitions.
Up to `players.MOST_PLAYERS` players all 2^p coalitions are used, and the result is exact. Beyond,
coalitions on the way of random permutations of the players are, each with its reverse (antithetic
pairs): what permutations differ by is the sampling error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks, check_memory
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Kernel
from gpattr.operators import Coalitions, Players

DEVIATIONS = 4.0  # standard errors that a sampling error hardly ever exceeds


@dataclass(frozen=True, eq=False)
class CoalitionDesign:
    """Coalitions ``members`` (c, players) of 0 and 1, and the matrix ``weights`` A (q, c).

    Outputs belong to players, or to the ``pairs`` (q, 2) of players that are given. Of sampled
    coalitions ``groups`` are the estimates whose average A is, one for each pair of permutations:
    the coalitions of each, and its matrix on them.
    """

    members: Array
    weights: Array
    groups: tuple[tuple[Array, Array], ...] = ()
    pairs: Array | None = None

    def moving(self, sites: Coalitions) -> Array:
        """Return 0 for outputs that vanish because a player is at its baseline, else 1, (n, q)."""
        each = sites.moving
        return each if self.pairs is None else each[:, self.pairs[:, 0]] * each[:, self.pairs[:, 1]]

    @property
    def method(self) -> str:
        """The kind of these coalitions, in words."""
        if not self.groups:
            return "enumeration"
        return f"permutations ({len(self.groups)} antithetic pairs)"


def averaged(sites: Coalitions) -> Coalitions:
    """Return the sites of the average baseline, where baselines are drawn."""
    if sites.weights is None:
        return sites
    return Coalitions(product(sites.weights, sites.start)[None], sites.stop, sites.players)


@lru_cache(maxsize=64)
def all_coalitions(players: Players) -> CoalitionDesign:
    """Return the design of all coalitions of the players that have columns."""
    p, seen = len(players.seen), list(players.seen)
    inside = (np.arange(2**p)[:, None] >> np.arange(p)) & 1
    size = inside.sum(axis=1)
    share = np.array([1.0 / (p * math.comb(p - 1, s)) for s in range(p)] or [1.0])
    members, weights = np.zeros((2**p, players.count)), np.zeros((players.count, 2**p))
    members[:, seen] = inside
    joined, left = share[np.maximum(size - 1, 0)], share[np.minimum(size, p - 1)]
    weights[seen] = np.where(inside == 1, joined[:, None], -left[:, None]).T
    return CoalitionDesign(members, weights)


@lru_cache(maxsize=64)
def sampled_coalitions(players: Players, pairs: int) -> CoalitionDesign:
    """Return the design of random permutations of the players that have columns.

    The same permutations serve every call, so that results can be repeated and compared.
    """
    p, seen = len(players.seen), np.array(players.seen)
    size = (2 * pairs * (p + 1), p + players.count)
    check_memory("n_steps: the coalitions of permutations", size, "use fewer")
    generator = np.random.default_rng(0)
    orders = np.stack([generator.permutation(p) for _ in range(pairs)])
    inside = np.zeros((2 * pairs, p + 1, p))  # who has joined after k steps
    both = np.stack([orders, orders[:, ::-1]], axis=1).reshape(2 * pairs, p)
    rank = np.argsort(both, axis=1)
    inside[:] = np.arange(p + 1)[None, :, None] > rank[:, None, :]
    flat, index = np.unique(inside.reshape(-1, p), axis=0, return_inverse=True)
    index = index.reshape(2 * pairs, p + 1)
    members, total, groups = np.zeros((len(flat), players.count)), 0.0, []
    members[:, seen] = flat
    for pair in range(pairs):
        weights, chosen = np.zeros((players.count, len(flat))), slice(2 * pair, 2 * pair + 2)
        np.add.at(weights, (seen[both[chosen]], index[chosen, 1:]), 0.5)
        np.add.at(weights, (seen[both[chosen]], index[chosen, :-1]), -0.5)
        used = np.unique(index[chosen])
        groups.append((used, weights[:, used]))
        total = total + weights / pairs
    return CoalitionDesign(members, total, tuple(groups))


def corner_formulas(kernel: Kernel, design: CoalitionDesign) -> Formulas:
    """Return the formulas of Shapley values for any kernel, from its values at coalitions."""
    verbs, names = CornerSums(kernel, design), frozenset({design.method})
    known = verbs.bound if kernel.stationary and not design.groups else None
    return Formulas(verbs.cross, verbs.contract, verbs.prior_cov, verbs.between, names, known)


@dataclass(frozen=True, eq=False)
class CornerSums:
    """Values of a kernel at the coalitions of a design, weighted."""

    kernel: Kernel
    design: CoalitionDesign

    def values(self, sites: Coalitions, Z: Array) -> Array:
        """Return k(x_S, z), (c, n, m)."""
        corners = namespace(Z).swapaxes(sites.corners(self.design.members), 0, 1)
        c, n, d = corners.shape
        return self.kernel(corners.reshape(c * n, d), Z).reshape(c, n, len(Z))

    def cross(self, sites: Coalitions, Z: Array) -> Bounded:
        xp, n, m, design = namespace(Z), len(sites.stop), len(Z), self.design
        result, error = xp.empty((n, len(design.weights), m)), xp.empty(n)
        weights = xp.asarray(design.weights)
        for rows in blocks(n, _bytes(design, m), Z):
            K = self.values(sites[rows], Z)
            result[rows] = xp.swapaxes(_weighted(weights, K), 0, 1)
            size = xp.max(abs(K), axis=0)
            error[rows] = 32.0 * EPS * (size * size).sum(axis=1) ** 0.5
        result *= design.moving(sites)[:, :, None]
        return Bounded(result, error)

    def contract(self, sites: Coalitions, Z: Array, w: Array) -> Bounded:
        xp, n, design = namespace(Z), len(sites.stop), self.design
        result, error = xp.empty((n, len(design.weights), w.shape[1])), xp.empty(n)
        weights = xp.asarray(design.weights)
        for rows in blocks(n, _bytes(design, len(Z)), Z):
            K = self.values(sites[rows], Z)
            sums = product(K, w)
            result[rows] = xp.swapaxes(_weighted(weights, sums), 0, 1)
            rounding = 32.0 * EPS * xp.max(product(abs(K), abs(w)), axis=(0, 2))
            error[rows] = rounding + sampling_error(design, sums)
        result *= design.moving(sites)[:, :, None]
        return Bounded(result, error)

    def bound(self, sites: Coalitions, Z: Array, w: Array) -> Array:
        """Return a bound on rounding, where no value of the kernel exceeds its variance."""
        size = self.kernel.diagonal(sites.stop) * abs(w).sum(axis=0).max()
        return EPS * (64.0 + len(Z) ** 0.5) * size

    def prior_cov(self, sites: Coalitions) -> Bounded:
        return self.between(sites, sites)

    def between(self, sites: Coalitions, other: Coalitions) -> Bounded:
        xp, n, design = namespace(sites.stop), len(sites.stop), self.design
        q = len(design.weights)
        result, error = xp.empty((n, q, q)), xp.empty(n)
        for row in range(n):  # each takes (2^p)² values of the kernel
            one = sites[[row]].corners(design.members)[0]
            two = one if other is sites else other[[row]].corners(design.members)[0]
            result[row], error[row] = _covariance(self.kernel, design, one, two)
        result *= design.moving(sites)[:, :, None]
        result *= design.moving(other)[:, None, :]
        return Bounded(result, error)


def _covariance(
    kernel: Kernel, design: CoalitionDesign, one: Array, two: Array
) -> tuple[Array, Array]:
    """Return A k(one, two) Aᵀ, (p, p), and a bound on its error, with k formed by blocks.

    Sampled coalitions estimate 𝒜 by 𝒜 + δ. The variance s² of δ is the variance of single pairs
    about their average, over their number, and a (co)variance changes by at most s² + 2σs, before
    as after seeing data.
    """
    xp, weights = namespace(one), namespace(one).asarray(design.weights)
    total, size = xp.zeros((len(weights), len(weights))), 0.0
    for some in blocks(len(one), 24.0 * len(two), one):
        K = kernel(one[some], two)
        total = total + product(weights[:, some] + 0.0, product(K, weights.T + 0.0))
        size = max(size, float(abs(K).max()))
    error = xp.asarray(32.0 * EPS * size)
    if design.groups:
        spread = xp.zeros(len(weights))
        for used, group in design.groups:
            A = xp.asarray(group)
            spread = spread + (product(A, kernel(one[used], one[used])) * A).sum(axis=1)
        own = total if one is two else product(weights, product(kernel(one, one), weights.T + 0.0))
        variance = own[xp.arange(len(own)), xp.arange(len(own))]
        excess = xp.maximum(spread / len(design.groups) - variance, 0.0)
        s = 2.0 * xp.sqrt(excess / max(1, len(design.groups) - 1))
        error = error + (s * s + 2.0 * s * xp.sqrt(xp.maximum(variance, 0.0))).max()
    return total, error


def _weighted(weights: Array, values: Array) -> Array:
    """Return A values, (p, n, k), for values (c, n, k)."""
    c, *shape = values.shape
    return product(weights, values.reshape(c, -1)).reshape(-1, *shape)


def sampling_error(design: CoalitionDesign, values: Array) -> Any:
    """Return a bound on the sampling error of A values, (n,), for values (c, n, k); 0 if exact."""
    if not design.groups:
        return 0.0
    xp, G = namespace(values), len(design.groups)
    centre = _weighted(xp.asarray(design.weights), values)
    square = 0.0 * centre
    for used, group in design.groups:
        square += (_weighted(xp.asarray(group), values[used]) - centre) ** 2
    # Of few pairs the standard error is itself uncertain: Student's quantile, not the normal one.
    deviations = float(stdtrit(max(1, G - 1), ndtr(DEVIATIONS)))
    error = deviations * xp.sqrt(square / (G * max(1, G - 1)))
    return xp.max(error, axis=(0, 2))


def _bytes(design: CoalitionDesign, m: int) -> float:
    return 24.0 * len(design.members) * m + 24.0 * design.members.size
