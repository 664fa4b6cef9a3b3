"""Models of BoTorch: GPyTorch's, behind transforms of inputs and outcomes.

Everything is read from a copy in evaluation mode: only there training inputs are transformed, and
`.train()` would destroy a fully Bayesian fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpattr.adapters.botorch_inputs import Inputs, inputs_of
from gpattr.adapters.botorch_outcomes import in_units, outcome_units, untransformed
from gpattr.adapters.devices import beside, on_host
from gpattr.adapters.gpytorch_inducing import inducing, sparse
from gpattr.adapters.gpytorch_kernels import called, mean_of, number
from gpattr.adapters.gpytorch_models import copy_of, in_double, noise_of
from gpattr.adapters.gpytorch_predictions import (
    Moments,
    exact_covariance,
    exact_moments,
    variational_moments,
)
from gpattr.adapters.gpytorch_variational import innermost, latent
from gpattr.adapters.notes import with_note
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.posteriors import ExactPosterior, MixturePosterior, MultiOutputPosterior, Posterior


def single_task(
    model: Any, data: Any = None, categories: Mapping[int, Sequence[float]] | None = None
) -> Adapted:
    """Return the posterior of a `SingleTaskGP` in original units, with one output per outcome.

    Columns of a `CategoricalKernel` have categories, as in a `MixedSingleTaskGP`: those
    of the training inputs, and any in ``categories``, {column: codes}.
    """
    copy = copy_of(model)
    X, y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    if y.ndim > 2:
        raise UnsupportedModelError(f"model: batch shape {tuple(y.shape[:-1])} is not supported")
    U = X if X.ndim == 2 else X[0]
    kernel = None if inducing(copy.covar_module) else called(copy.covar_module, U.shape[1], 0)
    inputs = inputs_of(copy, U, kernel, categories)
    outcomes = outcome_units(copy, 1 if y.ndim == 1 else len(y))
    if y.ndim == 1:
        result: Any = in_units(_member(copy, inputs, X, y, None), outcomes, 0)
    else:
        result = MultiOutputPosterior(
            [in_units(_member(copy, inputs, X[i], y[i], i), outcomes, i) for i in range(len(y))]
        )
    return _finished(model, copy, result, outcomes, inputs)


def _member(model: Any, inputs: Inputs, X: np.ndarray, y: np.ndarray, i: int | None) -> Posterior:
    """Return the posterior of the i-th model of a batch, in the user's units of its inputs."""
    d, given = X.shape[1], model.train_targets
    mean, noise = inputs.mean(mean_of(model.mean_module, d, i)), noise_of(model, i)
    rows, targets = beside(inputs.inside(X), given), beside(y, given)
    if inducing(model.covar_module):
        inner = sparse(model.covar_module, rows, targets, noise, mean, inputs=inputs, batch=i)
        return inputs.around(inner)
    kernel = inputs.kernel(called(model.covar_module, d, i))
    return inputs.around(ExactPosterior(kernel, rows, targets, noise=noise, mean=mean))


def fully_bayesian(model: Any, data: Any = None) -> Adapted:
    """Return the equally weighted mixture of a fully Bayesian fit's models, or of an ensemble's."""
    if model.covar_module is None:
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted yet; call"
            " fit_fully_bayesian_model_nuts first"
        )
    copy = copy_of(model)
    X, y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    U = X if X.ndim == 2 else X[0]
    inputs = inputs_of(copy, U, called(copy.covar_module, U.shape[1], 0))
    members = int(copy.batch_shape[0])
    outcomes = outcome_units(copy, members if y.ndim > 1 else 1)

    def member(s: int) -> Posterior:
        rows, targets = (X if X.ndim == 2 else X[s]), (y if y.ndim == 1 else y[s])
        return in_units(_member(copy, inputs, rows, targets, s), outcomes, s if y.ndim > 1 else 0)

    mixture = MixturePosterior([member(s) for s in range(members)])

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = untransformed(
            copy, copy.transform_inputs(inputs.tensor(points, copy)[None]), exact_moments
        )
        mean, var = mean[..., 0], var[..., 0]
        return mean.mean(axis=0), var.mean(axis=0) + mean.var(axis=0)

    return Adapted(in_double(mixture, model), predict, inputs.points, mixable=inputs.mixable)


def model_list(model: Any, data: Any = None) -> Adapted:
    """Return one output for each model of a `ModelListGP`, with the categories of all of them."""
    from gpattr.adapters.adapt import adapt

    parts = [adapt(part) for part in model.models]
    if any(part.posterior.several_outputs for part in parts):
        raise UnsupportedModelError("models: expected models of one outcome each")
    encoders: list[Any] = [part.posterior.encoder for part in parts]
    if any(encoder != encoders[0] for encoder in encoders):
        columns = {
            None if encoder is None else frozenset(encoder.categories) for encoder in encoders
        }
        if len(columns) > 1:
            raise UnsupportedModelError(
                "models: expected categories in the same columns of all models"
            )
        every = {
            encoders[0].names.index(name): sorted(
                {code for encoder in encoders for code in encoder.categories[name]}
            )
            for name in encoders[0].categories
        }
        parts = [adapt(part, categories=every) for part in model.models]

    def predict(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        results = [part.predict(rows) for part in parts]
        means, variances = (np.stack([result[i] for result in results], axis=-1) for i in (0, 1))
        return means, variances

    posteriors: Any = [part.posterior for part in parts]
    return Adapted(
        MultiOutputPosterior(posteriors),
        predict,
        parts[0].points,
        mixable=all(part.mixable for part in parts),
    )


def single_task_variational(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `SingleTaskVariationalGP`, in original units."""
    copy = copy_of(model)
    Z = number(innermost(copy.model.variational_strategy).inducing_points, 2, 0)
    inputs = inputs_of(copy, Z)
    function = latent(copy.model, model.model, inputs)
    parts = list(function.outputs.values())
    outcomes = outcome_units(copy, len(parts))
    outputs = [in_units(part, outcomes, i) for i, part in enumerate(parts)]
    result = MultiOutputPosterior(outputs) if function.several_outputs else outputs[0]
    likelihood = type(model.likelihood).__name__
    if likelihood != "GaussianLikelihood":
        result = with_note(result, f"of the latent function: the likelihood is {likelihood}")
    return _finished(
        model,
        copy,
        result,
        outcomes,
        inputs,
        lambda copy, rows: variational_moments(copy.model, rows),
    )


def _finished(
    model: Any,
    copy: Any,
    posterior: Any,
    outcomes: Any,
    inputs: Inputs,
    moments: Callable[[Any, Any], Moments] = exact_moments,
) -> Adapted:
    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = copy.transform_inputs(inputs.tensor(points, copy))
        if outcomes is None:
            mean, var = (on_host(part).T.reshape(len(points), -1) for part in moments(copy, seen))
        else:
            mean, var = untransformed(copy, seen, moments)
        return (
            (mean, var) if isinstance(posterior, MultiOutputPosterior) else (mean[:, 0], var[:, 0])
        )

    def joint(points: np.ndarray) -> np.ndarray:
        seen = on_host(copy.transform_inputs(inputs.tensor(points, copy)))
        scale = 1.0 if outcomes is None else float(outcomes[1][0])
        return scale**2 * exact_covariance(copy)(seen)

    one = moments is exact_moments and not isinstance(posterior, MultiOutputPosterior)
    return Adapted(
        in_double(posterior, model),
        predict,
        inputs.points,
        mixable=inputs.mixable,
        joint=joint if one else None,
    )
