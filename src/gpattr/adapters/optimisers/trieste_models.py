"""Trieste: its wrappers of GPflow's models, and results and optimisers, in their query points.

Query points are arrays without names. Those that Trieste encodes before the model sees them,
numbers of categories, stay what they are: each number is a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpattr.adapters.adapt import adapt
from gpattr.adapters.kriging.gpflow_models import value
from gpattr.adapters.optimisers.parameters import (
    Category,
    Number,
    Parameter,
    Parameters,
    category,
    described,
)
from gpattr.adapters.registry import Adapted, find_adapter
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.posteriors import MultiOutputPosterior, Posterior


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
    points = [value(part.query_points) for part in datasets.values()]
    if not points or not len(points[0]):
        raise NotFittedError("model: expected data, got none")
    rows = points[0]
    encoders = [_encoder(model) for model in models.values()]
    parameters = _parameters(encoders[0], rows, space)
    inner = [adapt(model.model) for model in models.values()]
    outputs = {str(tag): part.posterior for tag, part in zip(models, inner, strict=True)}
    one = next(iter(outputs.values()))
    posterior: Posterior = one if len(outputs) == 1 else MultiOutputPosterior(outputs)
    named: dict[str, np.ndarray] = {}
    records = parameters.rows_as_records(rows)
    if len(datasets) == 1 and not one.several_outputs and len(outputs) == 1:
        observed = value(next(iter(datasets.values())).observations)
        named["best"] = parameters.encoded([records[int(observed[:, 0].argmin())]])[0]
    if space is not None:
        named["centre"] = parameters.centre()

    def predict(encoded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        query = np.array([list(row.values()) for row in parameters.records(encoded)])
        moments = [
            tuple(value(part).reshape(len(query), -1) for part in model.predict(query))
            for model in models.values()
        ]
        mean, var = (np.concatenate([pair[i] for pair in moments], axis=1) for i in (0, 1))
        return (mean, var) if mean.shape[1] > 1 else (mean[:, 0], var[:, 0])

    return Adapted(
        described(parameters.posterior(posterior), named),
        predict,
        parameters.comparison_rows(records),
        accuracy=max(part.accuracy for part in inner),
        mixable=False,
    )


def _encoder(model: Any) -> Any:
    return getattr(model, "encoder", None)


def _parameters(encoder: Any, rows: np.ndarray, space: Any) -> Parameters:
    """Return the columns of query points, and what an encoder makes of them.

    A column that comes out as it is, is a number; of others, every number is a label.
    """
    d = rows.shape[1]
    ends = (rows.min(axis=0), rows.max(axis=0))
    if space is not None:
        ends = _bounds(space)
    if encoder is None:
        parts: list[Parameter] = [
            Number(f"x{j}", float(ends[0][j]), float(ends[1][j]), j) for j in range(d)
        ]
        return Parameters(tuple(parts), d, named=False)
    found: list[Parameter] = []
    for j in range(d):
        values = np.unique(rows[:, j])
        whole = bool((values == np.round(values)).all())
        if space is not None and whole:
            values = np.arange(ends[0][j], ends[1][j] + 1.0)
        asked = np.repeat(rows[:1], len(values), axis=0)
        asked[:, j] = values
        made = value(encoder(asked))
        changed = np.flatnonzero(np.ptp(made, axis=0) > 0)
        if len(changed) == 1 and np.array_equal(made[:, changed[0]], values):
            low, high = float(ends[0][j]), float(ends[1][j])
            found.append(Number(f"x{j}", low, high, int(changed[0])))
        elif whole and len(changed):
            found.append(category(f"x{j}", [int(v) for v in values], made))
        else:
            found.append(Category(f"x{j}", tuple(values.tolist())))
    return Parameters(tuple(found), value(encoder(rows[:1])).shape[1], named=False)


def _bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest values of the columns of a search space."""
    if hasattr(space, "tags"):  # of categories, which are numbered
        highest = np.array([len(tags) - 1.0 for tags in space.tags])
        return 0.0 * highest, highest
    if hasattr(space, "lower"):
        return value(space.lower).reshape(-1), value(space.upper).reshape(-1)
    parts = [_bounds(space.get_subspace(tag)) for tag in space.subspace_tags]
    low, high = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return low, high
