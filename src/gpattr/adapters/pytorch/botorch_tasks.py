"""BoTorch's models of several tasks: one output for each.

A column says which task a row is of; rows, baselines and feature names do not include it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr.adapters.foreign import beside, on_host
from gpattr.adapters.pytorch.botorch_inputs import ModelInputs, as_tensor, inputs_of, task_place
from gpattr.adapters.pytorch.botorch_models import (
    in_units,
    outcome_units,
    require_sampled,
    untransformed,
)
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double
from gpattr.adapters.pytorch.gpytorch_tasks import TaskTerm, conditioned, coupled, joined
from gpattr.adapters.pytorch.kernels import called, forward, mean_of, number
from gpattr.adapters.pytorch.predictions import (
    DoubleByDefault,
    Moments,
    dense,
    exact_moments,
    multitask_moments,
)
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant as ConstantKernel
from gpattr.kernels import Kernel, Select
from gpattr.means import Constant, Zero
from gpattr.posteriors import (
    CombinationPosterior,
    MixturePosterior,
    MultiOutputPosterior,
    MultiTaskPosterior,
    Posterior,
    WrappedOutputs,
)
from gpattr.posteriors.pinned import PinnedPosterior


def multi_task(model: Any, data: Any = None) -> Adapted:
    """Return one output for each task of a `MultiTaskGP`, in original units."""
    copy = copy_of(model)
    task, outcomes = int(copy._task_feature), _affine_units(copy, 1)
    inputs = inputs_of(copy, on_host(copy.train_inputs[0]), task=task)
    codes = sorted(int(value) for value in copy._expected_task_values)
    tasks = _tasks(copy, inputs, codes, None)
    behind = {name: inputs.around(output) for name, output in tasks.outputs.items()}
    outputs = {name: in_units(output, outcomes, 0) for name, output in behind.items()}
    wrapper: Any = next(iter(behind.values()))
    result = WrappedOutputs(tasks, outputs, wrapper, float(outcomes[1][0]))
    predict = _predictions(copy, inputs, task, codes)
    return Adapted(in_double(result, model), predict, inputs.points, mixable=inputs.mixable)


def fully_bayesian_multi_task(model: Any, data: Any = None) -> Adapted:
    """Return, for each task, the equally weighted mixture of a fully Bayesian fit's models."""
    require_sampled(model)
    copy = copy_of(model)
    task, outcomes = int(copy._task_feature), _affine_units(copy, 1)
    inputs = inputs_of(copy, on_host(copy.train_inputs[0]), task=task)
    codes = sorted(int(value) for value in copy._expected_task_values)
    members = [_tasks(copy, inputs, codes, s) for s in range(int(copy.num_mcmc_samples))]
    outputs: dict[str, Posterior] = {
        name: MixturePosterior(
            [in_units(inputs.around(member[name]), outcomes, 0) for member in members]
        )
        for name in members[0].outputs
    }
    predict = _predictions(copy, inputs, task, codes)
    result = MultiOutputPosterior(outputs)
    return Adapted(in_double(result, model), predict, inputs.points, mixable=inputs.mixable)


def _affine_units(copy: Any, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return shift and scale of outcomes that are affine in the model's predictions."""
    units = outcome_units(copy, outputs)
    if units is None:
        raise UnsupportedModelError(
            "outcome_transform: only affine transforms of tasks are supported"
        )
    return units


def kronecker(model: Any, data: Any = None) -> Adapted:
    """Return one output for each task of a `KroneckerMultiTaskGP`, in original units."""
    copy = copy_of(model)
    U, Y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    if U.ndim != 2:
        raise UnsupportedModelError(f"model: batch shape {U.shape[:-2]} is not supported")
    P = Y.shape[1]
    inputs, (shift, scale) = inputs_of(copy, U), _affine_units(copy, P)
    latents, mixing, means = coupled(copy, U, Y, inputs)
    if not all(isinstance(mean, (Constant, Zero)) for mean in means):
        raise UnsupportedModelError("mean_module: expected constant means of tasks")
    in_units = [
        Constant(float(shift[o] + scale[o] * getattr(mean, "value", 0.0)))
        for o, mean in enumerate(means)
    ]
    if mixing is None:
        raise UnsupportedModelError("covar_module: expected one kernel of the features")
    functions = [inputs.around(latent) for latent in latents]
    result = MultiOutputPosterior.of_latents(functions, scale[:, None] * mixing, means=in_units)

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = copy.transform_inputs(inputs.tensor(points, copy))
        return untransformed(copy, seen, multitask_moments)

    return Adapted(in_double(result, model), predict, inputs.points, mixable=inputs.mixable)


def heterogeneous(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the target task of a `HeterogeneousMTGP`, of its own features.

    k((x, t), (x', t')) = B_tt' (C_tt' + Σₛ bₛ(t)bₛ(t') kₛ(x, x')), where bₛ(t) says whether task t
    has the features that kₛ sees.
    """
    copy = copy_of(model)
    outcomes = outcome_units(copy, 1)
    if getattr(copy, "input_transform", None) is not None or outcomes is None:
        raise UnsupportedModelError(
            "model: a HeterogeneousMTGP with transformed inputs, or with outcomes that are not"
            " affine, is not supported"
        )
    X, y = map(on_host, (copy.train_inputs[0], copy.train_targets))
    d, at = X.shape[1] - 1, X[:, -1].astype(int)
    own = [int(i) for i in copy.feature_indices[0]]
    order = [*own, *(i for i in range(d) if i not in own)]
    terms = _conditional_terms(copy, order)
    kernel, held = joined(terms, d)
    tasks = len(terms[0].covariance)
    means = getattr(copy.mean_module, "base_means", [copy.mean_module] * tasks)
    rows = X[:, order]
    known = np.stack([to_numpy(mean_of(mean, d)(X[:, :d])) for mean in means])
    noise = on_host(dense(copy.likelihood._shaped_noise_covar(y.shape, copy.train_inputs[0])))
    whole = conditioned(
        kernel,
        np.concatenate([rows, held[at]], axis=1),
        y - known[at, np.arange(len(X))],
        noise,
    )
    # What the target does not have is held where the library fills it in.
    filled = on_host(copy.feature_imputation_values).astype(np.float64)[order[len(own) :]]
    inner = PinnedPosterior(whole, np.concatenate([filled, held[0]]))
    mean = mean_of(means[0], d)
    if not isinstance(mean, (Constant, Zero)):
        raise UnsupportedModelError("mean_module: expected constant means of tasks")
    result = in_units(CombinationPosterior([inner], [1.0], mean=mean), outcomes, 0)

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        full = copy.map_to_full_tensor(as_tensor(points, copy), 0)
        return untransformed(copy, full, exact_moments)

    return Adapted(in_double(result, model), predict, X[at == 0][:, own])


def _conditional_terms(model: Any, order: Sequence[int]) -> list[TaskTerm]:
    """Return the terms of a kernel of tasks with features of their own, of columns so ordered."""
    import torch

    conditional, index = model.covar_module.kernels
    d = len(order)
    device = model.train_targets.device
    has = torch.tensor(
        conditional.binary_map, dtype=torch.float64, device=device
    )  # (tasks, subsets)
    rows = torch.zeros(len(has), d + 1, dtype=torch.float64, device=device)
    rows[:, -1] = torch.arange(len(has))
    with torch.no_grad(), DoubleByDefault():
        B = on_host(dense(index(rows)))
        C = on_host(dense(conditional.combinatorial_kernel(has)))
    terms = []
    for subset, part in enumerate(conditional.kernels):
        seen = [order.index(int(i)) for i in part.active_dims.tolist()]
        shared = on_host(has)[:, subset]
        kernel = Select(forward(part, len(seen)), seen)
        terms.append(TaskTerm(kernel, B * np.outer(shared, shared)))
    if conditional.use_combinatorial_kernel:
        terms.append(TaskTerm(ConstantKernel(), B * C))
    return terms


def _predictions(copy: Any, inputs: ModelInputs, task: int, codes: Sequence[int]) -> Any:
    """Return a function that predicts every task, (n, tasks)."""
    place, mixture = task_place(copy, task), hasattr(copy, "num_mcmc_samples")

    def by_task(copy: Any, rows: Any) -> Moments:
        mean, var = exact_moments(copy, rows)
        return mean.reshape(*mean.shape[:-1], len(codes), -1), var.reshape(
            *var.shape[:-1], len(codes), -1
        )

    def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raw = on_host(inputs.tensor(points, copy))
        rows = np.concatenate([np.insert(raw, place, code, axis=1) for code in codes])
        seen = copy.transform_inputs(as_tensor(rows, copy))
        if not mixture:
            return untransformed(copy, seen, by_task)
        mean, var = untransformed(copy, seen[None], exact_moments)  # (samples, tasks·n, 1)
        mean, var = (part[..., 0].reshape(len(part), len(codes), -1) for part in (mean, var))
        return mean.mean(axis=0).T, (var.mean(axis=0) + mean.var(axis=0)).T

    return predict


def _tasks(
    model: Any, inputs: ModelInputs, codes: Sequence[int], batch: int | None
) -> MultiTaskPosterior:
    """Return the posterior of a multi-task model in its own units; of a batch, of one member.

    ``codes`` are the values of the task column that stand for tasks.
    """
    given, y, task = model.train_inputs[0], model.train_targets, int(model._task_feature)
    d = given.shape[-1]
    kernel, B = _split(model, d, task, len(codes), batch)
    # The noise of each row as the likelihood computes it: for tasks that are not numbered 0, 1, …
    # it differs from the parameter.
    noise = number(
        dense(model.likelihood._shaped_noise_covar(y.shape, given)).diagonal(dim1=-1, dim2=-2),
        1,
        batch,
    )
    means = getattr(model.mean_module, "base_means", [model.mean_module] * len(B))
    rows = np.delete(on_host(given), task, axis=-1)
    return MultiTaskPosterior(
        inputs.kernel(kernel),
        beside(inputs.inside(rows), y),
        beside(on_host(y), y),
        on_host(model._map_tasks(given[:, task])),
        covariance=B,
        noise=noise,
        means=[inputs.mean(mean_of(mean, d - 1, batch)) for mean in means],
        output_names=[f"y{code}" for code in codes],
    )


def _split(
    model: Any, d: int, task: int, tasks: int, batch: int | None
) -> tuple[Kernel, np.ndarray]:
    """Return the kernel of the features and the covariance of the tasks, (tasks, tasks).

    The kernel of the model must be the product of the two.
    """
    import torch

    covar, columns = model.covar_module, [i for i in range(d) if i != task]
    if hasattr(model, "_eval_context_covar"):  # contexts are embedded, outside of the kernel
        with torch.no_grad(), DoubleByDefault():
            return called(covar, d - 1, batch), number(dense(model._eval_context_covar()), 2, batch)
    parts = list(getattr(covar, "kernels", []))
    own = [part for part in parts if _active(part) == [task]]
    others = [part for part in parts if _active(part) != [task]]
    if type(covar).__name__ != "ProductKernel" or len(own) != 1 or len(others) != 1:
        raise UnsupportedModelError(
            f"covar_module: a {type(covar).__name__} of tasks is not supported"
        )
    if _active(others[0]) != columns:
        raise UnsupportedModelError(
            "covar_module: expected a kernel of all features except the task"
        )
    rows = torch.zeros(tasks, d, dtype=torch.float64, device=model.train_targets.device)
    rows[:, task] = torch.arange(tasks)
    with torch.no_grad(), DoubleByDefault():
        B = number(dense(own[0](rows)), 2, batch)
    return forward(others[0], d - 1, batch), 0.5 * (B + B.T)


def _active(kernel: Any) -> list[int] | None:
    return None if kernel.active_dims is None else kernel.active_dims.tolist()


REASONS = {
    "HigherOrderGP": "its outputs are a tensor for each row; model them by a KroneckerMultiTaskGP",
    "LatentKroneckerGP": "its targets are curves, of which points are missing",
}


def refused(model: Any, data: Any = None) -> Adapted:
    """Raise `UnsupportedModelError` for a model of tasks, with the reason."""
    name = next(kind.__name__ for kind in type(model).__mro__ if kind.__name__ in REASONS)
    raise UnsupportedModelError(f"model: {name} is not supported: {REASONS[name]}")
