"""Integrals over the diagonal of multilinear extensions of products.

    φᵢk(·, z) = σ² ∏ⱼ max(uⱼ, vⱼ) · cᵢ/(1 + |cᵢ|) ∫₋₁¹ ∏_{j≠i} hⱼ(s) ds

All terms of the sum over nodes have one sign and hᵢ ≥ (1 − |s|)/2 at every node, so products
without one factor are found by division.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gpattr._core.array import EPS, Array, chunk_rows, namespace, outer_products, product, share
from gpattr._core.memory import blocks
from gpattr.closed_forms.shapley.product import Corners, PositiveProduct
from gpattr.closed_forms.table import Bounded, Formulas, rounded, rounded_cross, rounding
from gpattr.operators import Coalitions
from gpattr.special.diagonal import nodes_needed, product_rule, symmetric_rule
from gpattr.special.quadrature import gauss_legendre

FEW = 20  # players whose ∏ (1 + |c|) is divided out at once
ENOUGH = 2**14  # pairs of a row and a point from which a second thread is worth its start


def leave_one_out(c: Array, top: Array) -> Array:
    """Return ∫ cᵢ/(1 + |cᵢ|) ∏_{j≠i} hⱼ ds times ``top`` (r, k), (p, r, k), for c (p, r, k).

    Players are taken in pairs (i, l), whose factor is a quadratic C(1 + As + Bs²), A = cᵢ + cₗ and
    B = cᵢcₗ. The moments M₀ and M₁ of the product of all other pairs give both players' integrals,
    cᵢC(M₀ + cₗM₁); |s cₗ| < 1, so rounding is small next to the larger of the two. Nodes come in
    pairs ±s, which share even and odd terms.
    """
    xp, paired = namespace(c), len(c) // 2
    first, second = c[: len(c) - paired], c[len(c) - paired :]
    A, B, C, top, spread = _quadratics(first, second, top)
    centre, nodes = symmetric_rule(nodes_needed(spread, len(c)))
    zeroth, linear = xp.zeros_like(A), xp.zeros_like(A)
    if centre:
        zeroth += centre * top if isinstance(C, float) else (centre * top * xp.prod(C, 0)) / C
    for s, weight in nodes:
        minus, odd = (s * s) * B, s * A
        minus += C
        plus = minus + odd
        minus -= odd
        for part in (plus, minus):
            xp.divide(weight * top * xp.prod(part, 0), part, out=part)
            zeroth += part
        plus -= minus
        plus *= s
        linear += plus
    if not isinstance(C, float):
        zeroth *= C
        linear *= C
    total = xp.empty(c.shape)
    total[paired : len(first)] = zeroth[paired:]
    for mine, others in ((slice(paired), second), (slice(len(first), None), first)):
        xp.multiply(others[:paired], linear[:paired], out=total[mine])
        total[mine] += zeroth[:paired]
    total *= c
    return total


def _quadratics(
    first: Array, second: Array, top: Array
) -> tuple[Array, Array, float | Array, Array, float]:
    """Return A, B and C of pairs, (h, r, k), what is left of ``top``, and Λ or a bound on it.

    1/∏ (1 + |c|) goes into ``top`` for few players, where Λ = Σ |c|/(1 + |c|) ≤ Σ log (1 + |c|);
    for many it would underflow, and goes into C, A and B.
    """
    xp, paired = namespace(first), len(second)
    A, B = first + 0.0, xp.zeros_like(first)
    A[:paired] += second
    xp.multiply(first[:paired], second, out=B[:paired])
    sizes = [abs(part) + 1.0 for part in (first, second)]
    if len(first) + paired <= FEW:
        whole = xp.prod(sizes[0], 0) * xp.prod(sizes[1], 0)
        return A, B, 1.0, top / whole, math.log(float(whole.max()))
    levels = [1.0 / size for size in sizes]
    spread = len(first) + paired - float((levels[0].sum(axis=0) + levels[1].sum(axis=0)).min())
    C = levels[0]
    C[:paired] *= levels[1]
    A *= C
    B *= C
    return A, B, C, top, spread


def formulas(kernel: PositiveProduct) -> Formulas:
    """Return the formulas of Shapley values for a product of positive factors."""
    verbs = ProductShapley(kernel)
    return Formulas(verbs.cross, verbs.contract, verbs.prior_cov, verbs.between, bound=verbs.bound)


@dataclass(frozen=True, eq=False)
class ProductShapley:
    """Shapley values of a product of positive factors."""

    kernel: PositiveProduct

    def cross(self, sites: Coalitions, Z: Array) -> Bounded:
        n, m, kernel = len(sites.stop), len(Z), self.kernel
        result = namespace(Z).zeros((n, kernel.count, m))

        def fill(rows: slice) -> None:
            for part in kernel.contrasts(sites, Z, rows):
                values = leave_one_out(part.c, part.top)
                for place, value in zip(kernel.players, values, strict=True):
                    result[part.rows, place, part.points] = value

        shared(fill, n, m, Z)
        return Bounded(result, self._rounding(sites, Z) * m**0.5)

    def contract(self, sites: Coalitions, Z: Array, w: Array) -> Bounded:
        result = namespace(Z).zeros((len(sites.stop), self.kernel.count, w.shape[1]))
        places = self.kernel.players

        def add(rows: slice) -> None:
            for part in self.kernel.contrasts(sites, Z, rows):
                values = product(leave_one_out(part.c, part.top), w[part.points])
                result[part.rows, places] += namespace(Z).swapaxes(values, 0, 1)

        shared(add, len(sites.stop), len(Z), Z)
        return Bounded(result, self.bound(sites, Z, w))

    def bound(self, sites: Coalitions, Z: Array, w: Array) -> Array:
        """Return a bound on the rounding of a sum over points, (n,)."""
        return self._rounding(sites, Z) * abs(w).sum(axis=0).max()

    def _rounding(self, sites: Coalitions, Z: Array) -> Array:
        """Return a bound on rounding for one point, (n,): |φᵢk(·, z)| ≤ √Var φᵢf ≤ σ² √2ωᵢ."""
        xp, kernel = namespace(sites.stop), self.kernel
        largest = xp.zeros(len(sites.stop)) + 1.0
        if sites.weights is None:
            largest = xp.minimum(xp.sqrt(2.0 * xp.max(kernel.falls(sites), axis=1)), 1.0)
        steps = 32.0 + len(Z) ** 0.5 + 2.0 * len(kernel.players) + kernel.phases(sites, Z)
        return EPS * steps * kernel.variance * largest

    def prior_cov(self, sites: Coalitions) -> Bounded:
        if sites.weights is not None or not self.kernel.stationary:
            return self.between(sites, sites)
        value = _along_one_row(self.kernel, sites)
        variances = namespace(value).diagonal(value, axis1=1, axis2=2)
        error = 64.0 * EPS * namespace(value).max(variances, axis=1)
        return scattered(self.kernel, value, error)

    def between(self, sites: Coalitions, other: Coalitions) -> Bounded:
        n, p = len(sites.stop), len(self.kernel.players)
        result = namespace(sites.stop).zeros((n, p, p))
        nodes = min(400, ((p + 1) // 2) ** 2)
        for rows in blocks(n, 8.0 * p * (5 * nodes + 2 * p), sites.stop):
            some = sites[rows]
            result[rows] = _between_rows(
                self.kernel.corners(some, some if other is sites else other[rows])
            )
        xp = namespace(result)
        size = 4.0 * xp.max(abs(result), axis=(1, 2)) + self.kernel.variance
        phases = self.kernel.phases(sites, other.stop)
        return scattered(self.kernel, result, EPS * (16.0 + phases) * size)


def mean_formulas(kernel: PositiveProduct) -> Formulas:
    """Return the formulas of the mean of f over a product of marginals, E f(b)."""

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        value = namespace(Z).broadcast_to(kernel.mean(sites, Z), (len(sites.stop), 1, len(Z)))
        return rounded_cross(value + 0.0)

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        terms = cross(sites, Z).value
        return Bounded(product(terms, w), rounding(terms, w))

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        value = kernel.mean_of_means(sites)
        return rounded(namespace(sites.stop).zeros((len(sites.stop), 1, 1)) + value)

    return Formulas(cross, contract, lambda sites: between(sites, sites), between)


def shared(work: Callable[[slice], None], n: int, m: int, like: Array, values: int = 1) -> None:
    """Do the work for all of n rows, shared between threads where it is large.

    ``values`` says how many there are for each pair of a row and a point, relative to the players.
    Blocks are cut by the number of rows alone, so results do not depend on the number of threads.
    """
    m *= values
    size = max(1, min(n, chunk_rows(like, 1) // max(1, m)))
    pieces: Sequence[Any] = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    if n * m >= ENOUGH:
        share(work, pieces, like)
        return
    for rows in pieces:
        work(rows)


def scattered(kernel: PositiveProduct, value: Array, error: Array) -> Bounded:
    """Return covariances of the kernel's players, (n, p, p), among all players, with a bound."""
    xp, places, count = namespace(value), kernel.players, kernel.count
    if len(places) < count:
        whole = xp.zeros((len(value), count, count))
        whole[:, [[place] for place in places], places] = value
        value = whole
    return Bounded(value, error)


def _along_one_row(kernel: PositiveProduct, sites: Coalitions) -> Array:
    """Return the prior covariance of the Shapley values of each row, (n, p, p).

    With ωⱼ = 1 − kⱼ(xⱼ, bⱼ), Bⱼ(w) = ½(2 − ωⱼ + wωⱼ) and w the product of two uniform variables,

        Σᵢᵢ = 2σ² ωᵢ E ∏_{l≠i} Bₗ,    Σᵢⱼ = σ² ωᵢωⱼ E w ∏_{l≠i,j} Bₗ.
    """
    xp, omega = namespace(sites.stop), kernel.falls(sites)
    n, p = omega.shape
    result = xp.empty((n, p, p))
    q = nodes_needed(float(0.5 * omega.sum(axis=1).max()) if n else 0.0, p)
    nodes, weights = map(xp.asarray, product_rule(q))
    diagonal = xp.arange(p)
    for rows in blocks(n, 8.0 * p * (4 * q + 2 * p), sites.stop):
        some = omega[rows][:, :, None]
        B = 1.0 - 0.5 * some * (1.0 - nodes)  # (r, p, q)
        F = kernel.variance * weights * xp.prod(B, 1)
        R = some / B
        # Nodes come in pairs ±w; a square root of the positive part is half of a product.
        roots = xp.sqrt(F * abs(nodes))[:, None, :]
        plus, minus = (R * roots)[:, :, nodes > 0], (R * roots)[:, :, nodes < 0]
        block = outer_products(plus) - outer_products(minus)
        block[:, diagonal, diagonal] = 2.0 * (R * F[:, None, :]).sum(axis=2)
        result[rows] = block
    return result


def _between_rows(corners: Corners) -> Array:
    """Return the prior covariance of the Shapley values of pairs of rows, (n, p, p).

    With B = k_bb + s left + t right + st mixed, D = left + t mixed and D' = right + s mixed,

        Σᵢⱼ = σ² ∫∫ DᵢD'ⱼ ∏_{l≠i,j} Bₗ ds dt,    Σᵢᵢ = σ² ∫∫ mixedᵢ ∏_{l≠i} Bₗ ds dt.
    """
    xp, p = namespace(corners.top), corners.base.shape[1]
    s, t, weight = tensor_rule(corners)
    base, left, right, mixed = (part[:, :, None] for part in corners[:4])
    D, other = left + t * mixed, right + s * mixed
    B = base + s * left + t * other
    F = corners.top[:, None] * weight * xp.prod(B, 1)
    D, other = D / B, other / B
    result = (D * F[:, None, :]) @ xp.swapaxes(other, 1, 2)
    diagonal = xp.arange(p)
    result[:, diagonal, diagonal] = ((mixed / B) * F[:, None, :]).sum(axis=2)
    return result


def tensor_rule(corners: Corners) -> tuple[Array, Array, Array]:
    """Return nodes (s, t) in [0, 1]² and weights, (q²,) each, as many as the factors need."""
    xp = namespace(corners.top)
    t, w = map(xp.asarray, gauss_legendre(nodes_between(corners)))
    q = len(t)
    return xp.repeat(t, q), xp.tile(t, q), (w[:, None] * w).reshape(-1)


def nodes_between(corners: Corners) -> int:
    """Return how many nodes the factors of pairs of rows need, along each of two diagonals."""
    xp, p = namespace(corners.top), corners.base.shape[1]
    bb, xb, bx = corners.base, corners.base + corners.left, corners.base + corners.right
    xx = xb + corners.right + corners.mixed
    spread = 0.0
    for u, v in ((xx, bx), (xb, bb), (xx, xb), (bx, bb)):
        largest = xp.maximum(xp.maximum(abs(u), abs(v)), 1e-300)
        spread = max(spread, float((0.5 * abs(u - v) / largest).sum(axis=1).max()))
    return nodes_needed(spread, p)
