"""Averages of radial kernels over many rows, as mixtures of squared exponentials.

    g(s + r²) ≈ Σⱼ aⱼ exp(−s/2λⱼ) exp(−r²/2λⱼ)

The second factor is averaged once for each λⱼ and point, whatever the size of the grid. The error
of the mixture is certified, that of its derivatives too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product, share, squared_distances
from gpattr.closed_forms.dependence.splitting import Joint, Term
from gpattr.closed_forms.shapley.mixtures import MIXED, MIXTURE, RADIUS
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import RationalQuadratic
from gpattr.operators import Curves
from gpattr.special.scale_mixtures import (
    ScaleMixture,
    matern_mixture,
    rational_quadratic_mixture,
)

TILE = (256, 512)  # background rows and points of which one squared exponential is evaluated
VANISHED = 1500.0  # exp(−½ ·) underflows


def mixture_formulas(term: Term, joint: Joint, derivatives: int) -> Formulas:
    """Return the formulas of an average over many rows, or of its slope."""
    kernel: Any = joint.kernel
    if isinstance(kernel, RationalQuadratic):
        mixture = rational_quadratic_mixture(kernel.alpha, MIXED, derivatives, RADIUS)
    else:
        mixture = matern_mixture(kernel.nu, MIXED, derivatives)
    verbs = _Verbs(term, joint, mixture)
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
class _Verbs:
    """σ² u v Σⱼ aⱼ exp(−(s + r²)/2λⱼ), or its slopes; averages at the data are remembered."""

    term: Term
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
