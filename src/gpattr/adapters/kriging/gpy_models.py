"""Regression models of GPy, exact and sparse, and Emukit's wrappers of them."""

from __future__ import annotations

from operator import add, mul
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpattr.adapters.adapt import adapt
from gpattr.adapters.foreign import one_or_several
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import (
    Here,
    KernelTable,
    Rule,
    combined,
    polynomial,
    rule,
    twice,
    value,
)
from gpattr.exceptions import UnsupportedModelError
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
    SquaredExponential,
    White,
)
from gpattr.kernels.white import fold_white
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import (
    CombinationPosterior,
    ExactPosterior,
    SparsePosterior,
)

JITTER = 1e-8  # which GPy adds to the noise of exact inference


def exact(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `GPRegression`; several columns of targets are several outputs."""
    _require(model, "ExactGaussianInference")
    X, Y = _data(model)
    kernel = KERNELS.translate(model.kern, X.shape[1])
    noise = _noise(model) + JITTER
    first = ExactPosterior(kernel, X, Y[:, 0], noise=noise, mean=_mean(model.mean_function, 0))
    others = [
        first.given(Y[:, o], mean=_mean(model.mean_function, o)) for o in range(1, Y.shape[1])
    ]
    return _finished(model, kernel, [first, *others], X)


def sparse(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `SparseGPRegression`, by VarDTC (the default) or FITC."""
    _require(model, "VarDTC", "FITC")
    X, Y = _data(model)
    Z, kernel = np.asarray(model.Z, dtype=np.float64), KERNELS.translate(model.kern, X.shape[1])
    smooth, white = fold_white(kernel, Z)
    if smooth is None:
        raise UnsupportedModelError("kern: White alone has no function to explain")
    jitter = float(model.inference_method.const_jitter) + float(white.mean())
    if type(model.inference_method).__name__ == "FITC":
        L = np.linalg.cholesky(smooth(Z, Z) + jitter * np.eye(len(Z)))
        T = solve_triangular(L, smooth(Z, X), lower=True)
        noise = _noise(model) + kernel.diagonal(X) - (T**2).sum(axis=0)
    else:
        noise = np.maximum(_noise(model), model.inference_method.const_jitter)
    posteriors = [
        SparsePosterior.fit(
            smooth, Z, X, Y[:, o], noise=noise, mean=_mean(model.mean_function, o), jitter=jitter
        )
        for o in range(Y.shape[1])
    ]
    return _finished(model, kernel, posteriors, X)


def wrapper(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the GPy model inside Emukit's `GPyModelWrapper`."""
    return adapt(model.model, data=data)


def simple(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of Emukit's `SimpleGaussianProcessModel`."""
    X = np.asarray(model.x, dtype=np.float64)
    kernel = SquaredExponential(float(model.lengthscale), float(model.kernel_variance))
    noise = float(model.likelihood_variance) + float(model.jitter)

    posterior = ExactPosterior(kernel, X, np.asarray(model.y)[:, 0], noise=noise)
    return Adapted(posterior, model.predict, X)


def _require(model: Any, *methods: str) -> None:
    """Refuse other ways of inference, and inputs that are uncertain."""
    name = type(model.inference_method).__name__
    if name not in methods:
        raise UnsupportedModelError(
            f"inference_method: GPy's {name} is not supported for a {type(model).__name__}; it is"
            f" {' or '.join(methods)}"
        )
    if not isinstance(model.X, np.ndarray):
        raise UnsupportedModelError("X: uncertain inputs are not supported")


def _data(model: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(model.X, dtype=np.float64), np.asarray(model.Y_normalized, dtype=np.float64)


def _noise(model: Any) -> np.ndarray:
    """Return the noise variance, one number or one for each row, in normalised units."""
    return np.ravel(model.likelihood.gaussian_variance(model.Y_metadata)).astype(np.float64)


def _finished(model: Any, kernel: Kernel, posteriors: list[Any], X: np.ndarray) -> Adapted:
    """Return the posteriors of normalised targets in the units of y."""
    norm = model.normalizer
    if norm is not None:
        if type(norm).__name__ != "Standardize":
            raise UnsupportedModelError(f"normalizer: {type(norm).__name__} is not supported")
        units = zip(posteriors, np.ravel(norm.mean), np.ravel(norm.std), strict=True)
        posteriors = [
            CombinationPosterior([posterior], [float(std)], mean=ConstantMean(float(centre)))
            for posterior, centre, std in units
        ]
    scale = np.ones(len(posteriors)) if norm is None else np.ravel(norm.std)

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = model.predict_noiseless(points)
        white = fold_white(kernel, points)[1][:, None]  # which GPy adds to variances
        var = np.broadcast_to(var, mean.shape) - scale**2 * white
        return mean, var

    return Adapted(one_or_several(posteriors), predict, X)


def _rational_quadratic(kernel: Any, here: Here) -> Kernel:
    """(1 + r²/2)^−α, r in units of ℓ: the length-scale is ℓ/√α."""
    alpha = value(kernel.power)
    scale = value(kernel.lengthscale) / alpha**0.5
    return RationalQuadratic(scale, value(kernel.variance), alpha=alpha)


def _wave(kernel: Any, here: Here) -> Kernel:
    """cos(δ/ℓ)."""
    here.require_one_column("GPy's Cosine")
    return Cosine(2.0 * np.pi * value(kernel.lengthscale), value(kernel.variance))


def _damped_wave(kernel: Any, here: Here) -> Kernel:
    """exp(−2π²r²) cos(2πr/T), r = δ/ℓ."""
    here.require_one_column("GPy's ExpQuadCosine")
    scale = value(kernel.lengthscale)
    damping = SquaredExponential(scale / (2.0 * np.pi), value(kernel.variance))
    return damping * Cosine(scale * value(kernel.period))


def _polynomial(kernel: Any, here: Here) -> Kernel:
    """σ²(s xᵀx' + b)^p."""
    order = here.whole_power("Poly of order", float(kernel.order), "order")
    return value(kernel.variance) * polynomial(order, value(kernel.bias), value(kernel.scale))


def _radial(kind: Any) -> Rule:
    return rule(kind, lengthscale="lengthscale", variance="variance")


KERNELS = KernelTable(
    "GPy's",
    {
        "RBF": _radial(SquaredExponential),
        "ExpQuad": _radial(SquaredExponential),
        "Matern32": _radial(Matern32),
        "Matern52": _radial(Matern52),
        "Exponential": _radial(Matern12),
        "OU": _radial(Matern12),
        "RatQuad": _rational_quadratic,
        # exp(−½ Σ sin²(πδ/p)/ℓ²)
        "StdPeriodic": rule(
            Periodic, lengthscale=("lengthscale", twice), period="period", variance="variance"
        ),
        "Cosine": _wave,
        "ExpQuadCosine": _damped_wave,
        "Linear": rule(Linear, variance="variances"),
        "Poly": _polynomial,
        "Bias": rule(Constant, variance="variance"),
        "White": rule(White, variance="variance"),
        "Add": combined(add, "parts"),
        "Prod": combined(mul, "parts"),
    },
    argument="kern",
    columns=lambda kernel, d: [int(column) for column in kernel.active_dims],
    whole=("Add", "Prod", "Bias", "White"),
)


def _mean(mean: Any, output: int) -> Mean:
    name = type(mean).__name__
    if mean is None:
        return Zero()
    if name == "Constant":
        return ConstantMean(float(np.ravel(mean.C)[output]))
    if name == "Linear":
        return LinearMean(np.array(mean.A, dtype=np.float64)[:, output])
    if name == "Additive":
        parts = [
            _linear(_mean(part, output), mean.input_dim) for part in (mean.mapping1, mean.mapping2)
        ]
        return LinearMean(parts[0][0] + parts[1][0], parts[0][1] + parts[1][1])
    raise UnsupportedModelError(f"mean_function: GPy's {name} is not supported")


def _linear(mean: Mean, d: int) -> tuple[np.ndarray, float]:
    """Return the slopes (d,) and the intercept of a constant or linear mean."""
    origin = np.zeros((1, d))
    return np.asarray(mean.gradient(origin))[0], float(mean(origin)[0])
