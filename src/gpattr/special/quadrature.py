"""Gauss–Legendre panels on [0, 1], with an error estimate from a second rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gpattr._array import EPS, Array


@lru_cache(maxsize=256)
def gauss_legendre(order: int, panels: int = 1) -> tuple[Array, Array]:
    """Return nodes and weights, both (panels · order,), of the composite Gauss–Legendre rule on [0, 1].

    Exact for polynomials of degree 2·order − 1 on each of the equal panels. The arrays are shared and read-only.
    """
    x, w = np.polynomial.legendre.leggauss(order)
    nodes = ((np.arange(panels)[:, None] + (1.0 + x) / 2.0) / panels).ravel()
    weights = np.tile(w / (2.0 * panels), panels)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


def integrate(
    f: Callable[[Array], Array], *, order: int = 16, tolerance: float = 1e-13, max_panels: int = 256
) -> tuple[Array, Array]:
    """Return ∫₀¹ f(t) dt and an estimate of its error, by doubling Gauss–Legendre panels.

    ``f`` maps nodes (T,) to values (T, ...). The number of panels doubles until two successive rules agree to ``tolerance``
    relative to ∫|f|, or ``max_panels`` is reached. The error, of the shape of the value, is the difference of the last
    two rules (so that of the coarser one) plus the rounding of the sum; where the tolerance could not be met it is
    correspondingly large, never hidden.
    """
    panels, coarse = 1, None
    while True:
        nodes, weights = gauss_legendre(order, panels)
        values = np.asarray(f(nodes), dtype=np.float64)
        value = np.tensordot(weights, values, axes=1)
        size = np.tensordot(weights, np.abs(values), axes=1)
        if coarse is not None:
            difference = np.abs(value - coarse)
            if panels >= max_panels or np.all(difference <= tolerance * size):
                return value, difference + 8 * EPS * size
        coarse, panels = value, 2 * panels
