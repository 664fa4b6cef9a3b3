"""Kernels as vectors of hyperparameters, with the gradient of the marginal likelihood.

With G = ½(ααᵀ − A⁻¹), ∂ log p(y)/∂ log θ = Σ G∘∂K/∂ log θ. G goes down the kernel's tree by the
product rule, and every leaf has a formula for the sum over its own hyperparameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gpattr._core.arguments import a_function, subclass
from gpattr._core.array import Array, namespace, product, squared_distances
from gpattr.closed_forms.derivatives import leave_one_out
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Categorical,
    Constant,
    Cosine,
    FullAdditive,
    Kernel,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Rescaled,
    Scale,
    Select,
    SquaredExponential,
    Sum,
    Warped,
    White,
)

WIDE = 1e5  # squared length-scales: ε times this is the error of a distance from squared norms
Gradient = Callable[[Any, Array, Array], dict[str, Any]]

GRADIENTS: dict[type[Kernel], Gradient] = {}


def register_gradient(kernel: type[Kernel], gradient: Gradient) -> None:
    """Let `GPRegressor` train a kernel: enter how its values change with its hyperparameters.

    ``gradient(kernel, X, G)`` returns, for every name in ``kernel.trainable``, Σₙₘ Gₙₘ ∂k(xₙ, xₘ)/∂
    log θ: a number, or an array for a hyperparameter with one value per feature. X is (n, d), G is
    (n, n) and symmetric. For a kernel made of others it also returns the result of
    `hyperparameters.gradient_of_parts`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from gpattr.estimators import register_gradient
    >>> from gpattr.kernels import SquaredExponential
    >>> @dataclass(frozen=True, eq=False)
    ... class Isotropic(SquaredExponential):
    ...     trainable = ("variance",)  # the length-scale stays
    >>> def gradient(kernel, X, G):
    ...     return {"variance": (G * kernel(X, X)).sum()}
    >>> register_gradient(Isotropic, gradient)
    """
    subclass(Kernel, "a class of kernels")("kernel", kernel)
    a_function("gradient", gradient)
    GRADIENTS[kernel] = gradient


def trainable(kernel: Kernel) -> dict[str, np.ndarray]:
    """Return the hyperparameters of a kernel by name, in the order in which they are trained."""
    return {
        f"{prefix}{name}": np.atleast_1d(part.get_params(deep=False)[name])
        for prefix, part in kernel.walk()
        for name in part.trainable
    }


def likelihood_gradient(kernel: Kernel, X: Array, G: Array) -> dict[str, Any]:
    """Return Σ G∘∂K/∂ log θ for every hyperparameter θ, by name; G is (n, n) and symmetric."""
    if type(kernel) in GRADIENTS:
        return GRADIENTS[type(kernel)](kernel, X, G)
    if not any(part.trainable for _, part in kernel.walk()):
        return {}
    raise UnsupportedModelError(
        f"kernel: {type(kernel).__name__} cannot be trained; enter its gradient with"
        " gpattr.estimators.register_gradient, or use optimize=False"
    )


def gradient_of_parts(kernel: Kernel, seen: Iterable[tuple[Array, Array]]) -> dict[str, Any]:
    """Return the gradients of a kernel's parts, given the rows and the G∘∂K/∂Kₚ of each part.

    Names are as in `get_params`, values as in `register_gradient`.
    """
    return {
        f"{prefix}__{name}": value
        for (prefix, part), (X, G) in zip(kernel.parts().items(), seen, strict=True)
        for name, value in likelihood_gradient(part, X, G).items()
    }


def _per_feature(value: Any, slopes: Array) -> Any:
    """Return slopes (d,) of a hyperparameter, or their sum if it has one value for all features."""
    return slopes if np.ndim(value) else slopes.sum()


def squared_difference_sums(Q: Array, W: Array) -> Array:
    """Return Σₙₘ Qₙₘ (Wₙᵢ − Wₘᵢ)², (d,), for symmetric Q.

    It takes two matrix products, or differences on wide data.
    """
    xp = namespace(W)
    W = W - W.mean(axis=0)
    if float((W * W).sum(axis=1).max()) > WIDE:
        return xp.stack([(Q * (w[:, None] - w) ** 2).sum() for w in W.T])
    return 2.0 * (product(Q.sum(axis=1), W * W) - (W * product(Q, W)).sum(axis=0))


def _radial(kernel: Any, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log ℓᵢ = −σ² h(r) uᵢ², ∂k/∂ log σ² = k."""
    xp = namespace(X)
    r2 = squared_distances(X, X, kernel.lengthscale)
    if isinstance(kernel, Matern12):  # h = −exp(−r)/r, times uᵢ² = 0 at r = 0
        r = xp.sqrt(r2)
        slope = -xp.exp(-r) / xp.where(r > 0, r, xp.inf)
    else:
        slope = kernel.slope(r2)
    sums = squared_difference_sums(-kernel.variance * G * slope, X / xp.asarray(kernel.lengthscale))
    gradient = {
        "lengthscale": _per_feature(kernel.lengthscale, sums),
        "variance": kernel.variance * (G * kernel.profile(r2)).sum(),
    }
    if isinstance(kernel, RationalQuadratic):
        q = r2 / (2.0 * kernel.alpha)
        by_alpha = kernel.alpha * kernel.profile(r2) * (q / (1.0 + q) - xp.log1p(q))
        gradient["alpha"] = kernel.variance * (G * by_alpha).sum()
    return gradient


def _periodic(kernel: Periodic, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log ℓᵢ = 4k sin²(πδᵢ/pᵢ)/ℓᵢ², ∂k/∂ log pᵢ = k (2πδᵢ/pᵢℓᵢ²) sin(2πδᵢ/pᵢ), δ = x − x'."""
    xp = namespace(X)
    GK = G * kernel(X, X)
    lengthscale, period = (
        xp.broadcast_to(xp.asarray(p), X.shape[1:]) for p in (kernel.lengthscale, kernel.period)
    )
    by_length, by_period = [], []
    for x, scale, p in zip(X.T, lengthscale, period, strict=True):
        phase = (2.0 * np.pi / p) * (x[:, None] - x)
        by_length.append(4.0 * (GK * xp.sin(0.5 * phase) ** 2).sum() / scale**2)
        by_period.append((GK * phase * xp.sin(phase)).sum() / scale**2)
    return {
        "lengthscale": _per_feature(kernel.lengthscale, xp.stack(by_length)),
        "period": _per_feature(kernel.period, xp.stack(by_period)),
        "variance": GK.sum(),
    }


def _cosine(kernel: Cosine, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log pᵢ = σ² sin(v·δ) vᵢδᵢ, v = 2π/p, δ = x − x'."""
    xp = namespace(X)
    phase = kernel.phase(X - X[0])
    GS = kernel.variance * G * xp.sin(phase[:, None] - phase)
    V = (2.0 * np.pi) * (X - X[0]) / xp.asarray(kernel.period)
    # Σ GSₙₘ (Vₙ − Vₘ) with an antisymmetric GS.
    return {
        "period": _per_feature(kernel.period, 2.0 * product(GS.sum(axis=1), V)),
        "variance": (G * kernel(X, X)).sum(),
    }


def _polynomial(kernel: Any, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log σᵢ² = D q^(D−1) σᵢ²xᵢxᵢ', ∂k/∂ log c = D q^(D−1) c, with q = c + Σ σᵢ²xᵢxᵢ'."""
    variance = namespace(X).asarray(kernel.variance)
    if isinstance(kernel, Linear):
        return {
            "variance": _per_feature(kernel.variance, variance * (X * product(G, X)).sum(axis=0))
        }
    outer = G * kernel.degree * kernel.inner(X, X) ** (kernel.degree - 1)
    by_variance = variance * (X * product(outer, X)).sum(axis=0)
    return {
        "variance": _per_feature(kernel.variance, by_variance),
        "offset": kernel.offset * outer.sum(),
    }


def _categorical(kernel: Categorical, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log ℓ = 2ρ(1 − e·e')/ℓ²."""
    apart = float(G.sum()) - float((X * product(G, X)).sum())
    return {"lengthscale": 2.0 * kernel.correlation * apart / kernel.lengthscale**2}


def _sum(kernel: Sum, X: Array, G: Array) -> dict[str, Any]:
    return gradient_of_parts(kernel, ((X, G) for _ in kernel.kernels))


def _scale(kernel: Scale, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log σ² = k."""
    own = {"variance": (G * kernel(X, X)).sum()}
    return own | gradient_of_parts(kernel, [(X, kernel.variance * G)])


def _product(kernel: Product, X: Array, G: Array) -> dict[str, Any]:
    """A factor gets G times the product of the others."""
    last = [0.0] * (len(kernel.kernels) - 1) + [1.0]
    rest = leave_one_out([part(X, X) for part in kernel.kernels], last)
    return gradient_of_parts(kernel, ((X, G * others) for others in rest))


def _select(kernel: Select, X: Array, G: Array) -> dict[str, Any]:
    return gradient_of_parts(kernel, [(kernel.columns(X), G)])


def _warped(kernel: Warped, X: Array, G: Array) -> dict[str, Any]:
    return gradient_of_parts(kernel, [(kernel.features(X), G)])


def _rescaled(kernel: Rescaled, X: Array, G: Array) -> dict[str, Any]:
    s = kernel.scales(X)
    return gradient_of_parts(kernel, [(X, G * s * s[:, None])])


def _level(kernel: Any, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log σ² = k."""
    return {"variance": (G * kernel(X, X)).sum()}


def _full_additive(kernel: FullAdditive, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log σₙ² = σₙ²eₙ; a base kernel gets G times its multiplier."""
    xp = namespace(X)
    columns = [X[:, i : i + 1] for i in range(X.shape[1])]
    z = [base(x, x) for base, x in zip(kernel.bases, columns, strict=True)]
    variances = kernel.order_variances.tolist()
    orders = [
        variance * (G * e).sum() for variance, e in zip(variances, kernel.orders(z), strict=True)
    ]
    rest = leave_one_out(z, variances)
    seen = ((x, G * others) for x, others in zip(columns, rest, strict=True))
    return {"order_variances": xp.stack(orders)} | gradient_of_parts(kernel, seen)


for _type in (SquaredExponential, Matern, Matern12, Matern32, Matern52, RationalQuadratic):
    register_gradient(_type, _radial)
register_gradient(Categorical, _categorical)
for _type in (Linear, Polynomial):
    register_gradient(_type, _polynomial)
for _type in (Constant, White):
    register_gradient(_type, _level)
register_gradient(Periodic, _periodic)
register_gradient(Cosine, _cosine)
register_gradient(Sum, _sum)
register_gradient(Scale, _scale)
register_gradient(Product, _product)
register_gradient(Select, _select)
register_gradient(Warped, _warped)
register_gradient(Rescaled, _rescaled)
register_gradient(FullAdditive, _full_additive)
