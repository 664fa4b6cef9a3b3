"""Gaussian processes of george. They do not keep their targets: these are given as ``data=y``.

Stationary kernels see r² = δᵀM⁻¹δ with a metric M; all others are sums over their axes of a
function of one feature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters.registry import Adapted
from gpattr.adapters.rescaling import mapped
from gpattr.adapters.versions import reading
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Mean
from gpattr.posteriors import ExactPosterior


@reading("george", "0.4.4", "0.4.4")
def gaussian_process(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a computed `GP` with its targets, ``data=y`` or ``data=(X, y)``."""
    if not hasattr(model, "_x"):
        raise NotFittedError("model: this GP has no data yet; call compute(X, yerr) first")
    if data is None:
        raise InvalidInputError(
            "data: george does not keep the targets; pass as_posterior(gp, data=y)"
        )
    X = np.asarray(model._x, dtype=np.float64)
    y = np.asarray(data[1] if isinstance(data, tuple) else data, dtype=np.float64).reshape(-1)
    if len(y) != len(X):
        raise InvalidInputError(f"data: expected {len(X)} targets, got {len(y)}")
    kernel = translate(model.kernel, X.shape[1])
    noise = model._yerr2 + np.exp(model._call_white_noise(X))
    posterior = ExactPosterior(kernel, X, y, noise=noise, mean=_mean(model.mean))

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Not what `predict` remembers, so that the model stays as it is.
        return model.predict(y, points, return_var=True, cache=False)

    return Adapted(posterior, predict, X)


def translate(kernel: Any, d: int) -> Kernel:
    """Return a george kernel on d features; raise for an unsupported one."""
    name = type(kernel).__name__
    if name in ("Sum", "Product"):
        parts = [translate(part, d) for part in (kernel.k1, kernel.k2)]
        return parts[0] + parts[1] if name == "Sum" else parts[0] * parts[1]
    if name in STATIONARY:
        return _stationary(kernel, STATIONARY[name](kernel), d)
    if name in BY_AXIS:
        return _by_axis(BY_AXIS[name](kernel), kernel.axes, d)
    raise UnsupportedModelError(f"kernel: george's {name} is not supported")


def _stationary(kernel: Any, kind: Callable[[Any], Kernel], d: int) -> Kernel:
    """Return k(r), r² = δᵀM⁻¹δ, on the axes of the metric M."""
    if kernel.block is not None:
        raise UnsupportedModelError(
            f"kernel: {type(kernel).__name__} with a block, outside of which it is zero, is not"
            " supported"
        )
    metric = kernel.metric
    axes, M = [int(axis) for axis in metric.axes], np.asarray(metric.to_matrix())
    if metric.metric_type == 2:
        # δᵀM⁻¹δ = |L⁻¹δ|² with M = LLᵀ.
        inner = mapped(kind(1.0), np.linalg.inv(np.linalg.cholesky(M)))
    else:
        inner = kind(np.sqrt(np.diagonal(M)))
    return inner if axes == list(range(d)) else Select(inner, axes)


def _by_axis(part: Kernel, axes: Any, d: int) -> Kernel:
    """Return the sum of a kernel of one feature over axes."""
    if d == 1:
        return part
    if isinstance(part, Constant):
        return Constant(len(axes) * float(part.variance))
    parts: list[Any] = [Select(part, [int(axis)]) for axis in axes]
    return reduce(add, parts)


def _order(kernel: Any) -> int:
    order = float(kernel.order)
    if order != round(order) or order < 1:
        raise UnsupportedModelError(
            f"kernel: {type(kernel).__name__} of order {order:g} is not supported; orders are 1,"
            " 2, 3, …"
        )
    return int(order)


def _linear(kernel: Any) -> Kernel:
    """(xx')^P/γ²."""
    parts: list[Any] = [Linear() for _ in range(_order(kernel))]
    return float(np.exp(-kernel.log_gamma2)) * reduce(mul, parts)


def _polynomial(kernel: Any) -> Kernel:
    """(xx' + σ²)^P."""
    order, offset = _order(kernel), float(np.exp(kernel.log_sigma2))
    if order == 1:
        return Linear() + Constant(offset)
    return Polynomial(degree=order, offset=offset)


STATIONARY: dict[str, Callable[[Any], Callable[[Any], Kernel]]] = {
    "ExpSquaredKernel": lambda kernel: SquaredExponential,
    "ExpKernel": lambda kernel: Matern12,
    "Matern32Kernel": lambda kernel: Matern32,
    "Matern52Kernel": lambda kernel: Matern52,
    "RationalQuadraticKernel": lambda kernel: (
        lambda scale: RationalQuadratic(scale, alpha=float(np.exp(kernel.log_alpha)))
    ),
}
BY_AXIS: dict[str, Callable[[Any], Kernel]] = {
    "ConstantKernel": lambda kernel: Constant(float(np.exp(kernel.log_constant))),
    "CosineKernel": lambda kernel: Cosine(float(np.exp(kernel.log_period))),
    # exp(−Γ sin²(πδ/P)): Γ = 2/ℓ²
    "ExpSine2Kernel": lambda kernel: Periodic(
        (2.0 / float(kernel.gamma)) ** 0.5, float(np.exp(kernel.log_period))
    ),
    "DotProductKernel": lambda kernel: Linear(),
    "LinearKernel": _linear,
    "PolynomialKernel": _polynomial,
}
KERNELS = (*STATIONARY, *BY_AXIS)


def _mean(mean: Any) -> Mean:
    if type(mean).__name__ != "ConstantModel":
        raise UnsupportedModelError(
            f"mean: george's {type(mean).__name__} is not supported; subtract it from the targets"
        )
    return ConstantMean(float(mean.value))
