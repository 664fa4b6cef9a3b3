"""Translation of BoTorch's kernels on fidelities and of networks of infinite width."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from gpattr.adapters.categories import Hamming
from gpattr.adapters.gpytorch_fallback import Matrix, differentiated, kernel_of
from gpattr.adapters.gpytorch_kernels import called, lengthscale, number
from gpattr.adapters.gpytorch_predictions import evaluated
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Rescaled, Select


def _fidelity(kernel: Any, d: int, batch: int | None) -> Kernel:
    """k₀ + c k₁: the kernels of all other columns, and c of one or two fidelities (`_Bias`)."""
    fidelities = [int(i) % d for i in kernel.fidelity_dims]
    others = [i for i in range(d) if i not in fidelities]
    if not others:
        raise UnsupportedModelError(
            "kernel: LinearTruncatedFidelityKernel needs a column that is not a fidelity"
        )
    first, second = (
        Select(called(part, len(others), batch), others)
        for part in (kernel.covar_module_unbiased, kernel.covar_module_biased)
    )
    bias = _Bias(float(number(kernel.power, 1, batch)[0]))
    return first + Select(differentiated(type(kernel).__name__, bias), fidelities) * second


class _Bias(torch.nn.Module):
    """Σᵢ (1 − sᵢ)(1 − sᵢ')(1 + sᵢsᵢ')ᵖ and, for two, Πᵢ (1 − sᵢ)(1 − sᵢ') (1 + s·s')ᵖ."""

    def __init__(self, power: float) -> None:
        super().__init__()
        self.power = power

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        s, t = x1.clamp(0, 1)[..., :, None, :], x2.clamp(0, 1)[..., None, :, :]
        products, lacking = s * t, (1.0 - s) * (1.0 - t)
        value = (lacking * (1.0 + products) ** self.power).sum(dim=-1)
        if x1.shape[-1] > 1:
            value = value + lacking.prod(dim=-1) * (1.0 + products.sum(dim=-1)) ** self.power
        return value


def _downsampling(kernel: Any, d: int, batch: int | None) -> Kernel:
    """c + (1 − s)¹⁺ᵟ(1 − s')¹⁺ᵟ, a constant and a kernel of rank one."""
    if d > 1:
        return kernel_of(kernel, batch)
    offset, power = (float(number(part, 1, batch)[0]) for part in (kernel.offset, kernel.power))
    return Constant(offset) + Rescaled(Constant(), lambda x: (1.0 - x[:, 0]) ** (1.0 + power))


def _infinite_width(kernel: Any, d: int, batch: int | None) -> Kernel:
    """The arc-cosine kernel, whose cosines the library keeps 1e-7 from 1.

    Values are the library's; between points so close that it matters, derivatives are those
    without that guard.
    """
    if batch is not None and len(kernel.batch_shape):
        kernel = kernel[batch]
    unguarded = deepcopy(kernel)
    unguarded.acos_eps = 0.0
    values, pairs = (evaluated(Matrix(part)) for part in (kernel, unguarded))
    return differentiated(type(kernel).__name__, values, pairs)


FORWARD: dict[str, Any] = {
    # exp(−mean of [xᵢ ≠ x'ᵢ]/ℓᵢ)
    "CategoricalKernel": lambda kernel, d, batch: Hamming(d * lengthscale(kernel, d, batch)),
    "LinearTruncatedFidelityKernel": _fidelity,
    "DownsamplingKernel": _downsampling,
    "InfiniteWidthBNNKernel": _infinite_width,
}
