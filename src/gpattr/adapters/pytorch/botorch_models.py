"""Models of BoTorch: GPyTorch's, behind transforms of inputs and outcomes.

Everything is read from a copy in evaluation mode: only there training inputs are transformed, and
`.train()` would destroy a fully Bayesian fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from gpattr.adapters.foreign import beside, on_host, one_or_several, side_by_side, with_note
from gpattr.adapters.pytorch.botorch_inputs import ModelInputs, inputs_of
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double, inducing, noise_of, sparse
from gpattr.adapters.pytorch.gpytorch_variational import innermost, latent
from gpattr.adapters.pytorch.kernels import called, mean_of, number
from gpattr.adapters.pytorch.predictions import (
    DoubleByDefault,
    Moments,
    dense,
    evaluated,
    exact_covariance,
    exact_moments,
    own_method,
    variational_moments,
)
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError
from gpattr.means import Constant
from gpattr.posteriors import (
    CombinationPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    Posterior,
    SparsePosterior,
)


def single_task(
    model: Any, data: Any = None, categories: Mapping[int, Sequence[float]] | None = None
) -> Adapted:
    """Return the posterior of a `SingleTaskGP` in original units, with one output per outcome.

    Columns of a `CategoricalKernel` have categories, as in a `MixedSingleTaskGP`: the training
    inputs' codes, and any in ``categories``, {column: codes}.
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


def _member(
    model: Any, inputs: ModelInputs, X: np.ndarray, y: np.ndarray, i: int | None
) -> Posterior:
    """Return the posterior of the i-th model of a batch, in the user's units of its inputs."""
    d, given = X.shape[1], model.train_targets
    mean, noise = inputs.mean(mean_of(model.mean_module, d, i)), noise_of(model, i)
    rows, targets = beside(inputs.inside(X), given), beside(y, given)
    if inducing(model.covar_module):
        inner = sparse(model.covar_module, rows, targets, noise, mean, inputs=inputs, batch=i)
        return inputs.around(inner)
    kernel = inputs.kernel(called(model.covar_module, d, i))
    return inputs.around(ExactPosterior(kernel, rows, targets, noise=noise, mean=mean))


def require_sampled(model: Any) -> None:
    """Raise `NotFittedError` for a fully Bayesian model without a fit."""
    if model.covar_module is None:
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted yet; call"
            " fit_fully_bayesian_model_nuts first"
        )


def fully_bayesian(model: Any, data: Any = None) -> Adapted:
    """Return the equally weighted mixture of a fully Bayesian fit's models, or of an ensemble's."""
    require_sampled(model)
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
        return side_by_side(part.predict(rows) for part in parts)

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
    result = one_or_several(outputs)
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
    inputs: ModelInputs,
    moments: Callable[[Any, Any], Moments] = exact_moments,
) -> Adapted:
    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = copy.transform_inputs(inputs.tensor(points, copy))
        if outcomes is not None:
            return untransformed(copy, seen, moments)
        mean, var = (on_host(part).T.reshape(len(points), -1) for part in moments(copy, seen))
        return mean, var

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


def outcome_units(model: Any, outputs: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return shift and scale, (outputs,) each, of outcomes y = shift + scale·f, or None.

    None means that the outcomes are not affine in f.
    """
    import torch

    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return np.zeros(outputs), np.ones(outputs)
    if not getattr(transform, "_is_linear", False):
        return None
    like: Any = {"dtype": torch.float64, "device": next(model.parameters()).device}
    try:
        with torch.no_grad():
            zero, one = (
                transform.untransform(value * torch.ones(1, 1, **like))[0] for value in (0.0, 1.0)
            )
    except ValueError:  # it depends on the row
        raise UnsupportedModelError(
            f"outcome_transform: {type(transform).__name__} is not supported"
        ) from None
    shift, scale = (np.broadcast_to(on_host(part).reshape(-1), (outputs,)) for part in (zero, one))
    return shift, scale - shift


def in_units(
    posterior: Posterior, outcomes: tuple[np.ndarray, np.ndarray] | None, i: int
) -> Posterior:
    """Return the posterior in the units of the i-th outcome.

    Where these are not affine in f, it is on the latent scale, with a note.
    """
    if outcomes is None:
        return with_note(posterior, "of the latent function: the outcome transform is not affine")
    shift, scale = float(outcomes[0][i]), float(outcomes[1][i])
    return (
        posterior
        if (shift, scale) == (0.0, 1.0)
        else CombinationPosterior([posterior], [scale], mean=Constant(shift))
    )


def untransformed(
    copy: Any, rows: Any, moments: Callable[[Any, Any], Moments]
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of the outcomes, (..., n, outputs), at transformed rows.

    They agree with ``copy.posterior``. ``moments`` are of the latent function, (n,), (outputs, n),
    or (members, n) of a mixture whose members share one output.
    """
    import torch
    from botorch.posteriors import GPyTorchPosterior
    from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
    from linear_operator.operators import DiagLinearOperator

    if type(copy).posterior.__module__.split(".")[0] != "botorch":
        raise own_method(copy, "posterior")
    mean, var = moments(copy, rows)
    several = mean.ndim == 2 and rows.ndim == 2
    with torch.no_grad():
        # Only variances are compared: the result at one point does not depend on the others.
        if several:
            latent: Any = MultitaskMultivariateNormal(
                mean.T, DiagLinearOperator(var.reshape(-1)), interleaved=False
            )
        else:
            latent = MultivariateNormal(mean, DiagLinearOperator(var))
        result = GPyTorchPosterior(latent)
        if hasattr(copy, "outcome_transform"):
            result = copy.outcome_transform.untransform_posterior(result, X=rows)
        mean = result.mean
        if not isinstance(result, GPyTorchPosterior):
            return on_host(mean), on_host(result.variance)
        # The library's own `variance` warns about small ones and rounds them up.
        var = result.distribution.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
        var = (
            var.reshape(mean.mT.shape).mT
            if several and not result.distribution._interleaved
            else var.reshape(mean.shape)
        )
    return on_host(mean), on_host(var)


def pairwise(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the utility of a `PairwiseGP`.

    Laplace's approximation of f(X) is N(f̂, K − K A K), with A = (I + CK)⁻¹C and C the negative
    Hessian of the log-likelihood at the mode f̂; elsewhere f follows from the prior.
    """
    import torch

    if model._has_no_data() or model.utility is None:
        raise InvalidInputError("model: expected a PairwiseGP with comparisons, got one without")
    if len(model.batch_shape):
        raise UnsupportedModelError(
            f"model: batch shape {tuple(model.batch_shape)} is not supported"
        )
    copy = _parts(model)
    raw, mode, C = (
        on_host(part).astype(np.float64)
        for part in (model.datapoints, model.utility, model.likelihood_hess)
    )
    with torch.no_grad(), DoubleByDefault():
        seen = on_host(copy.transform(torch.tensor(raw, device=model.datapoints.device)))
    inputs = inputs_of(copy, seen, raw=raw)
    d = seen.shape[1]
    kernel, mean = called(copy.covar_module, d), mean_of(copy.mean_module, d)
    K = np.asarray(kernel(seen, seen))
    # As the library stabilises it: what was added to K is part of the model.
    jitter = max(float((on_host(model.covar_chol) ** 2).sum(axis=1)[0] - K[0, 0]), 0.0)
    jitter = 0.0 if jitter < 1e-12 * K[0, 0] else jitter
    own = on_host(model.covar).astype(np.float64)
    A = np.linalg.solve(np.eye(len(K)) + C @ own, C)
    A = 0.5 * (A + A.T)
    stable = K + jitter * np.eye(len(K))
    S = stable - stable @ A @ stable
    posterior = SparsePosterior(
        inputs.kernel(kernel),
        inputs.inside(seen),
        mode,
        0.5 * (S + S.T),
        mean=inputs.mean(mean),
        jitter=jitter,
        reference_points=_reference(inputs.inside(seen)),
    )
    result = with_note(inputs.around(posterior), "of the utility behind comparisons")

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad(), DoubleByDefault():
            rows = copy.transform(inputs.tensor(points, copy))
            centre = torch.tensor(seen, device=rows.device)
            k = on_host(dense(copy.covar_module(rows, centre)))
            prior = on_host(dense(copy.covar_module(rows, rows)).diagonal())
            at, over = (on_host(copy.mean_module(part)) for part in (centre, rows))
        weights = np.linalg.solve(stable, mode - at)
        return over + k @ weights, prior - ((k @ A) * k).sum(axis=1)

    return Adapted(in_double(result, model), predict, inputs.points, mixable=inputs.mixable)


def _parts(model: Any) -> Any:
    """Return copies of the parts of a model.

    A copy of all of it would take away, for a moment, what the model has computed from its data.
    """
    import torch

    held: Any = torch.nn.Module()
    for name in ("covar_module", "mean_module", "input_transform"):
        part = getattr(model, name, None)
        setattr(held, name, None if part is None else deepcopy(part).double().eval())
    held.transform = lambda rows: (
        rows if held.input_transform is None else held.input_transform(rows)
    )
    return evaluated(held)


def _reference(rows: np.ndarray) -> dict[str, np.ndarray]:
    return {"mean": rows.mean(axis=0), "median": np.median(rows, axis=0)}
