"""Partial dependence of radial kernels, whose squared distance is a sum over both parts.

    Cov[𝒜_g f, f(z)]     = σ² u Σₖ wₖ v g(s + r²),       s = |grid_g − z_S|², r² = |xᵏ − z_R|²
    Cov[𝒜_g f, 𝒜_h f]  = σ² u Σₖₗ wₖwₗ v g(s + r²),    s = |grid_g − grid_h|², r² = |xᵏ − xˡ|²

Averages over many rows use a mixture of squared exponentials instead,

    g(s + r²) ≈ Σⱼ aⱼ exp(−s/2λⱼ) exp(−r²/2λⱼ)

The second factor is averaged once for each λⱼ and point, whatever the size of the grid. The errors
of the mixture and of its derivatives are certified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product, share, squared_distances, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.dependence.products import CurveTerm, Joint
from gpattr.closed_forms.shapley.mixtures import MIXTURE, RADIUS, mixture_of
from gpattr.closed_forms.table import Bounded, Formulas, rounded, rounded_cross, rounding
from gpattr.operators import Curves, PartialDependence
from gpattr.special.scale_mixtures import (
    ScaleMixture,
)

# Nodes, and nodes of all rows, beyond which a mixture takes less time.
SEVERAL, MANY = 14, 4096
TILE = (256, 512)  # background rows and points of which one squared exponential is evaluated
VANISHED = 1500.0  # exp(−½ ·) underflows


def radial_formulas(operator: PartialDependence, term: CurveTerm) -> Formulas:
    """Return the formulas of a term with a radial kernel of both parts."""
    assert term.joint is not None
    nodes = len(operator.grid) + (0 if operator.centre is None else len(operator.centre[0]))
    rows = 1 if operator.background is None else len(operator.background[0])
    if rows > 1 and nodes > SEVERAL and nodes * rows > MANY:
        return mixture_formulas(term, term.joint, 0 if operator.direction is None else 1)
    verbs = RadialCurves(term, term.joint)
    return Formulas(verbs.cross, verbs.contract, verbs.prior_cov, verbs.between)


@dataclass(frozen=True, eq=False)
class RadialCurves:
    """σ² u v g(s + r²), or its slopes along a direction in the first part.

    With e = Σ (x − z) direction/ℓ² over that part and D = Σ (direction/ℓ)², the slope of g is h e
    and the mixed one −(h D + b e²), with h = g'/r and b = h'/r.
    """

    term: CurveTerm
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


def mixture_formulas(term: CurveTerm, joint: Joint, derivatives: int) -> Formulas:
    """Return the formulas of an average over many rows, or of its slope."""
    verbs = MixtureCurves(term, joint, mixture_of(joint.kernel, derivatives))
    return Formulas(
        verbs.cross,
        verbs.contract,
        verbs.prior_cov,
        verbs.between,
        frozenset({MIXTURE}),
        verbs.bound if term.stationary else None,
    )


def steps(joint: Joint, sites: Curves, values: Array) -> tuple[Array, Array]:
    """Return s and e between nodes and values of their columns, (L, m) each.

    s is the squared distance in length-scales, and e = Σ (x − z) direction/ℓ² what slopes need.
    """
    xp, own = namespace(values), list(joint.u)
    scale = xp.asarray(joint.lengthscales(joint.inside))
    one, two = sites.nodes[:, own], values[:, own]
    s = squared_distances(one, two, scale)
    if sites.direction is None:
        return s, 0.0 * s
    along = sites.direction[own] / scale / scale
    return s, product(one, along)[:, None] - product(two, along)


def distances(joint: Joint, sites: Curves, one: Array, two: Array) -> Array:
    """Return r² in the columns that keep the values of rows, (n, m)."""
    own = [sites.rest[j] for j in joint.v]
    scale = joint.lengthscales(joint.outside)
    return squared_distances(one[:, own], two[:, own], scale)


def steepness(joint: Joint, sites: Curves) -> float:
    """Return D = Σ (direction/ℓ)², 1 where there is no direction."""
    if sites.direction is None:
        return 1.0
    xp = namespace(sites.X)
    scale = xp.asarray(joint.lengthscales(joint.inside))
    return float(((sites.direction[list(joint.u)] / scale) ** 2).sum())


@dataclass(eq=False)
class MixtureCurves:
    """σ² u v Σⱼ aⱼ exp(−(s + r²)/2λⱼ), or its slopes; averages at the data are remembered."""

    term: CurveTerm
    joint: Joint
    mixture: ScaleMixture
    known: list[tuple[Array, Array, Array]] = field(default_factory=list)

    @property
    def parts(self) -> list[tuple[float, float]]:
        """λⱼ and aⱼ; an infinite λ for the constant."""
        pairs = list(zip(self.mixture.scales.tolist(), self.mixture.weights.tolist(), strict=True))
        return pairs + [(float("inf"), self.mixture.constant)] * (self.mixture.constant > 0)

    def averages(self, sites: Curves, Z: Array) -> Array:
        """Return Σₖ wₖ v exp(−r²/2λⱼ) for all j and points, (J, m)."""
        rows, _ = sites.others
        for background, points, found in self.known:
            if background is rows and (points is Z or _equal(points, Z)):
                return found
        found = self._averages(sites, Z)
        self.known = [(rows, Z, found)]
        return found

    def _averages(self, sites: Curves, Z: Array) -> Array:
        (rows, _), xp = sites.others, namespace(Z)
        result = xp.zeros((len(self.parts), len(Z)))
        plain = type(Z) is np.ndarray
        height, width = TILE if plain else (len(rows), 4096)
        pieces = [slice(start, start + width) for start in range(0, len(Z), width)]

        def fill(points: slice) -> None:
            for start in range(0, len(rows), height):
                some = slice(start, start + height)
                result[:, points] += self._tile(sites, some, Z[points])

        share(fill, pieces, Z)
        return result

    def _tile(self, sites: Curves, some: slice, Z: Array) -> Array:
        """Return the part that some rows of the background have in the averages, (J, m)."""
        (rows, weights), xp, rest = sites.others, namespace(Z), list(sites.rest)
        rows, weights = rows[some], weights[some]
        r2 = distances(self.joint, sites, rows, Z)
        v = self.term.v(rows[:, rest], Z[:, rest]) if self.term.v.kernels else None
        positive = r2[r2 > 0]
        least = float(positive.min()) if positive.shape[0] else float("inf")
        same = xp.where(r2 == 0, 0.0 * r2 + 1.0, 0.0 * r2)
        result = xp.zeros((len(self.parts), len(Z)))
        for j, (scale, _) in enumerate(self.parts):
            if least / scale > VANISHED:
                values = same + 0.0
            else:
                values = r2 * (-0.5 / scale)
                xp.exp(values, out=values)
            if v is not None:
                values *= v
            result[j] = product(weights, values)
        return result

    def _spread(self, sites: Curves, s: Array, e: Array, scale: float, mixed: bool) -> Array:
        """Return exp(−s/2λ), or its slope −e/λ, or its mixed slope (D − e²/λ)/λ, times it."""
        values = namespace(s).exp(s * (-0.5 / scale))
        if sites.direction is None:
            return values
        if not mixed:
            return values * (e / -scale)
        return values * ((steepness(self.joint, sites) - e * e / scale) / scale)

    def _size(self, sites: Curves) -> float:
        return self.term.scale * float(self.joint.kernel.variance)

    def covariances(self, sites: Curves, Z: Array) -> Array:
        """Return the covariance with f at Z, (G, m)."""
        averages, own = self.averages(sites, Z), Z[:, list(sites.columns)]
        s, e = steps(self.joint, sites, own)
        total = namespace(Z).zeros(s.shape)
        for (scale, weight), average in zip(self.parts, averages, strict=True):
            total += self._spread(sites, s, e, scale, mixed=False) * (weight * average)
        total *= self._size(sites)
        return sites.combined(total * self.term.u(sites.nodes, own))

    def cross(self, sites: Curves, Z: Array) -> Bounded:
        values, xp, m = self.covariances(sites, Z), namespace(Z), len(Z)
        largest = xp.max(abs(values), axis=0)
        error = 64.0 * EPS * (largest * largest).sum() ** 0.5 + m**0.5 * self.error(sites, Z)
        n = len(sites.X)
        return Bounded(xp.zeros((n, 1, 1)) + values, xp.zeros(n) + error)

    def contract(self, sites: Curves, Z: Array, w: Array) -> Bounded:
        values, xp, n = self.covariances(sites, Z), namespace(Z), len(sites.X)
        error = 64.0 * EPS * product(abs(values), abs(w)).max()
        error = error + self.error(sites, Z) * abs(w).sum(axis=0).max()
        return Bounded(xp.zeros((n, 1, 1)) + product(values, w), xp.zeros(n) + error)

    def bound(self, sites: Curves, Z: Array, w: Array) -> Array:
        """Return the error of `contract`, where no value of the kernel exceeds its variance."""
        rounding = EPS * (64.0 + len(Z) ** 0.5) * self._largest(sites, Z)
        size = (rounding + self.error(sites, Z)) * abs(w).sum(axis=0).max()
        return namespace(Z).zeros(len(sites.X)) + size

    def prior_cov(self, sites: Curves) -> Bounded:
        (rows, weights), xp, n = sites.others, namespace(sites.X), len(sites.X)
        averages = product(self.averages(sites, rows), weights)
        s, e = steps(self.joint, sites, sites.nodes)
        total = xp.zeros(s.shape)
        for (scale, weight), average in zip(self.parts, averages, strict=True):
            total += self._spread(sites, s, e, scale, mixed=True) * (weight * average)
        total *= self._size(sites) * self.term.u(sites.nodes, sites.nodes)
        total = sites.combined(sites.combined(total).T).T
        error = 64.0 * EPS * abs(total).max() + 2.0 * self.error(sites, rows)
        return Bounded(xp.zeros((n, 1, 1)) + total, xp.zeros(n) + error)

    def between(self, sites: Curves, other: Curves) -> Bounded:
        return self.prior_cov(sites)

    def _largest(self, sites: Curves, Z: Array) -> float:
        """Return a bound on the size of all values, from the far corner of all points."""
        xp, (rows, _) = namespace(Z), sites.others
        corner = xp.maximum(xp.max(abs(rows), axis=0), xp.max(abs(Z), axis=0))
        corner[list(sites.columns)] = xp.maximum(
            corner[list(sites.columns)], xp.max(abs(sites.nodes), axis=0)
        )
        u = float(self.term.u.diagonal(corner[None, list(sites.columns)])[0])
        v = float(self.term.v.diagonal(corner[None, list(sites.rest)])[0])
        # A centred curve is a difference.
        return 2.0 * self._size(sites) * u * v * max(1.0, steepness(self.joint, sites))

    def error(self, sites: Curves, Z: Array) -> float:
        """Return a bound on the error of the mixture in any value."""
        bound, (rows, _) = self.mixture.bound, sites.others
        if self.mixture.constant > 0 and self._span(sites, rows, Z) > RADIUS:
            bound += self.mixture.constant
        return bound * self._largest(sites, Z)

    def _span(self, sites: Curves, rows: Array, Z: Array) -> float:
        """Return how many length-scales the points span."""
        xp = namespace(Z)
        high = xp.maximum(xp.max(rows, axis=0), xp.max(Z, axis=0))
        low = xp.minimum(xp.min(rows, axis=0), xp.min(Z, axis=0))
        own = list(sites.columns)
        high[own] = xp.maximum(high[own], xp.max(sites.nodes, axis=0))
        low[own] = xp.minimum(low[own], xp.min(sites.nodes, axis=0))
        apart = (high - low)[None]
        inside, outside = (
            squared_distances(
                apart[:, [columns[j] for j in places]],
                0.0 * apart[:, [columns[j] for j in places]],
                self.joint.lengthscales(positions),
            )
            for columns, places, positions in (
                (sites.columns, self.joint.u, self.joint.inside),
                (sites.rest, self.joint.v, self.joint.outside),
            )
        )
        return float(inside[0, 0] + outside[0, 0]) ** 0.5


def _equal(one: Array, two: Array) -> bool:
    return one.shape == two.shape and bool((one == two).all())
