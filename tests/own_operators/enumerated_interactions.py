"""An operator with one output for each pair: Shapley interactions by enumerating coalitions."""

from itertools import product
from math import factorial

import numpy as np

from gpattr import closed_forms
from gpattr.kernels import SquaredExponential
from gpattr.operators import Coalitions, Operator, Players, Reference


def weights(d):
    """Return M (k, 2^d): the matrix of TreeSHAP, pairs i ≤ j, of values at all coalitions."""
    members = np.array(list(product([0, 1], repeat=d)))
    place = {tuple(member): c for c, member in enumerate(members)}
    phi, half = np.zeros((d, len(members))), np.zeros((d, d, len(members)))
    for member in members:
        s = int(member.sum())
        for i in np.flatnonzero(member == 0):
            joined = member.copy()
            joined[i] = 1
            share = factorial(s) * factorial(d - s - 1) / factorial(d)
            phi[i, place[tuple(joined)]] += share
            phi[i, place[tuple(member)]] -= share
            for j in np.flatnonzero(member == 0):
                if i != j:
                    both, other = joined.copy(), member.copy()
                    both[j] = other[j] = 1
                    share = 0.5 * factorial(s) * factorial(d - s - 2) / factorial(d - 1)
                    for corner, sign in ((both, 1), (joined, -1), (other, -1), (member, 1)):
                        half[i, j, place[tuple(corner)]] += sign * share
    half[np.arange(d), np.arange(d)] = phi - half.sum(axis=1)
    return members, half


class EnumeratedInteractions(Operator):
    """Φᵢⱼf(x), i ≤ j: half the Shapley interaction index, and on the diagonal what is left."""

    axes = ("pair",)
    vanishes_on_constants = True

    def __init__(self, baseline, jumps=(), players=None, pairs=None):
        self.points = np.atleast_2d(baseline)
        self.per_row = np.ndim(baseline) == 2
        self.pairs = pairs

    def pairs_for(self, d):
        return [(i, j) for i in range(d) for j in range(i, d)] if self.pairs is None else self.pairs

    def sizes(self, d):
        return (len(self.pairs_for(d)),)

    def rows(self, rows):
        return type(self)(self.points[rows], pairs=self.pairs) if self.per_row else self

    @property
    def reference(self):
        return Reference(self.points, np.ones(1), self.per_row)

    def terms(self, X):
        sites = Coalitions(self.points, X, Players.single(X.shape[1]))
        return [(1.0, WithPairs(sites.start, sites.stop, tuple(self.pairs_for(X.shape[1]))))]


class WithPairs(Coalitions):
    """Coalitions that know which pairs are asked for."""

    def __init__(self, start, stop, pairs):
        super().__init__(start, stop, Players.single(stop.shape[1]))
        object.__setattr__(self, "pairs", pairs)

    def __getitem__(self, rows):
        part = Coalitions(self.start, self.stop, self.players)[rows]
        return WithPairs(part.start, part.stop, self.pairs)


def mixing(sites):
    members, half = weights(sites.shape[1])
    i, j = np.array(sites.pairs).T
    return sites.corners(members), half[i, j]  # (n, c, d), (k, c)


def cross(kernel, sites, Z):
    points, M = mixing(sites)
    n, c, d = points.shape
    return np.einsum("kc,ncm->nkm", M, kernel(points.reshape(-1, d), Z).reshape(n, c, -1))


def between(kernel, sites, other):
    (one, M), (two, N) = mixing(sites), mixing(other)
    K = np.stack([kernel(a, b) for a, b in zip(one, two, strict=True)])
    return np.einsum("kc,nce,le->nkl", M, K, N)


closed_forms.register(EnumeratedInteractions, SquaredExponential, cross=cross, between=between)
