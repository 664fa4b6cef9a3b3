"""Exact models of GPyTorch.

A model is never called: a copy in float64 predicts, with exact linear algebra
(`gpytorch_predictions`). With more than 800 rows the library solves by conjugate gradients, and its
cached solutions are wrong by several per cent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from gpattr._core.array import Array, solve_lower_rows, to_numpy
from gpattr.adapters.foreign import FLOAT32, beside, on_host, with_note
from gpattr.adapters.kernels import Hamming, columns_of_codes
from gpattr.adapters.pytorch.botorch_inputs import ModelInputs
from gpattr.adapters.pytorch.kernels import called, mean_of, number
from gpattr.adapters.pytorch.predictions import (
    DoubleByDefault,
    Moments,
    evaluated,
    exact_covariance,
    exact_moments,
    observed_covariance,
    prior,
)
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel, Warped
from gpattr.means import Mean
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, Posterior, SparsePosterior
from gpattr.posteriors.exact import factorise

BASE_KERNEL = "covariances between rows are those of the base kernel of the inducing points"


def exact(model: Any, data: Any = None, feature_extractor: Any = None) -> Adapted:
    """Return the posterior of an `ExactGP`; of a batch, one output for each.

    ``feature_extractor`` is the network of a deep kernel: the model's forward sends rows through it
    before its kernel and mean.
    """
    if model.train_inputs is None or model.train_targets is None:
        raise InvalidInputError(
            "model: expected an ExactGP with training data, got one without; restore it"
            " with set_train_data"
        )
    if hasattr(model, "covar_module") and model.train_targets.ndim == 2:
        from gpattr.adapters.pytorch.gpytorch_tasks import of_several_outputs, tasks

        if of_several_outputs(model.covar_module):
            return tasks(model)
    if len(model.train_inputs) != 1:
        raise UnsupportedModelError(
            f"train_inputs: expected one tensor, got {len(model.train_inputs)}"
        )
    copy = copy_of(model)
    X, y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    X = X[:, None] if X.ndim == 1 else X
    batch = list(range(len(y))) if y.ndim == 2 else [None]
    if y.ndim > 2 or X.ndim > 3:
        raise UnsupportedModelError(
            f"train_targets: batch shape {y.shape[:-1]} is not supported; a batch has one dimension"
        )
    for part in ("covar_module", "mean_module", "likelihood"):
        if not hasattr(copy, part):
            raise UnsupportedModelError(
                f"model: expected a {part}, which this {type(model).__name__} does not have"
            )

    sgpr = inducing(copy.covar_module)

    def posterior(i: int | None) -> Posterior:
        rows, targets = X[i] if X.ndim == 3 and i is not None else X, y if i is None else y[i]
        d = rows.shape[1]
        given = copy.train_targets
        rows, targets = beside(rows, given), beside(targets, given)
        mean, noise = mean_of(copy.mean_module, d, i), noise_of(copy, i)
        if sgpr:
            return sparse(copy.covar_module, rows, targets, noise, mean, batch=i)
        kernel = deep(copy.covar_module, feature_extractor, rows, i)
        return ExactPosterior(kernel, rows, targets, noise=noise, mean=mean)

    parts = [posterior(i) for i in batch]
    result = parts[0] if batch == [None] else MultiOutputPosterior(parts)
    rows = X[0] if X.ndim == 3 else X
    joint = exact_covariance(copy) if batch == [None] else None
    # Beyond its data a grid would be moved.
    grid = any(type(part).__name__ == "GridInterpolationKernel" for part in copy.modules())
    rows = np.concatenate([rows, 0.3 * rows + 0.7 * rows[::-1]]) if grid else rows
    predict = predictor(copy, exact_moments)
    return Adapted(in_double(result, model), predict, rows, mixable=not grid, joint=joint)


def deep(covar_module: Any, network: Any, rows: Array, batch: int | None) -> Kernel:
    """Return the kernel on rows, or behind a network."""
    if network is None:
        kernel = called(covar_module, rows.shape[1], batch)
        if columns_of_codes(kernel, range(rows.shape[1])):
            coded = any(isinstance(leaf, Hamming) for leaf in kernel.leaves())
            raise UnsupportedModelError(
                f"kernel: {'CategoricalKernel' if coded else 'IndexKernel'} is not supported: its"
                " inputs are numbers of tasks or categories, which only BoTorch's models have, such"
                " as MixedSingleTaskGP"
            )
        return kernel
    import torch

    if not isinstance(network, torch.nn.Module):
        raise InvalidInputError(
            f"feature_extractor: expected a torch module, got a {type(network).__name__}"
        )
    inner = deepcopy(network).double().eval()
    try:
        with torch.no_grad():
            width = inner(torch.as_tensor(rows[:1])).shape[-1]
    except RuntimeError as error:
        raise InvalidInputError(
            f"feature_extractor: cannot be applied to rows of {rows.shape[1]} columns: {error}"
        ) from None
    return Warped(called(covar_module, width, batch), inner)


def noise_of(model: Any, batch: int | None) -> np.ndarray:
    """Return the noise variances of the training rows of a copy of a model, (n,)."""
    likelihood, n = model.likelihood, model.train_targets.shape[-1]
    name = type(likelihood).__name__
    if name == "FixedNoiseGaussianLikelihood":
        noise = number(likelihood.noise_covar.noise, 1, batch)
        second = likelihood.second_noise
        return noise + (
            float(number(second, 1, batch)[0]) if hasattr(second, "detach") else float(second)
        )
    if name == "GaussianLikelihood":
        return np.full(n, float(number(likelihood.noise, 1, batch)[0]))
    return _own_noise(model, batch)


def _own_noise(model: Any, batch: int | None) -> np.ndarray:
    """Return the noise variances, (n,), that any other Gaussian likelihood adds."""
    import torch
    from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase

    name = type(model.likelihood).__name__
    if not isinstance(model.likelihood, _GaussianLikelihoodBase):
        raise UnsupportedModelError(
            f"likelihood: {name} is not supported; an exact model needs a Gaussian one"
        )
    with torch.no_grad(), DoubleByDefault():
        mean, K = prior(model, model.train_inputs[0])
        # A diagonal one keeps all digits of the noise between rows, which must be 0.
        K = torch.diag_embed(K.diagonal(dim1=-1, dim2=-2))
        added = observed_covariance(model, mean, K) - K
    noise = number(added, 2, batch)
    variances = noise.diagonal().copy()
    if not np.allclose(noise, np.diag(variances), rtol=0.0, atol=1e-12 * np.abs(noise).max()):
        raise UnsupportedModelError(
            f"likelihood: {name} has noise that is correlated between rows, which is not supported"
        )
    return variances


def in_double(posterior: Any, model: Any) -> Any:
    """Return the posterior, with a note where the model was in float32."""
    if any(str(parameter.dtype) == "torch.float32" for parameter in model.parameters()):
        return with_note(posterior, FLOAT32)
    return posterior


def copy_of(model: Any) -> Any:
    """Return a copy in float64, in evaluation mode, without cached predictions."""
    memo: dict[int, Any] = {}
    for module in model.modules():
        for name, empty in (("prediction_strategy", None), ("_memoize_cache", {})):
            cache = vars(module).get(name)
            if cache is not None:
                memo[id(cache)] = empty
        for tensor in _tensors(vars(module)):
            if not tensor.is_leaf:  # computed tensors cannot be deep-copied
                memo[id(tensor)] = tensor.detach().clone()
    copy = deepcopy(model, memo)
    for module in copy.modules():
        if type(module).__name__ == "InducingPointKernel":  # its copies share the likelihood
            module.likelihood = deepcopy(module.likelihood)
    copy = evaluated(copy.double().eval())
    for module in copy.modules():
        for name, tensor in module.named_buffers(recurse=False):
            if not tensor.is_leaf:  # computed in evaluation mode, and again not to be copied
                setattr(module, name, tensor.detach())
    return copy


def _tensors(held: Any) -> Iterator[Any]:
    """Yield the tensors in nested containers."""
    if hasattr(held, "is_leaf"):
        yield held
    elif isinstance(held, (dict, list, tuple)):
        for part in held.values() if isinstance(held, dict) else held:
            yield from _tensors(part)


def predictor(
    copy: Any, moments: Callable[[Any, Any], Moments]
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return a function that predicts with a copy of a model, with outputs last."""

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import torch

        device = next(copy.parameters()).device
        mean, var = map(on_host, moments(copy, torch.tensor(points, device=device)))
        return (mean.T, var.T) if mean.ndim == 2 else (mean, var)

    return predict


def inducing(kernel: Any) -> bool:
    """Return whether a kernel is an `InducingPointKernel`; refuse one inside of another kernel."""
    if type(kernel).__name__ == "InducingPointKernel":
        if kernel.active_dims is not None:
            raise UnsupportedModelError(
                "covar_module: an InducingPointKernel of some columns is not supported; select them"
                " in its base kernel"
            )
        return True
    if any(type(part).__name__ == "InducingPointKernel" for part in kernel.modules()):
        raise UnsupportedModelError(
            "covar_module: an InducingPointKernel inside of another kernel is not supported: what"
            " the library adds to variances is then noise; put the other kernel inside"
        )
    return False


def sparse(
    kernel: Any,
    rows: Array,
    y: Array,
    noise: np.ndarray,
    mean: Mean,
    *,
    inputs: ModelInputs | None = None,
    batch: int | None = None,
) -> Posterior:
    """Return the posterior of a model with an `InducingPointKernel` (SGPR).

    ``rows`` (n, d) are as the kernel sees them; with ``inputs`` rows and functions are of the
    columns that it makes.

    In evaluation the library takes k(x, Z)K⁻¹k(Z, x') between rows, and adds what is missing of
    the variances of the base kernel k: at training rows, which makes the noise σ² + k(xₙ, xₙ) −
    q(xₙ, xₙ) (FITC), and at new rows. There it would be noise if rows were asked for together, and
    functions without gradients; so covariances between new rows are k's, as variances are.
    """
    Z = number(kernel.inducing_points, 2, batch)
    base: Kernel = called(kernel.base_kernel, Z.shape[1], batch)
    if inputs is not None:
        base, Z = inputs.kernel(base), inputs.inside(Z)
    Z = beside(Z, kernel.inducing_points)
    L = factorise(base, Z, 0.0 * base.diagonal(Z))
    explained = (solve_lower_rows(L, base(rows, Z)) ** 2).sum(axis=1)
    missing = np.maximum(to_numpy(base.diagonal(rows) - explained), 0.0)
    result = SparsePosterior.fit(
        base, Z, rows, y, noise=beside(noise + missing, kernel.inducing_points), mean=mean
    )
    return with_note(result, BASE_KERNEL)
