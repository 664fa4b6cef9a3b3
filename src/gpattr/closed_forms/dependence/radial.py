"""Partial dependence of radial kernels, whose squared distance is a sum over both parts.

    Cov[𝒜_g f, f(z)]     = σ² u Σₖ wₖ v g(s + r²),       s = |grid_g − z_S|², r² = |xᵏ − z_R|²
    Cov[𝒜_g f, 𝒜_h f]  = σ² u Σₖₗ wₖwₗ v g(s + r²),    s = |grid_g − grid_h|², r² = |xᵏ − xˡ|²

Grids with equal steps have few different s. Where there are many, a mixture of squared exponentials
replaces g, whose error is certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product, squared_distances, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.algebra import added
from gpattr.closed_forms.dependence.products import product_formulas
from gpattr.closed_forms.dependence.splitting import Joint, Term, without_joint
from gpattr.closed_forms.shapley.mixtures import MIXTURE, RADIUS, mixture_of
from gpattr.closed_forms.table import Bounded, Formulas, rounded, rounded_cross, rounding
from gpattr.operators import Curves, PartialDependence

SEVERAL = 64  # nodes, or different distances, from which a mixture takes less time


def radial_formulas(operator: PartialDependence, term: Term) -> Formulas:
    """Return the formulas of a term with a radial kernel of both parts."""
    assert term.joint is not None
    verbs = _Verbs(term, term.joint)
    direct = Formulas(verbs.cross, verbs.contract, verbs.prior_cov, verbs.between)
    if operator.direction is not None:
        return direct
    nodes = len(operator.grid) + (0 if operator.centre is None else len(operator.centre[0]))
    averaged = operator.background is not None and len(operator.background[0]) > 1
    if not averaged:
        return direct
    mixed = _mixture(term)
    if nodes > SEVERAL:
        return mixed
    if _different(operator.grid) > SEVERAL or operator.centre is not None:
        return replace(
            direct,
            prior_cov=mixed.prior_cov,
            between=mixed.between,
            methods=direct.methods | mixed.methods,
        )
    return direct


def _different(grid: Array) -> int:
    """Return how many different distances a grid has, as far as length-scales do not matter."""
    nodes = to_numpy(grid)
    steps = np.abs(nodes[:, None, :] - nodes[None]).reshape(-1, nodes.shape[1])
    size = np.maximum(steps.max(axis=0), 1e-300)
    return len(np.unique(np.round(steps / size, 10), axis=0))


def _mixture(term: Term) -> Formulas:
    """Return the formulas of a mixture of squared exponentials, with its certified error."""
    assert term.joint is not None
    kernel, v = term.joint.kernel, float(term.joint.kernel.variance)
    mixture = mixture_of(kernel)
    parts = [
        product_formulas(without_joint(term, scale**0.5, v * weight))
        for scale, weight in zip(mixture.scales, mixture.weights, strict=True)
        if v * weight > 0
    ]
    if mixture.constant > 0:
        constant = replace(term, scale=term.scale * v * mixture.constant, joint=None)
        parts.append(product_formulas(constant))
    inner = added(parts)

    def error(sites: Curves, Z: Array | None) -> float:
        """Return a bound on the error of an output: that of the kernel, with its factors."""
        xp, rows = namespace(sites.X), sites.X if sites.background is None else sites.background
        everything = [rows] if Z is None else [rows, Z]
        corner = xp.max(abs(xp.concatenate(everything)), axis=0)[None]
        u = _largest(term.u.diagonal, [sites.nodes, corner[:, list(sites.columns)]])
        size = 2.0 * term.scale * v * u * float(term.v.diagonal(corner[:, list(sites.rest)])[0])
        far = float(kernel.n_lengthscales(2.0 * corner)[0]) > RADIUS
        return size * (mixture.bound + (mixture.constant if far else 0.0))

    def cross(sites: Curves, Z: Array) -> Bounded:
        value, bound = inner.cross(sites, Z)
        return Bounded(value, bound + len(Z) ** 0.5 * error(sites, Z))

    def contract(sites: Curves, Z: Array, w: Array) -> Bounded:
        value, bound = inner.contract(sites, Z, w)
        return Bounded(value, bound + error(sites, Z) * float(abs(w).sum(axis=0).max()))

    def prior_cov(sites: Curves) -> Bounded:
        value, bound = inner.prior_cov(sites)
        return Bounded(value, bound + 2.0 * error(sites, None))

    def between(sites: Curves, other: Curves) -> Bounded:
        value, bound = inner.between(sites, other)
        return Bounded(value, bound + 2.0 * error(sites, None))

    return Formulas(cross, contract, prior_cov, between, frozenset({MIXTURE}))


def _largest(diagonal: Callable[[Array], Array], places: list[Array]) -> float:
    return max(float(diagonal(part).max()) for part in places)


@dataclass(frozen=True, eq=False)
class _Verbs:
    """σ² u v g(s + r²), or its slopes along a direction in the first part.

    With e = Σ (x − z) direction/ℓ² over that part and D = Σ (direction/ℓ)², the slope of g is h e
    and the mixed one −(h D + b e²), with h = g'/r and b = h'/r.
    """

    term: Term
    joint: Joint

    def distances(self, sites: Curves, one: Array, two: Array) -> Array:
        """Return r² in the columns that keep the values of rows, (n, m)."""
        own = [sites.rest[j] for j in self.joint.v]
        scale = self.joint.lengthscales(self.joint.outside)
        return squared_distances(one[:, own], two[:, own], scale)

    def steps(self, sites: Curves, values: Array) -> tuple[Array, Array]:
        """Return s and e between nodes and values of their columns, (L, m) each."""
        xp, own = namespace(values), list(self.joint.u)
        scale = xp.asarray(self.joint.lengthscales(self.joint.inside))
        one, two = sites.nodes[:, own], values[:, own]
        s = squared_distances(one, two, scale)
        if sites.direction is None:
            return s, 0.0 * s
        along = sites.direction[own] / scale / scale
        return s, product(one, along)[:, None] - product(two, along)

    def values(self, sites: Curves, r2: Array, e: Array) -> Array:
        """Return σ² g or its slope."""
        scale, kernel = self.term.scale * float(self.joint.kernel.variance), self.joint.kernel
        if sites.direction is None:
            return scale * kernel.profile(r2)
        return scale * kernel.slope(r2) * e

    def mixed(self, sites: Curves, r2: Array, e: Array) -> Array:
        """Return σ² g or its mixed slope."""
        scale, kernel = self.term.scale * float(self.joint.kernel.variance), self.joint.kernel
        if sites.direction is None:
            return scale * kernel.profile(r2)
        along = sites.direction[list(self.joint.u)]
        own = namespace(r2).asarray(self.joint.lengthscales(self.joint.inside))
        D = ((along / own) ** 2).sum()
        _, h, b = kernel.profiles(r2, True)
        return -scale * (h * D + b * e * e)

    def cross(self, sites: Curves, Z: Array) -> Bounded:
        xp, n, m = namespace(Z), len(sites.X), len(Z)
        rest, own = list(sites.rest), Z[:, list(sites.columns)]
        s, e = self.steps(sites, own)
        u = self.term.u(sites.nodes, own)
        if sites.background is None:
            r2, v = self.distances(sites, sites.X, Z), self.term.v(sites.X[:, rest], Z[:, rest])
            values = self.values(sites, r2[:, None, :] + s, e) * u * v[:, None, :]
            return rounded_cross(values if sites.combine is None else sites.combine @ values)
        rows, weights = sites.others
        total = xp.zeros((len(s), m))
        for some in blocks(len(rows), 96.0 * m, Z):
            r2 = self.distances(sites, rows[some], Z)
            v = self.term.v(rows[some][:, rest], Z[:, rest]) * weights[some][:, None]
            for node in range(len(s)):
                part = self.values(sites, r2 + s[node], e[node])
                part *= v
                total[node] += part.sum(axis=0)
        return rounded_cross(xp.zeros((n, 1, 1)) + sites.combined(total * u))

    def contract(self, sites: Curves, Z: Array, w: Array) -> Bounded:
        xp = namespace(Z)
        if sites.background is not None:
            some = self.cross(sites[slice(1)], Z).value
            zeros = xp.zeros((len(sites.X), 1, 1))
            return Bounded(zeros + product(some, w), zeros[:, 0, 0] + rounding(some, w))
        parts = []
        for rows in blocks(len(sites.X), 48.0 * len(sites.nodes) * len(Z), Z):
            terms = self.cross(sites[rows], Z).value
            parts.append(Bounded(product(terms, w), rounding(terms, w)))
        return Bounded(*(xp.concatenate(part) for part in zip(*parts, strict=True)))

    def prior_cov(self, sites: Curves) -> Bounded:
        if sites.background is None:
            v = self.term.v.diagonal(sites.X[:, list(sites.rest)])
            return rounded(v[:, None, None] * self._among(sites, 0.0))
        return self.between(sites, sites)

    def between(self, sites: Curves, other: Curves) -> Bounded:
        xp, n, rest = namespace(sites.X), len(sites.X), list(sites.rest)
        if sites.background is not None:
            return rounded(xp.zeros((n, 1, 1)) + self._averaged(sites))
        result = []
        for one, two in zip(sites.X, other.X, strict=True):
            v = self.term.v(one[None, rest], two[None, rest])[0, 0]
            r2 = self.distances(sites, one[None], two[None])[0, 0]
            result.append(v * self._among(sites, r2))
        return rounded(xp.stack(result))

    def _among(self, sites: Curves, r2: Any) -> Array:
        """Return the covariance between the outputs for one r², (G, G)."""
        s, e = self.steps(sites, sites.nodes)
        values = self.mixed(sites, s + r2, e) * self.term.u(sites.nodes, sites.nodes)
        return sites.combined(sites.combined(values).T).T

    def _averaged(self, sites: Curves) -> Array:
        """Return the covariance between the outputs of an average, (G, G)."""
        (rows, weights), rest = sites.others, list(sites.rest)
        xp, (s, e) = namespace(rows), self.steps(sites, sites.nodes)
        largest = max(float(s.max()), 1e-300)
        _, first, index = np.unique(
            np.round(to_numpy(s) / largest, 12), return_index=True, return_inverse=True
        )
        distinct, along = s.reshape(-1)[first], e.reshape(-1)[first]
        sums = xp.zeros(len(first))
        for some in blocks(len(rows), 96.0 * len(rows), rows):
            r2 = self.distances(sites, rows[some], rows)
            v = self.term.v(rows[some][:, rest], rows[:, rest])
            v *= weights[some][:, None] * weights
            for i in range(len(first)):
                sums[i] += (self.mixed(sites, r2 + distinct[i], along[i]) * v).sum()
        values = sums[index.reshape(-1)].reshape(s.shape)
        values = values * self.term.u(sites.nodes, sites.nodes)
        return sites.combined(sites.combined(values).T).T
