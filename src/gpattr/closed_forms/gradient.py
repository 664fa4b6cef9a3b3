"""Formulas of the gradient operator: derivatives of the kernel, the basis and the mean."""

from __future__ import annotations

from gpattr._core.array import Array, namespace, product
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.table import (
    KERNELS,
    Bounded,
    Formulas,
    register_mean,
    rounded,
    rounded_cross,
    rounding,
)
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Gradient, Points


def gradient_formulas(operator: Gradient, kernel: Kernel) -> Formulas:
    """Return ∂k(x, z)/∂xᵢ and ∂²k(x, x')/∂xᵢ∂x'ⱼ as formulas."""
    require_derivatives(kernel)

    def cross(points: Points, Z: Array) -> Bounded:
        left = differentiate(kernel, points.X[:, None, :], Z).left
        return rounded_cross(namespace(Z).swapaxes(left, 1, 2))

    def contract(points: Points, Z: Array, w: Array) -> Bounded:
        terms = cross(points, Z).value
        return Bounded(product(terms, w), rounding(terms, w))

    def between(points: Points, other: Points) -> Bounded:
        return rounded(differentiate(kernel, points.X, other.X, True).mixed)

    return Formulas(cross, contract, lambda points: between(points, points), between)


KERNELS[Gradient, Kernel] = gradient_formulas
register_mean(Gradient, Mean, lambda mean, points: mean.gradient(points.X))
