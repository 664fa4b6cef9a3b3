"""Kernels as vectors of hyperparameters, and the derivative of the marginal likelihood by them.

With G = ½(ααᵀ − A⁻¹), ∂ log p(y)/∂ log θ = Σ G∘∂K/∂ log θ. G goes down the kernel's tree by the
product rule, and every leaf knows the sum for its own hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpattr._core.arguments import a_function, subclass
from gpattr._core.array import Array, namespace, product, squared_distances
from gpattr.closed_forms.derivatives import leave_one_out
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
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

WIDE = 1e5  # squared length-scales: ε times it is the error of a distance taken from squared norms
Gradient = Callable[[Any, Array, Array], dict[str, Any]]

GRADIENTS: dict[type[Kernel], Gradient] = {}


def register_gradient(kernel: type[Kernel], gradient: Gradient) -> None:
    """Let `GPRegressor` train a kernel: enter how its values change with its hyperparameters.

    ``gradient(kernel, X, G)`` returns, for every name in ``kernel.trainable``, Σₙₘ Gₙₘ ∂k(xₙ, xₘ)/∂
    log θ: a number, or an array for a hyperparameter with one value per feature. X is (n, d), G is
    (n, n) and symmetric."""
    subclass(Kernel, "a class of kernels")("kernel", kernel)
    a_function("gradient", gradient)
    GRADIENTS[kernel] = gradient


def trainable(kernel: Kernel) -> dict[str, np.ndarray]:
    """Return the hyperparameters of a kernel by name, in the order in which they are trained."""
    values = kernel.get_params(deep=True)

    def names(k: Kernel, prefix: str) -> Iterator[str]:
        yield from (f"{prefix}{name}" for name in k.trainable)
        for inner, part in k.parts().items():
            yield from names(part, f"{prefix}{inner}__")

    return {name: np.atleast_1d(values[name]) for name in names(kernel, "")}


def likelihood_gradient(kernel: Kernel, X: Array, G: Array) -> dict[str, Any]:
    """Return Σ G∘∂K/∂ log θ for every hyperparameter θ, by name; G is (n, n) and symmetric."""
    if isinstance(kernel, Sum):
        return _named(
            (f"{i}__", likelihood_gradient(part, X, G)) for i, part in enumerate(kernel.kernels)
        )
    if isinstance(kernel, Scale):
        inner = likelihood_gradient(kernel.kernel, X, kernel.variance * G)
        return {"variance": (G * kernel(X, X)).sum()} | _named([("kernel__", inner)])
    if isinstance(kernel, Select):
        return _named([("kernel__", likelihood_gradient(kernel.kernel, kernel.columns(X), G))])
    if isinstance(kernel, Product):
        rest = leave_one_out(
            [part(X, X) for part in kernel.kernels], [0.0] * (len(kernel.kernels) - 1) + [1.0]
        )
        return _named(
            (f"{i}__", likelihood_gradient(kernel.kernels[i], X, G * others))
            for i, others in enumerate(rest)
        )
    if isinstance(kernel, FullAdditive):
        return _full_additive(kernel, X, G)
    if isinstance(kernel, Warped):
        return _named([("kernel__", likelihood_gradient(kernel.kernel, kernel.features(X), G))])
    if isinstance(kernel, Rescaled):
        s = kernel.scales(X)
        return _named([("kernel__", likelihood_gradient(kernel.kernel, X, G * s * s[:, None]))])
    if not kernel.trainable:
        return {}
    if type(kernel) not in GRADIENTS:
        raise UnsupportedModelError(
            f"kernel: {type(kernel).__name__} cannot be trained; enter its gradient with"
            " gpattr.estimators.register_gradient, or use optimize=False"
        )
    return GRADIENTS[type(kernel)](kernel, X, G)


def _named(parts: Any) -> dict[str, Any]:
    return {prefix + name: value for prefix, gradient in parts for name, value in gradient.items()}


def _per_feature(value: Any, slopes: Array) -> Any:
    """Return what a hyperparameter with one value, or one per feature, gets of slopes (d,)."""
    return slopes if np.ndim(value) else slopes.sum()


def squared_difference_sums(Q: Array, W: Array) -> Array:
    """Return Σₙₘ Qₙₘ (Wₙᵢ − Wₘᵢ)², (d,), for symmetric Q: by two matrix products, or from
    differences on wide data.
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


def _level(kernel: Any, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log σ² = k."""
    return {"variance": (G * kernel(X, X)).sum()}


def _full_additive(kernel: FullAdditive, X: Array, G: Array) -> dict[str, Any]:
    """∂k/∂ log σₙ² = σₙ²eₙ; a base kernel gets G times what multiplies it."""
    xp = namespace(X)
    columns = [X[:, i : i + 1] for i in range(X.shape[1])]
    z = [base(x, x) for base, x in zip(kernel.bases, columns, strict=True)]
    variances = kernel.order_variances.tolist()
    orders = [
        variance * (G * e).sum() for variance, e in zip(variances, kernel.orders(z), strict=True)
    ]
    rest = leave_one_out(z, variances)
    bases = (
        (f"{i}__", likelihood_gradient(base, columns[i], G * rest[i]))
        for i, base in enumerate(kernel.bases)
    )
    return {"order_variances": xp.stack(orders)} | _named(bases)


for _type in (SquaredExponential, Matern, Matern12, Matern32, Matern52, RationalQuadratic):
    register_gradient(_type, _radial)
for _type in (Linear, Polynomial):
    register_gradient(_type, _polynomial)
for _type in (Constant, White):
    register_gradient(_type, _level)
register_gradient(Periodic, _periodic)
register_gradient(Cosine, _cosine)
