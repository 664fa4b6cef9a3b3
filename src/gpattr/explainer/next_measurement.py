"""Next measurements for an explainer: candidates as the user gives them, and the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer.attributions import require_features
from gpattr.explainer.rows import row_names
from gpattr.explainer.task import Task
from gpattr.explanation.grouping import feature_index
from gpattr.explanation.next_measurement import NextMeasurement
from gpattr.explanation.possible_outcomes import PossibleOutcomes
from gpattr.operators import Operator
from gpattr.posteriors import Evaluation, Posterior
from gpattr.posteriors.given import noise_at


def next_measurement(
    task: Task, candidates: Any, X: Any, feature: Any, noise: Any, baselines: Any
) -> NextMeasurement:
    """The effect of measurements at candidates on the attributions of the rows of X."""
    task.require_latent("measure_next is")
    rows = task.reader.matrix("X", X)
    posterior, names = task.single, task.names(X)
    operator = task.operator_for(rows, baselines)
    evaluation = replace(task.evaluation, uncertainty="std")
    require_features(operator, "measure_next is")
    _require_measurements(posterior)
    chosen = None if feature is None else feature_index(feature, names)
    points = task.reader.matrix("candidates", candidates)
    gather = None if chosen is None else np.eye(len(names))[:, [chosen]]
    some = slice(None) if chosen is None else [chosen]
    parts = [
        _measured(part, operator, rows, points, evaluation, gather, some, noise)
        for _, part in posterior.components
    ]
    covariance, variance, level, mean, var = parts[0][:5]
    outcomes = None
    if len(parts) > 1:
        weights = np.array([weight for weight, _ in posterior.components])
        cov, value_var, levels, means, variances, values = map(np.stack, zip(*parts, strict=True))
        outcomes = PossibleOutcomes(weights, means, variances, cov, values, value_var, levels)
        # Those of the mixture, by total covariance.
        mean, level = weights @ means.transpose(1, 0, 2), weights @ levels
        away, value = means - mean, weights @ values
        var = np.tensordot(weights, variances + away**2, axes=1)
        variance = weights @ (value_var + (values - value) ** 2)
        between = (values - value)[:, :, None, None] * away[:, None]
        covariance = np.tensordot(weights, cov + between, axes=1)
    return NextMeasurement(
        posterior,
        points,
        covariance,
        variance,
        level,
        mean,
        var,
        None if chosen is None else names[chosen],
        names if chosen is None else (names[chosen],),
        row_names(candidates, len(points)),
        row_names(X, len(rows)),
        quantity=task.words,
        baseline_name=task.baseline_name if baselines is None else "one per row",
        attribution=task.attribution_name,
        outcomes=outcomes,
    )


def _measured(
    posterior: Posterior,
    operator: Operator,
    X: Array,
    points: Array,
    evaluation: Evaluation,
    gather: Any,
    some: Any,
    noise: Any,
) -> tuple[np.ndarray, ...]:
    """Return one model's moments of attributions at X and measurements at c points.

    These are their covariance (c, n, k), the variance of the function at the points (c,) and of the
    noise (c,), mean and variance of the attributions (n, k), and the mean at the points (c,).
    """
    levels = noise_at(posterior, noise, points)
    bound = posterior.bind(operator, evaluation)
    covariance = to_numpy(bound.covariance_with_values(X, points, gather))
    variance = to_numpy(posterior.values_variance(points))
    attributions = bound.apply(X).distribution.numpy()
    return (
        # What is known without uncertainty covaries with nothing.
        np.ascontiguousarray(np.moveaxis(np.where(variance > 0, covariance, 0.0), 2, 0)),
        variance,
        np.broadcast_to(to_numpy(levels), (len(points),)),
        attributions.mean[:, some],
        attributions.need("var")[:, some],
        to_numpy(posterior.moments(points)),
    )


def _require_measurements(posterior: Posterior) -> None:
    """Refuse models whose data are not measurements with Gaussian noise."""
    if posterior.link is not None:
        raise UnsupportedModelError(
            "model: measure_next is for measurements with Gaussian noise; the labels of a"
            " classifier are none"
        )
