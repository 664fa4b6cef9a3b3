"""Models of GPyTorch: exact and variational.

A model is never called: a copy in float64 predicts, with exact linear algebra
(`gpytorch_predictions`). With more than 800 rows the library solves by conjugate gradients, and its
cached solutions are wrong by several per cent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr.adapters.categories import columns_of_codes
from gpattr.adapters.devices import beside, on_host
from gpattr.adapters.gpytorch_kernels import called, mean_of, number
from gpattr.adapters.gpytorch_predictions import (
    Moments,
    evaluated,
    exact_moments,
    variational_moments,
)
from gpattr.adapters.notes import FLOAT32, with_note
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel, Warped
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, Posterior, SparsePosterior


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

    def posterior(i: int | None) -> Posterior:
        rows, targets = X[i] if X.ndim == 3 and i is not None else X, y if i is None else y[i]
        d = rows.shape[1]
        given = copy.train_targets
        rows, targets = beside(rows, given), beside(targets, given)
        kernel = deep(copy.covar_module, feature_extractor, rows, i)
        mean = mean_of(copy.mean_module, d, i)
        return ExactPosterior(
            kernel, rows, targets, noise=noise_of(copy.likelihood, len(rows), i), mean=mean
        )

    parts = [posterior(i) for i in batch]
    result = parts[0] if batch == [None] else MultiOutputPosterior(parts)
    rows = X[0] if X.ndim == 3 else X
    return Adapted(in_double(result, model), predictor(copy, exact_moments), rows)


def deep(covar_module: Any, network: Any, rows: Array, batch: int | None) -> Kernel:
    """Return the kernel on rows, or behind a network."""
    if network is None:
        kernel = called(covar_module, rows.shape[1], batch)
        if columns_of_codes(kernel, range(rows.shape[1])):
            raise UnsupportedModelError(
                "kernel: CategoricalKernel is supported only in BoTorch's models, such as"
                " MixedSingleTaskGP"
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


def noise_of(likelihood: Any, n: int, batch: int | None) -> np.ndarray:
    """Return the noise variances of n rows, (n,)."""
    name = type(likelihood).__name__
    if name == "FixedNoiseGaussianLikelihood":
        noise = number(likelihood.noise_covar.noise, 1, batch)
        second = likelihood.second_noise
        return noise + (
            float(number(second, 1, batch)[0]) if hasattr(second, "detach") else float(second)
        )
    if name == "GaussianLikelihood":
        return np.full(n, float(number(likelihood.noise, 1, batch)[0]))
    raise UnsupportedModelError(
        f"likelihood: {name} is not supported; supported are GaussianLikelihood and"
        " FixedNoiseGaussianLikelihood"
    )


def variational(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the latent function of an `ApproximateGP`, whitened or not."""
    copy = copy_of(model)
    strategy = copy.variational_strategy
    # A hundred times larger in float32, so taken from the original.
    strategy._jitter_val = jitter = float(model.variational_strategy.jitter_val)
    name = type(strategy).__name__
    library = type(strategy).__module__.startswith("gpytorch.")
    if not library or name not in ("VariationalStrategy", "UnwhitenedVariationalStrategy"):
        raise UnsupportedModelError(
            f"variational_strategy: {type(strategy).__module__}.{name} is not supported"
        )
    if not bool(strategy.variational_params_initialized.item()):
        raise InvalidInputError(
            "model: expected a trained ApproximateGP, got one that was never called: its q(u) is"
            " not initialised"
        )
    if not bool(getattr(strategy, "updated_strategy", True)):
        raise InvalidInputError(
            "model: expected a whitened q(u), got one saved by an older GPyTorch; call the"
            " model once to whiten it"
        )
    Z = number(strategy.inducing_points, 2, None)
    q = strategy._variational_distribution()
    if not hasattr(q, "covariance_matrix"):
        raise UnsupportedModelError(
            f"variational_distribution: {type(strategy._variational_distribution).__name__} is not"
            " supported"
        )
    mean, cov = map(on_host, (q.mean, q.covariance_matrix))
    if mean.ndim > 1:
        raise UnsupportedModelError(
            f"variational_strategy: batch shape {mean.shape[:-1]} is not supported"
        )
    posterior = SparsePosterior(
        called(copy.covar_module, Z.shape[1]),
        *(beside(part, strategy.inducing_points) for part in (Z, mean, 0.5 * (cov + cov.T))),
        whitened=name == "VariationalStrategy",
        mean=mean_of(copy.mean_module, Z.shape[1]),
        jitter=jitter,
    )
    return Adapted(in_double(posterior, model), predictor(copy, variational_moments), Z)


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
    return evaluated(deepcopy(model, memo).double().eval())


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
