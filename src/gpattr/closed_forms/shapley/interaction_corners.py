"""Interactions from the values of a function at coalitions, for any kernel, basis or mean.

Up to `MOST_PLAYERS` players all 2^p coalitions are used. Polynomials of degree two have no
interactions of more than two players: coalitions of at most two are enough, however many players
there are,

    Φᵢⱼ = ½(f({i, j}) − f({i}) − f({j}) + f(∅)),    Φᵢᵢ = f({i}) − f(∅).

Those of degree one, averaged over `Marginals`, are what they are at the average baseline.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from gpattr.bases import Basis, Monomials
from gpattr.closed_forms.shapley.bases import corner_basis
from gpattr.closed_forms.shapley.corners import (
    CoalitionDesign,
    all_coalitions,
    averaged,
    corner_formulas,
)
from gpattr.closed_forms.shapley.means import design_mean
from gpattr.closed_forms.table import BasisFormulas, Formulas, MeanFormulas
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Players, ShapleyInteractions
from gpattr.operators.pairs import Pairs
from gpattr.operators.players import MOST_PLAYERS


def interaction_coalitions(
    operator: ShapleyInteractions, function: Kernel | Basis | Mean
) -> CoalitionDesign:
    """Return the coalitions that the interactions of a kernel, a basis or a mean need."""
    players, pairs = operator.players, tuple(operator.pairs_for(len(operator.players.owner)))
    seen, degree = len(players.seen), _degree(function)
    if operator.independent and degree > 1:
        raise UnsupportedModelError(
            "baseline: with Marginals, interactions need a function that is linear, or a kernel"
            " that is a product over features, a sum of such products, or a Matérn or rational"
            f" quadratic kernel; {type(function).__name__} is none of them. Use Baselines(rows)"
        )
    if degree <= 2:
        return _small_coalitions(players, pairs)
    if seen > MOST_PLAYERS:
        raise UnsupportedModelError(
            f"ShapleyInteractions of {type(function).__name__}: it is not a product over features,"
            f" so that all coalitions are enumerated, for at most {MOST_PLAYERS} players; there are"
            f" {seen}. Group features into fewer players"
        )
    return _enumerated(players, pairs, operator.index)


def _degree(function: Kernel | Basis | Mean) -> float:
    """Return the degree of a polynomial; infinity for other functions."""
    if isinstance(function, Monomials):
        return float(function.degree)
    degree = function.polynomial_degree if isinstance(function, Kernel) else None
    return math.inf if degree is None else float(degree)


@lru_cache(maxsize=64)
def _enumerated(players: Players, pairs: Pairs, index: str) -> CoalitionDesign:
    """Return the design of all coalitions of the players that have columns."""
    shapley = all_coalitions(players)
    members, p = shapley.members, len(players.seen)
    size = members.sum(axis=1).astype(int)
    # The weight of ∂ᵢ∂ⱼ at S, which has s of the other p − 2 players.
    others = range(max(p - 1, 0))
    if index == "shapley":
        share = [0.5 / ((p - 1) * math.comb(p - 2, s)) for s in others]
    else:
        share = [1.0 / (p * math.comb(p - 1, s)) for s in others]
    table = np.array([*share, 0.0])
    sign = 2.0 * members - 1.0

    def pair(i: int, j: int) -> np.ndarray:
        rest = size - (members[:, i] + members[:, j]).astype(int)
        return sign[:, i] * sign[:, j] * table[rest]

    def single(i: int) -> np.ndarray:
        if index == "taylor":
            return (members[:, i] == 1) * (size == 1) * 1.0 - (size == 0) * 1.0
        return shapley.weights[i] - sum((pair(i, j) for j in players.seen if j != i), start=0.0)

    weights = np.zeros((len(pairs), len(members)))
    for k, (i, j) in enumerate(pairs):
        if i in players.seen and j in players.seen:
            weights[k] = single(i) if i == j else pair(i, j)
    return CoalitionDesign(members, weights, pairs=np.array(pairs))


@lru_cache(maxsize=64)
def _small_coalitions(players: Players, pairs: Pairs) -> CoalitionDesign:
    """Return the design of coalitions of at most two players."""
    seen = set(players.seen)
    known = [(k, pair) for k, pair in enumerate(pairs) if seen.issuperset(pair)]
    alone = sorted({player for _, pair in known for player in pair})
    together = [(k, pair) for k, pair in known if pair[0] != pair[1]]
    members = np.zeros((1 + len(alone) + len(together), players.count))
    weights = np.zeros((len(pairs), len(members)))
    at = {player: 1 + position for position, player in enumerate(alone)}
    for player, row in at.items():
        members[row, player] = 1.0
    for k, (i, j) in known:
        if i == j:
            weights[k, [0, at[i]]] = -1.0, 1.0
    for row, (k, (i, j)) in enumerate(together, start=1 + len(alone)):
        members[row, [i, j]] = 1.0
        weights[k, [0, at[i], at[j], row]] = 0.5, -0.5, -0.5, 0.5
    return CoalitionDesign(members, weights, pairs=np.array(pairs))


def interaction_kernel(operator: ShapleyInteractions, kernel: Kernel) -> Formulas:
    """Return the formulas of interactions for any kernel, from its values at coalitions."""
    inner = corner_formulas(kernel, interaction_coalitions(operator, kernel))
    if not operator.independent:
        return inner
    return Formulas(
        cross=lambda sites, Z: inner.cross(averaged(sites), Z),
        contract=lambda sites, Z, w: inner.contract(averaged(sites), Z, w),
        prior_cov=lambda sites: inner.prior_cov(averaged(sites)),
        between=lambda sites, other: inner.between(averaged(sites), averaged(other)),
        methods=inner.methods,
    )


def interaction_basis(operator: ShapleyInteractions, basis: Basis) -> BasisFormulas:
    """Return the formulas of interactions for any basis, from its values at coalitions."""
    return corner_basis(operator, basis, interaction_coalitions(operator, basis))


def interaction_mean(operator: ShapleyInteractions, mean: Mean) -> MeanFormulas:
    """Return the formulas of interactions for any prior mean, from its values at coalitions."""
    return design_mean(mean, interaction_coalitions(operator, mean))
