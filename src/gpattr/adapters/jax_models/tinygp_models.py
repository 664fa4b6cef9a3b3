"""Gaussian processes of tinygp: conditioned, or unconditioned with their targets.

Most of its stationary kernels measure distance by the sum of absolute differences. In one dimension
that is the usual distance; in more, they are not positive definite (on a line along one axis their
functions would have gradients, across it they could not), and the exponential, which is, has no
gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters.foreign import FLOAT32, with_note
from gpattr.adapters.kernels import mapped, rescaled
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import Here, KernelTable, Rule, combined, rule
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
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


def gaussian_process(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a conditioned GP, or of a GP with its targets.

    A conditioned one is ``gp.condition(y, X).gp``; targets are given as ``data=y`` or (X, y).
    """
    conditioned, prior_mean, solver, inputs, kernel, known = _conditioned(model, data)
    alpha = np.asarray(conditioned.mean_function.alpha, dtype=np.float64)
    lower = _factor(solver)
    X = np.asarray(inputs, dtype=np.float64)
    scalar = X.ndim == 1
    rows = X[:, None] if scalar else X
    ours, mean = KERNELS.translate(kernel, rows.shape[1], scalar), _mean(prior_mean, scalar)
    L = np.asarray(lower, dtype=np.float64)
    noise = np.maximum((L**2).sum(axis=1) - ours.diagonal(rows), 0.0) if known is None else known
    targets = mean(rows) + L @ (L.T @ alpha)
    single = str(getattr(inputs, "dtype", "float64")) == "float32" or str(lower.dtype) == "float32"

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import jax

        at = points[:, 0] if scalar else points
        mean = jax.vmap(conditioned.mean_function)(at)
        # The kernel of a conditioned GP solves for every pair by itself; this is the same by the
        # library's own kernel and solver.
        T = np.asarray(solver.solve_triangular(kernel(inputs, at)), dtype=np.float64)
        return np.asarray(mean, dtype=np.float64), np.asarray(
            jax.vmap(kernel.evaluate_diag)(at), dtype=np.float64
        ) - (T**2).sum(axis=0)

    def joint(points: np.ndarray) -> np.ndarray:
        at = points[:, 0] if scalar else points
        T = np.asarray(solver.solve_triangular(kernel(inputs, at)), dtype=np.float64)
        return np.asarray(kernel(at, at), dtype=np.float64) - T.T @ T

    posterior = ExactPosterior(ours, rows, targets, noise=noise, mean=mean)
    if single:
        posterior = with_note(posterior, FLOAT32)
    accuracy = float(np.finfo(np.float32 if single else np.float64).eps)
    return Adapted(posterior, predict, rows, accuracy=accuracy, joint=joint)


def _factor(solver: Any) -> Any:
    """Return the Cholesky factor of the covariance of the training targets, as a matrix."""
    if hasattr(solver, "scale_tril"):
        return solver.scale_tril
    if hasattr(solver, "factor") and hasattr(solver.factor, "to_dense"):  # quasiseparable
        return solver.factor.to_dense()
    raise UnsupportedModelError(
        f"solver: {type(solver).__name__} is not supported; build the GP with a DirectSolver"
    )


def _conditioned(model: Any, data: Any) -> tuple[Any, Any, Any, Any, Any, np.ndarray | None]:
    """Return the conditioned GP, and the prior mean, solver, inputs, kernel and noise behind it.

    The noise is None where it must be read from the solver's factor.
    """
    mean = model.mean_function
    if type(mean).__name__ == "Conditioned":
        prior_mean = mean.mean_function if mean.include_mean else None
        return model, prior_mean, model.kernel.solver, mean.X, mean.kernel, None
    if data is None:
        raise InvalidInputError(
            "data: tinygp does not keep the targets; pass as_posterior(gp, data=y), or a"
            " conditioned GP"
        )
    y = np.asarray(data[1] if isinstance(data, tuple) else data, dtype=np.float64).reshape(-1)
    if len(y) != len(model.X):
        raise InvalidInputError(f"data: expected {len(model.X)} targets, got {len(y)}")
    noise = np.asarray(model.noise.diagonal(), dtype=np.float64)
    return model.condition(y).gp, mean, model.solver, model.X, model.kernel, noise


def condition_result(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a result of ``gp.condition(y, X)``."""
    return gaussian_process(model.gp)


def _differentiated(kernel: Any, here: Here) -> Kernel:
    """Return a kernel without a translation."""
    from gpattr.adapters.jax_models.automatic import in_double, kernel_of

    double, name = in_double(kernel), type(kernel).__name__
    if here.state:
        return kernel_of(name, lambda x, y: double.evaluate(x[0], y[0]))
    return kernel_of(name, double.evaluate)


def _stationary(kind: Callable[..., Kernel], **parameters: Any) -> Rule:
    """Return the rule for a function of distance, Euclidean for several features."""
    simple = rule(kind, **parameters)

    def translated(kernel: Any, here: Here) -> Kernel:
        name, distance = type(kernel).__name__, type(kernel.distance).__name__
        if distance not in ("L1Distance", "L2Distance"):
            raise here.refusal(f"{name} with {distance} is not supported")
        of_time = name in ("Cosine", "ExpSineSquared")
        if here.d > 1 and (distance == "L1Distance" or of_time):
            fault = "has no gradients" if name == "Exp" else "is not positive definite"
            remedy = "" if of_time else "; use distance=tinygp.kernels.distance.L2Distance()"
            raise here.refusal(f"{name} of {here.d} features with {distance} {fault}{remedy}")
        return simple(kernel, here)

    return translated


def _subspace(kernel: Any, here: Here) -> Kernel:
    if not isinstance(kernel.axis, (int, np.integer)):
        raise here.refusal("Subspace of several axes is not supported")
    return Select(KERNELS.translate(kernel.kernel, 1, True), [int(kernel.axis) % here.d])


def _polynomial(kernel: Any, here: Here) -> Kernel:
    order, variance = float(kernel.order), float(kernel.scale) ** -2.0
    if order != round(order) or order < 1:
        raise here.refusal(f"Polynomial of order {order:g} is not supported")
    if kernel.sigma != 0:
        return Polynomial(variance, degree=int(order), offset=float(kernel.sigma) ** 2)
    parts: list[Any] = [Linear(variance)] * int(order)
    return reduce(mul, parts)


def _transformed(kernel: Any, here: Here) -> Kernel:
    divides = type(kernel).__name__ == "Cholesky"
    scale = np.asarray(kernel.factor if divides else kernel.scale, dtype=np.float64)
    if scale.ndim < 2:
        return rescaled(here.part(kernel.kernel), 1.0 / scale if divides else scale, here.d)
    matrix = np.linalg.inv(scale) if divides else scale
    return mapped(KERNELS.translate(kernel.kernel, len(matrix), False), matrix)


def _name(kernel: Any) -> str:
    """Return the name of a rule: the class's name, after "_" for quasiseparable kernels."""
    separable = type(kernel).__module__ == "tinygp.kernels.quasisep"
    return f"_{type(kernel).__name__}" if separable else type(kernel).__name__


def _of_time(kind: Any, scale: str = "lengthscale") -> Rule:
    """Return the rule for a quasiseparable kernel with a scale and an amplitude σ."""
    return rule(kind, **{scale: "scale"}, variance=("sigma", lambda sigma: sigma**2))


KERNELS = KernelTable(
    "tinygp's",
    {
        "ExpSquared": _stationary(SquaredExponential, lengthscale="scale"),
        "Exp": _stationary(Matern12, lengthscale="scale"),
        "Matern32": _stationary(Matern32, lengthscale="scale"),
        "Matern52": _stationary(Matern52, lengthscale="scale"),
        "RationalQuadratic": _stationary(RationalQuadratic, lengthscale="scale", alpha="alpha"),
        "Cosine": _stationary(Cosine, period="scale"),
        # exp(−Γ sin²(πδ/P)): Γ = 2/ℓ²
        "ExpSineSquared": _stationary(
            Periodic, lengthscale=("gamma", lambda gamma: (2.0 / gamma) ** 0.5), period="scale"
        ),
        "Constant": rule(Constant, variance="value"),
        "DotProduct": rule(Linear),
        "Polynomial": _polynomial,
        "Sum": combined(add, "kernel1", "kernel2"),
        "Product": combined(mul, "kernel1", "kernel2"),
        "Linear": _transformed,
        "Cholesky": _transformed,
        "Subspace": _subspace,
        "_Exp": _of_time(Matern12),
        "_Matern32": _of_time(Matern32),
        "_Matern52": _of_time(Matern52),
        "_Cosine": _of_time(Cosine, "period"),
        "_Sum": combined(add, "kernel1", "kernel2"),
        "_Product": combined(mul, "kernel1", "kernel2"),
        "_Scale": lambda kernel, here: float(kernel.scale) * here.part(kernel.kernel),
    },
    module="tinygp.",
    other=_differentiated,
    name_of=_name,
)


def _mean(mean: Any, scalar: bool) -> Mean:
    if mean is None:
        return ConstantMean(0.0)
    if type(mean).__name__ == "Mean" and mean.func is None:
        return ConstantMean(float(mean.value))
    from gpattr.adapters.jax_models.automatic import in_double, mean_of

    double = in_double(mean)
    name = getattr(getattr(mean, "func", None), "__name__", type(mean).__name__)
    return mean_of(name, lambda x: double(x[0] if scalar else x))
