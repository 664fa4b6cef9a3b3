"""GPyTorch's exact models of several outputs for each row: tasks, and gradients.

    k((x, o), (x', p)) = Σ_q B^q_op k_q(x, x')

With one term and all targets known this is a rotation of independent functions
(`MultiOutputPosterior.coregionalised`), also for noise that is correlated between tasks. Several
terms, and gradients, are one function g of x and of columns that say the output, B^q = RRᵀ:

    f_o(x) = g(x, R^1_o, R^2_o, …),      k = Σ_q k_q(x, x') r_q·r_q'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpattr._core.array import to_numpy
from gpattr.adapters.foreign import on_host
from gpattr.adapters.pytorch.automatic import differentiated
from gpattr.adapters.pytorch.botorch_inputs import ModelInputs
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double, predictor
from gpattr.adapters.pytorch.kernels import forward, lengthscale, mean_of, number
from gpattr.adapters.pytorch.predictions import (
    DoubleByDefault,
    dense,
    multitask_moments,
    tasks_noise,
)
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import NotPositiveDefiniteError, UnsupportedModelError
from gpattr.kernels import Constant as ConstantKernel
from gpattr.kernels import Kernel, Linear, Select
from gpattr.means import Constant, Mean, Zero
from gpattr.means import Linear as LinearMean
from gpattr.posteriors import CombinationPosterior, MultiOutputPosterior, Posterior
from gpattr.posteriors.given import root_of
from gpattr.posteriors.pinned import PinnedOutputs, PinnedPosterior

OF_TASKS = ("MultitaskKernel", "LCMKernel")
GRADIENTS = ("RBFKernelGrad", "RBFKernelGradGrad", "Matern52KernelGrad", "PolynomialKernelGrad")


@dataclass(frozen=True, eq=False)
class TaskTerm:
    """One term k_q B^q: a kernel of d columns, and the covariance of the outputs, (P, P)."""

    kernel: Kernel
    covariance: np.ndarray


def of_several_outputs(kernel: Any) -> bool:
    """Return whether a kernel is of several outputs for each row."""
    return any(type(part).__name__ in (*OF_TASKS, *GRADIENTS) for part in kernel.modules())


def tasks(model: Any, data: Any = None) -> Adapted:
    """Return one output for each task of an exact model with targets (n, P), or each gradient."""
    copy = copy_of(model)
    X, Y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    if X.ndim != 2 or Y.ndim != 2:
        raise UnsupportedModelError(
            f"train_targets: expected one row of targets per row of inputs, got {Y.shape}"
        )
    latents, mixing, means = coupled(copy, X, Y)
    posterior = outputs_of(latents, mixing, means)
    return Adapted(in_double(posterior, model), predictor(copy, multitask_moments), X)


def outputs_of(
    latents: Sequence[Posterior], mixing: np.ndarray | None, means: Sequence[Mean]
) -> MultiOutputPosterior:
    """Return mixtures of independent functions; without ``mixing``, one function each."""
    if mixing is not None:
        return MultiOutputPosterior.of_latents(latents, mixing, means=means)
    outputs = {
        f"y{o}": CombinationPosterior([latent], [1.0], mean=means[o])
        for o, latent in enumerate(latents)
    }
    return PinnedOutputs(outputs)


def coupled(
    model: Any, X: np.ndarray, Y: np.ndarray, inputs: ModelInputs | None = None
) -> tuple[list[Posterior], np.ndarray | None, list[Mean]]:
    """Return the functions of which the outputs of a copy of a model are made, with their means.

    They are mixed by a matrix (P, Q); without one, each is an output. With ``inputs``, kernels and
    functions are of the columns w that it makes.
    """
    import torch

    (n, d), P = X.shape, Y.shape[1]
    means = task_means(model.mean_module, d, P)
    name = type(model.likelihood).__name__
    if name != "MultitaskGaussianLikelihood":
        raise UnsupportedModelError(
            f"likelihood: {name} of several outputs is not supported, but"
            " MultitaskGaussianLikelihood"
        )
    with torch.no_grad(), DoubleByDefault():
        noise = to_numpy(tasks_noise(model, 1, P))  # the same in every row
    residual = Y - np.stack([to_numpy(mean(X)) for mean in means], axis=1)
    own: Any = next(
        (p for p in model.covar_module.modules() if type(p).__name__ in GRADIENTS), None
    )
    if own is None:
        terms = list(terms_of(model.covar_module, d))
        if inputs is not None:
            terms = [TaskTerm(inputs.kernel(term.kernel), term.covariance) for term in terms]
            X = inputs.inside(X)
            d = X.shape[1]
        if len(terms) == 1:
            latents, mixing = rotated(terms[0], X, residual, noise)
            return latents, mixing, means
        kernel, held = joined(terms, d)
    elif inputs is not None:
        raise UnsupportedModelError(
            "covar_module: gradients of transformed inputs are not supported"
        )
    else:
        kernel, held = gradient_kernel(model.covar_module, d), np.eye(P)
    Z = np.concatenate([np.repeat(X, P, axis=0), np.tile(held, (n, 1))], axis=1)
    whole = conditioned(kernel, Z, residual.reshape(-1), np.kron(np.eye(n), noise))
    return [PinnedPosterior(whole, point) for point in held], None, means


def terms_of(kernel: Any, d: int) -> Sequence[TaskTerm]:
    """Return the terms of which a kernel of tasks is the sum."""
    name = type(kernel).__name__
    if name == "MultitaskKernel":
        B = number(dense(kernel.task_covar_module.covar_matrix), 2, None)
        return [TaskTerm(forward(kernel.data_covar_module, d), 0.5 * (B + B.T))]
    if name in ("LCMKernel", "AdditiveKernel"):
        parts = kernel.covar_module_list if name == "LCMKernel" else kernel.kernels
        return [term for part in parts for term in terms_of(part, d)]
    if name == "ScaleKernel":
        scale = float(number(kernel.outputscale, 0, None))
        return [
            TaskTerm(term.kernel, scale * term.covariance)
            for term in terms_of(kernel.base_kernel, d)
        ]
    raise UnsupportedModelError(f"covar_module: a {name} of several tasks is not supported")


def rotated(
    term: TaskTerm, X: np.ndarray, residual: np.ndarray, noise: np.ndarray
) -> tuple[list[Posterior], np.ndarray]:
    """Return independent functions and their mixing (P, Q), for noise with a covariance (P, P).

    With noise = RRᵀ, R⁻¹f has unit noise.
    """
    R = np.linalg.cholesky(noise)
    half = np.linalg.solve(R, term.covariance)
    covariance = np.linalg.solve(R, half.T)
    inner = MultiOutputPosterior.coregionalised(
        term.kernel,
        X,
        np.linalg.solve(R, residual.T).T,
        covariance=0.5 * (covariance + covariance.T),
        noise=1.0,
    )
    return list(inner.latents), R @ inner.mixing


def joined(terms: Sequence[TaskTerm], d: int) -> tuple[Kernel, np.ndarray]:
    """Return one kernel of d columns and output columns, and their values, (P, k)."""
    kernels, roots, at = [], [], d
    for term in terms:
        root = root_of("covar_module", term.covariance)
        root = root[:, (root != 0).any(axis=0)]
        places = list(range(at, at + root.shape[1]))
        of_outputs = Select(Linear(), places)
        if isinstance(term.kernel, ConstantKernel):
            kernels.append(of_outputs * term.kernel.variance)
        else:
            kernels.append(Select(term.kernel, range(d)) * of_outputs)
        roots.append(root)
        at += root.shape[1]
    return reduce(add, kernels), np.concatenate(roots, axis=1)


def conditioned(kernel: Kernel, Z: np.ndarray, y: np.ndarray, noise: np.ndarray) -> Posterior:
    """Return the posterior given targets whose noise has any covariance, (m, m)."""
    from gpattr.posteriors.multi_task import TaskPosterior

    kernel.check_derivatives(Z)
    try:
        L = np.linalg.cholesky(to_numpy(kernel(Z, Z)) + noise)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(
            "model: the covariance of its training targets is not positive definite"
        ) from None
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return TaskPosterior(kernel, Z, alpha, L)


def task_means(mean: Any, d: int, P: int) -> list[Mean]:
    """Return the prior mean of each output."""
    name = type(mean).__name__
    if name == "MultitaskMean":
        return [mean_of(part, d) for part in mean.base_means]
    if name == "ConstantMeanGrad":
        return [Constant(float(number(mean.constant, 1, None)[0])), *[Zero()] * (P - 1)]
    if name == "LinearMeanGrad":
        weights = number(mean.weights, 2, None).reshape(-1)
        bias = 0.0 if mean.bias is None else float(number(mean.bias, 1, None)[0])
        return [LinearMean(weights, bias), *(Constant(float(w)) for w in weights)]
    if name == "ZeroMean":
        return [Zero()] * P
    raise UnsupportedModelError(f"mean_module: a {name} of several outputs is not supported")


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
    """The covariance of a function and its gradient, (..., n, m).

    A row (x, w) stands for w₀f(x) + Σᵢ wᵢ ∂f/∂xᵢ. For a squared exponential k with
    δᵢ = (xᵢ − x'ᵢ)/ℓᵢ² the covariance of two of them is

        k (w₀w'₀ + w₀ w'·δ − w'₀ w·δ + Σᵢ wᵢw'ᵢ/ℓᵢ² − (w·δ)(w'·δ))
    """

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
