"""Interactions of pairs of players, for products of positive factors.

Each output is an integral of derivatives of the multilinear extension along its diagonal,

    Φ_A = ∫ ∂_A f^M(t, …, t) dν_{|A|}(t),   A = {i, j}, or {i} on the diagonal of the matrix,

because Σⱼ ∂ᵢ∂ⱼf^M = d/dt ∂ᵢf^M and so Φᵢᵢ = φᵢ − ½(∂ᵢf^M(1) − ∂ᵢf^M(0)) for the Shapley index.

Prior covariances: with the factors B(s, t) of the covariance of the two multilinear extensions, s
for the first and t for the second, their derivatives D = ∂B/∂s, D' = ∂B/∂t and E = ∂²B/∂s∂t,

    Cov[Φ_A, Φ_C] = σ² ∬ ∏_{A∩C} E ∏_{A∖C} D ∏_{C∖A} D' ∏_{rest} B dν_{|A|}(s) dν_{|C|}(t).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from gpattr._core.array import EPS, Array, chunk_rows, is_tensor, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.integrals import nodes_between, shared
from gpattr.closed_forms.shapley.product import Contrast, Corners, PositiveProduct
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.operators import Coalitions, ShapleyInteractions
from gpattr.special.diagonal import nodes_needed, product_rule
from gpattr.special.quadrature import gauss_legendre

# Factors at the ends of the diagonal may vanish. They are divided by, where products without one
# factor are needed; so small a number changes no digit of what is left.
SMALLEST = 1e-30
TILE = 2**17  # values of outputs, or of factors at nodes, that stay in the cache
LARGE = 2**16  # multiplications of a product of matrices that has a call of its own
NODES = 10  # of a rule, for that count
Sets = list[tuple[int, ...]]  # sets of one or of two players


@lru_cache(maxsize=256)
def diagonal_rule(index: str, size: int, q: int) -> tuple[Array, Array]:
    """Return nodes t and weights of ν for sets of ``size`` players, with q nodes inside [0, 1]."""
    t, w = gauss_legendre(q)
    if size == 2:
        return t, 0.5 * w if index == "shapley" else (1.0 - t) * w
    if index == "taylor":
        return np.zeros(1), np.ones(1)
    return np.concatenate([t, [0.0, 1.0]]), np.concatenate([w, [0.5, -0.5]])


@dataclass(frozen=True)
class Outputs:
    """Pairs of positions among a kernel's players, and where they stand among all outputs.

    Outputs with a player that the kernel does not depend on are zero, and are left out.
    """

    pairs: tuple[tuple[int, int], ...]
    places: tuple[int, ...]
    count: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]], players: Sequence[int]) -> Outputs:
        """Return the outputs of these pairs of players, for a kernel of some ``players``."""
        at = {player: position for position, player in enumerate(players)}
        places = tuple(k for k, (i, j) in enumerate(pairs) if i in at and j in at)
        return cls(tuple((at[pairs[k][0]], at[pairs[k][1]]) for k in places), places, len(pairs))

    @cached_property
    def single(self) -> list[int]:
        """Positions of the pairs on the diagonal."""
        return [k for k, (i, j) in enumerate(self.pairs) if i == j]

    @cached_property
    def double(self) -> list[int]:
        """Positions of the pairs off the diagonal."""
        return [k for k, (i, j) in enumerate(self.pairs) if i != j]

    @cached_property
    def by_first(self) -> list[tuple[int, list[int] | slice, list[int] | slice]]:
        """Pairs off the diagonal with the same first player: it, second players and positions."""
        groups: dict[int, list[int]] = {}
        for k in self.double:
            groups.setdefault(self.pairs[k][0], []).append(k)
        return [
            (first, _compact([self.pairs[k][1] for k in some]), _compact(some))
            for first, some in groups.items()
        ]


def _compact(places: list[int]) -> list[int] | slice:
    """Return consecutive positions as a slice, which takes no copy."""
    consecutive = places == list(range(places[0], places[0] + len(places)))
    return slice(places[0], places[0] + len(places)) if consecutive else places


class _Extension:
    """The factors h = level + s·slope of multilinear extensions, (p, r, k), for s = 2t − 1."""

    def __init__(self, c: Array, top: Array, index: str) -> None:
        self.level = 1.0 / (1.0 + abs(c))
        self.slope = c * self.level
        self.top, self.index = top, index
        spread = float(abs(self.slope).sum(axis=0).max())
        most = max(1, (len(c) + 1) // 2)
        # One more than for a Shapley value, for the factor 1 − t.
        self.nodes = min(most, nodes_needed(spread, len(c)) + 1)

    def at(self, size: int) -> tuple[Array, Array]:
        """Return R = 2 slope/h (Q, p, r, k) and F = weight · top · ∏h (Q, r, k) at nodes of ν."""
        xp = namespace(self.slope)
        t, weights = map(xp.asarray, diagonal_rule(self.index, size, self.nodes))
        h = (2.0 * t - 1.0)[:, None, None, None] * self.slope
        h += self.level
        h = xp.maximum(h, SMALLEST)
        return 2.0 * self.slope / h, weights[:, None, None] * self.top * xp.prod(h, 1)


def interactions(c: Array, top: Array, outputs: Outputs, index: str) -> Array:
    """Return Φ of all outputs times ``top`` (r, k), (q, r, k), for contrasts c (p, r, k)."""
    xp, extension = namespace(c), _Extension(c, top, index)
    total = xp.empty((len(outputs.pairs), *top.shape))
    if outputs.double:
        R, F = extension.at(2)
        weighted = R * F[:, None]
        for first, second, places in outputs.by_first:
            total[places] = xp.einsum("ark,ajrk->jrk", weighted[:, first], R[:, second])
    if outputs.single:
        R, F = extension.at(1)
        own = _compact([outputs.pairs[k][0] for k in outputs.single])
        total[outputs.single] = xp.einsum("ark,ajrk->jrk", F, R[:, own])
    return total


def interaction_sums(c: Array, top: Array, w: Array, outputs: Outputs, index: str) -> Array:
    """Return Σₖ wₖ Φ, (r, q, l), for contrasts c (p, r, k), ``top`` (r, k) and weights w (k, l).

    For pairs it is a product of matrices for each node and each of the l.
    """
    xp, extension = namespace(c), _Extension(c, top, index)
    total = xp.empty((c.shape[1], len(outputs.pairs), w.shape[1]))
    if outputs.double:
        left, right = (sorted({outputs.pairs[k][side] for k in outputs.double}) for side in (0, 1))
        i = [left.index(outputs.pairs[k][0]) for k in outputs.double]
        j = [right.index(outputs.pairs[k][1]) for k in outputs.double]
        matrix = xp.zeros((c.shape[1], len(left), len(right), w.shape[1]))
        for R, F in zip(*extension.at(2), strict=True):
            columns = xp.swapaxes(R[_compact(right)], 0, 1)
            for k in range(w.shape[1]):
                rows = xp.swapaxes(R[_compact(left)] * (F * w[:, k]), 0, 1)
                matrix[..., k] += row_products(rows, columns)
        total[:, outputs.double] = matrix[:, i, j]
    if outputs.single:
        R, F = extension.at(1)
        own = _compact([outputs.pairs[k][0] for k in outputs.single])
        values = product(xp.einsum("ark,ajrk->jrk", F, R[:, own]), w)
        total[:, outputs.single] = xp.swapaxes(values, 0, 1)
    return total


def row_products(left: Array, right: Array) -> Array:
    """Return the products of matrices left (r, a, k) and right (r, c, k), (r, a, c).

    Large ones are formed one by one: NumPy would start threads that spin for each of them.
    """
    xp = namespace(left)
    if is_tensor(left) or left.shape[1] * right.shape[1] * left.shape[2] < LARGE:
        return left @ xp.swapaxes(right, 1, 2)
    return xp.stack([product(one, two.T) for one, two in zip(left, right, strict=True)])


@dataclass(frozen=True, eq=False)
class InteractionCross:
    """Covariances of interactions with the function, for one product and some outputs."""

    kernel: PositiveProduct
    outputs: Outputs
    index: str

    def cross(self, sites: Coalitions, Z: Array) -> Bounded:
        """Return the covariances with f at Z, (n, q, m)."""
        n, m, outputs, xp = len(sites.stop), len(Z), self.outputs, namespace(Z)
        result = xp.zeros((n, outputs.count, m))
        places = _compact(list(outputs.places))

        def fill(rows: slice) -> None:
            for part in self._tiles(sites, Z, rows):
                values = interactions(part.c, part.top, outputs, self.index)
                result[part.rows, places, part.points] = xp.swapaxes(values, 0, 1)

        shared(fill, n, m, Z, max(1, len(outputs.pairs) // max(1, len(self.kernel.players))))
        unit = xp.zeros((1, 1)) + 1.0
        return Bounded(result, self.bound(sites, Z[:1], unit) * m**0.5)

    def contract(self, sites: Coalitions, Z: Array, w: Array) -> Bounded:
        """Return the covariances with f at Z, times w (m, l) and added up, (n, q, l)."""
        outputs = self.outputs
        result = namespace(Z).zeros((len(sites.stop), outputs.count, w.shape[1]))
        places = _compact(list(outputs.places))

        def add(rows: slice) -> None:
            for part in self.kernel.contrasts(sites, Z, rows) if outputs.pairs else ():
                weights = w[part.points]
                result[part.rows, places] += interaction_sums(
                    part.c, part.top, weights, outputs, self.index
                )

        shared(add, len(sites.stop), len(Z), Z)
        return Bounded(result, self.bound(sites, Z, w))

    def _tiles(self, sites: Coalitions, Z: Array, rows: slice) -> Iterator[Contrast]:
        """Yield the pairs of some rows with all points, so few that all outputs fit the cache."""
        if not self.outputs.pairs:
            return
        most = max(len(self.outputs.pairs), NODES * len(self.kernel.players))
        step = max(1, TILE * chunk_rows(Z, 2**15) // most)
        for part in self.kernel.contrasts(sites, Z, rows):
            r, k = part.top.shape
            wide = min(k, step)
            high = max(1, step // wide)
            for low, left in itertools.product(range(0, r, high), range(0, k, wide)):
                here, some = slice(low, min(low + high, r)), slice(left, min(left + wide, k))
                yield Contrast(
                    slice(part.rows.start + here.start, part.rows.start + here.stop),
                    slice(part.points.start + some.start, part.points.start + some.stop),
                    part.c[:, here, some],
                    part.top[here, some],
                )

    def bound(self, sites: Coalitions, Z: Array, w: Array) -> Array:
        """Return a bound on rounding: |Φk(·, z)| ≤ σ √Var Φf ≤ σ² √3ωᵢ, a sum over m points."""
        xp, players = namespace(sites.stop), len(self.kernel.players)
        largest = xp.zeros(len(sites.stop)) + 2.0
        if sites.weights is None:
            largest = xp.minimum(xp.sqrt(3.0 * xp.max(self.kernel.falls(sites), axis=1)), 2.0)
        size = self.kernel.variance * abs(w).sum(axis=0).max() * largest
        steps = 32.0 + len(Z) ** 0.5 + 2.0 * players + self.kernel.phases(sites, Z)
        return EPS * steps * size


class Factors(NamedTuple):
    """D/B, D'/B and E/B of every player, (r, p, Q), and F = σ² weight ∏B, (r, Q), at Q nodes."""

    D: Array
    other: Array
    E: Array
    F: Array


def interaction_formulas(operator: ShapleyInteractions, kernel: PositiveProduct) -> Formulas:
    """Return the formulas of interactions for a product of positive factors."""
    index = operator.index
    outputs = Outputs.of(operator.pairs_for(len(operator.players.owner)), kernel.players)
    data = InteractionCross(kernel, outputs, index)

    def prior_cov(sites: Coalitions) -> Bounded:
        if sites.weights is not None or not kernel.stationary:
            return between(sites, sites)
        value = _along_one_row(kernel, sites, outputs, index)
        xp = namespace(value)
        variances = xp.diagonal(value, axis1=1, axis2=2)
        phases = kernel.phases(sites, sites.stop)
        return Bounded(value, EPS * (64.0 + 4.0 * phases) * xp.max(variances, axis=1))

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        n, q, p = len(sites.stop), outputs.count, len(kernel.players)
        xp = namespace(sites.stop)
        result = xp.zeros((n, q, q))
        nodes = min(484, ((p + 1) // 2 + 2) ** 2)
        width = 8.0 * ((3 * q + 6 * p) * nodes + 3 * q * q)
        for rows in blocks(n if outputs.pairs else 0, width, sites.stop):
            corners = kernel.corners(sites[rows], other[rows])
            result[rows] = _between_rows(corners, outputs, index)
        size = 4.0 * xp.max(abs(result), axis=(1, 2)) + kernel.variance
        return Bounded(result, EPS * (32.0 + 4.0 * kernel.phases(sites, other.stop)) * size)

    methods = frozenset({"closed form"})
    return Formulas(data.cross, data.contract, prior_cov, between, methods, data.bound)


def _along_one_row(
    kernel: PositiveProduct, sites: Coalitions, outputs: Outputs, index: str
) -> Array:
    """Return the prior covariance of the interactions of each row, (n, q, q).

    With ω = 1 − k(x, b) and u, v = 2s − 1, 2t − 1 the factors are B = 1 − ½ω(1 − uv), D = ωv,
    D' = ωu and E = 2ω. Turning u and v round together leaves B as it is, so that only w = uv enters
    where A and C are of one size, and one of u and v where they are not.
    """
    xp, omega = namespace(sites.stop), kernel.falls(sites)
    n, p = omega.shape
    q = nodes_needed(float(0.5 * omega.sum(axis=1).max()) if n else 0.0, p)
    q = min(max(1, (p + 1) // 2), q + 2)  # for the powers of w beside the product
    result = xp.zeros((n, outputs.count, outputs.count))
    width = 8.0 * (3 * len(outputs.pairs) * q + 6 * p * q + 3 * outputs.count**2)
    rules = _rules(index, q)
    for rows in blocks(n if outputs.pairs else 0, width, sites.stop):
        some = omega[rows][:, :, None]

        def factors(sizes: tuple[int, int], some: Array = some) -> Factors:
            w, weights = map(xp.asarray, rules[sizes])
            B = xp.maximum(1.0 - 0.5 * some * (1.0 - w), SMALLEST)
            R = some / B
            return Factors(R * w, R, 2.0 * R, kernel.variance * weights * xp.prod(B, 1))

        blocks_of_sizes = {
            (1, 1): _covariances(factors((1, 1)), _sets(outputs, 1), _sets(outputs, 1)),
            (1, 2): _covariances(factors((1, 2)), _sets(outputs, 1), _sets(outputs, 2)),
            (2, 2): _covariances(factors((2, 2)), _sets(outputs, 2), _sets(outputs, 2)),
        }
        blocks_of_sizes[2, 1] = xp.swapaxes(blocks_of_sizes[1, 2], 1, 2)
        _place(result[rows], blocks_of_sizes, outputs)
    return result


def _rules(index: str, q: int) -> dict[tuple[int, int], tuple[Array, Array]]:
    """Return nodes and weights for sets of these sizes: in w = uv, or in v where u is an end.

    Parts of ν that are odd in u vanish against parts that are even in v, and the other way round.
    """
    w, weights = product_rule(q)
    t, uniform = gauss_legendre(q)
    v = 2.0 * t - 1.0
    if index == "taylor":
        ends = (np.ones(1), np.ones(1))
        return {(1, 1): ends, (1, 2): (v, -t * uniform), (2, 2): (w, 0.25 * (1.0 + w) * weights)}
    ends = (np.concatenate([w, [1.0, -1.0]]), np.concatenate([weights, [0.5, -0.5]]))
    return {(1, 1): ends, (1, 2): (v, -0.5 * uniform), (2, 2): (w, 0.25 * weights)}


def _between_rows(corners: Corners, outputs: Outputs, index: str) -> Array:
    """Return the prior covariance of the interactions of pairs of rows, (n, q, q)."""
    xp, p = namespace(corners.top), corners.base.shape[1]
    q = min(max(1, (p + 1) // 2), nodes_between(corners) + 2)
    base, left, right, mixed = (part[:, :, None] for part in corners[:4])
    blocks_of_sizes = {}
    for size in (1, 2):
        for size2 in (1, 2):
            (s, ws), (t, wt) = (
                tuple(map(xp.asarray, diagonal_rule(index, k, q))) for k in (size, size2)
            )
            s, t = xp.repeat(s, len(t)), xp.tile(t, len(s))
            weight = (ws[:, None] * wt).reshape(-1)
            D, other = left + t * mixed, right + s * mixed
            B = xp.maximum(base + s * left + t * other, SMALLEST)
            F = corners.top[:, None] * weight * xp.prod(B, 1)
            factors = Factors(D / B, other / B, mixed / B, F)
            blocks_of_sizes[size, size2] = _covariances(
                factors, _sets(outputs, size), _sets(outputs, size2)
            )
    result = xp.zeros((len(corners.top), outputs.count, outputs.count))
    _place(result, blocks_of_sizes, outputs)
    return result


def _sets(outputs: Outputs, size: int) -> Sets:
    if size == 1:
        return [outputs.pairs[k][:1] for k in outputs.single]
    return [outputs.pairs[k] for k in outputs.double]


def _place(result: Array, parts: dict[tuple[int, int], Array], outputs: Outputs) -> None:
    """Write the covariances of outputs of each size where they stand among all outputs."""
    at = {
        size: [outputs.places[k] for k in some]
        for size, some in ((1, outputs.single), (2, outputs.double))
    }
    for (size, size2), part in parts.items():
        if at[size] and at[size2]:
            result[:, [[place] for place in at[size]], at[size2]] = part


def _covariances(factors: Factors, first: Sets, second: Sets) -> Array:
    """Return the sums over nodes for all A of ``first`` and C of ``second``, (r, |A|, |C|).

    All are formed as if A and C had no player in common; those that have are then replaced, player
    by player.
    """
    D, other, E, F = factors
    result = _summed(_products(D, first), _products(other, second), F)
    for player in range(D.shape[1]):
        rows, columns = (
            [k for k, some in enumerate(sets) if player in some] for sets in (first, second)
        )
        if not rows or not columns:
            continue
        left, right = (
            [tuple(i for i in sets[k] if i != player) for k in some]
            for sets, some in ((first, rows), (second, columns))
        )
        part = _summed(_products(D, left), _products(other, right), F * E[:, player])
        result[:, [[k] for k in rows], columns] = part
    position = {some: k for k, some in enumerate(second)}
    same = [(k, position[some]) for k, some in enumerate(first) if some in position]
    if same and len(first[0]) == 2:
        i, j = ([first[k][side] for k, _ in same] for side in (0, 1))
        rows, columns = ([pair[side] for pair in same] for side in (0, 1))
        result[:, rows, columns] = (E[:, i] * E[:, j] * F[:, None, :]).sum(axis=2)
    return result


def _products(values: Array, sets: Sequence[tuple[int, ...]]) -> Array:
    """Return the products of values (r, p, Q) over sets of one size, (r, k, Q)."""
    r, _, Q = values.shape
    result = namespace(values).zeros((r, len(sets), Q)) + 1.0
    for side in range(len(sets[0]) if sets else 0):
        result *= values[:, [some[side] for some in sets]]
    return result


def _summed(left: Array, right: Array, F: Array) -> Array:
    """Return Σ over nodes of left (r, a, Q), right (r, c, Q) and F (r, Q), (r, a, c)."""
    return row_products(left * F[:, None, :], right)
