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

from gpattr.adapters.kernels import mapped
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import (
    Here,
    KernelTable,
    Parameter,
    Rule,
    combined,
    polynomial,
    rule,
)
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
    RationalQuadratic,
    Select,
    SquaredExponential,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Mean
from gpattr.posteriors import ExactPosterior


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
    kernel = KERNELS.translate(model.kernel, X.shape[1])
    noise = model._yerr2 + np.exp(model._call_white_noise(X))
    posterior = ExactPosterior(kernel, X, y, noise=noise, mean=_mean(model.mean))

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Not what `predict` remembers, so that the model stays as it is.
        return model.predict(y, points, return_var=True, cache=False)

    return Adapted(posterior, predict, X)


def _stationary(kind: Callable[..., Kernel], **parameters: Parameter) -> Rule:
    """Return the rule for k(r), r² = δᵀM⁻¹δ, on the axes of the metric M."""

    def translated(kernel: Any, here: Here) -> Kernel:
        if kernel.block is not None:
            raise here.refusal(
                f"{type(kernel).__name__} with a block, outside of which it is zero, is not"
                " supported"
            )
        metric = kernel.metric
        axes, M = [int(axis) for axis in metric.axes], np.asarray(metric.to_matrix())
        unit = rule(kind, **parameters)(kernel, here)
        if metric.metric_type == 2:
            # δᵀM⁻¹δ = |L⁻¹δ|² with M = LLᵀ.
            inner = mapped(unit, np.linalg.inv(np.linalg.cholesky(M)))
        else:
            inner = unit.with_params(lengthscale=np.sqrt(np.diagonal(M)))
        return inner if axes == list(range(here.d)) else Select(inner, axes)

    return translated


def _by_axis(one: Rule) -> Rule:
    """Return the rule for the sum of a kernel of one feature over axes."""

    def translated(kernel: Any, here: Here) -> Kernel:
        part = one(kernel, here)
        if here.d == 1:
            return part
        if isinstance(part, Constant):
            return Constant(len(kernel.axes) * float(part.variance))
        parts: list[Any] = [Select(part, [int(axis)]) for axis in kernel.axes]
        return reduce(add, parts)

    return translated


def _order(kernel: Any, here: Here) -> int:
    return here.whole_power(f"{type(kernel).__name__} of order", float(kernel.order), "order")


def _linear(kernel: Any, here: Here) -> Kernel:
    """(xx')^P/γ²."""
    parts: list[Any] = [Linear() for _ in range(_order(kernel, here))]
    return float(np.exp(-kernel.log_gamma2)) * reduce(mul, parts)


def _polynomial(kernel: Any, here: Here) -> Kernel:
    """(xx' + σ²)^P."""
    return polynomial(_order(kernel, here), float(np.exp(kernel.log_sigma2)))


KERNELS = KernelTable(
    "george's",
    {
        "ExpSquaredKernel": _stationary(SquaredExponential),
        "ExpKernel": _stationary(Matern12),
        "Matern32Kernel": _stationary(Matern32),
        "Matern52Kernel": _stationary(Matern52),
        "RationalQuadraticKernel": _stationary(RationalQuadratic, alpha=("log_alpha", np.exp)),
        "ConstantKernel": _by_axis(rule(Constant, variance=("log_constant", np.exp))),
        "CosineKernel": _by_axis(rule(Cosine, period=("log_period", np.exp))),
        # exp(−Γ sin²(πδ/P)): Γ = 2/ℓ²
        "ExpSine2Kernel": _by_axis(
            rule(
                Periodic,
                lengthscale=("gamma", lambda gamma: (2.0 / gamma) ** 0.5),
                period=("log_period", np.exp),
            )
        ),
        "DotProductKernel": _by_axis(rule(Linear)),
        "LinearKernel": _by_axis(_linear),
        "PolynomialKernel": _by_axis(_polynomial),
        "Sum": combined(add, "k1", "k2"),
        "Product": combined(mul, "k1", "k2"),
    },
)


def _mean(mean: Any) -> Mean:
    if type(mean).__name__ != "ConstantModel":
        raise UnsupportedModelError(
            f"mean: george's {type(mean).__name__} is not supported; subtract it from the targets"
        )
    return ConstantMean(float(mean.value))
