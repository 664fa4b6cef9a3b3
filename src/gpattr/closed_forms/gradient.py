"""Gradients of the squared-exponential kernel: what quadrature integrates along a path.

With u = (x − z)/ℓ and g = σ² exp(−‖u‖²/2): ∂k/∂xᵢ = −g uᵢ/ℓᵢ and ∂²k/∂xᵢ∂zⱼ = g (δᵢⱼ − uᵢuⱼ)/(ℓᵢℓⱼ).
"""

from __future__ import annotations

from gpattr._array import Array, namespace
from gpattr.closed_forms.table import register
from gpattr.kernels import SquaredExponential
from gpattr.operators import Gradient, Points


def cross(kernel: SquaredExponential, points: Points, Z: Array) -> Array:
    """Return ∂k(x, z)/∂xᵢ, (n, d, m)."""
    xp = namespace(Z)
    difference = (points.X[:, None, :] - Z) / xp.asarray(kernel.lengthscale) ** 2  # (n, m, d)
    return -xp.swapaxes(kernel(points.X, Z)[:, :, None] * difference, 1, 2)


def auto(kernel: SquaredExponential, points: Points) -> Array:
    """Return ∂²k/∂xᵢ∂x'ⱼ at x' = x, (n, d, d)."""
    return between(kernel, points, points)


def between(kernel: SquaredExponential, points: Points, other: Points) -> Array:
    """Return ∂²k/∂xᵢ∂x'ⱼ for the k-th row of each, (n, d, d)."""
    xp = namespace(points.X)
    inverse = xp.broadcast_to(1.0 / xp.asarray(kernel.lengthscale), points.X.shape[1:])
    u = (points.X - other.X) * inverse
    g = kernel.variance * xp.exp(-0.5 * (u * u).sum(axis=1))
    return g[:, None, None] * (xp.eye(u.shape[1]) - u[:, :, None] * u[:, None, :]) * inverse[:, None] * inverse


register(Gradient, SquaredExponential, cross=cross, auto=auto, between=between)
