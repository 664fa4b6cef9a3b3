"""Partial dependence of basis functions, from their values at all nodes of all rows."""

from __future__ import annotations

from gpattr._core.array import Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.bases import Basis
from gpattr.closed_forms.mean_gradients import gradient_of_basis
from gpattr.closed_forms.table import BASES, BasisFormulas
from gpattr.operators import Curves, Gradient, PartialDependence, Points


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

    def images(sites: Curves) -> Array:
        xp, L, p = namespace(sites.X), len(sites.nodes), len(basis)
        if sites.background is None:
            found = values(sites, sites.X)
            return found if sites.combine is None else sites.combine @ found
        rows, weights = sites.others
        total = xp.zeros((L, p))
        size = 1 if slopes is None else 1 + sites.X.shape[1]
        for some in blocks(len(rows), 24.0 * L * p * size, rows):
            part = values(sites, rows[some])
            total += product(weights[some], part.reshape(len(part), -1)).reshape(L, p)
        return xp.zeros((len(sites.X), 1, 1)) + sites.combined(total)

    def contract(sites: Curves, w: Array) -> tuple[Array, Array]:
        found = images(sites)
        return product(found, w), product(abs(found), abs(w))

    return BasisFormulas(images, contract)


BASES[PartialDependence, Basis] = basis_formulas
