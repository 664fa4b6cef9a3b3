"""Partial dependence of any kernel, from its values at all nodes of all rows."""

from __future__ import annotations

from dataclasses import dataclass

from gpattr._core.array import Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.table import Bounded, Formulas, rounded, rounded_cross, rounding
from gpattr.exceptions import TooLargeError
from gpattr.kernels import Kernel
from gpattr.operators import Curves, PartialDependence

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
        xp, n, L, m = namespace(Z), len(sites.X), len(sites.nodes), len(Z)
        if sites.background is None:
            values = self.values(sites, sites.X, Z)  # (n, L, m)
            if sites.combine is not None:
                values = sites.combine @ values
            return rounded_cross(values)
        rows, weights = sites.others
        total = xp.zeros((L, m))
        for some in blocks(len(rows), self._bytes(sites, m), Z):
            part = self.values(sites, rows[some], Z)
            total += product(weights[some], part.reshape(len(part), -1)).reshape(L, m)
        total = sites.combined(total)
        return rounded_cross(xp.zeros((n, *total.shape)) + total)

    def _bytes(self, sites: Curves, m: int) -> float:
        slopes = 1 if sites.direction is None else 4 * sites.X.shape[1]
        return 32.0 * slopes * len(sites.nodes) * m

    def contract(self, sites: Curves, Z: Array, w: Array) -> Bounded:
        if sites.background is not None:
            some = self.cross(sites[slice(1)], Z).value
            zeros = namespace(Z).zeros((len(sites.X), 1, 1))
            return Bounded(zeros + product(some, w), zeros[:, 0, 0] + rounding(some, w))
        parts = []
        for rows in blocks(len(sites.X), self._bytes(sites, len(Z)), Z):
            terms = self.cross(sites[rows], Z).value
            parts.append(Bounded(product(terms, w), rounding(terms, w)))
        xp = namespace(Z)
        return Bounded(*(xp.concatenate(part) for part in zip(*parts, strict=True)))

    def prior_cov(self, sites: Curves) -> Bounded:
        return self.between(sites, sites)

    def between(self, sites: Curves, other: Curves) -> Bounded:
        xp, n = namespace(sites.X), len(sites.X)
        if sites.background is not None:
            whole = self._averaged(sites)
            return rounded(xp.zeros((n, *whole.shape)) + whole)
        pairs = zip(sites.X, other.X, strict=True)
        return rounded(xp.stack([self._among(sites, one[None], two[None]) for one, two in pairs]))

    def _averaged(self, sites: Curves) -> Array:
        """Return the covariance between the outputs of an average, (G, G)."""
        (rows, weights), L = sites.others, len(sites.nodes)
        if (size := (len(rows) * float(L)) ** 2) > MOST:
            raise TooLargeError(
                f"background: {len(rows)} rows with {L} values each take {size:.0e} values of a"
                f" {type(self.kernel).__name__}, which is no product over features; use fewer rows,"
                ' a smaller grid, or uncertainty="none"'
            )
        total = namespace(rows).zeros((L, L))
        step = max(1, int(2e6 / L) // (L * (4 * rows.shape[1] if self._sloped(sites) else 1)))
        for i in range(0, len(rows), step):
            for j in range(0, len(rows), step):
                one, two = slice(i, i + step), slice(j, j + step)
                part = self._pairs(sites, rows[one], rows[two])
                total += namespace(rows).einsum("i,iljm,j->lm", weights[one], part, weights[two])
        half = sites.combined(total)
        return sites.combined(half.T).T

    @staticmethod
    def _sloped(sites: Curves) -> bool:
        return sites.direction is not None

    def _among(self, sites: Curves, one: Array, two: Array) -> Array:
        half = sites.combined(self._pairs(sites, one, two)[0, :, 0, :])
        return sites.combined(half.T).T

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
