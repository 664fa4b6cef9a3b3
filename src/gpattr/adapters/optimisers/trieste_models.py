"""Trieste: its wrappers of GPflow's models, and results and optimisers, in their query points.

Query points are arrays without names. Those that Trieste encodes before the model sees them,
numbers of categories, stay what they are: each number is a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpattr.adapters.adapt import adapt
from gpattr.adapters.kriging.gpflow_models import array
from gpattr.adapters.optimisers.search_spaces import (
    Parameter,
    Surrogate,
    by_columns,
    explained,
    interval,
)
from gpattr.adapters.registry import Adapted, find_adapter
from gpattr.exceptions import NotFittedError, UnsupportedModelError


def wrapper(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the GPflow model inside of a wrapper."""
    if _encoder(model) is not None:
        raise UnsupportedModelError(
            "model: this model sees encoded query points; explain the OptimizationResult or the"
            " AskTellOptimizer, which knows the query points themselves"
        )
    return adapt(model.model)


def result(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the final model of an `OptimizationResult`, or one for each tag."""
    if model.is_err:
        raise NotFittedError("model: the optimisation failed, so that there is no final model")
    return record(model.final_result.unwrap())


def record(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the model of a `Record`, or one for each tag."""
    return _explained(model.models, model.datasets, None)


def ask_tell(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the model of an `AskTellOptimizer`, or one for each tag."""
    return _explained(model.models, model.datasets, model._search_space)


def _explained(models: Mapping[Any, Any], datasets: Mapping[Any, Any], space: Any) -> Adapted:
    for tag, model in models.items():
        if not hasattr(model, "model") or find_adapter(model.model) is None:
            raise UnsupportedModelError(
                f"models[{str(tag)!r}]: a {type(model).__name__} is not supported; supported are"
                " Trieste's wrappers of GPflow's GPR, SGPR, SVGP and VGP"
            )
    points = [array(part.query_points) for part in datasets.values()]
    if not points or not len(points[0]):
        raise NotFittedError("model: expected data, got none")
    import pandas as pd

    encoder = _encoder(next(iter(models.values())))
    frame = pd.DataFrame(points[0], columns=[f"x{j}" for j in range(points[0].shape[1])])

    def seen(frame: Any) -> np.ndarray:
        query = frame.to_numpy(dtype=np.float64)
        return query if encoder is None else array(encoder(query))

    def surrogate(tag: Any, model: Any) -> Surrogate:
        def predict(frame: Any) -> tuple[np.ndarray, np.ndarray]:
            query = frame.to_numpy(dtype=np.float64)
            mean, var = (array(part).reshape(len(query), -1) for part in model.predict(query))
            return mean, var

        posterior = adapt(model.model).posterior
        names = tuple(posterior.outputs) if posterior.several_outputs else (str(tag),)
        return Surrogate(names, seen, predict, by_columns(posterior))

    surrogates = [surrogate(tag, model) for tag, model in models.items()]
    best, names = None, [name for part in surrogates for name in part.names]
    if len(datasets) == 1 and len(names) == 1:
        observed = array(next(iter(datasets.values())).observations)
        best = frame.iloc[[int(observed[:, 0].argmin())]]
    return explained(
        _parameters(encoder, points[0], space),
        surrogates,
        rows=frame,
        best=best,
        target_names=dict.fromkeys(names),
        named=False,
        centred=space is not None,
    )


def _encoder(model: Any) -> Any:
    return getattr(model, "encoder", None)


def _parameters(encoder: Any, rows: np.ndarray, space: Any) -> list[Parameter]:
    """Return the columns of query points; behind an encoder whole numbers may be labels."""
    low, high = (rows.min(axis=0), rows.max(axis=0)) if space is None else _bounds(space)
    found = []
    for j in range(rows.shape[1]):
        part = interval(f"x{j}", float(low[j]), float(high[j]))
        values = np.unique(rows[:, j])
        if encoder is not None and bool((values == np.round(values)).all()):
            values = values if space is None else np.arange(low[j], high[j] + 1.0)
            numbers = tuple(map(int, values.tolist()))
            part = Parameter(f"x{j}", numbers, labels=numbers)
        found.append(part)
    return found


def _bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest values of the columns of a search space."""
    if hasattr(space, "tags"):  # of categories, which are numbered
        highest = np.array([len(tags) - 1.0 for tags in space.tags])
        return 0.0 * highest, highest
    if hasattr(space, "lower"):
        return array(space.lower).reshape(-1), array(space.upper).reshape(-1)
    parts = [_bounds(space.get_subspace(tag)) for tag in space.subspace_tags]
    low, high = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return low, high
