"""Predictions of a copy of a GPyTorch model, from its own forward and its own likelihood.

Calling the copy is not enough: for exact answers the library's settings would have to be changed,
and with them PyTorch's default dtype and Python's warning filters. The library also changes
settings by itself whenever an `ExactGP` predicts or a kernel is evaluated. All of these belong to
the whole process, and other threads would compute with them. So ``forward``, which contains all
the user's code, gives the prior at training rows (or inducing points) and new points, and it is
conditioned here with Cholesky factors in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from gpytorch import Module
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.lazy import LazyEvaluatedKernelTensor
from gpytorch.models import ApproximateGP, ExactGP
from linear_operator import LinearOperator, settings, to_dense, to_linear_operator
from linear_operator.operators import DenseLinearOperator
from torch import Tensor
from torch.overrides import TorchFunctionMode

from gpattr.adapters.foreign import on_host
from gpattr.exceptions import NotPositiveDefiniteError, UnsupportedModelError

Moments = tuple[Tensor, Tensor]  # means and variances, (..., m) each

# Of models that override prediction methods for the components of a sum, which are not asked for.
SAME_BY_DEFAULT = ("botorch.models.additive_gp",)
CONDITIONING = ("__call__", "_get_train_prior_distribution", "_get_test_prior_mean_and_covariances")


def exact_moments(model: Any, points: Tensor) -> Moments:
    """Return the posterior moments of a copy of an `ExactGP` at points.

    m(x) + k(x, X)A⁻¹(y − m(X)) and k(x, x) − k(x, X)A⁻¹k(X, x), with A the likelihood's covariance
    of targets. The prior of the training rows comes from forward on these alone, as in the library:
    a forward may depend on all the rows it is given.
    """
    mean, covariance, V = _conditioned(model, points)
    return mean, covariance.diagonal(dim1=-1, dim2=-2) - (V * V).sum(dim=-2)


def exact_covariance(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return the covariance of a copy of an `ExactGP` at points, as a function of these."""

    def covariance(points: np.ndarray) -> np.ndarray:
        device = next(model.parameters()).device
        _, prior_covariance, V = _conditioned(model, torch.tensor(points, device=device))
        return on_host(prior_covariance - V.mT @ V)

    return covariance


def _conditioned(model: Any, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the posterior mean, the prior covariance, and V: the data subtract VᵀV from it."""
    require_library_method(model, ExactGP, *CONDITIONING)
    X, y = model.train_inputs[0], model.train_targets
    batch = torch.broadcast_shapes(X.shape[:-2], points.shape[:-2])
    n = X.shape[-2]
    with torch.no_grad(), DoubleByDefault():
        mean, K = prior(model, X)
        L = factor(observed_covariance(model, mean, K))
        residual = y - mean
        del K
        rows = torch.cat([part.expand(*batch, *part.shape[-2:]) for part in (X, points)], dim=-2)
        mean, K = prior(model, rows)
        V = torch.linalg.solve_triangular(L, K[..., :n, n:], upper=False)
        whitened = torch.linalg.solve_triangular(L, residual[..., None], upper=False)
        own = K[..., n:, n:]
        kernel: Any = getattr(model, "covar_module", None)
        if type(kernel).__name__ == "InducingPointKernel":
            # At new rows the library takes the kernel that inducing points stand for.
            own = dense(kernel.base_kernel(points))
        return mean[..., n:] + (V.mT @ whitened)[..., 0], own, V


def variational_moments(model: Any, points: Tensor) -> Moments:
    """Return the moments of the latent function of an `ApproximateGP`; of tasks, (tasks, m)."""
    require_library_method(model, ApproximateGP, "__call__")
    strategy = model.variational_strategy
    with torch.no_grad(), DoubleByDefault():
        tasks = hasattr(strategy, "num_tasks")
        base = strategy.base_variational_strategy if tasks else strategy
        mean, K = _joint(base, points)
        variance = K.diagonal(dim1=-1, dim2=-2)
        if not tasks:
            return mean, variance
        if type(strategy).__name__ == "LMCVariationalStrategy":
            C = strategy.lmc_coefficients.mT  # (tasks, latent functions)
            return C @ mean, C**2 @ variance
        shape = (strategy.num_tasks, points.shape[-2])
        return mean.expand(shape), variance.expand(shape)


def strategy_moments(strategy: Any, points: Tensor) -> Moments:
    """Return the moments, (..., n) each, that a strategy gives at points (n, d).

    Of a batch of functions, such as the units of a layer, all are given.
    """
    with torch.no_grad(), DoubleByDefault():
        mean, K = _joint(strategy, points)
        return mean, K.diagonal(dim1=-1, dim2=-2)


def _joint(strategy: Any, points: Tensor) -> Moments:
    """Return mean and covariance of the latent function at points, given q(u) = N(μ, S).

    With k(Z, Z) + jitter = LLᵀ and V = L⁻¹k(Z, x): whitened, m(x) + Vᵀμ and k(x, x') + Vᵀ(S − I)V;
    else μ and S are first replaced by L⁻¹(μ − m(Z)) and L⁻¹SL⁻ᵀ. L may be the symmetric root. The
    jitter that the whitened strategy adds to variances, as if it were noise, is left out.
    """
    name, Z = type(strategy).__name__, strategy.inducing_points
    q = strategy._variational_distribution()
    centre = q.mean
    if name == "OrthogonallyDecoupledVariationalStrategy":
        n = points.shape[-2]
        mean, K = _joint(strategy.model, torch.cat([points, Z], dim=-2))
        return mean[..., :n] + (K[..., :n, n:] @ centre[..., None])[..., 0], K[..., :n, :n]
    m = Z.shape[-2]
    batch = torch.broadcast_shapes(Z.shape[:-2], centre.shape[:-1])
    rows = [part.expand(*batch, *part.shape[-2:]) for part in (Z, points)]
    mean, K = prior(strategy.model, torch.cat(rows, dim=-2))
    eye = torch.eye(m, dtype=K.dtype, device=K.device)
    S = dense(q.lazy_covariance_matrix) if hasattr(q, "lazy_covariance_matrix") else 0.0 * eye
    A = K[..., :m, :m] + strategy.jitter_val * eye
    if name == "CiqVariationalStrategy":
        values, vectors = torch.linalg.eigh(A)
        V = vectors @ ((vectors.mT @ K[..., :m, m:]) / values.sqrt()[..., None])
    else:
        L = factor(A)
        V = torch.linalg.solve_triangular(L, K[..., :m, m:], upper=False)
        if name == "UnwhitenedVariationalStrategy":
            residual = (centre - mean[..., :m])[..., None]
            centre = torch.linalg.solve_triangular(L, residual, upper=False)[..., 0]
            half = torch.linalg.solve_triangular(L, S, upper=False)
            S = torch.linalg.solve_triangular(L, half.mT, upper=False)
    update = V.mT @ ((S - eye) @ V)
    return mean[..., m:] + (V.mT @ centre[..., None])[..., 0], K[..., m:, m:] + update


def multitask_moments(model: Any, points: Tensor) -> Moments:
    """Return the moments of a copy of an `ExactGP` of several tasks at points, (tasks, m) each."""
    require_library_method(model, ExactGP, *CONDITIONING)
    X, y = model.train_inputs[0], model.train_targets
    n, P = y.shape
    with torch.no_grad(), DoubleByDefault():
        mean, K = tasks_prior(model, X)
        L = factor(K + tasks_noise(model, n, P))
        residual = (y - mean.reshape(n, P)).reshape(-1)
        mean, K = tasks_prior(model, torch.cat([X, points], dim=-2))
        V = torch.linalg.solve_triangular(L, K[: n * P, n * P :], upper=False)
        whitened = torch.linalg.solve_triangular(L, residual[:, None], upper=False)
        variance = K.diagonal()[n * P :] - (V * V).sum(dim=0)
        mean = mean[n * P :] + (V.mT @ whitened)[:, 0]
        return mean.reshape(-1, P).mT, variance.reshape(-1, P).mT


def tasks_prior(model: Any, rows: Tensor) -> Moments:
    """Return mean (nP,) and covariance (nP, nP) of P tasks at rows, a row's tasks together."""
    output = Module.__call__(model, rows)
    if not isinstance(output, MultitaskMultivariateNormal):
        raise UnsupportedModelError(
            "model: expected a forward that returns a MultitaskMultivariateNormal, got a"
            f" {type(output).__name__}"
        )
    mean, K = output.mean, dense(output.lazy_covariance_matrix)
    n, P = mean.shape
    if not output._interleaved:
        K = K.reshape(P, n, P, n).permute(1, 0, 3, 2).reshape(n * P, n * P)
    return mean.reshape(-1), K


def tasks_noise(model: Any, n: int, P: int) -> Tensor:
    """Return the covariance of the noise of P tasks in n rows, (nP, nP)."""
    device = model.train_targets.device
    nothing = torch.zeros(n * P, n * P, dtype=torch.float64, device=device)
    latent = MultitaskMultivariateNormal(
        torch.zeros(n, P, dtype=torch.float64, device=device), DenseLinearOperator(nothing)
    )
    observed = model.likelihood(latent, list(model.train_inputs))
    return dense(observed.lazy_covariance_matrix)


def observed_covariance(model: Any, mean: Tensor, K: Tensor) -> Tensor:
    """Return the likelihood's covariance of targets, for the covariance K of f, (..., n, n)."""
    likelihood = model.likelihood
    noise: Any = getattr(likelihood, "noise_covar", None)
    if type(noise).__name__ == "HeteroskedasticNoise":
        # Its model is conditioned here: calling it would change settings of the whole process.
        level = noise_model_mean(noise.noise_model, model.train_inputs[0])
        if noise._noise_indices is not None:
            level = level[..., noise._noise_indices]
        return K + torch.diag_embed(noise._noise_constraint.transform(level))
    if hasattr(noise, "_cached_train_inputs"):
        noise._cached_train_inputs = None  # the rows that outliers are among
    observed = likelihood(
        MultivariateNormal(mean, DenseLinearOperator(K)), list(model.train_inputs)
    )
    if not torch.equal(observed.loc, mean):
        raise UnsupportedModelError(
            f"likelihood: a {type(likelihood).__name__} that changes the mean is not supported"
        )
    return dense(observed.lazy_covariance_matrix)


def noise_model_mean(noise_model: Any, rows: Tensor) -> Tensor:
    """Return the mean of a model of the noise at rows."""
    if not isinstance(noise_model, ExactGP):
        output: Any = Module.__call__(noise_model, rows)
        return output.mean
    transform: Any = getattr(noise_model, "transform_inputs", None)
    rows = rows if transform is None else transform(rows)
    return exact_moments(noise_model.eval(), rows)[0]


def prior(model: Any, rows: Tensor) -> Moments:
    """Return mean (..., n) and covariance (..., n, n) of ``forward`` at rows."""
    # This is forward, and not the prediction of a subclass that overrides the call.
    output = Module.__call__(model, rows)
    if not isinstance(output, MultivariateNormal) or isinstance(
        output, MultitaskMultivariateNormal
    ):
        raise UnsupportedModelError(
            "model: expected a forward that returns a MultivariateNormal, got a"
            f" {type(output).__name__}"
        )
    return output.loc, dense(output.lazy_covariance_matrix)


def factor(A: Tensor) -> Tensor:
    """Return the Cholesky factor of A, with the jitter the library would add if A needs it."""
    L, info = torch.linalg.cholesky_ex(A)
    jitter, tries = (
        settings.cholesky_jitter.value(A.dtype) or 0.0,
        settings.cholesky_max_tries.value() or 0,
    )
    eye, needed = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device), info > 0
    for power in range(tries):
        if not info.any():
            return L
        L, info = torch.linalg.cholesky_ex(A + jitter * 10**power * needed[..., None, None] * eye)
        needed = needed | (info > 0)
    if info.any():
        raise NotPositiveDefiniteError(
            "model: the covariance of its training targets is not positive definite"
        )
    return L


def require_library_method(model: Any, library: type, *names: str) -> None:
    """Raise `UnsupportedModelError` if a model overrides its library's prediction methods."""
    for name in names:
        own = getattr(type(model), name, None)
        if own is not getattr(library, name, None) and own.__module__ not in SAME_BY_DEFAULT:
            raise own_method(model, name)


def own_method(model: Any, name: str) -> UnsupportedModelError:
    """Return the error for a model that overrides how it predicts."""
    return UnsupportedModelError(
        f"model: this {type(model).__name__} has its own {name}, so its predictions cannot be"
        " compared with those of its parts; as_posterior(model, check=False) skips the comparison"
    )


class EvaluatedKernel(Kernel):
    """A kernel whose call returns a matrix: the library's evaluation changes global settings."""

    def __call__(
        self,
        x1: Any,
        x2: Any = None,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Any:
        def seen(x: Any) -> Any:
            x = x if self.active_dims is None else x.index_select(-1, self.active_dims)
            return x[:, None] if x.ndim == 1 else x

        x1 = seen(x1)
        x2 = x1 if x2 is None else seen(x2)
        result: Any = Module.__call__(
            self, x1, x2, diag=diag, last_dim_is_batch=last_dim_is_batch, **params
        )
        if not diag:
            return DenseLinearOperator(dense(result))
        square = result.ndim == x1.ndim and result.shape[-2:] == (x1.shape[-2], x2.shape[-2])
        # Some kernels ignore diag.
        return result.diagonal(dim1=-1, dim2=-2) if square else result


def evaluated(model: Any) -> Any:
    """Make the kernels in our own copy of a model return matrices; return the copy."""
    for module in model.modules():
        if isinstance(module, Kernel) and not isinstance(module, EvaluatedKernel):
            kind: Any = type(module)
            # After the kernel's own class and before Kernel, so that a kernel with its own __call__
            # keeps it.
            bases, same_name = (
                (kind, EvaluatedKernel),
                {"__module__": kind.__module__, "__qualname__": kind.__qualname__},
            )
            made = type(kind)(kind.__name__, bases, same_name)  # pyright: ignore[reportCallIssue]
            module.__class__ = made
    return model


def dense(matrix: Any) -> Tensor:
    """Return an operator as a matrix.

    Kernels that are not modules of the model may still be unevaluated inside it.
    """
    if isinstance(matrix, LazyEvaluatedKernelTensor):
        kernel = evaluated(deepcopy(matrix.kernel))
        kernel.active_dims = None  # its rows have been selected
        return to_dense(
            kernel(
                matrix.x1, matrix.x2, last_dim_is_batch=matrix.last_dim_is_batch, **matrix.params
            )
        )
    if isinstance(matrix, LinearOperator) and any(map(_lazy, matrix._args)):
        parts = [to_linear_operator(dense(part)) if _lazy(part) else part for part in matrix._args]
        return type(matrix)(*parts, **matrix._kwargs).to_dense()
    return to_dense(matrix)


def _lazy(part: Any) -> bool:
    return isinstance(part, LazyEvaluatedKernelTensor) or (
        isinstance(part, LinearOperator) and any(map(_lazy, part._args))
    )


ALWAYS_REAL = (
    torch.empty,
    torch.ones,
    torch.zeros,
    torch.eye,
    torch.linspace,
    torch.logspace,
    torch.rand,
    torch.randn,
)
OF_VALUES = (
    torch.tensor,
    torch.as_tensor,
    torch.asarray,
    torch.scalar_tensor,
    torch.full,
    torch.arange,
)


class DoubleByDefault(TorchFunctionMode):
    """A mode in which tensors without a dtype are float64, in this thread only.

    PyTorch's default dtype would affect all threads.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.sparse_coo_tensor:  # used by task kernels; PyTorch warns without the flag
            return func(*args, **{"check_invariants": False} | kwargs)
        if kwargs.get("dtype") is not None or (func not in ALWAYS_REAL and func not in OF_VALUES):
            return func(*args, **kwargs)
        double = kwargs | {"dtype": torch.float64}
        if func in ALWAYS_REAL:
            return func(*args, **double)
        result = func(*args, **kwargs)
        typed = any(
            hasattr(value, "dtype") or isinstance(value, torch.dtype)
            for value in (*args, *kwargs.values())
        )
        return (
            func(*args, **double)
            if result.dtype == torch.get_default_dtype() and not typed
            else result
        )
