"""Partial dependence of prior means, from their values at all nodes of all rows."""

from __future__ import annotations

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.table import MEANS, Bounded, MeanFormulas
from gpattr.means import Mean
from gpattr.operators import Curves, PartialDependence


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
