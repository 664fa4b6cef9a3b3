"""Surrogates and strategies of BoFire, in the inputs and outputs of their domain.

A surrogate makes columns of its inputs, codes of categories among them, and its BoTorch model
encodes, selects and scales them. Inside a strategy that model takes the columns of all inputs of
the domain, and begins by selecting its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr.adapters.optimisers.botorch_surrogates import of_botorch
from gpattr.adapters.optimisers.search_spaces import Parameter, Surrogate, explained, interval
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError


def strategy(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a predictive strategy's surrogates, in the order of its outputs."""
    _refuse_data_model(model, "strategies")
    if model.experiments is None or not len(model.experiments):
        raise InvalidInputError(
            f"model: this {type(model).__name__} has no experiments yet; tell comes first"
        )
    if model.surrogates is None or not model.is_fitted:
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted yet; call fit() first"
        )
    rows, domain = model.experiments, model.domain
    members = {part.outputs[0].key: part for part in model.surrogates.surrogates}
    ordered = [members[output.key] for output in domain.outputs.features]
    return _adapted(ordered, domain.inputs.features, rows, _best(domain.outputs, rows))


def surrogates(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of `BotorchSurrogates`, one output for each."""
    _refuse_data_model(model, "surrogates")
    return _adapted(model.surrogates, _all_inputs(model.surrogates))


def surrogate(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a surrogate's Gaussian process."""
    _refuse_data_model(model, "surrogates")
    return _adapted([model], model.inputs.features)


def _refuse_data_model(model: Any, kind: str) -> None:
    if type(model).__module__.startswith("bofire.data_models"):
        raise InvalidInputError(
            f"model: this {type(model).__name__} is a description of a model; bofire.{kind}.api"
            ".map(…) makes the model, which then is fitted"
        )


def _all_inputs(members: Sequence[Any]) -> list[Any]:
    """Return the inputs of some surrogates, each once."""
    found = {feature.key: feature for member in members for feature in member.inputs.features}
    return list(found.values())


def _adapted(
    members: Sequence[Any], inputs: Sequence[Any], rows: Any = None, best: Any = None
) -> Adapted:
    return explained(
        [_parameter(feature, members) for feature in inputs],
        [_surrogate(member) for member in members],
        rows=rows,
        best=best,
        target_names={
            output.key: _with_unit(output) for member in members for output in member.outputs
        },
        anywhere=True,
    )


def _surrogate(member: Any) -> Surrogate:
    """Return a surrogate's model, and the columns that it takes."""
    name = type(member).__name__
    if getattr(member, "model", None) is None:
        raise NotFittedError(f"model: this {name} is not fitted yet; call fit(experiments) first")
    if not hasattr(member.model, "covar_module"):
        raise UnsupportedModelError(
            f"model: a {name} is not a Gaussian process; SingleTaskGPSurrogate is one"
        )
    selected = _selected(member)
    keys = [feature.key for feature in member.inputs.features]

    def columns(frame: Any) -> np.ndarray:
        made = member.inputs.transform(frame[keys], member.input_preprocessing_specs)
        own = made.to_numpy(dtype=np.float64)
        if selected is None:
            return own
        wide = np.zeros((len(own), max(selected) + 1))
        wide[:, selected] = own
        return wide

    return of_botorch([output.key for output in member.outputs], member.model, columns)


def _selected(member: Any) -> list[int] | None:
    """Return which columns of its domain a surrogate in a strategy selects; None if alone."""
    if not getattr(member, "is_compatibilized", False):
        return None
    transform = member.model.input_transform
    if type(transform).__name__ == "ChainedInputTransform":
        transform = transform.tcompatibilize
    return transform.feature_indices.tolist()


def _parameter(feature: Any, members: Sequence[Any]) -> Parameter:
    """Return an input feature of a domain."""
    kinds = {base.__name__ for base in type(feature).__mro__}
    if "CategoricalInput" in kinds:
        labels = tuple(feature.categories)
        allowed = feature.get_allowed_categories()
        return Parameter(feature.key, labels=labels, active=tuple(allowed) or labels)
    if "DiscreteInput" in kinds:
        return Parameter(feature.key, tuple(map(float, feature.values)), discrete=True)
    if "ContinuousInput" in kinds:
        return interval(feature.key, *map(float, feature.bounds))
    raise UnsupportedModelError(
        f"model: the input {feature.key!r} is a {type(feature).__name__}, which is not supported;"
        " supported are continuous, discrete and categorical inputs"
    )


def _with_unit(feature: Any) -> str:
    unit = getattr(feature, "unit", None)
    return feature.key if unit is None else f"{feature.key} ({unit})"


def _best(outputs: Any, experiments: Any) -> Any:
    """Return the best row, (1, columns), if one output alone has an objective."""
    aimed = [output for output in outputs.features if getattr(output, "objective", None)]
    if len(aimed) != 1:
        return None
    key = aimed[0].key
    rows = experiments.dropna(subset=[key])
    if f"valid_{key}" in rows:
        rows = rows[rows[f"valid_{key}"].astype(int) == 1]
    if not len(rows):
        return None
    values = np.asarray(aimed[0](rows[key], rows[key]), dtype=np.float64)
    return rows.iloc[[int(values.argmax())]]
