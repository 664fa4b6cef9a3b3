"""Radial kernels as mixtures of squared exponentials over length-scales, with a certified error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr.closed_forms.shapley.factors import factor_of, variance_of
from gpattr.closed_forms.shapley.integrals import leave_one_out, shared
from gpattr.closed_forms.shapley.product import Contrast, PositiveProduct
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import (
    Kernel,
    Linear,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.operators import Coalitions, Players
from gpattr.special.scale_mixtures import (
    ScaleMixture,
    matern_mixture,
    rational_quadratic_mixture,
)

MIXED = 1e-12  # error of a mixture, relative to the variance of the kernel
NEGLIGIBLE = 1e-16  # likewise: a component that is smaller for all pairs of a tile is left out
RADIUS = 1e4  # length-scales within which a rational quadratic mixture has that error
PIECES = 4  # rows of a piece of work: as many as fit into a tile, for few calls
MIXTURE = "scale mixture"
Leaf = tuple[Kernel, tuple[int, ...]]  # a kernel and its columns


def mixture_of(kernel: Any, derivatives: int = 0) -> ScaleMixture:
    """Return a radial kernel as a mixture of squared exponentials with a certified error.

    The error also covers this many derivatives.
    """
    if isinstance(kernel, RationalQuadratic):
        return rational_quadratic_mixture(kernel.alpha, MIXED, derivatives, RADIUS)
    return matern_mixture(kernel.nu, MIXED, derivatives)


def components(
    mixture: ScaleMixture, leaf: Any, columns: tuple[int, ...]
) -> list[tuple[float, list[Leaf]]]:
    """Return the squared exponentials, and perhaps a constant, of which a radial kernel is made."""
    length, variance = np.asarray(leaf.lengthscale), variance_of(leaf)
    parts: list[tuple[float, list[Leaf]]] = [
        (variance * float(weight), [(SquaredExponential(length * scale**0.5), columns)])
        for scale, weight in zip(mixture.scales, mixture.weights, strict=True)
        if variance * weight > 0
    ]
    if mixture.constant > 0:
        parts.append((variance * mixture.constant, []))
    return parts


class MixtureError:
    """The certified error of a mixture for the rows and points of a call."""

    def __init__(self, mixture: ScaleMixture, kernel: Any, columns: tuple[int, ...]) -> None:
        self.mixture, self.kernel, self.columns = mixture, kernel, list(columns)

    def at(self, *rows: Array) -> float:
        """Return the bound for all distances between these rows; beyond the radius, the tail."""
        if self.mixture.constant == 0:
            return self.mixture.bound
        xp = namespace(rows[0])
        some = [part[:, self.columns] for part in rows]
        high = reduce(xp.maximum, (xp.max(part, axis=0) for part in some))
        low = reduce(xp.minimum, (xp.min(part, axis=0) for part in some))
        if float(self.kernel.n_lengthscales((high - low)[None, :])[0]) <= RADIUS:
            return self.mixture.bound
        return self.mixture.bound + self.mixture.constant


def bounded(leaf: Kernel) -> bool:
    """Return whether the largest value of a kernel in a box is its variance at the far corner."""
    return leaf.stationary or isinstance(leaf, (Linear, Polynomial))


def largest_value(leaves: list[Leaf], *rows: Array) -> float:
    """Return a bound on a product of kernels in a box with the corner c: |k(x, z)| ≤ k(c, c)."""
    xp = namespace(rows[0])
    corner = reduce(xp.maximum, (xp.max(abs(part), axis=0) for part in rows))[None]
    return prod(float(leaf.diagonal(corner[:, list(columns)])[0]) for leaf, columns in leaves)


def certified(
    inner: Formulas, errors: list[MixtureError], leaves: list[Leaf], scale: float, weight: float
) -> Formulas:
    """Return formulas with the error of a mixture: |φ − φ̃| ≤ 2σ² × the error of the kernel.

    2 is ``weight``, the sum of the absolute weights of coalitions, and σ² the largest value of the
    product of all ``leaves``, times ``scale``.
    """

    def extra(*rows: Array) -> float:
        size = scale * largest_value(leaves, *rows)
        return weight * size * sum(error.at(*rows) for error in errors)

    def cross(sites: Any, Z: Array) -> Bounded:
        value, error = inner.cross(sites, Z)
        return Bounded(value, error + len(Z) ** 0.5 * extra(sites.start, sites.stop, Z))

    def contract(sites: Any, Z: Array, w: Array) -> Bounded:
        value, error = inner.contract(sites, Z, w)
        return Bounded(value, error + mixed(sites, Z, w))

    def mixed(sites: Any, Z: Array, w: Array) -> float:
        return extra(sites.start, sites.stop, Z) * float(abs(w).sum(axis=0).max())

    def bound(sites: Any, Z: Array, w: Array) -> Array:
        assert inner.bound is not None
        return inner.bound(sites, Z, w) + mixed(sites, Z, w)

    def prior_cov(sites: Any) -> Bounded:
        value, error = inner.prior_cov(sites)
        return Bounded(value, error + weight * extra(sites.start, sites.stop))

    def between(sites: Any, other: Any) -> Bounded:
        value, error = inner.between(sites, other)
        rows = (sites.start, sites.stop, other.start, other.stop)
        return Bounded(value, error + weight * extra(*rows))

    known = None if inner.bound is None else bound
    return Formulas(cross, contract, prior_cov, between, frozenset({MIXTURE}), known)


def scaled_formulas(
    inner: Formulas,
    variance: float,
    mixture: ScaleMixture,
    leaf: Any,
    columns: tuple[int, ...],
    players: Players,
) -> Formulas:
    """Return the formulas ``inner`` of a mixture with covariances with data found together.

    Logarithms of squared exponentials of all length-scales are multiples of each other, so they are
    computed once for each pair of a row and a point.
    """
    unit = SquaredExponential(leaf.lengthscale, 1.0)
    factor = factor_of(unit, columns, players)
    assert factor is not None
    size = variance * variance_of(leaf)
    family = _Family(PositiveProduct(size, (factor,), players.count), mixture, inner)
    return replace(inner, cross=family.cross, contract=family.contract)


@dataclass(frozen=True, eq=False)
class _Family:
    """σ² Σⱼ wⱼ k(r²/λⱼ) for the squared exponential k, in units of its length-scale."""

    kernel: PositiveProduct
    mixture: ScaleMixture
    inner: Formulas

    def cross(self, sites: Coalitions, Z: Array) -> Bounded:
        if sites.weights is not None:  # means over draws are not multiples of each other
            return self.inner.cross(sites, Z)
        xp, n, m = namespace(Z), len(sites.stop), len(Z)
        result, places = xp.zeros((n, self.kernel.count, m)), self.kernel.players

        def fill(rows: slice) -> None:
            for part in self.kernel.logarithms(sites, Z, rows):
                for place, value in zip(places, self._values(part), strict=True):
                    result[part.rows, place, part.points] = value

        shared(fill, n, m, Z, values=PIECES)
        return Bounded(result, self._error(sites, Z, xp.zeros((1, 1)) + m**0.5))

    def contract(self, sites: Coalitions, Z: Array, w: Array) -> Bounded:
        if sites.weights is not None:
            return self.inner.contract(sites, Z, w)
        xp, n = namespace(Z), len(sites.stop)
        result, places = xp.zeros((n, self.kernel.count, w.shape[1])), self.kernel.players

        def add(rows: slice) -> None:
            for part in self.kernel.logarithms(sites, Z, rows):
                values = product(self._values(part), w[part.points])
                result[part.rows, places] += xp.swapaxes(values, 0, 1)

        shared(add, n, len(Z), Z, values=PIECES)
        return Bounded(result, self._error(sites, Z, w))

    def _error(self, sites: Coalitions, Z: Array, w: Array) -> Array:
        """Return the rounding of all components, and a bound on those that are left out."""
        assert self.inner.bound is not None
        left_out = 2.0 * NEGLIGIBLE * len(self.mixture.scales) * self.kernel.variance
        return self.inner.bound(sites, Z, w) + left_out * abs(w).sum(axis=0).max()

    def _values(self, part: Contrast) -> Array:
        """Return the Shapley values of all components for the pairs of a tile, (p, r, k)."""
        xp, total = namespace(part.c), namespace(part.c).zeros_like(part.c)
        for scale, weight in zip(
            self.mixture.scales.tolist(), self.mixture.weights.tolist(), strict=True
        ):
            top = (self.kernel.variance * weight) * xp.exp(part.top / scale)
            if float(top.max()) > NEGLIGIBLE * self.kernel.variance:
                total += leave_one_out(xp.tanh(part.c / scale), top)
        return total
