"""Partial dependence of radial kernels, whose squared distance is a sum over both parts.

    Cov[𝒜_g f, f(z)]     = σ² u Σₖ wₖ v g(s + r²),       s = |grid_g − z_S|², r² = |xᵏ − z_R|²
    Cov[𝒜_g f, 𝒜_h f]  = σ² u Σₖₗ wₖwₗ v g(s + r²),    s = |grid_g − grid_h|², r² = |xᵏ − xˡ|²

Averages over many rows are those of a mixture of squared exponentials instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.dependence.mixtures import (
    distances,
    mixture_formulas,
    steepness,
    steps,
)
from gpattr.closed_forms.dependence.splitting import Joint, Term
from gpattr.closed_forms.table import Bounded, Formulas, rounded, rounded_cross, rounding
from gpattr.operators import Curves, PartialDependence

# Nodes, and nodes of all rows, beyond which a mixture takes less time.
SEVERAL, MANY = 14, 4096


def radial_formulas(operator: PartialDependence, term: Term) -> Formulas:
    """Return the formulas of a term with a radial kernel of both parts."""
    assert term.joint is not None
    nodes = len(operator.grid) + (0 if operator.centre is None else len(operator.centre[0]))
    rows = 1 if operator.background is None else len(operator.background[0])
    if rows > 1 and nodes > SEVERAL and nodes * rows > MANY:
        return mixture_formulas(term, term.joint, 0 if operator.direction is None else 1)
    verbs = _Verbs(term, term.joint)
    return Formulas(verbs.cross, verbs.contract, verbs.prior_cov, verbs.between)


@dataclass(frozen=True, eq=False)
class _Verbs:
    """σ² u v g(s + r²), or its slopes along a direction in the first part.

    With e = Σ (x − z) direction/ℓ² over that part and D = Σ (direction/ℓ)², the slope of g is h e
    and the mixed one −(h D + b e²), with h = g'/r and b = h'/r.
    """

    term: Term
    joint: Joint

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
        _, h, b = kernel.profiles(r2, True)
        return -scale * (h * steepness(self.joint, sites) + b * e * e)

    def cross(self, sites: Curves, Z: Array) -> Bounded:
        xp, n, m = namespace(Z), len(sites.X), len(Z)
        rest, own = list(sites.rest), Z[:, list(sites.columns)]
        s, e = steps(self.joint, sites, own)
        u = self.term.u(sites.nodes, own)
        if sites.background is None:
            r2, v = (
                distances(self.joint, sites, sites.X, Z),
                self.term.v(sites.X[:, rest], Z[:, rest]),
            )
            values = self.values(sites, r2[:, None, :] + s, e) * u * v[:, None, :]
            return rounded_cross(values if sites.combine is None else sites.combine @ values)
        rows, weights = sites.others
        total = xp.zeros((len(s), m))
        for some in blocks(len(rows), 96.0 * m, Z):
            r2 = distances(self.joint, sites, rows[some], Z)
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
            r2 = distances(self.joint, sites, one[None], two[None])[0, 0]
            result.append(v * self._among(sites, r2))
        return rounded(xp.stack(result))

    def _among(self, sites: Curves, r2: Any) -> Array:
        """Return the covariance between the outputs for one r², (G, G)."""
        s, e = steps(self.joint, sites, sites.nodes)
        values = self.mixed(sites, s + r2, e) * self.term.u(sites.nodes, sites.nodes)
        return sites.combined(sites.combined(values).T).T

    def _averaged(self, sites: Curves) -> Array:
        """Return the covariance between the outputs of an average, (G, G)."""
        (rows, weights), rest = sites.others, list(sites.rest)
        xp, (s, e) = namespace(rows), steps(self.joint, sites, sites.nodes)
        largest = max(float(s.max()), 1e-300)
        _, first, index = np.unique(
            np.round(to_numpy(s) / largest, 12), return_index=True, return_inverse=True
        )
        distinct, along = s.reshape(-1)[first], e.reshape(-1)[first]
        sums = xp.zeros(len(first))
        for some in blocks(len(rows), 96.0 * len(rows), rows):
            r2 = distances(self.joint, sites, rows[some], rows)
            v = self.term.v(rows[some][:, rest], rows[:, rest])
            v *= weights[some][:, None] * weights
            for i in range(len(first)):
                sums[i] += (self.mixed(sites, r2 + distinct[i], along[i]) * v).sum()
        values = sums[index.reshape(-1)].reshape(s.shape)
        values = values * self.term.u(sites.nodes, sites.nodes)
        return sites.combined(sites.combined(values).T).T
