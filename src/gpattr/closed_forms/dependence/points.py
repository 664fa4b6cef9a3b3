"""Partial dependence of any kernel, basis or prior mean, from values at all nodes of all rows."""

from __future__ import annotations

from dataclasses import dataclass

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.bases import Basis
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.mean_gradients import gradient_of_basis
from gpattr.closed_forms.table import (
    BASES,
    MEANS,
    BasisFormulas,
    Bounded,
    Formulas,
    MeanFormulas,
    rounding,
)
from gpattr.exceptions import TooLargeError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Curves, Gradient, PartialDependence, Points

MOST = 5e9  # values of a kernel for one covariance: about a minute


def point_formulas(operator: PartialDependence, kernel: Kernel) -> Formulas:
    """Return the formulas of partial dependence for any kernel."""
    if operator.direction is not None:
        require_derivatives(kernel)
    verbs = _Verbs(kernel)
    return Formulas(verbs.cross, verbs.contract, verbs.prior_cov, verbs.between)


@dataclass(frozen=True, eq=False)
class _Verbs:
    """Values, or slopes, of a kernel at the points of curves."""

    kernel: Kernel

    def values(self, sites: Curves, rows: Array, Z: Array) -> Array:
        """Return k at these rows with all nodes, and Z: (r, L, m)."""
        points = sites.points(rows)
        r, L, D = points.shape
        flat = points.reshape(r * L, D)
        if sites.direction is None:
            return self.kernel(flat, Z).reshape(r, L, len(Z))
        left = differentiate(self.kernel, flat[:, None, :], Z).left[:, :, list(sites.columns)]
        return (left @ sites.direction).reshape(r, L, len(Z))

    def cross(self, sites: Curves, Z: Array) -> Bounded:
        values, sizes = self._crossed(sites, Z)
        return Bounded(values, 32.0 * EPS * (sizes * sizes).sum(axis=1) ** 0.5)

    def _crossed(self, sites: Curves, Z: Array) -> tuple[Array, Array]:
        """Return covariances with data, (n, G, m), and their size before averages, (n, m)."""
        xp, n, L, m = namespace(Z), len(sites.X), len(sites.nodes), len(Z)
        if sites.background is None:
            values = self.values(sites, sites.X, Z)  # (n, L, m)
            return sites.combined(values, axis=1), sites.sizes(xp.swapaxes(values, 0, 1))
        rows, weights = sites.others
        total, size = xp.zeros((L, m)), xp.zeros((L, m))
        for some in blocks(len(rows), self._bytes(sites, m), Z):
            part = self.values(sites, rows[some], Z).reshape(-1, L * m)
            total += product(weights[some], part).reshape(L, m)
            size += product(abs(weights[some]), abs(part)).reshape(L, m)
        total, size = sites.combined(total), sites.sizes(size)
        return xp.zeros((n, *total.shape)) + total, xp.zeros((n, m)) + size

    def _bytes(self, sites: Curves, m: int) -> float:
        slopes = 1 if sites.direction is None else 4 * sites.X.shape[1]
        return 32.0 * slopes * len(sites.nodes) * m

    def contract(self, sites: Curves, Z: Array, w: Array) -> Bounded:
        xp = namespace(Z)
        if sites.background is not None:
            some, sizes = self._crossed(sites[slice(1)], Z)
            zeros = xp.zeros((len(sites.X), 1, 1))
            error = zeros[:, 0, 0] + rounding(sizes[:, None], w)
            return Bounded(zeros + product(some, w), error)
        parts = []
        for rows in blocks(len(sites.X), self._bytes(sites, len(Z)), Z):
            terms, sizes = self._crossed(sites[rows], Z)
            parts.append(Bounded(product(terms, w), rounding(sizes[:, None], w)))
        return Bounded(*(xp.concatenate(part) for part in zip(*parts, strict=True)))

    def prior_cov(self, sites: Curves) -> Bounded:
        return self.between(sites, sites)

    def between(self, sites: Curves, other: Curves) -> Bounded:
        xp, n = namespace(sites.X), len(sites.X)
        if sites.background is not None:
            total, size = self._averaged(sites)
            zeros, size = xp.zeros((n, 1, 1)), self._size(sites, size)
            return Bounded(zeros + self._combined(sites, total), zeros[:, 0, 0] + size)
        pairs = zip(sites.X, other.X, strict=True)
        found = [self._pairs(sites, one[None], two[None])[0, :, 0, :] for one, two in pairs]
        errors = xp.stack([self._size(sites, abs(values)) for values in found])
        return Bounded(xp.stack([self._combined(sites, values) for values in found]), errors)

    @staticmethod
    def _combined(sites: Curves, values: Array) -> Array:
        """Return covariances between outputs, (G, G), from covariances between nodes, (L, L)."""
        return sites.combined(sites.combined(values).T).T

    @staticmethod
    def _size(sites: Curves, size: Array) -> Array:
        """Return a bound on the rounding of outputs, for the sizes (L, L) of their terms."""
        return 64.0 * EPS * (1.0 if sites.combine is None else 4.0) * size.max()

    def _averaged(self, sites: Curves) -> tuple[Array, Array]:
        """Return the covariance between the nodes of an average, and its size, (L, L) each."""
        (rows, weights), L = sites.others, len(sites.nodes)
        if (values := (len(rows) * float(L)) ** 2) > MOST:
            raise TooLargeError(
                f"background: {len(rows)} rows with {L} values each take {values:.0e} values of a"
                f" {type(self.kernel).__name__}, which is no product over features; use fewer rows,"
                ' a smaller grid, or uncertainty="none"'
            )
        xp = namespace(rows)
        total, size = xp.zeros((L, L)), xp.zeros((L, L))
        step = max(1, int(2e6 / L) // (L * (4 * rows.shape[1] if self._sloped(sites) else 1)))
        for i in range(0, len(rows), step):
            for j in range(0, len(rows), step):
                one, two = slice(i, i + step), slice(j, j + step)
                part = self._pairs(sites, rows[one], rows[two])
                total += xp.einsum("i,iljm,j->lm", weights[one], part, weights[two])
                size += xp.einsum("i,iljm,j->lm", abs(weights[one]), abs(part), abs(weights[two]))
        return total, size

    @staticmethod
    def _sloped(sites: Curves) -> bool:
        return sites.direction is not None

    def _pairs(self, sites: Curves, one: Array, two: Array) -> Array:
        """Return k, or its mixed slopes, between rows at all nodes, (r, L, s, L)."""
        left, right = sites.points(one), sites.points(two)
        (r, L, D), s = left.shape, len(two)
        left, right = left.reshape(-1, D), right.reshape(-1, D)
        if sites.direction is None:
            values = self.kernel(left, right)
        else:
            mixed = differentiate(self.kernel, left[:, None, :], right, True).mixed
            own = list(sites.columns)
            values = mixed[:, :, own][:, :, :, own] @ sites.direction @ sites.direction
        return values.reshape(r, L, s, L)


def basis_formulas(operator: PartialDependence, basis: Basis) -> BasisFormulas:
    """Return the formulas of partial dependence for any basis."""
    slopes = None if operator.direction is None else gradient_of_basis(Gradient(), basis).images

    def values(sites: Curves, rows: Array) -> Array:
        """Return φ, or its slopes, at these rows with all nodes, (r, L, p)."""
        points = sites.points(rows)
        r, L, D = points.shape
        flat = points.reshape(r * L, D)
        if slopes is None or sites.direction is None:
            return basis(flat).reshape(r, L, -1)
        gradient = slopes(Points(flat))[:, list(sites.columns)]  # (rL, c, p)
        return (sites.direction[:, None] * gradient).sum(axis=1).reshape(r, L, -1)

    def summed(sites: Curves) -> tuple[Array, Array]:
        """Return 𝒜φ, (n, G, p), and its size before anything cancels, (n, p)."""
        xp, L, p = namespace(sites.X), len(sites.nodes), len(basis)
        if sites.background is None:
            found = values(sites, sites.X)
            return sites.combined(found, axis=1), sites.sizes(xp.swapaxes(found, 0, 1))
        rows, weights = sites.others
        total, size = xp.zeros((L, p)), xp.zeros((L, p))
        width = 1 if slopes is None else 1 + sites.X.shape[1]
        for some in blocks(len(rows), 32.0 * L * p * width, rows):
            part = values(sites, rows[some]).reshape(-1, L * p)
            total += product(weights[some], part).reshape(L, p)
            size += product(abs(weights[some]), abs(part)).reshape(L, p)
        zeros = xp.zeros((len(sites.X), 1, 1))
        return zeros + sites.combined(total), zeros[:, 0] + sites.sizes(size)

    def images(sites: Curves) -> Array:
        return summed(sites)[0]

    def contract(sites: Curves, w: Array) -> tuple[Array, Array]:
        found, size = summed(sites)
        sizes = namespace(found).zeros(found.shape[:2]) + product(size, abs(w))[:, None]
        return product(found, w), sizes

    return BasisFormulas(images, contract)


BASES[PartialDependence, Basis] = basis_formulas


def mean_formulas(operator: PartialDependence, mean: Mean) -> MeanFormulas:
    """Return the formulas of partial dependence for any prior mean."""

    def values(sites: Curves, rows: Array) -> Array:
        """Return m, or its slope, at these rows with all nodes, (r, L)."""
        points = sites.points(rows)
        r, L, D = points.shape
        flat = points.reshape(r * L, D)
        if sites.direction is None:
            return mean(flat).reshape(r, L)
        gradient = mean.gradient(flat)[:, list(sites.columns)]
        return product(gradient, sites.direction).reshape(r, L)

    def apply(sites: Curves) -> Bounded:
        xp, n, L = namespace(sites.X), len(sites.X), len(sites.nodes)
        if sites.background is None:
            value = xp.concatenate(
                [
                    values(sites, sites.X[some])
                    for some in blocks(n, 24.0 * L * sites.X.shape[1], sites.X)
                ]
            )
            error = 64.0 * EPS * sites.sizes(value.T + 0.0)
            return Bounded(sites.combined(value.T + 0.0).T, error)
        rows, weights = sites.others
        total, size = xp.zeros(L), xp.zeros(L)
        for some in blocks(len(rows), 24.0 * L * rows.shape[1], rows):
            part = values(sites, rows[some])
            total += product(weights[some], part)
            size += product(abs(weights[some]), abs(part))
        error = 64.0 * EPS * sites.sizes(size)
        return Bounded(xp.zeros((n, 1)) + sites.combined(total), xp.zeros(n) + error)

    return MeanFormulas(apply)


MEANS[PartialDependence, Mean] = mean_formulas
