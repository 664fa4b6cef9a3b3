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
from gpattr.closed_forms.table import Bounded, Formulas, rounded, rounded_cross, rounding
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

    def u(self, sites: Curves, Z: Array) -> Array:
        """Return u, or its slope, at the outputs and points, (G, m)."""
        part, own = self.term.u, Z[:, list(sites.columns)]
        if sites.direction is not None:
            return part.slopes(sites.nodes, own, sites.direction)
        return sites.combined(part(sites.nodes, own))

    def among(self, sites: Curves) -> Array:
        """Return u, or its mixed slope, between the outputs, (G, G)."""
        nodes = sites.nodes
        if sites.direction is not None:
            return self.term.u.mixed_slopes(nodes, nodes, sites.direction)
        half = sites.combined(self.term.u(nodes, nodes))
        return sites.combined(half.T).T

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
        u, n = self.u(sites, Z), len(sites.X)
        if sites.background is None:
            return rounded_cross(u * self.each(sites, Z)[:, None, :])
        values = (u * self.average(sites, Z))[None]
        return rounded_cross(namespace(Z).zeros((n, *u.shape)) + values)

    def contract(self, sites: Curves, Z: Array, w: Array) -> Bounded:
        xp, u, n = namespace(Z), self.u(sites, Z), len(sites.X)
        if sites.background is not None:
            terms = (u * self.average(sites, Z))[None]
            zeros = xp.zeros((n, len(u), w.shape[1]))
            return Bounded(zeros + product(terms, w), zeros[:, 0, 0] + rounding(terms, w))
        each = self.each(sites, Z)
        columns = [product(each * column, u.T + 0.0) for column in w.T]
        sizes = product(abs(each), xp.max(abs(u), axis=0)[:, None] * abs(w))
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
        among, n = self.among(sites), len(sites.X)
        if sites.background is None:
            v = self.term.scale * self.term.v.diagonal(sites.X[:, list(sites.rest)])
        else:
            rows, weights = sites.others
            own = self.average(sites, rows) if self._same(rows) else None
            own = self.average_over(rows, weights, sites.rest, rows) if own is None else own
            v = namespace(rows).zeros(n) + product(weights, own)
        return rounded(v[:, None, None] * among)

    def _same(self, Z: Array) -> bool:
        return self.known is not None and self.known[1] is Z

    def between(self, sites: Curves, other: Curves) -> Bounded:
        if sites.background is not None:
            return self.prior_cov(sites)
        rest, v = list(sites.rest), self.term.v
        pairs = zip(sites.X[:, rest], other.X[:, rest], strict=True)
        values = [v(one[None], two[None])[0, 0] for one, two in pairs]
        values = self.term.scale * namespace(sites.X).stack(values)
        return rounded(values[:, None, None] * self.among(sites))
