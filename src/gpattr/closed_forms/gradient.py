"""The gradient operator: derivatives of the kernel as they are."""

from __future__ import annotations

from gpattr._core.array import Array, namespace, product
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.table import Bounded, Rule, rounded, rounded_cross, rounding
from gpattr.kernels import Kernel
from gpattr.operators import Points


def gradient_rule(kernel: Kernel) -> Rule:
    """Return ∂k(x, z)/∂xᵢ and ∂²k(x, x')/∂xᵢ∂x'ⱼ as a rule."""
    require_derivatives(kernel)

    def cross(points: Points, Z: Array) -> Bounded:
        return rounded_cross(
            namespace(Z).swapaxes(differentiate(kernel, points.X[:, None, :], Z).left, 1, 2)
        )

    def estimate(points: Points, Z: Array, w: Array) -> Bounded:
        terms = cross(points, Z).value
        return Bounded(product(terms, w), rounding(terms, w))

    def between(points: Points, other: Points) -> Bounded:
        return rounded(differentiate(kernel, points.X, other.X, True).mixed)

    return Rule(
        cross=cross,  # pyright: ignore[reportArgumentType]  (these rules act on points)
        estimate=estimate,  # pyright: ignore[reportArgumentType]
        auto=lambda points: between(points, points),  # pyright: ignore[reportArgumentType]
        between=between,
    )
