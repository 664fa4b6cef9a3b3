"""Shapley values of kernels whose factors have any sign, and of kernels of several orders.

A term of a kernel is σ² times factors of one player that have any sign, and kernels that are
coefficients of a product of power series over players (`series_product`): FullAdditive, Linear,
Polynomial, and Cosine as a real part.

Of the cosine kernel, σ² cos(v·(x − z)) = σ² φ(x)·φ(z) with the two functions φ(x) = [sin v·(x − o),
cos v·(x − o)], so that nothing but their Shapley values at rows is needed, whatever the number of
points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product, to_numpy
from gpattr._core.memory import blocks
from gpattr.bases import Fourier
from gpattr.closed_forms.shapley.bases import WaveFactors, images_of
from gpattr.closed_forms.shapley.integrals import shared
from gpattr.closed_forms.shapley.means import linear_formulas
from gpattr.closed_forms.shapley.series_product import SeriesProduct, leaf_of
from gpattr.closed_forms.shapley.signed_factors import Quad
from gpattr.closed_forms.shapley.signed_integrals import (
    Series,
    leave_one_out,
    leave_two_out,
    multiplied,
    pair_of_nodes,
    sizes,
    whole_size,
)
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Cosine, Kernel, Linear
from gpattr.operators import Coalitions, Players

TILE = 2**18  # numbers of one kind, for all players of a tile of rows and points
LEAST = 2**10  # pairs of a tile: below, calls take longer than their work
MOST = 2**12
LARGEST_RING = 256  # monomials in the variables of all leaves


class Tile(NamedTuple):
    """Values (p, r, k) for rows and points, and ``size`` (r, k), of which ε is their error."""

    rows: slice
    points: slice
    values: Array
    size: Array


def series_formulas(
    variance: float, leaves: list[tuple[Kernel, tuple[int, ...]]], players: Players
) -> Formulas | None:
    """Return the formulas of Shapley values for a product of leaves on some columns.

    ``variance`` multiplies the product. None where it is not known to be a product over players.
    """
    if len(leaves) == 1 and isinstance(leaves[0][0], Linear):
        return linear_formulas(variance, leaves[0][0], leaves[0][1], players)
    if len(leaves) == 1 and isinstance(leaves[0][0], Cosine):
        return wave_formulas(variance, leaves[0][0], leaves[0][1], players)
    term = _product(variance, leaves, players)
    if term is None:
        return None

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        xp, n, m = namespace(Z), len(sites.stop), len(Z)
        result, error = xp.zeros((n, term.count, m)), xp.zeros(n)
        drawn = _drawn(term, sites, Z)

        def fill(rows: slice) -> None:
            for tile in _tiles(term, sites, Z, rows, drawn):
                for place, value in zip(term.players, tile.values, strict=True):
                    result[tile.rows, place, tile.points] = value
                error[tile.rows] = xp.hypot(error[tile.rows], _length(tile.size))

        shared(fill, n, m, Z)
        return Bounded(result, EPS * error)

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        xp, n = namespace(Z), len(sites.stop)
        result, error = xp.zeros((n, term.count, w.shape[1])), xp.zeros((n, w.shape[1]))
        drawn = _drawn(term, sites, Z)

        def add(rows: slice) -> None:
            for tile in _tiles(term, sites, Z, rows, drawn):
                values = product(tile.values, w[tile.points])
                result[tile.rows, term.players] += xp.swapaxes(values, 0, 1)
                error[tile.rows] += product(tile.size, abs(w[tile.points]))

        shared(add, n, len(Z), Z)
        return Bounded(result, EPS * xp.max(error, axis=1))

    def prior_cov(sites: Coalitions) -> Bounded:
        return _between(term, sites, sites)

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        return _between(term, sites, other)

    return Formulas(cross, contract, prior_cov, between)


def series_expectation(
    variance: float, leaves: list[tuple[Kernel, tuple[int, ...]]], players: Players
) -> Formulas | None:
    """Return the formulas of E f(b) for a product of leaves on some columns, as above."""
    term = _product(variance, leaves, players)
    if term is None:
        return None

    def terms(sites: Coalitions, Z: Array) -> tuple[Array, Array]:
        """Return E k(b, z) and ε times its size, (n, m)."""
        xp, shape = namespace(Z), (len(sites.stop), len(Z))
        value, size = _whole(term, _at_baselines(term, sites, Z))
        size = _rounding(term, sites.start, Z) * size
        return xp.broadcast_to(value, shape) + 0.0, xp.broadcast_to(size, shape) + 0.0

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        value, size = terms(sites, Z)
        return Bounded(value[:, None, :], _length(size))

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        value, size = terms(sites, Z)
        error = namespace(Z).max(product(size, abs(w)), axis=1)
        return Bounded(product(value, w)[:, None, :], error)

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        value, size = _whole(term, _between_baselines(term, sites, other))
        zeros = namespace(sites.stop).zeros((len(sites.stop), 1, 1))
        error = _rounding(term, sites.start, other.start) * size
        return Bounded(zeros + value[:, None, None], zeros[:, 0, 0] + error)

    return Formulas(cross, contract, lambda sites: between(sites, sites), between)


def _product(
    variance: float, leaves: list[tuple[Kernel, tuple[int, ...]]], players: Players
) -> SeriesProduct | None:
    """Return the term of a kernel; None where a leaf is not known, or there are too many orders."""
    found = [leaf_of(kernel, columns, players) for kernel, columns in leaves]
    known = [part for part in found if part is not None]
    own = tuple(leaf for _, leaf in known)
    if len(known) < len(found) or sum(leaf.is_complex for leaf in own) > 1:
        return None  # a product of real parts is none
    if prod(len(leaf.weights) for leaf in own if leaf.weights is not None) > LARGEST_RING:
        return None
    return SeriesProduct(variance * prod(scale for scale, _ in known), own, players.count)


def _drawn(term: SeriesProduct, sites: Coalitions, Z: Array) -> list[Series] | None:
    """Return the factors averaged over the draws of a baseline, at all points."""
    if sites.weights is None:
        return None
    return term.mean_values(sites.start, sites.weights, Z)


def _tiles(
    term: SeriesProduct, sites: Coalitions, Z: Array, rows: slice, drawn: list[Series] | None
) -> Iterator[Tile]:
    """Yield the Shapley values of some rows for all points, in tiles."""
    xp, reach = namespace(Z), term.reach(sites.stop, sites.start, Z)
    pairs = max(LEAST, min(MOST, TILE // term.width))
    height = min(rows.stop - rows.start, pairs)
    step = max(1, pairs // height)
    for low in range(rows.start, rows.stop, height):
        some = slice(low, min(low + height, rows.stop))
        for left in range(0, len(Z), step):
            points = slice(left, min(left + step, len(Z)))
            here = None if drawn is None else _taken(drawn, points)
            factors = term.pairs(sites[some], Z[points], here)
            shape = (some.stop - some.start, points.stop - points.start)
            totals = leave_one_out(factors, term.ring, term.degree)
            values = xp.stack([xp.broadcast_to(total.real, shape) for total in totals])
            lost = 32.0 + 2.0 * len(term.players) + 4.0 * reach
            size = lost * term.variance * sizes(factors, term.ring)
            yield Tile(some, points, term.variance * values, xp.broadcast_to(size, shape))


def _taken(factors: list[Series], some: slice) -> list[Series]:
    """Return some points, or rows, of all coefficients."""

    def taken(value: Any) -> Any:
        if isinstance(value, Quad):
            return Quad(
                *(taken(part) for part in (value.mean, value.left, value.right, value.mixed))
            )
        return value if isinstance(value, float) else value[some]

    return [{i: taken(value) for i, value in series.items()} for series in factors]


def _length(values: Array) -> Array:
    """Return the Euclidean length along the last axis, of tiny values too, whose squares vanish."""
    xp = namespace(values)
    largest = xp.max(values, axis=1) + 1e-300
    return largest * xp.sqrt(((values / largest[:, None]) ** 2).sum(axis=1))


def _rounding(term: SeriesProduct, *rows: Array) -> float:
    """Return the rounding of products for pairs of these rows, relative to their size."""
    return EPS * (64.0 + 4.0 * (len(term.players) + term.reach(*rows)))


def _between(term: SeriesProduct, sites: Coalitions, other: Coalitions) -> Bounded:
    """Return the prior covariance of the Shapley values of pairs of rows, (n, P, P)."""
    xp, n, places = namespace(sites.stop), len(sites.stop), term.players
    result, error = xp.zeros((n, term.count, term.count)), xp.zeros(n)
    if not n:
        return Bounded(result, error)
    quads = term.quads(sites, other)
    nodes = pair_of_nodes(quads, term.degree) ** 2
    for rows in blocks(n, 48.0 * nodes * term.width, sites.stop):
        factors = _taken(quads, rows)
        values = leave_two_out(factors, term.ring, term.degree, symmetric=sites is other)
        for i, row in zip(places, values, strict=True):
            for j, value in zip(places, row, strict=True):
                result[rows, i, j] = term.variance * value.real
    size = term.variance * whole_size(quads, term.ring)
    lost = _rounding(term, sites.stop, sites.start, other.stop, other.start)
    return Bounded(result, error + lost * size)


def _at_baselines(term: SeriesProduct, sites: Coalitions, Z: Array) -> list[Series]:
    """Return the factors at baselines, or averaged over their draws, (n or 1, m)."""
    if sites.weights is None:
        return term.values(sites.start, Z)
    return term.mean_values(sites.start, sites.weights, Z)


def _between_baselines(term: SeriesProduct, sites: Coalitions, other: Coalitions) -> list[Series]:
    """Return the factors at the i-th baselines of two batches, (n,), or between draws, (1,)."""
    if sites.weights is not None:
        return term.mean_of_means(sites, other)
    xp, shape = namespace(sites.start), sites.shape
    one, two = (xp.broadcast_to(some.start, shape) for some in (sites, other))
    quads = term.quads(Coalitions(one, one, sites.players), Coalitions(two, two, sites.players))
    return [{i: quad.mean for i, quad in part.items()} for part in quads]


def _whole(term: SeriesProduct, factors: list[Series]) -> tuple[Array, Array]:
    """Return σ² times the product of all factors, and its size before anything cancels."""
    ring = term.ring

    def total(factors: list[Series], signed: bool) -> Any:
        series = multiplied(ring, factors)
        weights = ring.functional
        return sum((a if signed else abs(a)) * series[i] for i, a in weights.items() if i in series)

    absolute = [{i: abs(value) for i, value in series.items()} for series in factors]
    return term.variance * total(factors, True).real, term.variance * total(absolute, False)


def wave_formulas(
    variance: float, kernel: Cosine, columns: tuple[int, ...], players: Players
) -> Formulas:
    """Return the formulas of Shapley values for σ² times a cosine kernel of some columns."""
    some, scale = list(columns), variance * kernel.variance
    period = np.broadcast_to(np.asarray(kernel.period), (len(columns),))

    def waves(sites: Coalitions, origin: Array) -> tuple[Fourier, Array, Array]:
        """Return the two functions, seen from the origin, their images, and the size of these."""
        basis = Fourier(2.0 * math.pi / period[None, :], to_numpy(origin[some]))
        inside = sites.select(some)
        images, size = images_of(WaveFactors(basis), inside)
        reach = basis.phase(inside.stop) + basis.phase(inside.start)
        return basis, images, EPS * (64.0 + 4.0 * len(players.seen) + 4.0 * reach) * size[:, 0]

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        basis, images, lost = waves(sites, Z[0])
        lost = lost * (1.0 + basis.phase(Z[:, some]) / 16.0)
        value = product(images, scale * basis(Z[:, some]).T)
        return Bounded(value, scale * lost * len(Z) ** 0.5)

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        basis, images, lost = waves(sites, Z[0])
        lost = lost * (1.0 + basis.phase(Z[:, some]) / 16.0)
        value = product(images, product(scale * basis(Z[:, some]).T, w))
        return Bounded(value, scale * lost * abs(w).sum(axis=0).max())

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        xp, origin = namespace(sites.stop), sites.stop[0]
        _, one, lost = waves(sites, origin)
        _, two, more = (None, one, lost) if other is sites else waves(other, origin)
        return Bounded(scale * (one @ xp.swapaxes(two, 1, 2)), 4.0 * scale * (lost + more))

    return Formulas(cross, contract, lambda sites: between(sites, sites), between)
