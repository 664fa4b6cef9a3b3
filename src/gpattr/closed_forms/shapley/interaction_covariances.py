"""Prior covariances of interactions, for products of positive factors.

With the factors B(s, t) of the covariance of the two multilinear extensions, s for the first and t
for the second, their derivatives D = ∂B/∂s, D' = ∂B/∂t and E = ∂²B/∂s∂t,

    Cov[Φ_A, Φ_C] = σ² ∬ ∏_{A∩C} E ∏_{A∖C} D ∏_{C∖A} D' ∏_{rest} B dν_{|A|}(s) dν_{|C|}(t).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.integrals import nodes_between
from gpattr.closed_forms.shapley.interactions import (
    SMALLEST,
    InteractionCross,
    Outputs,
    diagonal_rule,
    row_products,
)
from gpattr.closed_forms.shapley.product import Corners, PositiveProduct
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.operators import Coalitions, ShapleyInteractions
from gpattr.special.diagonal import nodes_needed, product_rule
from gpattr.special.quadrature import gauss_legendre

Sets = list[tuple[int, ...]]  # sets of one or of two players


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
