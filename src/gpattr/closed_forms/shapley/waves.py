"""Shapley values of the cosine kernel: those of one sine and one cosine.

σ² cos(v·(x − z)) = σ² φ(x)·φ(z) with the two functions φ(x) = [sin v·(x − o), cos v·(x − o)], so
that nothing but their Shapley values at rows is needed, whatever the number of points.
"""

from __future__ import annotations

import math

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product, to_numpy
from gpattr.bases import Fourier
from gpattr.closed_forms.shapley.basis_factors import WaveFactors
from gpattr.closed_forms.shapley.basis_products import images_of
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Cosine
from gpattr.operators import Coalitions, Players


def wave_formulas(
    variance: float, kernel: Cosine, columns: tuple[int, ...], players: Players
) -> Formulas:
    """Return the formulas of Shapley values for σ² times a cosine kernel of some columns."""
    some, scale = list(columns), variance * kernel.variance
    period = np.broadcast_to(np.asarray(kernel.period), (len(columns),))

    def waves(sites: Coalitions, origin: Array) -> tuple[Fourier, Array, Array]:
        """Return the two functions, seen from the origin, their images, and the size of these."""
        basis = Fourier(2.0 * math.pi / period[None, :], to_numpy(origin[some]))
        inside = sites.select(some)
        images, size = images_of(WaveFactors(basis), inside)
        reach = basis.phase(inside.stop) + basis.phase(inside.start)
        return basis, images, EPS * (64.0 + 4.0 * len(players.seen) + 4.0 * reach) * size[:, 0]

    def cross(sites: Coalitions, Z: Array) -> Bounded:
        basis, images, lost = waves(sites, Z[0])
        lost = lost * (1.0 + basis.phase(Z[:, some]) / 16.0)
        value = product(images, scale * basis(Z[:, some]).T)
        return Bounded(value, scale * lost * len(Z) ** 0.5)

    def contract(sites: Coalitions, Z: Array, w: Array) -> Bounded:
        basis, images, lost = waves(sites, Z[0])
        lost = lost * (1.0 + basis.phase(Z[:, some]) / 16.0)
        value = product(images, product(scale * basis(Z[:, some]).T, w))
        return Bounded(value, scale * lost * abs(w).sum(axis=0).max())

    def between(sites: Coalitions, other: Coalitions) -> Bounded:
        xp, origin = namespace(sites.stop), sites.stop[0]
        _, one, lost = waves(sites, origin)
        _, two, more = (None, one, lost) if other is sites else waves(other, origin)
        return Bounded(scale * (one @ xp.swapaxes(two, 1, 2)), 4.0 * scale * (lost + more))

    return Formulas(cross, contract, lambda sites: between(sites, sites), between)
