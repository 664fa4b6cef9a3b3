"""Slices through random rows: a rule over the features of a subset, at every row of the others.

With nodes t_k and weights w_k for x_S, rows x_−S, and the centred values
ũ_k = u(t_k, x_−S) − Σₗ wₗ u(tₗ, x_−S), for any function u

    V_S      = Σ_k w_k (E ũ_k)²
    V − V_−S = E Σ_k w_k ũ_k²

The expectations are over as many dimensions as there are other features. Squares of expectations
are products of two independent averages, which have no bias. Both are exactly zero where u does not
depend on x_S. As quadratic forms they apply to several functions together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array, product
from gpattr._core.memory import blocks
from gpattr.sobol.inputs import Distribution, Empirical, Inputs, sobol_points
from gpattr.sobol.rules import discrete_gauss

ORDERS = {1: (14, 2.0), 2: (7, 0.5)}  # nodes of a dimension in the first rule, and how many more
SCATTERED = 128  # quasi-random nodes where a product of rules would have too many
LARGEST = 256  # nodes of a product of rules
Subset = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Slice:
    """A rule for the features of a subset: ``nodes`` (K, c) of its ``columns``, ``weights`` (K,).

    Rules of different replicates have different orders, so that their scatter has the error of the
    rule in it as well.
    """

    columns: tuple[int, ...]
    nodes: Array
    weights: Array

    @classmethod
    def of(
        cls, inputs: Inputs, subset: Subset, replicate: int, generator: np.random.Generator
    ) -> Slice:
        """Return a rule for one replicate."""
        members = [i for player in subset for i in inputs.members[player]]
        columns = tuple(column for i in members for column in inputs.columns[i])
        order, more = ORDERS.get(len(members), (0, 0.0))
        rules = [
            rule(inputs.distributions[i], int(order + more * replicate)) if order else None
            for i in members
        ]
        known = [found for found in rules if found is not None]
        if known and len(known) == len(rules):
            places = np.indices([len(w) for _, w in known]).reshape(len(known), -1)
            if places.shape[1] <= LARGEST:
                pairs = list(zip(known, places, strict=True))
                nodes = np.hstack([values[place] for (values, _), place in pairs])
                weights = np.prod([own[place] for (_, own), place in pairs], axis=0)
                return cls(columns, nodes, weights)
        levels = sobol_points(SCATTERED, len(members), generator)
        parts = [
            inputs.distributions[i].quantiles(u) for i, u in zip(members, levels.T, strict=True)
        ]
        nodes = np.hstack(parts) if parts else np.zeros((1, 0))
        return cls(columns, nodes, np.full(len(nodes), 1.0 / len(nodes)))

    def __len__(self) -> int:
        return len(self.weights)

    def forms(
        self, one: Array, two: Array, values: Callable[[Array], Array], q: int
    ) -> tuple[Array, Array]:
        """Return V_S and V − V_−S as quadratic forms, (q, q) each, in q functions.

        ``one`` and ``two`` are independent sets of rows, (n, columns) each.
        """
        means, inner = [], np.zeros((q, q))
        for rows in (one, two):
            centred = np.zeros((len(self), q))
            for some in blocks(len(rows), 32.0 * q * len(self)):
                F = values(self._points(rows[some])).reshape(-1, len(self), q)
                F -= np.einsum("nkq,k->nq", F, self.weights)[:, None]
                centred += F.sum(axis=0) / len(rows)
                F *= np.sqrt(self.weights)[:, None]
                F = F.reshape(-1, q)
                inner += product(F.T, F) / (2 * len(rows))
            means.append(centred)
        own = product(means[0].T, self.weights[:, None] * means[1])
        return 0.5 * (own + own.T), inner

    def _points(self, rows: Array) -> Array:
        """Return rows with all nodes in the columns of the subset, (n · K, columns)."""
        X = np.repeat(rows, len(self), axis=0)
        X[:, list(self.columns)] = np.tile(self.nodes, (len(rows), 1))
        return X


def whole_form(one: Array, two: Array, values: Callable[[Array], Array], q: int) -> Array:
    """Return V as a quadratic form, (q, q): E[uuᵀ] − E[u]E[u]ᵀ over two sets of rows."""
    shift, means, square = values(one[:64]).mean(axis=0), [], np.zeros((q, q))
    for rows in (one, two):
        total = np.zeros(q)
        for some in blocks(len(rows), 32.0 * q):
            # V does not change with the shift, and keeps its digits where means are large.
            F = values(rows[some]) - shift
            total += F.sum(axis=0) / len(rows)
            square += product(F.T, F) / (2 * len(rows))
        means.append(total)
    product_of_means = np.outer(*means)
    return square - 0.5 * (product_of_means + product_of_means.T)


def rule(distribution: Distribution, order: int) -> tuple[Array, Array] | None:
    """Return nodes (K, width) and weights of a rule of some order; None where there is none."""
    if not isinstance(distribution, Empirical):
        return distribution.nodes(order)
    values, weights = distribution.values, distribution.weights
    if len(values) <= 2 * order:
        return values, weights
    if distribution.width > 1:
        return None
    nodes, weights = discrete_gauss(values[:, 0], weights, order)
    return nodes[:, None], weights
