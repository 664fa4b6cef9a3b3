"""Shapley values and interactions from a model's joint predictive distribution alone.

All 2^P coalitions are enumerated, and the joint mean and covariance of f at all their points are
combined with the factorial weights of the definitions. ``joint(points)`` returns that mean (N,) and
covariance (N, N); `joint_of` makes one of anything that has ``predict(X, return_cov=True)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import comb, factorial

import numpy as np

from gpattr import Baselines
from gpattr.operators import Marginals


def joint_of(model):
    """Return ``joint`` of a model whose ``predict`` has ``return_cov``."""
    return lambda points: model.predict(points, return_cov=True)


# Weights of the definitions: the value of a coalition S is entry Σ_{p ∈ S} 2^p of the last axis.


def members(P):
    """Whether each player belongs to each coalition, (2^P, P)."""
    return (np.arange(2**P)[:, None] >> np.arange(P)) % 2 == 1


def shapley_weights(P):
    """φᵢ = Σ_{S ∌ i} |S|!(P−|S|−1)!/P! (v(S ∪ i) − v(S)), (P, 2^P)."""
    weights = np.zeros((P, 2**P))
    for S in range(2**P):
        size = S.bit_count()
        for i in range(P):
            if not S >> i & 1:
                share = factorial(size) * factorial(P - size - 1) / factorial(P)
                weights[i, S | 1 << i] += share
                weights[i, S] -= share
    return weights


def pair_weights(P, share):
    """Σ_{S ∌ i, j} share(|S|) (v(S∪ij) − v(S∪i) − v(S∪j) + v(S)), (P, P, 2^P); 0 for i = j."""
    weights = np.zeros((P, P, 2**P))
    for S in range(2**P):
        for i in range(P):
            for j in range(P):
                if i != j and not S >> i & 1 and not S >> j & 1:
                    w = share(S.bit_count())
                    weights[i, j, S | 1 << i | 1 << j] += w
                    weights[i, j, S | 1 << i] -= w
                    weights[i, j, S | 1 << j] -= w
                    weights[i, j, S] += w
    return weights


def interaction_weights(P):
    """The Shapley interaction index in TreeSHAP's matrix form, (P, P, 2^P).

    Iᵢⱼ has the shares |S|!(P−|S|−2)!/(P−1)!; Φᵢⱼ = Iᵢⱼ/2 and Φᵢᵢ = φᵢ − Σ_{j≠i} Φᵢⱼ.
    """
    weights = pair_weights(
        P, lambda size: factorial(size) * factorial(P - size - 2) / factorial(P - 1) / 2.0
    )
    rest = shapley_weights(P) - weights.sum(axis=1)
    weights[np.arange(P), np.arange(P)] = rest
    return weights


def taylor_weights(P):
    """The Shapley–Taylor index of order two, (P, P, 2^P): each pair's term is halved.

    A pair has (2/P) Σ_S (…)/C(P−1, |S|), a player v({i}) − v(∅).
    """
    weights = pair_weights(P, lambda size: 1.0 / (P * comb(P - 1, size)))
    for i in range(P):
        weights[i, i, 1 << i] += 1.0
        weights[i, i, 0] -= 1.0
    return weights


INDICES = {
    "values": shapley_weights,
    "shapley": lambda P: interaction_weights(P).reshape(P * P, -1),
    "taylor": lambda P: taylor_weights(P).reshape(P * P, -1),
}


@cache
def index_weights(index, P):
    """Return the weights (q, 2^P) of one of the indices, by name."""
    return INDICES[index](P)


# What players outside a coalition are replaced by.


def combinations(rows, weights, owner):
    """All rows whose players come from rows of their own, and their product weights."""
    P, owner = max(owner) + 1, np.asarray(owner)
    choices = np.array(list(product(range(len(rows)), repeat=P)))  # (K^P, P)
    return rows[choices[:, owner], np.arange(len(owner))], weights[choices].prod(axis=1)


def backgrounds(baseline, n, owner):
    """Return for each of n rows the points (K, D) that it is compared with, and their weights."""
    if isinstance(baseline, Marginals):
        return [combinations(baseline.points, baseline.weights, owner)] * n
    if isinstance(baseline, Baselines):
        return [(baseline.points, baseline.weights)] * n
    baseline = np.asarray(baseline, dtype=float)
    starts = baseline if baseline.ndim == 2 else [baseline] * n
    return [(np.array([b]), np.ones(1)) for b in starts]


@dataclass(frozen=True)
class Functional:
    """Σ weights (n, q, N) · f(points (N, D)): q outputs of n rows as sums of values of f."""

    points: np.ndarray
    weights: np.ndarray

    def mean(self, values):
        """Of values of f at the points, (n, q)."""
        return self.weights @ values

    def joint(self, cov):
        """Between all outputs of all rows, (n, q, n, q)."""
        n, q, N = self.weights.shape
        flat = self.weights.reshape(n * q, N)
        return (flat @ cov @ flat.T).reshape(n, q, n, q)


def functional(rows, baseline, owner=None, index="values"):
    """Return the outputs of an index of players as sums of values of f.

    ``owner`` gives the player of each column; by default every column is one.
    """
    rows = np.asarray(rows, dtype=float)
    owner = np.arange(rows.shape[1]) if owner is None else np.asarray(owner)
    P = int(owner.max()) + 1
    inside, weights = members(P)[:, owner], index_weights(index, P)  # (2^P, D), (q, 2^P)
    every, terms = [], []
    for x, (starts, shares) in zip(rows, backgrounds(baseline, len(rows), owner)):
        every.append(np.where(inside, x, starts[:, None, :]).reshape(-1, len(owner)))
        terms.append((shares[:, None, None] * weights).transpose(1, 0, 2).reshape(len(weights), -1))
    return distinct(every, terms)


def distinct(every, terms):
    """Return points that occur once, with the weights of all places where they did."""
    points, place = np.unique(np.concatenate(every), axis=0, return_inverse=True)
    ends = np.cumsum([len(some) for some in every])[:-1]
    weights = np.zeros((len(every), terms[0].shape[0], len(points)))
    for row, (where, term) in enumerate(zip(np.split(place.ravel(), ends), terms)):
        np.add.at(weights[row].T, where, term.T)
    return Functional(points, weights)


def differences(rows, baseline, owner=None):
    """Return f(x) − E f(b) of each row as a sum of values of f: what efficiency compares with."""
    rows = np.asarray(rows, dtype=float)
    owner = np.arange(rows.shape[1]) if owner is None else np.asarray(owner)
    every, terms = [], []
    for x, (starts, shares) in zip(rows, backgrounds(baseline, len(rows), owner)):
        every.append(np.concatenate([x[None], starts]))
        terms.append(np.concatenate([[1.0], -shares])[None])
    return distinct(every, terms)


@dataclass(frozen=True)
class Truth:
    """The distribution of q outputs at n rows: ``mean`` (n, q), ``joint`` (n, q, n, q)."""

    mean: np.ndarray
    joint: np.ndarray

    @property
    def cov(self):
        """Between outputs of one row, (n, q, q)."""
        return np.einsum("ninj->nij", self.joint)


def truth(joint, rows, baseline, owner=None, index="values"):
    """Return the distribution of an index of players under ``joint``."""
    sums = functional(rows, baseline, owner, index)
    mean, cov = joint(sums.points)
    return Truth(sums.mean(mean), sums.joint(cov))


def upper(P):
    """Return the places of the pairs i ≤ j in a flattened (P, P) matrix, in order."""
    i, j = np.triu_indices(P)
    return i * P + j
