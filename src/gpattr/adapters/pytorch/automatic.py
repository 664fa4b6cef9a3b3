"""Automatic derivatives of GPyTorch's and BoTorch's kernels and means that have no translation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gpattr._core import autodiff
from gpattr._core.array import Array
from gpattr.adapters.differentiated import Differentiated
from gpattr.adapters.pytorch.predictions import DoubleByDefault, dense, evaluated
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.means import Function


class Differentiable(DoubleByDefault):
    """A mode in which distances can be differentiated twice, unlike the distances of `cdist`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.cdist:
            return _distances(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


def _distances(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """Return distances whose derivatives at equal points are zero rather than not finite."""
    difference = x1[..., :, None, :] - x2[..., None, :, :]
    if p != 2.0:
        return difference.abs().pow(p).sum(dim=-1).pow(1.0 / p)
    squares = (difference * difference).sum(dim=-1)
    apart = squares > 0
    return torch.where(apart, torch.where(apart, squares, 1.0).sqrt(), 0.0)


class KernelMatrix(torch.nn.Module):
    """k(xₙ, zₘ) of a kernel's forward, (..., n, m)."""

    def __init__(self, kernel: Any) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        with Differentiable():
            return dense(self.kernel.forward(x1, x2))


class Pairs(torch.nn.Module):
    """k(xₙ, zₙ) of paired rows, (n,): matrices of one row and one column."""

    def __init__(self, matrix: Any) -> None:
        super().__init__()
        self.matrix = matrix

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.matrix(x1[:, None, :], x2[:, None, :])[:, 0, 0]


def differentiated(
    name: str,
    values: torch.nn.Module,
    pairs: torch.nn.Module | None = None,
    lengthscale: float | None = None,
) -> Differentiated:
    """Return a kernel from a module that takes rows (..., n, d) and (..., m, d) to (..., n, m).

    ``pairs`` is one without the guards that ``values`` has against dividing by zero, if it has any.
    """
    whole = autodiff.own_copy("kernel", values)
    paired = autodiff.own_copy("kernel", Pairs(pairs or values))
    alike = Pairs(whole)

    def matrix(X: Array, Z: Array) -> Array:
        return _named(f"kernel: {name}", autodiff.value, "kernel", whole, X, Z)

    def variances(X: Array) -> Array:
        return _named(f"kernel: {name}", autodiff.value, "kernel", alike, X, X)

    def derivatives(x: Array, y: Array, second: bool) -> tuple[Array, ...]:
        return _named(f"kernel: {name}", autodiff.kernel_derivatives, paired, x, y, second)

    return Differentiated(name, matrix, variances, derivatives, lengthscale)


def one_hot(name: str, values: Any) -> Differentiated:
    """Return a kernel of one-hot columns, which a library evaluates at their vertices only."""
    return replace(differentiated(name, Values(values)), vertices=True)


class Values(torch.nn.Module):
    """k(xₙ, zₘ) of a function, (..., n, m)."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.function(x1, x2)


def _named(what: str, function: Any, *args: Any) -> Any:
    """Return a function's result; name the kernel or mean whose code fails."""
    try:
        return function(*args)
    except (InvalidInputError, RuntimeError, NotImplementedError) as error:
        cause = error.__cause__ or error
        reason = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
        raise UnsupportedModelError(
            f"{what} is not supported: it fails, or has no derivatives: {reason}"
        ) from error


def kernel_of(kernel: Any, batch: int | None) -> Differentiated:
    """Return a kernel of a copy of a model, or of one member of its batch."""
    if batch is not None and len(kernel.batch_shape):
        kernel = kernel[batch]
    name = type(kernel).__name__
    if len(kernel.batch_shape):
        raise UnsupportedModelError(
            f"kernel: {name} with the batch shape {tuple(kernel.batch_shape)} is not supported"
        )
    hint = None
    if kernel.has_lengthscale:
        hint = float(kernel.lengthscale.detach().min())
    return differentiated(name, evaluated(KernelMatrix(kernel)), lengthscale=hint)


def mean_of_module(mean: Any, batch: int | None) -> Function:
    """Return a mean module, such as a neural network, with its gradient."""
    name = type(mean).__name__
    module = autodiff.own_copy("mean_module", _Rows(mean, batch))

    def function(X: Array) -> Array:
        return _named(f"mean_module: {name}", autodiff.value, "mean_module", module, X)

    def derivative(X: Array) -> Array:
        return _named(f"mean_module: {name}", autodiff.jacobian, "mean_module", module, X)

    return Function(function, derivative)


class _Rows(torch.nn.Module):
    """A mean at rows, (n,)."""

    def __init__(self, mean: Any, batch: int | None) -> None:
        super().__init__()
        self.mean, self.batch = mean, batch

    def forward(self, x: Tensor) -> Tensor:
        with Differentiable():
            result = self.mean(x)
        result = result[self.batch] if self.batch is not None and result.ndim == 2 else result
        if result.shape == (len(x), 1):
            result = result[:, 0]
        if result.shape != (len(x),):
            raise InvalidInputError(
                f"expected one number for each row, got an array of shape {tuple(result.shape)} for"
                f" {len(x)} rows"
            )
        return result
