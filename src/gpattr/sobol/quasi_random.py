"""Variances of conditional expectations by quasi-random integration, for any posterior.

With f = m + Σⱼ ξⱼgⱼ + r (`DrawnFunctions`) each V_S is a quadratic form in (1, ξ), whose matrix is
one integral over the inputs (`Slice`), plus the share of r (`Plan.traces`). The integrals are
averages over the rows of independently scrambled Sobol' sequences, and the scatter between these is
the error. Draws of ξ give draws of V_S; of r only the expectation is added, and so the spread is
too small by the share of r, at most `drawn_functions.LEFT` unless that takes too many functions.

A `Slice` is a rule over the features of a subset, at every row of the others. With nodes t_k and
weights w_k for x_S, rows x_−S, and the centred values ũ_k = u(t_k, x_−S) − Σₗ wₗ u(tₗ, x_−S), for
any function u

    V_S      = Σ_k w_k (E ũ_k)²
    V − V_−S = E Σ_k w_k ũ_k²

The expectations are over as many dimensions as there are other features. Squares of expectations
are products of two independent averages, which have no bias. Both are exactly zero where u does not
depend on x_S. As quadratic forms they apply to several functions together.

The pick-freeze design (`ExchangePlan`) has rows that share the features of a subset and no others.
Rows a and b are independent; AB = (b_S, a_−S) and BA = (a_S, b_−S) exchange the features of S. For
any function u

    V_S      = ½ E[(u(b) − u(BA)) (u(AB) − u(a))]
    V − V_−S = ¼ E[(u(a) − u(AB))² + (u(b) − u(BA))²],     V = ½ E[(u(a) − u(b))²]

Only covariances between the points of one row are needed for a random function. Both differences
vanish where u does not depend on x_S.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from gpattr._core.array import EPS, Array, product
from gpattr._core.memory import blocks, check_memory
from gpattr.posteriors import Posterior
from gpattr.sobol.drawn_functions import CANDIDATES, DrawnFunctions
from gpattr.sobol.indices import Effects, scatter
from gpattr.sobol.inputs import Distribution, Empirical, Inputs, sobol_points
from gpattr.sobol.terms import discrete_gauss

REPLICATES, FEWEST_REPLICATES = 8, 2  # of a model alone, and of a model with little weight
# Entries of covariance matrices that are evaluated, for the mean and for all functions: seconds.
# The mean of a mixture has as many matrices as models, of which few rows would be left.
MEAN_WORK, WORK, MIXTURE_WORK = 2e8, 1.5e8, 8e8
FEWEST, MOST = 8, 1024  # rows of each half of a replicate, which slices go through
LEFT_POINTS = 2048  # points of a replicate at which the covariance of r is evaluated
ORDERS = {
    1: (14, 2.0),
    2: (7, 0.5),
}  # nodes of a dimension in the first rule, and how many more
SCATTERED = 128  # quasi-random nodes where a product of rules would have too many
LARGEST = 256  # nodes of a product of rules
Subset = tuple[int, ...]


def quasi_random_effects(
    posterior: Posterior,
    inputs: Inputs,
    subsets: tuple[Subset, ...],
    n_draws: int,
    generator: np.random.Generator,
    share: float = 1.0,
) -> Effects:
    """Return V_S for subsets S of the players, with a numerical error that is estimated.

    ``share`` is the part of the work for one model of a mixture: its weight. A model with little
    weight has few replicates, whose scatter tells its error only together with other models'
    (`pooled_scatter`).
    """
    plan = ExchangePlan.of(subsets, inputs.n_players)
    functions = DrawnFunctions.of(posterior, inputs.points(CANDIDATES, generator))
    alone, q = mean_function(posterior, inputs.n_columns), len(functions)
    check_memory("subsets: the quadratic forms", (len(subsets), q, q), "ask for fewer pairs")
    forms = np.zeros((len(subsets), q, q))
    replicates = max(FEWEST_REPLICATES, round(share * REPLICATES))
    plug_in, expected = np.empty((2, replicates, len(subsets)))
    points = 0
    for replicate in range(replicates):
        slices = [Slice.of(inputs, own, replicate, generator) for own in plan.evaluated]
        own, _ = integrated(plan, slices, inputs, functions, share * WORK, generator)
        # Most of V_S comes from the mean, which is quicker to evaluate: it gets more rows.
        mean, count = integrated(plan, slices, inputs, alone, share * MEAN_WORK, generator)
        own[:, 0, 0] = mean[:, 0, 0]
        plug_in[replicate] = mean[:, 0, 0]
        expected[replicate] = np.einsum("kii->k", own)
        expected[replicate] += rest(plan, inputs, functions, generator, share)
        forms += own / replicates
        points += count
    centre = expected.mean(axis=0)
    weights = np.column_stack([np.ones(n_draws), generator.standard_normal((n_draws, q - 1))])
    draws = quadratic(weights, forms)
    rounding = rounding_of(posterior, inputs, float(centre.max()), generator)
    return Effects(
        subsets,
        plug_in.mean(axis=0),
        centre,
        # The forms have the expectation of what is drawn; the remainder is r's.
        draws + (centre - np.einsum("kii->k", forms)),
        np.maximum(scatter(plug_in), scatter(expected)) + rounding,
        f"quasi-random integration ({points:,} points)",
        expected,
        plug_in,
    )


def plug_in_effects(
    posterior: Posterior,
    inputs: Inputs,
    subsets: tuple[Subset, ...],
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Return V_S of the posterior mean function alone, and its error, (k,) each."""
    plan = ExchangePlan.of(subsets, inputs.n_players)
    mean, found = mean_function(posterior, inputs.n_columns), np.empty((REPLICATES, len(subsets)))
    for replicate in range(REPLICATES):
        slices = [Slice.of(inputs, own, replicate, generator) for own in plan.evaluated]
        forms, _ = integrated(plan, slices, inputs, mean, MIXTURE_WORK, generator)
        found[replicate] = forms[:, 0, 0]
    return found.mean(axis=0), scatter(found)


def integrated(
    plan: ExchangePlan,
    slices: list[Slice],
    inputs: Inputs,
    functions: DrawnFunctions,
    work: float,
    generator: np.random.Generator,
) -> tuple[Array, int]:
    """Return the quadratic forms of V_S, (k, q, q), and how many points they took."""
    q, nodes, most = len(functions), sum(map(len, slices)), max(map(len, slices), default=32)
    affordable = work / REPLICATES / (2 * functions.cost * (nodes + most))
    n = 2 ** int(np.log2(min(max(affordable, FEWEST), MOST)))
    one, two = inputs.points(n, generator), inputs.points(n, generator)
    found = [part.forms(one, two, functions, q) for part in slices]
    many = n * 2 ** int(np.log2(most))
    pair = inputs.points(many, generator), inputs.points(many, generator)
    whole = whole_form(*pair, functions, q)
    forms = plan.read(whole, [part for part, _ in found], [end for _, end in found])
    return forms, 2 * n * nodes + 2 * many


def rest(
    plan: ExchangePlan,
    inputs: Inputs,
    functions: DrawnFunctions,
    generator: np.random.Generator,
    share: float = 1.0,
) -> Array:
    """Return the share of r in the expectation of V_S, (k,)."""
    n = 2 ** int(np.log2(max(share * LEFT_POINTS // (2 + 2 * len(plan.evaluated)), 8)))
    return plan.traces(functions.left(plan.points(inputs, n, generator)))


def mean_function(posterior: Posterior, d: int) -> DrawnFunctions:
    """Return the posterior mean as the only function."""
    return DrawnFunctions(posterior, np.empty((0, d)), np.empty((0, 0)))


def quadratic(weights: Array, forms: Array) -> Array:
    """Return wᵀHw for each row w of weights (R, q) and each form H (k, q, q), (R, k)."""
    return np.stack([(product(weights, H) * weights).sum(axis=1) for H in forms], axis=1)


def rounding_of(
    posterior: Posterior, inputs: Inputs, V: float, generator: np.random.Generator
) -> float:
    """Return the rounding of V, the variance of a function that may be far from zero."""
    mean = mean_function(posterior, inputs.n_columns)(inputs.points(256, generator))
    return 64 * EPS * float((mean**2).mean() * max(V, 0.0)) ** 0.5


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
            slice_rule(inputs.distributions[i], int(order + more * replicate)) if order else None
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


def slice_rule(distribution: Distribution, order: int) -> tuple[Array, Array] | None:
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


@dataclass(frozen=True)
class ExchangePlan:
    """The subsets to evaluate: each of ``evaluated`` serves itself and its complement.

    ``readings`` are (place among ``evaluated``, whether it is the complement) for each of
    ``subsets``; a place of −1 is the set of all players.
    """

    subsets: tuple[Subset, ...]
    evaluated: tuple[Subset, ...]
    readings: tuple[tuple[int, bool], ...]

    @classmethod
    def of(cls, subsets: Iterable[Subset], P: int) -> ExchangePlan:
        """Return the plan for subsets of P players; the smaller of a subset and the rest counts."""
        found, evaluated, readings = tuple(subsets), dict[Subset, int](), []
        for subset in found:
            rest = tuple(i for i in range(P) if i not in subset)
            if not rest:
                readings.append((-1, False))
                continue
            own = subset if len(subset) <= len(rest) else rest
            readings.append((evaluated.setdefault(own, len(evaluated)), own != subset))
        return cls(found, tuple(evaluated), tuple(readings))

    def read(self, whole: Array, parts: list[Array], ends: list[Array]) -> Array:
        """Return V_S of all subsets from V, and V_S and V − V_−S of the evaluated ones."""
        found = [
            whole if place < 0 else whole - ends[place] if complement else parts[place]
            for place, complement in self.readings
        ]
        return np.stack(found)

    def traces(self, C: Array) -> Array:
        """Return E V_S, (k,), of a random function with mean zero.

        C (n, 2 + 2s, 2 + 2s) is its covariance between the points of each row of `points`.
        """
        C = C.mean(axis=0)

        def form(one: tuple[int, int], two: tuple[int, int], scale: float) -> Array:
            """Return scale · E[(u(one₀) − u(one₁)) (u(two₀) − u(two₁))]."""
            (i, j), (k, m) = one, two
            return scale * (C[i, k] - C[i, m] - C[j, k] + C[j, m])

        wholes, parts, ends = [form((0, 1), (0, 1), 0.5)], [], []
        for place in range(len(self.evaluated)):
            AB, BA = 2 + 2 * place, 3 + 2 * place
            wholes.append(form((AB, BA), (AB, BA), 0.5))
            parts.append(form((1, BA), (AB, 0), 0.5))
            ends.append(form((0, AB), (0, AB), 0.25) + form((1, BA), (1, BA), 0.25))
        return self.read(np.mean(wholes, axis=0), parts, ends)

    def points(self, inputs: Inputs, n: int, generator: np.random.Generator) -> Array:
        """Return a, b and all pairs AB, BA beside each other, (n, 2 + 2s, columns).

        a and b are halves of one sequence: rows of two sequences would go together.
        """
        D = len(inputs.distributions)
        levels = sobol_points(n, 2 * D, generator)
        a, b = inputs.rows(levels[:, :D]), inputs.rows(levels[:, D:])
        found = [a, b]
        for subset in self.evaluated:
            places = [column for player in subset for column in inputs.columns_of(player)]
            AB, BA = a.copy(), b.copy()
            AB[:, places], BA[:, places] = b[:, places], a[:, places]
            found += [AB, BA]
        return np.stack(found, axis=1)
