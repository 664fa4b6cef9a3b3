"""Translation of GPyTorch's kernels and means.

``active_dims`` select columns where a kernel is *called*; a `ScaleKernel` copies those of its base
and calls the base's forward, so that the base does not select again. A kernel or mean without a
translation, of the library or of a user, is differentiated automatically (`gpytorch_fallback`).
"""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters.categories import Index
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    FullAdditive,
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
    Warped,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero

MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52}


def number(parameter: Any, trailing: int, batch: int | None) -> np.ndarray:
    """Return a parameter, of one member of a batch, in float64.

    Its last ``trailing`` dimensions are kept.
    """
    array = parameter.detach().double().cpu().numpy()
    leading = array.ndim - trailing
    if leading > 1:
        raise UnsupportedModelError(
            f"model: batch shape {array.shape[:leading]} is not supported; a batch has one"
            " dimension"
        )
    if leading == 1:
        array = array[0 if len(array) == 1 or batch is None else batch]
    return array


def called(kernel: Any, d: int, batch: int | None = None) -> Kernel:
    """Return what ``kernel(x1, x2)`` computes on d columns: active columns, then forward."""
    active = getattr(kernel, "active_dims", None)
    if active is None:
        return forward(kernel, d, batch)
    features = [int(i) % d for i in active.reshape(-1).tolist()]
    inner = forward(kernel, len(features), batch)
    return inner if features == list(range(d)) else Select(inner, features)


def forward(kernel: Any, d: int, batch: int | None = None) -> Kernel:
    """Return what ``kernel.forward`` computes on d columns; raise for an unsupported one."""
    from gpattr.adapters import botorch_kernels, gpytorch_fallback

    name, module = type(kernel).__name__, type(kernel).__module__
    if not module.startswith(("gpytorch.kernels", "botorch.models.kernels")):
        return gpytorch_fallback.kernel_of(kernel, batch)
    if name in NOT_OF_ROWS:
        raise UnsupportedModelError(
            f"kernel: {module}.{name} is not supported: {NOT_OF_ROWS[name]}"
        )
    known = FORWARD.get(name) or botorch_kernels.FORWARD.get(name)
    if known is None:
        return gpytorch_fallback.kernel_of(kernel, batch)
    return known(kernel, d, batch)


def _sum_of(kernels: list[Any]) -> Kernel:
    return reduce(add, kernels)


def _product_of(kernels: list[Any]) -> Kernel:
    return reduce(mul, kernels)


def lengthscale(kernel: Any, d: int, batch: int | None) -> Any:
    """Return length-scales: one number, or one for each of d columns."""
    values = number(kernel.lengthscale, 2, batch).reshape(-1)
    if len(values) not in (1, d):
        raise UnsupportedModelError(
            f"kernel: {len(values)} length-scales for {d} columns; for a deep kernel, pass"
            " feature_extractor= to as_posterior"
        )
    return float(values[0]) if len(values) == 1 else values


def _scale(kernel: Any, d: int, batch: int | None) -> Kernel:
    return float(number(kernel.outputscale, 0, batch)) * forward(kernel.base_kernel, d, batch)


def _matern(kernel: Any, d: int, batch: int | None) -> Kernel:
    return MATERN[float(kernel.nu)](lengthscale(kernel, d, batch))


def _rational_quadratic(kernel: Any, d: int, batch: int | None) -> Kernel:
    return RationalQuadratic(
        lengthscale(kernel, d, batch), alpha=float(number(kernel.alpha, 1, batch)[0])
    )


def _periodic(kernel: Any, d: int, batch: int | None) -> Kernel:
    """exp(−2 Σ sin²(π δᵢ/pᵢ)/ℓᵢ): the length-scale is not squared."""
    period = number(kernel.period_length, 2, batch).reshape(-1)
    return Periodic(
        np.sqrt(np.broadcast_to(lengthscale(kernel, d, batch), (d,))),
        np.broadcast_to(period, (d,)).copy(),
    )


def _cosine(kernel: Any, d: int, batch: int | None) -> Kernel:
    if d > 1:
        raise UnsupportedModelError(
            f"kernel: CosineKernel of {d} features is not positive definite"
        )
    return Cosine(2.0 * float(number(kernel.period_length, 2, batch).reshape(-1)[0]))


def _linear(kernel: Any, d: int, batch: int | None) -> Kernel:
    variance = number(kernel.variance, 2, batch).reshape(-1)
    return Linear(float(variance[0]) if len(variance) == 1 else variance)


def _polynomial(kernel: Any, d: int, batch: int | None) -> Kernel:
    offset = float(number(kernel.offset, 1, batch)[0])
    if int(kernel.power) == 1:
        return Linear() + Constant(offset)
    return Polynomial(degree=int(kernel.power), offset=offset)


def _constant(kernel: Any, d: int, batch: int | None) -> Kernel:
    return Constant(float(number(kernel.constant, 1, batch)[0]))


def _sum(kernel: Any, d: int, batch: int | None) -> Kernel:
    return _sum_of([called(part, d, batch) for part in kernel.kernels])


def _product(kernel: Any, d: int, batch: int | None) -> Kernel:
    return _product_of([called(part, d, batch) for part in kernel.kernels])


def _by_column(kernel: Any, d: int, batch: int | None) -> list[Kernel]:
    """Return the base kernel on each single column, with that column's length-scale."""
    base = kernel.base_kernel
    if not getattr(base, "has_lengthscale", False) or np.ndim(lengthscale(base, d, batch)) == 0:
        return [called(base, 1, batch)] * d
    whole = forward(base, d, batch)
    return [whole.with_params(lengthscale=float(width)) for width in lengthscale(base, d, batch)]


def _additive_structure(kernel: Any, d: int, batch: int | None) -> Kernel:
    return _sum_of([Select(base, [i]) for i, base in enumerate(_by_column(kernel, d, batch))])


def _product_structure(kernel: Any, d: int, batch: int | None) -> Kernel:
    return _product_of([Select(base, [i]) for i, base in enumerate(_by_column(kernel, d, batch))])


def _grid(kernel: Any, d: int, batch: int | None) -> Kernel:
    from gpattr.adapters.gpytorch_grids import interpolated

    return interpolated(kernel, _by_column(kernel, d, batch))


def _newton_girard(kernel: Any, d: int, batch: int | None) -> Kernel:
    """Σₙ σₙ² eₙ of one-dimensional kernels, by degree."""
    return FullAdditive(
        _by_column(kernel, d, batch), number(kernel.outputscale, 3, batch).reshape(-1)
    )


def _spectral_mixture(kernel: Any, d: int, batch: int | None) -> Kernel:
    """Πᵢ Σ_q w_q exp(−2π²δᵢ²v_qi) cos(2πδᵢμ_qi), by columns."""
    weights = number(kernel.mixture_weights, 1, batch)
    means, scales = (
        number(part, 3, batch)[:, 0, :] for part in (kernel.mixture_means, kernel.mixture_scales)
    )
    columns = []
    for i in range(d):
        terms = [
            float(w)
            * SquaredExponential(1.0 / (2.0 * np.pi * float(s[i])))
            * Cosine(1.0 / float(m[i]))
            for w, m, s in zip(weights, means, scales, strict=True)
        ]
        columns.append(Select(_sum_of(terms), [i]) if d > 1 else _sum_of(terms))
    return _product_of(columns)


def _arc(kernel: Any, d: int, batch: int | None) -> Kernel:
    """The base kernel of points on circles, (sin, cos) of an angle for each column."""
    member = _member(kernel, batch)
    return Warped(called(member.base_kernel, 2 * d), member.embedding)


def _random_features(kernel: Any, d: int, batch: int | None) -> Kernel:
    if not hasattr(kernel, "randn_weights"):
        raise UnsupportedModelError(
            "kernel: this RFFKernel has not drawn its frequencies; give num_dims, or call the model"
            " once"
        )
    member = _member(kernel, batch)
    return Warped(Linear(), lambda x: member._featurize(x, normalize=True))


def _spectral_delta(kernel: Any, d: int, batch: int | None) -> Kernel:
    """Σₛ cos(2π zₛ·(x − x')/ℓ)/S, the product of S sines and cosines of each point."""
    import torch

    member = _member(kernel, batch)
    Z, scale = (part.detach().double() for part in (member.Z, member.lengthscale))

    def features(x: Any) -> Any:
        phases = 2.0 * np.pi * (x / scale.to(x.device)) @ Z.to(x.device).mT
        return torch.cat([phases.cos(), phases.sin()], dim=-1) / phases.shape[-1] ** 0.5

    return Warped(Linear(), features)


def _hamming(kernel: Any, d: int, batch: int | None) -> Kernel:
    """((1 + α)/(α + h))ᵝ of one-hot sequences with h differences; between them h = T − x·x'."""
    from gpattr.adapters import gpytorch_fallback

    member = _member(kernel, batch)
    alpha, beta = (float(number(part, 1, None)[0]) for part in (member.alpha, member.beta))

    def values(x1: Any, x2: Any) -> Any:
        differences = d // int(member.vocab_size) - x1 @ x2.mT
        return ((1.0 + alpha) / (alpha + differences)) ** beta

    return gpytorch_fallback.one_hot(type(kernel).__name__, values)


def _member(kernel: Any, batch: int | None) -> Any:
    """Return the kernel of one member of a batch."""
    return kernel if batch is None or not len(kernel.batch_shape) else kernel[batch]


def _index(kernel: Any, d: int, batch: int | None) -> Kernel:
    """The covariance of tasks, B[t, t']."""
    if d != 1:
        raise UnsupportedModelError(
            f"kernel: {type(kernel).__name__} is not supported: its inputs are numbers of tasks, in"
            f" one column, got {d}"
        )
    covariance = kernel.covar_matrix
    dense = covariance.to_dense() if hasattr(covariance, "to_dense") else covariance
    return Index(number(dense, 2, batch))


FORWARD: dict[str, Any] = {
    "RBFKernel": lambda kernel, d, batch: SquaredExponential(lengthscale(kernel, d, batch)),
    "MaternKernel": _matern,
    "RQKernel": _rational_quadratic,
    "PeriodicKernel": _periodic,
    "CosineKernel": _cosine,
    "LinearKernel": _linear,
    "PolynomialKernel": _polynomial,
    "ConstantKernel": _constant,
    "ScaleKernel": _scale,
    "AdditiveKernel": _sum,
    "ProductKernel": _product,
    "AdditiveStructureKernel": _additive_structure,
    "ProductStructureKernel": _product_structure,
    "NewtonGirardAdditiveKernel": _newton_girard,
    "GridInterpolationKernel": _grid,
    "SpectralMixtureKernel": _spectral_mixture,
    "ArcKernel": _arc,
    "RFFKernel": _random_features,
    "SpectralDeltaKernel": _spectral_delta,
    "IndexKernel": _index,
    "PositiveIndexKernel": _index,
    "HammingIMQKernel": _hamming,
    "MultiDeviceKernel": lambda kernel, d, batch: forward(kernel.base_kernel, d, batch),
}
_OUTPUTS = "it is of several outputs, or of derivatives, for each row"
# What is no function of two rows of columns, with the reason.
NOT_OF_ROWS = {
    "MultitaskKernel": _OUTPUTS,
    "LCMKernel": _OUTPUTS,
    "RBFKernelGrad": _OUTPUTS,
    "RBFKernelGradGrad": _OUTPUTS,
    "Matern52KernelGrad": _OUTPUTS,
    "PolynomialKernelGrad": _OUTPUTS,
}


def mean_of(mean: Any, d: int, batch: int | None = None) -> Mean:
    """Return a mean module as ours."""
    library = type(mean).__module__.startswith("gpytorch.means")
    name = type(mean).__name__ if library else ""
    if name == "ZeroMean":
        return Zero()
    if name == "ConstantMean":
        return ConstantMean(float(number(mean.constant, 0, batch)))
    if name == "LinearMean":
        weights = number(mean.weights, 2, batch).reshape(-1)
        if len(weights) != d:
            raise UnsupportedModelError(
                f"mean_module: a LinearMean of {len(weights)} columns does not fit {d} columns"
            )
        bias = 0.0 if mean.bias is None else float(number(mean.bias, 1, batch)[0])
        return LinearMean(weights, bias)
    from gpattr.adapters import gpytorch_fallback

    return gpytorch_fallback.mean_of_module(mean, batch)
