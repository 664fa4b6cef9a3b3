"""Partial dependence of products: the other columns enter through one average for each point.

    Cov[𝒜_g f, f(z)]     = σ² u(grid_g, z_S) c(z),            c(z) = Σₖ wₖ v(xᵏ, z_R)
    Cov[𝒜_g f, 𝒜_h f]  = σ² u(grid_g, grid_h) Σₖ wₖ c(xᵏ)

An individual curve has v(x, z_R) in place of c(z). So the cost is that of one pass over background
and points, whatever the size of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.dependence.splitting import Term
from gpattr.closed_forms.table import Bounded, Formulas, rounding
from gpattr.operators import Curves


def product_formulas(term: Term) -> Formulas:
    """Return the formulas of partial dependence for one product."""
    verbs = _Verbs(term)
    return Formulas(
        verbs.cross,
        verbs.contract,
        verbs.prior_cov,
        verbs.between,
        bound=verbs.bound if term.stationary else None,
    )


@dataclass(eq=False)
class _Verbs:
    """σ² u v at curves; the average over a background is remembered for the data."""

    term: Term
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
