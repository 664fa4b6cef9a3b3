"""Sensitivity to the baseline: mean attributions of all rows at every baseline of a set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import blocks
from gpattr._core.validation import beside
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.attributions import require_features
from gpattr.explainer.probability import mean_probability
from gpattr.explainer.rows import Rows, row_names
from gpattr.explainer.task import Task
from gpattr.explanation.baseline_sensitivity import BaselineSensitivity
from gpattr.operators import Baselines, Marginals

MOST = 100  # training rows that are the set by default

Means = Callable[[Array, Array | None], np.ndarray]  # of rows, each from its own baseline


def sensitivity_of(task: Task, X: Any, baselines: Any) -> BaselineSensitivity:
    """Return how far the attributions of the rows of X move as the baseline moves."""
    task.require_function("baseline_sensitivity is")
    posterior, rows = task.single, task.reader.matrix("X", X)
    chosen, names = baseline_set(task.reader, baselines), task.names(X)
    evaluation = replace(task.evaluation, uncertainty="none")

    def means(some: Array, own: Array | None) -> np.ndarray:
        some, own = (None if part is None else beside("X", part, rows) for part in (some, own))
        operator = task.operator(own)
        require_features(operator, "baseline_sensitivity is")
        if task.output == "probability":
            return mean_probability(posterior, operator, some, evaluation.tolerance)
        return to_numpy(posterior.bind(operator, evaluation).mean(some))

    return BaselineSensitivity(
        **sensitivity_to(means, rows, chosen),
        n_baselines=len(chosen),
        feature_names=names,
        row_names=row_names(X, len(rows)),
        quantity=task.words,
        baseline_name=task.baseline_name,
        attribution=task.attribution_name,
    )


def baseline_set(rows: Rows, baselines: Any) -> Baselines:
    """Return the set as numbers: the rows that are given, or a sample of the training inputs."""
    if baselines is None:
        inputs = rows.posterior.training_inputs
        if inputs is None:
            raise InvalidInputError(
                "baselines: this model does not store its training inputs; give rows to move the"
                " baseline to"
            )
        points = to_numpy(inputs)
        if len(points) > MOST:
            points = points[np.sort(np.random.default_rng(0).permutation(len(points))[:MOST])]
        return Baselines(points)
    if isinstance(baselines, Marginals):
        raise InvalidInputError("baselines: expected rows or gpattr.Baselines, got Marginals")
    if not isinstance(baselines, Baselines):
        return Baselines(to_numpy(rows.matrix("baselines", baselines)))
    try:
        read, _ = rows.baseline(baselines)
    except InvalidInputError as error:
        raise InvalidInputError(str(error).replace("baseline:", "baselines:", 1)) from None
    assert isinstance(read, Baselines)
    return read


def sensitivity_to(means: Means, X: Array, chosen: Baselines) -> dict[str, np.ndarray]:
    """Return the arrays of `BaselineSensitivity`, (n, d), for rows X and baselines.

    Rows are paired with as many baselines at a time as fit, and only sums are kept: the moments of
    differences from the values at the own baseline.
    """
    own = means(X, None)
    n, d = own.shape
    points, weights = to_numpy(chosen.points), to_numpy(chosen.weights)
    lowest, highest = np.full(own.shape, np.inf), np.full(own.shape, -np.inf)
    total, squares, same, signed = (np.zeros(own.shape) for _ in range(4))
    used = weights > 0
    points, weights = points[used], weights[used]
    rows = to_numpy(X)
    for part in blocks(len(points), 64.0 * n * (d + rows.shape[1])):
        k = len(points[part])
        values = means(np.tile(rows, (k, 1)), np.repeat(points[part], n, axis=0))
        values = values.reshape(k, n, d)
        w = weights[part, None, None]
        lowest = np.minimum(lowest, values.min(axis=0))
        highest = np.maximum(highest, values.max(axis=0))
        moved = values - own
        total += (w * moved).sum(axis=0)
        squares += (w * moved**2).sum(axis=0)
        signed += (w * (values != 0)).sum(axis=0)
        same += (w * ((values != 0) & (np.sign(values) == np.sign(own)))).sum(axis=0)
    opposed = np.where(own > 0, lowest < 0, np.where(own < 0, highest > 0, signed > 0))
    share = np.divide(same, signed, out=np.ones(own.shape), where=signed > 0)
    share = np.where(opposed, np.minimum(share, np.nextafter(1.0, 0.0)), 1.0)
    return {
        "values": own,
        "lowest": lowest,
        "highest": highest,
        "mean": own + total,
        "std": np.sqrt(np.maximum(squares - total**2, 0.0)),
        "same_sign": share,
    }
