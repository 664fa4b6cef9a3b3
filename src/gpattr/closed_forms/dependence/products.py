"""Partial dependence of products: the other columns enter through one average for each point.

A kernel is a sum of products of a kernel of some columns and a kernel of the others,

    k(x, z) = Σₜ uₜ(x_S, z_S) vₜ(x_R, z_R) ∏ gₜ(r).

The last factor is a radial kernel that sees columns of both, if the term has one. Of a product

    Cov[𝒜_g f, f(z)]     = σ² u(grid_g, z_S) c(z),            c(z) = Σₖ wₖ v(xᵏ, z_R)
    Cov[𝒜_g f, 𝒜_h f]  = σ² u(grid_g, grid_h) Σₖ wₖ c(xᵏ)

An individual curve has v(x, z_R) in place of c(z). So the cost is one pass over background and
points, whatever the size of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.shapley.factors import LOG_PROFILES
from gpattr.closed_forms.table import Bounded, Formulas, rounding
from gpattr.kernels import Kernel, Product, Radial, Scale, Select
from gpattr.kernels.base import Places, of_columns
from gpattr.kernels.factors import Factor, KernelProduct, multiplied_out, separated
from gpattr.operators import Curves


@dataclass(frozen=True, eq=False)
class KernelPart:
    """A product of ``kernels``, each with the positions it sees of some columns; 1 if none."""

    kernels: tuple[tuple[Kernel, Places], ...] = ()

    def __mul__(self, other: KernelPart) -> KernelPart:
        return KernelPart(self.kernels + other.kernels)

    @property
    def kernel(self) -> Kernel | None:
        """The product as one kernel of these columns; None for 1."""
        parts = [Select(kernel, places) for kernel, places in self.kernels]
        return parts[0] if len(parts) == 1 else Product(*parts) if parts else None

    def __call__(self, X: Array, Z: Array) -> Array:
        """Return values at all pairs, (n, m)."""
        kernel = self.kernel
        if kernel is None:
            return namespace(Z).zeros((len(X), len(Z))) + 1.0
        return kernel(X, Z)

    def diagonal(self, X: Array) -> Array:
        """Return values at x = x', (n,)."""
        kernel = self.kernel
        return namespace(X).zeros(len(X)) + 1.0 if kernel is None else kernel.diagonal(X)

    def slopes(self, X: Array, Z: Array, direction: Array) -> Array:
        """Return derivatives at x along a direction, (n, m)."""
        kernel = self.kernel
        if kernel is None:
            return namespace(Z).zeros((len(X), len(Z)))
        return differentiate(kernel, X[:, None, :], Z).left @ direction

    def mixed_slopes(self, X: Array, Y: Array, direction: Array) -> Array:
        """Return derivatives at x and at y along a direction, (n, m)."""
        kernel = self.kernel
        if kernel is None:
            return namespace(X).zeros((len(X), len(Y)))
        return differentiate(kernel, X[:, None, :], Y, True).mixed @ direction @ direction


@dataclass(frozen=True, eq=False)
class Joint:
    """A radial ``kernel`` that sees columns of both parts, with its positions in each.

    Its own columns, in their order, are ``inside`` and ``outside``.
    """

    kernel: Radial
    u: Places
    v: Places
    inside: Places
    outside: Places

    def lengthscales(self, own: Places) -> Any:
        """Return the length-scales of some of its own columns."""
        return of_columns(self.kernel.lengthscale, own)


@dataclass(frozen=True, eq=False)
class CurveTerm:
    """``scale`` u(x_S, z_S) v(x_R, z_R), times a radial kernel of both, if there is a ``joint``."""

    scale: float
    u: KernelPart = KernelPart()
    v: KernelPart = KernelPart()
    joint: Joint | None = None

    @property
    def stationary(self) -> bool:
        return all(kernel.stationary for kernel, _ in self.u.kernels + self.v.kernels)


def split(kernel: Kernel, columns: Places, d: int) -> tuple[list[CurveTerm], list[Kernel]]:
    """Return a kernel of d columns as terms, and the parts of it that are no such products."""
    rest = tuple(j for j in range(d) if j not in columns)
    terms: list[CurveTerm] = []
    left: list[Kernel] = []
    for whole in multiplied_out(kernel) or [KernelProduct(1.0, (Factor(kernel, None),))]:
        parts = separated(whole, (columns, rest)) or ()
        found = [_term(part, columns, rest) for part in parts]
        known = [term for term in found if term is not None]
        if found and len(known) == len(found):
            terms += known
        else:
            leaves = [factor.whole for factor in whole.factors]
            product = leaves[0] if len(leaves) == 1 else Product(*leaves)
            left.append(product if whole.scale == 1.0 else Scale(product, whole.scale))
    return terms, left


def _term(product: KernelProduct, columns: Places, rest: Places) -> CurveTerm | None:
    """Return a product; None if several kernels see columns of both parts, or one is not radial."""
    u, v, joint = KernelPart(), KernelPart(), None
    for kernel, seen, group in product.factors:
        places = range(len(columns) + len(rest)) if seen is None else seen
        inside, outside = (
            tuple(i for i, j in enumerate(places) if j in some) for some in (columns, rest)
        )
        own = tuple(columns.index(places[i]) for i in inside)
        others = tuple(rest.index(places[i]) for i in outside)
        if group == 0:
            u *= KernelPart(((kernel, own),))
        elif group == 1:
            v *= KernelPart(((kernel, others),))
        elif joint is None and type(kernel) in LOG_PROFILES:
            joint = Joint(kernel, own, others, inside, outside)  # pyright: ignore[reportArgumentType]
        else:
            return None
    return CurveTerm(product.scale, u, v, joint)


def product_formulas(term: CurveTerm) -> Formulas:
    """Return the formulas of partial dependence for one product."""
    verbs = ProductCurves(term)
    return Formulas(
        verbs.cross,
        verbs.contract,
        verbs.prior_cov,
        verbs.between,
        bound=verbs.bound if term.stationary else None,
    )


@dataclass(eq=False)
class ProductCurves:
    """σ² u v at curves; the average over a background is remembered for the data."""

    term: CurveTerm
    known: tuple[Array, Array, Array] | None = None

    def u(self, sites: Curves, Z: Array) -> tuple[Array, Array]:
        """Return u, or its slope, at the outputs and points, (G, m), and its size, (m,)."""
        part, own = self.term.u, Z[:, list(sites.columns)]
        if sites.direction is not None:
            values = part.slopes(sites.nodes, own, sites.direction)
            return values, sites.sizes(values)
        values = part(sites.nodes, own)
        return sites.combined(values), sites.sizes(values)

    def among(self, sites: Curves) -> tuple[Array, Array]:
        """Return u, or its mixed slope, between the outputs, (G, G), and its size."""
        nodes = sites.nodes
        if sites.direction is not None:
            values = self.term.u.mixed_slopes(nodes, nodes, sites.direction)
            return values, abs(values).max()
        values = self.term.u(nodes, nodes)
        size = sites.sizes(sites.sizes(values)[:, None])[0]
        return sites.combined(sites.combined(values).T).T, size

    def v_sizes(self, sites: Curves, Z: Array) -> Array:
        """Return σ² Σₖ wₖ √(v(xᵏ, xᵏ) v(z, z)) ≥ |σ² c(z)|, (m,), which bounds its rounding too."""
        (rows, weights), rest, v = sites.others, list(sites.rest), self.term.v
        mean = product(abs(weights), namespace(Z).sqrt(v.diagonal(rows[:, rest])))
        return self.term.scale * mean * namespace(Z).sqrt(v.diagonal(Z[:, rest]))

    def average(self, sites: Curves, Z: Array) -> Array:
        """Return σ² c(z), (m,)."""
        if self.known is None or self.known[0] is not sites.background or self.known[1] is not Z:
            rows, weights = sites.others
            self.known = (rows, Z, self.average_over(rows, weights, sites.rest, Z))
        return self.known[2]

    def average_over(self, rows: Array, weights: Array, rest: tuple[int, ...], Z: Array) -> Array:
        """Return σ² Σₖ wₖ v(xᵏ, z), (m,)."""
        total, own = namespace(Z).zeros(len(Z)), Z[:, list(rest)]
        if not self.term.v.kernels:
            return total + self.term.scale
        for some in blocks(len(rows), 32.0 * len(Z), Z):
            part = self.term.v(rows[some][:, list(rest)], own)
            total += product(weights[some], part)
        return self.term.scale * total

    def each(self, sites: Curves, Z: Array) -> Array:
        """Return σ² v(xₙ, z), (n, m), of individual curves."""
        rest = list(sites.rest)
        return self.term.scale * self.term.v(sites.X[:, rest], Z[:, rest])

    def cross(self, sites: Curves, Z: Array) -> Bounded:
        (u, size), n, xp = self.u(sites, Z), len(sites.X), namespace(Z)
        if sites.background is None:
            each = self.each(sites, Z)
            return Bounded(u * each[:, None, :], 32.0 * EPS * _lengths(size * each))
        values = (u * self.average(sites, Z))[None]
        error = 32.0 * EPS * _lengths(size * self.v_sizes(sites, Z)[None])
        return Bounded(xp.zeros((n, *u.shape)) + values, xp.zeros(n) + error)

    def contract(self, sites: Curves, Z: Array, w: Array) -> Bounded:
        xp, (u, size), n = namespace(Z), self.u(sites, Z), len(sites.X)
        if sites.background is not None:
            terms = (u * self.average(sites, Z))[None]
            zeros = xp.zeros((n, len(u), w.shape[1]))
            sizes = (size * self.v_sizes(sites, Z))[None, None]
            return Bounded(zeros + product(terms, w), zeros[:, 0, 0] + rounding(sizes, w))
        each = self.each(sites, Z)
        columns = [product(each * column, u.T + 0.0) for column in w.T]
        sizes = product(abs(each), size[:, None] * abs(w))
        return Bounded(xp.stack(columns, axis=2), 32.0 * EPS * xp.max(sizes, axis=1))

    def bound(self, sites: Curves, Z: Array, w: Array) -> Array:
        """Return a bound on rounding, where no value of the kernel exceeds its variance."""
        xp = namespace(Z)
        origin = xp.zeros((1, Z.shape[1]))
        if sites.direction is None:
            u = self.term.u.diagonal(origin[:, list(sites.columns)])[0]
        else:  # |∂u(x, z)|² ≤ ∂∂'u(x, x) u(z, z)
            node = sites.nodes[:1]
            steep = self.term.u.mixed_slopes(node, node, sites.direction)[0, 0]
            u = xp.sqrt(steep * self.term.u.diagonal(node)[0])
        v = self.term.v.diagonal(origin[:, list(sites.rest)])[0]
        size = 2.0 * self.term.scale * u * v * abs(w).sum(axis=0).max()
        return xp.zeros(len(sites.X)) + EPS * (64.0 + len(Z) ** 0.5) * size

    def prior_cov(self, sites: Curves) -> Bounded:
        (among, size), n, rest = self.among(sites), len(sites.X), list(sites.rest)
        if sites.background is None:
            v = self.term.scale * self.term.v.diagonal(sites.X[:, rest])
            return Bounded(v[:, None, None] * among, 64.0 * EPS * abs(v) * size)
        (rows, weights), zeros = sites.others, namespace(sites.X).zeros(n)
        own = self.average(sites, rows) if self._same(rows) else None
        own = self.average_over(rows, weights, sites.rest, rows) if own is None else own
        v = zeros + product(weights, own)
        spread = product(abs(weights), self.v_sizes(sites, rows))
        return Bounded(v[:, None, None] * among, zeros + 64.0 * EPS * spread * size)

    def _same(self, Z: Array) -> bool:
        return self.known is not None and self.known[1] is Z

    def between(self, sites: Curves, other: Curves) -> Bounded:
        if sites.background is not None:
            return self.prior_cov(sites)
        rest, v = list(sites.rest), self.term.v
        pairs = zip(sites.X[:, rest], other.X[:, rest], strict=True)
        values = [v(one[None], two[None])[0, 0] for one, two in pairs]
        values = self.term.scale * namespace(sites.X).stack(values)
        among, size = self.among(sites)
        return Bounded(values[:, None, None] * among, 64.0 * EPS * abs(values) * size)


def _lengths(sizes: Array) -> Array:
    """Return the Euclidean lengths (n,) of sizes (n, m)."""
    return (sizes * sizes).sum(axis=1) ** 0.5
