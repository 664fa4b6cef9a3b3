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
