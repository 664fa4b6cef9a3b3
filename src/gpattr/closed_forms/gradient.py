"""Formulas of the gradient operator: derivatives of the kernel, the basis and the mean.

Weighted sums of a kernel's gradients, Σₘ wₘ ∂k(x, zₘ)/∂xᵢ, with weights for every row, are what the
gradients of a posterior mean and of a posterior variance are made of. A radial kernel needs one
matrix product for all rows,

    Σₘ wₘ ∂k(x, zₘ)/∂xᵢ = (uᵢ Σₘ wₘhₘ − Σₘ wₘhₘ vₘᵢ)/ℓᵢ,      u = (x − c)/ℓ,  v = (z − c)/ℓ

with c the centre of Z, so that an array of rows by points by features is never formed; sums,
products, scales and selections of kernels pass it on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpattr._core.array import Array, namespace, product, squared_distances
from gpattr._core.memory import blocks
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
from gpattr.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern,
    Matern32,
    Matern52,
    Polynomial,
    Product,
    RationalQuadratic,
    Scale,
    Select,
    SquaredExponential,
    Sum,
    Warped,
)
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


def gradient_sums(kernel: Kernel, X: Array, Z: Array, weights: Array) -> Array:
    """Return Σₘ weights[s, n, m] ∂k(xₙ, zₘ)/∂xᵢ, (s, n, d), for weights (s, n, m)."""
    return SUMS.get(type(kernel), _by_pairs)(kernel, X, Z, weights)


def _by_pairs(kernel: Kernel, X: Array, Z: Array, weights: Array) -> Array:
    """Any kernel with derivatives: the gradients of all pairs, by blocks of rows."""
    xp, (n, d) = namespace(X), X.shape
    result = xp.empty((len(weights), n, d))
    for rows in blocks(n, 40.0 * len(Z) * (d + 2), X):
        left = differentiate(kernel, X[rows, None, :], Z).left
        for s, row_weights in enumerate(weights):
            result[s, rows] = (row_weights[rows, None, :] @ left)[:, 0]
    return result


def _radial(kernel: Any, X: Array, Z: Array, weights: Array) -> Array:
    xp, centre = namespace(X), Z.mean(axis=0)
    inverse = xp.broadcast_to(1.0 / xp.asarray(kernel.lengthscale), X.shape[1:])
    u, v = (X - centre) * inverse, (Z - centre) * inverse
    H = weights * (kernel.variance * kernel.slope(squared_distances(X, Z, kernel.lengthscale)))
    return (H.sum(axis=2)[:, :, None] * u - product(H, v)) * inverse


def _polynomial(kernel: Any, X: Array, Z: Array, weights: Array) -> Array:
    xp = namespace(X)
    D, offset = (1, 0.0) if isinstance(kernel, Linear) else (kernel.degree, kernel.offset)
    scaled = xp.broadcast_to(xp.asarray(kernel.variance), X.shape[1:]) * Z
    return product(weights * (D * (product(X, scaled.T) + offset) ** (D - 1)), scaled)


def _constant(kernel: Constant, X: Array, Z: Array, weights: Array) -> Array:
    return namespace(X).zeros((len(weights), *X.shape))


def _scale(kernel: Scale, X: Array, Z: Array, weights: Array) -> Array:
    return kernel.variance * gradient_sums(kernel.kernel, X, Z, weights)


def _sum(kernel: Sum, X: Array, Z: Array, weights: Array) -> Array:
    first, *others = (gradient_sums(part, X, Z, weights) for part in kernel.kernels)
    return sum(others, first)


def _product(kernel: Product, X: Array, Z: Array, weights: Array) -> Array:
    """The product rule: each part with the values of the others among its weights."""
    values = [part(X, Z) for part in kernel.kernels]
    result = namespace(X).zeros((len(weights), *X.shape))
    for i, part in enumerate(kernel.kernels):
        own = weights
        for j, value in enumerate(values):
            own = own if j == i else own * value
        result = result + gradient_sums(part, X, Z, own)
    return result


def _select(kernel: Select, X: Array, Z: Array, weights: Array) -> Array:
    result = namespace(X).zeros((len(weights), *X.shape))
    inner = gradient_sums(kernel.kernel, kernel.columns(X), kernel.columns(Z), weights)
    result[..., list(kernel.features)] = inner
    return result


def _warped(kernel: Warped, X: Array, Z: Array, weights: Array) -> Array:
    """The chain rule."""
    inner = gradient_sums(kernel.kernel, kernel.features(X), kernel.features(Z), weights)
    return (inner[:, :, None, :] @ kernel.slopes(X))[:, :, 0]


SUMS: dict[type[Kernel], Callable[[Any, Array, Array, Array], Array]] = {
    Constant: _constant,
    Linear: _polynomial,
    Polynomial: _polynomial,
    Product: _product,
    Scale: _scale,
    Select: _select,
    Sum: _sum,
    Warped: _warped,
    **dict.fromkeys((SquaredExponential, Matern, Matern32, Matern52, RationalQuadratic), _radial),
}
