"""GPyTorch's kernels of a function and its gradient, as kernels of rows with an operator.

A row (x, w) stands for w₀f(x) + Σᵢ wᵢ ∂f/∂xᵢ. For a squared exponential k with δᵢ = (xᵢ − x'ᵢ)/ℓᵢ²
the covariance of two of them is

    k (w₀w'₀ + w₀ w'·δ − w'₀ w·δ + Σᵢ wᵢw'ᵢ/ℓᵢ² − (w·δ)(w'·δ))
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gpattr.adapters.gpytorch_fallback import differentiated
from gpattr.adapters.gpytorch_kernels import lengthscale, number
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Kernel

GRADIENTS = ("RBFKernelGrad", "RBFKernelGradGrad", "Matern52KernelGrad", "PolynomialKernelGrad")


def gradient_kernel(kernel: Any, d: int) -> Kernel:
    """Return a kernel of a function and its gradient as one of d + (d + 1) columns (x, w)."""
    name = type(kernel).__name__
    if name == "ScaleKernel":
        return float(number(kernel.outputscale, 0, None)) * gradient_kernel(kernel.base_kernel, d)
    if name != "RBFKernelGrad":
        raise UnsupportedModelError(
            f"covar_module: a {name} of gradients is not supported; RBFKernelGrad is"
        )
    widths = torch.tensor(lengthscale(kernel, d, None), dtype=torch.float64).expand(d).clone()
    return differentiated(name, WithGradient(widths), lengthscale=float(widths.min()))


class WithGradient(torch.nn.Module):
    """The covariance of values and derivatives, (..., n, m)."""

    widths: Tensor

    def __init__(self, widths: Tensor) -> None:
        super().__init__()
        self.register_buffer("widths", widths)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        d = len(self.widths)
        apart = x1[..., :, None, :d] - x2[..., None, :, :d]
        k = torch.exp(-0.5 * (apart / self.widths).square().sum(dim=-1))
        delta = apart / self.widths**2
        w, v = x1[..., :, None, d:], x2[..., None, :, d:]
        left, right = (w[..., 1:] * delta).sum(dim=-1), (v[..., 1:] * delta).sum(dim=-1)
        both = (w[..., 1:] * v[..., 1:] / self.widths**2).sum(dim=-1)
        return k * (
            w[..., 0] * v[..., 0] + w[..., 0] * right - v[..., 0] * left + both - left * right
        )
