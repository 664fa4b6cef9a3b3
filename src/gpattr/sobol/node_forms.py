"""Variances of conditional expectations from values at nodes: linear functionals first.

Closed forms square coefficients that are large where data have little noise, and their rounding.
Here E[f | x_S], averaged over the other features in closed form, is computed at the nodes of a rule
for x_S, as accurately as predictions are, and squared after that. Rules are products of Gauss rules
where these have few nodes, quasi-random points elsewhere, whose error is that between scrambles.

Variances of the posterior mean, αᵀQ_Sα, also come in twice the digits of float64 (`mean_squares`).
The coefficients α are squared, and with them the rounding of Q_S: with little noise α is large, and
nothing is left. But Q_S is the product over features of VⱼᵀVⱼ, with the sections Vⱼ at the nodes of
a rule. Computed without rounding from these, αᵀQ_Sα is the integral of the square of a function
whose values are rounded, Σ αᵢ∏V: its error is the predictions' error, 2ε‖Σ|α|k‖‖μ_S‖.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from itertools import product as tuples
from operator import mul

import numpy as np

from gpattr._core.array import EPS, Array, product
from gpattr._core.memory import blocks
from gpattr.sobol.inputs import Empirical, Normal, Uniform
from gpattr.sobol.quadratic_forms import Form, Subset, Tables, products_of
from gpattr.sobol.sections import Conditioning, Sections
from gpattr.sobol.terms import discrete_gauss, nodes_needed
from gpattr.special.double_double import DoubleDouble, Slices

MOST_ROWS = 2**14
LONGEST = 256  # nodes of a feature
ROUGH = 90  # nodes of a feature that show what functions lack in smoothness
SCRAMBLES = 8
FEWEST_POINTS, MOST_POINTS = 2**6, 2**11  # of a scramble
WORK = 1.5e10  # multiplications in all
FINE, COARSE = 34.0, 26.0  # rules are exact to exp(−this): the second shows the error of the first
ROUNDING = 4 * EPS  # of the values of a section
DIGITS_WORK = 4e8  # products with twice the digits that take seconds


def node_forms(
    state: Conditioning,
    subsets: Sequence[Subset],
    generator: np.random.Generator,
    share: float = 1.0,
) -> list[Form]:
    """Return V_S for subsets of players by values at nodes, with a ``share`` of the work."""
    m, inputs, T = len(state.data), state.sections.inputs, len(state.sections.terms.terms)
    sites, k = m + sum(map(len, state.groups)), max(len(subsets), 1)
    count = _count(k * (m * m + 20.0 * T * sites), share)
    points = [inputs.points(count, generator) for _ in range(SCRAMBLES)]
    centre = state.columns(state.sections.sites(np.zeros((1, inputs.n_columns)), frozenset()))
    return [_form(state, subset, points, centre) for subset in subsets]


def _count(work: float, share: float = 1.0) -> int:
    """Return how many points of a scramble fit a share of the budget if each takes this work."""
    affordable = min(WORK / work / SCRAMBLES, MOST_POINTS)
    return int(2 ** max(np.floor(np.log2(share * affordable)), np.log2(FEWEST_POINTS)))


def _form(
    state: Conditioning,
    subset: Subset,
    points: list[Array],
    centre: tuple[Array, Array, Array],
) -> Form:
    sections = state.sections
    free = frozenset(j for player in subset for j in sections.inputs.members[player])
    fine = tensor_rule(sections, free, FINE)
    error = scatter = 0.0
    if fine is not None:
        H, explained, rounding = _sums(state, *fine, free, centre)
        coarse = tensor_rule(sections, free, COARSE)
        if coarse is not None and free:  # a coarser rule changes more than the error
            error = abs(_square(state, *coarse, free, centre) - float(H[0, 0]))
    else:
        parts = [_sums(state, rows, _equal(len(rows)), free, centre) for rows in points]
        H = np.mean([part[0] for part in parts], axis=0)
        explained, rounding = (float(np.mean([part[i] for part in parts])) for i in (1, 2))
        error = _deviation([float(part[0][0, 0]) for part in parts])
        scatter = _deviation([part[1] for part in parts])
    prior = sections.variance(free) - sections.variance(frozenset())
    variance = state.posterior.condition_number**0.5 * EPS * sections.variance(free)
    error += 2.0 * EPS * rounding * H[0, 0] ** 0.5
    # Draws are of functions about the mean: their forms err as it does, and their trace too.
    return Form(H, max(prior - explained, 0.0), float(error), scatter + variance, float(error))


def _equal(count: int) -> Array:
    return np.full(count, 1.0 / count)


def _deviation(values: list[float]) -> float:
    """Return twice the standard error of a mean over scrambles."""
    return 2.0 * float(np.std(values, ddof=1)) / len(values) ** 0.5


def _sums(
    state: Conditioning,
    rows: Array,
    weights: Array,
    free: frozenset[int],
    centre: tuple[Array, Array, Array],
) -> tuple[Array, float, float]:
    """Return Σ weight × (columns − their means) squared, explained variance and size of sums."""
    H, explained, size = 0.0, -float(centre[1][0]), 0.0
    for part in blocks(len(rows), 8.0 * (4 * len(state.data) + 4 * centre[0].shape[1])):
        sites = state.sections.sites(rows[part], free, exact=False)
        columns, variance, sizes = state.columns(sites)
        columns -= centre[0]
        weighted = columns * weights[part][:, None]
        H = H + product(np.ascontiguousarray(weighted.T), columns)
        explained += float(weights[part] @ variance)
        size = max(size, float(sizes.max()))
    return np.asarray(H), explained, size


def _square(
    state: Conditioning,
    rows: Array,
    weights: Array,
    free: frozenset[int],
    centre: tuple[Array, Array, Array],
) -> float:
    """Return V_S of the posterior mean by a rule."""
    total = 0.0
    for part in blocks(len(rows), 32.0 * len(state.data)):
        sites = state.sections.sites(rows[part], free, exact=False)
        means = state.means(sites) - centre[0][0, 0]
        total += float(weights[part] @ (means * means))
    return total


def mixture_squares(
    states: Sequence[Conditioning],
    weights: Array,
    subsets: Sequence[Subset],
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Return V_S of Σ weight × mean of several posteriors of the same inputs, and its error."""
    seed = int(generator.integers(2**63))  # the same points, in the units of each
    m = sum(len(state.data) * len(state.sections.terms.terms) for state in states)
    count = _count(len(subsets) * 20.0 * m)
    found = np.empty((SCRAMBLES, len(subsets)))
    for s in range(SCRAMBLES):
        total = [0.0] * len(subsets)
        for weight, state in zip(weights.tolist(), states, strict=True):
            sections = state.sections
            rows = sections.inputs.points(count, np.random.default_rng([seed, s]))
            none = state.means(sections.sites(rows[:1], frozenset()))
            for i, subset in enumerate(subsets):
                free = frozenset(j for p in subset for j in sections.inputs.members[p])
                means = state.means(sections.sites(rows, free, exact=False)) - none
                total[i] = total[i] + weight * means
        found[s] = [float(np.mean(np.square(values))) for values in total]
    return found.mean(axis=0), np.array([_deviation(column.tolist()) for column in found.T])


def tensor_rule(
    sections: Sections, free: frozenset[int], digits: float
) -> tuple[Array, Array] | None:
    """Return rows and weights of a product of rules, exact to exp(−digits); None if too large."""
    features = sorted(free)
    most = int(min(MOST_ROWS ** (1.0 / max(len(features), 1)), LONGEST)) if features else 1
    rules = [_feature_rule(sections, j, most, digits) for j in features]
    size = float(np.prod([float(len(rule[1])) for rule in rules if rule is not None]))
    if None in rules or size > MOST_ROWS:
        return None
    known = [rule for rule in rules if rule is not None]
    places = np.array(list(tuples(*(range(len(weights)) for _, weights in known))), dtype=int)
    rows, weights = np.zeros((len(places), sections.inputs.n_columns)), np.ones(len(places))
    for i, j in enumerate(features):
        rows[:, list(sections.inputs.columns[j])] = known[i][0][places[:, i]]
        weights *= known[i][1][places[:, i]]
    return rows, weights


def _feature_rule(
    sections: Sections, j: int, most: int, digits: float
) -> tuple[Array, Array] | None:
    """Return a rule of one feature, exact to exp(−digits) for squared exponentials.

    Functions that are not smooth take as many nodes as there may be, if these are enough to see
    what they lack; None stands for quasi-random points.
    """
    terms, distribution = sections.terms, sections.inputs.distributions[j]
    widths = [terms.gaussian(int(t), j) for t in np.flatnonzero(terms.seen[:, j])]
    if isinstance(distribution, Empirical):
        values, weights = distribution.values, distribution.weights
        if len(values) <= most or distribution.width > 1:
            return values, weights
        low, high = float(values.min()), float(values.max())
        points = values
    elif isinstance(distribution, Uniform):
        low, high = float(distribution.low), float(distribution.high)
        points = np.array([low, high])
    elif isinstance(distribution, Normal):
        return _normal_rule(distribution, widths, most, digits)
    else:
        return distribution.nodes(min(most, 128 if digits == FINE else 96))
    count = 10**6
    if None not in widths:
        narrow = min((width for width in widths if width is not None), default=np.inf)
        count = nodes_needed(low, high, narrow, points, digits)
    if count > most:
        if most < ROUGH:
            return None
        count = most if digits == FINE else int(0.7 * most)
    if isinstance(distribution, Uniform):
        return distribution.nodes(count)
    nodes, weights = discrete_gauss(distribution.values[:, 0], distribution.weights, count)
    return nodes[:, None], weights


def _normal_rule(
    distribution: Normal, widths: list[float | None], most: int, digits: float
) -> tuple[Array, Array] | None:
    """Return a trapezoidal rule, whose error is exp(−digits) for products with Gaussians."""
    mean, std = float(distribution.mean), float(distribution.std)
    # Polynomials grow: they need some more of the tails than constants.
    reach = (2.0 * digits) ** 0.5 + 1.0
    count = most + 1
    if None not in widths:
        narrow = min((width for width in widths if width is not None), default=np.inf)
        step = (2.0 * np.pi**2 / digits) ** 0.5 / float(np.hypot(1.0, 2.0**0.5 * std / narrow))
        count = int(2.0 * reach / step) + 2
    if count > most:
        if most < ROUGH:
            return None
        count = most if digits == FINE else int(0.7 * most)
    t = np.linspace(-reach, reach, count)
    weights = np.exp(-0.5 * t * t)
    return (mean + std * t)[:, None], weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Squares:
    """V_S of the posterior mean for subsets, (k,), and its error, (k,)."""

    values: Array
    error: Array


def mean_squares(state: Conditioning, subsets: Sequence[Subset]) -> Squares | None:
    """Return V_S of the posterior mean for subsets of players; None where it takes too long."""
    T, P = len(state.sections.terms.terms), state.sections.inputs.n_players
    if T * (T + 1) / 2 * len(state.data) ** 2 * (3 * P + 2 * len(subsets)) > DIGITS_WORK:
        return None
    return _Sums(state, subsets).found()


class _Sums:
    """Sums over pairs of terms and tiles of Q_S."""

    def __init__(self, state: Conditioning, subsets: Sequence[Subset]) -> None:
        self.sections, self.alpha, self.subsets = state.sections, state.posterior.alpha, subsets
        tables, (T, D) = Tables(state, data_only=True), self.sections.shape
        self.averaged = tables.averaged
        self.slices = [[Slices(tables.values(t, j)) for j in range(D)] for t in range(T)]
        self.squares = [DoubleDouble.of(np.zeros(()))] * len(subsets)
        self.sizes = np.zeros((2, len(subsets)))

    def found(self) -> Squares:
        """Return ∫μ_S² − (∫μ)² and its error."""
        m, sections, scales = len(self.alpha), self.sections, self.sections.terms.scales
        for s, t in combinations_with_replacement(range(len(scales)), 2):
            scale = scales[s] * scales[t] * (1.0 if s == t else 2.0)
            for rows in blocks(m, 16.0 * (2 * self.averaged.shape[1] + 16) * m):
                self._add(s, t, scale * self.alpha[rows], rows)
        mean = DoubleDouble.of(self.alpha).times(scales @ self.averaged.prod(axis=1)).sum()
        V = np.array([max(float((square - mean * mean).hi), 0.0) for square in self.squares])
        relative = ROUNDING + sum(rule.error for rule in sections.rules)
        size, rounded = np.sqrt(self.sizes)
        error = 2.0 * relative * size * (np.sqrt(V) + abs(float(mean.hi)))
        # What is rounded in spite of all is independent from entry to entry.
        left = sum(max(part.rounding for part in own) for own in zip(*self.slices, strict=True))
        return Squares(V, error + left * rounded)

    def _add(self, s: int, t: int, alpha: Array, rows: slice) -> None:
        """Add the contribution of rows of the tables of two terms."""
        members = self.sections.inputs.members
        left, right = self.slices[s], self.slices[t]
        ones = DoubleDouble.of(np.ones((len(alpha), len(self.alpha))))
        parts = [
            reduce(mul, [left[j].gram(right[j], rows) for j in some], ones) for some in members
        ]
        for i, table in products_of(parts, self.subsets):
            rest = [p for p in range(len(members)) if p not in self.subsets[i]]
            u = alpha * self.averaged[s, rest][:, rows].prod(axis=0)
            v = self.alpha * self.averaged[t, rest].prod(axis=0)
            self.squares[i] = self.squares[i] + table.times(v).sum().times(u).sum()
            self.sizes[0, i] += float(np.abs(u) @ product(np.abs(table.hi), np.abs(v)))
            self.sizes[1, i] += float(u**2 @ product(table.hi**2, v**2))
