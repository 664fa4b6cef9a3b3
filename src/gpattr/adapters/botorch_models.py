"""Models of BoTorch: GPyTorch's, behind transforms of inputs and outcomes.

Everything is read from a copy in evaluation mode: only there training inputs are transformed, and
`.train()` would destroy a fully Bayesian fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.validation import as_vector
from gpattr.adapters.categories import columns_of_codes, encoded
from gpattr.adapters.devices import beside, on_host
from gpattr.adapters.gpytorch_kernels import called, forward, mean_of, number
from gpattr.adapters.gpytorch_models import copy_of, in_double, noise_of, variational
from gpattr.adapters.gpytorch_predictions import (
    Moments,
    exact_moments,
    own_method,
    variational_moments,
)
from gpattr.adapters.notes import with_note
from gpattr.adapters.registry import Adapted
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError
from gpattr.means import Constant
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    MultiTaskPosterior,
    Posterior,
    WrappedOutputs,
)

AFFINE_INPUTS = ("Normalize", "InputStandardize", "AffineInputTransform")


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
    inputs = _inputs(copy, X if X.ndim == 2 else X[0], categories)
    outcomes = outcome_units(copy, 1 if y.ndim == 1 else len(y))
    if y.ndim == 1:
        result: Any = in_units(_member(copy, inputs, X, y, None), outcomes, 0)
    else:
        result = MultiOutputPosterior(
            [in_units(_member(copy, inputs, X[i], y[i], i), outcomes, i) for i in range(len(y))]
        )
    return _finished(model, copy, result, outcomes, inputs)


@dataclass(frozen=True)
class Inputs:
    """The map from rows to a model's inputs: categories encoded, then (x − ``shift``)/``scale``.

    ``rows`` are training rows.
    """

    rows: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    encoder: Encoder | None = None
    units: tuple[np.ndarray, np.ndarray] | None = None  # of all columns, codes among them

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Return what the model sees, with categories encoded."""
        return X if self.encoder is None else self.encoder.encode("train_X", self.coded(X))

    def coded(self, X: np.ndarray) -> np.ndarray:
        """Return the model's inputs, with codes as before any transform; only equality matters."""
        assert self.encoder is not None
        assert self.units is not None
        columns = [
            i for i, name in enumerate(self.encoder.names) if name in self.encoder.categories
        ]
        rows = X.copy()
        rows[:, columns] = np.round(
            self.units[0][columns] + self.units[1][columns] * X[:, columns], 6
        )
        return rows

    @property
    def points(self) -> np.ndarray:
        """Return the rows at which to compare the model.

        These are training rows; with categories, also rows between them in all other
        columns.
        """
        points = self.shift + self.scale * self.encode(self.rows)
        if self.encoder is None:
            return points
        return np.concatenate(
            [points, self.encoder.nearest_one_hot(0.3 * points + 0.7 * points[::-1])]
        )

    def tensor(self, points: np.ndarray, model: Any) -> Any:
        """Return points as the model takes them."""
        import torch

        if self.encoder is not None:
            points = self.encoder.decode(points).to_numpy(dtype=np.float64)
        return torch.tensor(points, device=next(model.parameters()).device)


def _inputs(model: Any, X: np.ndarray, categories: Mapping[int, Sequence[float]] | None) -> Inputs:
    d = X.shape[1]
    shift, scale = input_units(model, d)
    codes = sorted(columns_of_codes(called(model.covar_module, d, 0), range(d)))
    given = _given_codes(categories or {}, codes, d)
    if not codes:
        return Inputs(X, shift, scale)
    raw = np.round(shift + scale * X, 6)
    labels = {
        f"x{i}": np.union1d(raw[:, i], np.round(given.get(i, np.zeros(0)), 6)).tolist()
        for i in codes
    }
    whole = {
        name: tuple(int(code) if code == int(code) else code for code in known)
        for name, known in labels.items()
    }
    encoder = Encoder(tuple(f"x{i}" for i in range(d)), whole, as_one_feature=True, named=False)
    source = [encoder.names.index(name) for name, _ in encoder.columns]
    number = np.array([label is None for _, label in encoder.columns])
    return Inputs(
        X,
        np.where(number, shift[source], 0.0),
        np.where(number, scale[source], 1.0),
        encoder,
        (shift, scale),
    )


def _given_codes(categories: Any, codes: list[int], d: int) -> dict[int, np.ndarray]:
    """Return the codes that the user gives, {column: codes}."""
    if not isinstance(categories, Mapping):
        raise InvalidInputError(f"categories: expected {{column: codes}}, got {categories!r}")
    given: dict[int, np.ndarray] = {}
    for column, values in categories.items():
        whole = (
            isinstance(column, (int, np.integer))
            and not isinstance(column, bool)
            and -d <= column < d
        )
        place = int(column) % d if whole else -1
        if place not in codes or place in given:
            raise InvalidInputError(
                f"categories: expected columns with categories, of {codes}, each once, got"
                f" {list(categories)}"
            )
        given[place] = to_numpy(as_vector(f"categories[{column}]", values))
    return given


def _member(model: Any, inputs: Inputs, X: np.ndarray, y: np.ndarray, i: int | None) -> Posterior:
    """Return the posterior of the i-th model of a batch, in the units of its inputs."""
    kernel, rows = called(model.covar_module, X.shape[1], i), inputs.encode(X)
    if inputs.encoder is not None:
        kernel = encoded(kernel, inputs.encoder)
    mean = mean_of(model.mean_module, X.shape[1], i)
    if inputs.encoder is not None and type(model.mean_module).__name__ == "LinearMean":
        raise UnsupportedModelError(
            "mean_module: a LinearMean of columns with categories is not supported"
        )
    noise, given = noise_of(model.likelihood, len(rows), i), model.train_targets
    inner = ExactPosterior(kernel, beside(rows, given), beside(y, given), noise=noise, mean=mean)
    result = AffinePosterior(inner, inputs.shift, inputs.scale)
    return result if inputs.encoder is None else EncodedPosterior(result, inputs.encoder)


def fully_bayesian(model: Any, data: Any = None) -> Adapted:
    """Return the equally weighted mixture of a fully Bayesian fit's models, or of an ensemble's."""
    if model.covar_module is None:
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted yet; call"
            " fit_fully_bayesian_model_nuts first"
        )
    copy = copy_of(model)
    X, y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    inputs = _inputs(copy, X if X.ndim == 2 else X[0], None)
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

    return Adapted(
        in_double(mixture, model), predict, inputs.points, mixable=inputs.encoder is None
    )


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


def multi_task(model: Any, data: Any = None) -> Adapted:
    """Return one output for each task of a `MultiTaskGP`, in original units."""
    if type(model).__name__.startswith(("Saas", "FullyBayesian")):
        raise UnsupportedModelError(f"model: {type(model).__name__} is not supported")
    copy = copy_of(model)
    X = on_host(copy.train_inputs[0])
    task, outcomes = int(copy._task_feature), outcome_units(copy, 1)
    if outcomes is None:
        raise UnsupportedModelError(
            "outcome_transform: only affine transforms of tasks are supported"
        )
    columns = [i for i in range(X.shape[1]) if i != task]
    codes = sorted(int(value) for value in copy._expected_task_values)
    tasks = _tasks(copy, columns, codes)
    shift, scale = (part[columns] for part in input_units(copy, X.shape[1]))
    behind = {name: AffinePosterior(output, shift, scale) for name, output in tasks.outputs.items()}
    outputs = {name: in_units(output, outcomes, 0) for name, output in behind.items()}
    result = WrappedOutputs(tasks, outputs, next(iter(behind.values())), float(outcomes[1][0]))
    inputs = Inputs(X[:, columns], shift, scale)

    def by_task(copy: Any, rows: Any) -> Moments:
        mean, var = exact_moments(copy, rows)
        return mean.reshape(len(codes), -1), var.reshape(len(codes), -1)

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = [np.insert(points, task, code, axis=1) for code in codes]
        return untransformed(
            copy, copy.transform_inputs(inputs.tensor(np.concatenate(rows), copy)), by_task
        )

    return Adapted(in_double(result, model), predict, inputs.points)


def _tasks(model: Any, columns: list[int], codes: list[int]) -> MultiTaskPosterior:
    """Return the posterior of a `MultiTaskGP` in its own units.

    ``columns`` are the features, and ``codes`` the values of the task column that stand for tasks.
    """
    kernel, B = _task_kernel(model, columns)
    inputs, y = model.train_inputs[0], model.train_targets
    # The noise of each row as the likelihood computes it: for tasks that are not numbered 0, 1, …
    # it differs from the parameter.
    noise = model.likelihood._shaped_noise_covar(y.shape, inputs)
    means = getattr(model.mean_module, "base_means", [model.mean_module] * len(B))
    return MultiTaskPosterior(
        forward(kernel, len(columns)),
        beside(on_host(inputs)[:, columns], y),
        beside(on_host(y), y),
        on_host(model._map_tasks(inputs[:, int(model._task_feature)])),
        covariance=B,
        noise=on_host(noise.to_dense().diagonal(dim1=-1, dim2=-2)),
        means=[mean_of(mean, len(columns)) for mean in means],
        output_names=[f"y{code}" for code in codes],
    )


def _task_kernel(model: Any, columns: list[int]) -> tuple[Any, np.ndarray]:
    """Return the library's kernel of the features and the covariance of the tasks.

    The kernel of a `MultiTaskGP` must be the product of the two.
    """
    parts = list(getattr(model.covar_module, "kernels", []))
    if (
        type(model.covar_module).__name__ != "ProductKernel"
        or len(parts) != 2
        or not hasattr(parts[1], "covar_matrix")
    ):
        raise UnsupportedModelError(
            f"covar_module: a {type(model.covar_module).__name__} of tasks is not supported"
        )
    if parts[0].active_dims is None or parts[0].active_dims.tolist() != columns:
        raise UnsupportedModelError(
            "covar_module: expected a kernel of all features except the task"
        )
    B = parts[1].covar_matrix
    return parts[0], on_host(B.to_dense() if hasattr(B, "to_dense") else B)


def single_task_variational(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `SingleTaskVariationalGP`, in original units."""
    copy = copy_of(model)
    # Taken from the original, whose dtype determines it.
    copy.model.variational_strategy._jitter_val = float(model.model.variational_strategy.jitter_val)
    inner = variational(copy.model)
    d = inner.posterior.n_features
    shift, scale = input_units(copy, d)
    outcomes = outcome_units(copy, 1)
    result = in_units(AffinePosterior(inner.posterior, shift, scale), outcomes, 0)
    likelihood = type(model.likelihood).__name__
    if likelihood != "GaussianLikelihood":
        result = with_note(result, f"of the latent function: the likelihood is {likelihood}")
    inputs = Inputs(inner.points, shift, scale)
    return _finished(
        model,
        copy,
        result,
        outcomes,
        inputs,
        lambda copy, rows: variational_moments(copy.model, rows),
    )


def input_units(model: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return shift and scale, (d,) each, of inputs that the model sees as (x − shift)/scale."""
    shift, scale = np.zeros(d), np.ones(d)
    transform = getattr(model, "input_transform", None)
    chain = (
        []
        if transform is None
        else (
            list(transform.values())
            if type(transform).__name__ == "ChainedInputTransform"
            else [transform]
        )
    )
    for part in chain:
        if type(part).__name__ not in AFFINE_INPUTS:
            raise UnsupportedModelError(
                f"input_transform: {type(part).__name__} is not supported; supported are"
                f" {', '.join(AFFINE_INPUTS)}"
            )
        at = getattr(part, "indices", None)
        at = np.arange(d) if at is None else on_host(at)
        offset, coefficient = (number(value, 1, None) for value in (part.offset, part.coefficient))
        if getattr(part, "reverse", False):
            raise UnsupportedModelError("input_transform: reverse=True is not supported")
        shift[at] += scale[at] * offset
        scale[at] *= coefficient
    return shift, scale


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

    return Adapted(
        in_double(posterior, model), predict, inputs.points, mixable=inputs.encoder is None
    )


def untransformed(
    copy: Any, rows: Any, moments: Callable[[Any, Any], Moments]
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of the outcomes, (..., n, outputs), at transformed rows.

    They are those of ``copy.posterior``. ``moments`` are of the latent function, (n,), (outputs,
    n), or (members, n) of a mixture whose members share one output.
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
