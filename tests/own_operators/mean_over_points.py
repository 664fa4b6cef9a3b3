"""An operator of one's own with a scalar output: the mean of f over given points."""

import numpy as np

from gpattr import closed_forms
from gpattr.bases import Basis
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Operator, Points


class MeanOverPoints(Operator):
    """𝒜f(x) = (1/K) Σₖ f(x + pₖ)."""

    axes = ()

    def __init__(self, offsets):
        self.offsets = np.asarray(offsets, dtype=float)

    def terms(self, X):
        return [(1.0 / len(self.offsets), Points(X + offset)) for offset in self.offsets]

    def in_units(self, units):
        return MeanOverPoints(units.inside(self.offsets) - units.inside(0.0 * self.offsets))

    def pull_back(self, units, like):
        return np.ones((1, 1))


def cross(kernel, points, Z):
    return kernel(points.X, Z)[:, None, :]


def between(kernel, points, other):
    values = closed_forms.differentiate(kernel, points.X, other.X).value
    return values[:, None, None]


closed_forms.register(MeanOverPoints, Kernel, cross=cross, between=between)
closed_forms.register_basis(
    MeanOverPoints, Basis, lambda basis, points: basis(points.X)[:, None, :]
)
closed_forms.register_mean(MeanOverPoints, Mean, lambda mean, points: mean(points.X)[:, None])
