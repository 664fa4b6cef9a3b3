"""Next measurements for an explainer: candidates as the user gives them, and the result."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import Names
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer.attributions import require_features
from gpattr.explainer.rows import RowNames, Rows, row_names
from gpattr.explanation.grouping import feature_index
from gpattr.explanation.next_measurement import NextMeasurement
from gpattr.operators import Operator
from gpattr.posteriors import Evaluation, Posterior
from gpattr.posteriors.measurements import noise_at


def next_measurement(
    posterior: Posterior,
    rows: Rows,
    operator: Operator,
    X: Array,
    labels: RowNames,
    evaluation: Evaluation,
    names: Names,
    candidates: Any,
    feature: Any,
    noise: Any,
    about: dict[str, str],
) -> NextMeasurement:
    """Return what measurements at candidates would tell about the operator's outputs at rows X."""
    require_features(operator, "measure_next is")
    _require_gaussian(posterior)
    chosen = None if feature is None else feature_index(feature, names)
    points = rows.matrix("candidates", candidates)
    levels = noise_at(posterior, noise, points)
    gather = None if chosen is None else np.eye(len(names))[:, [chosen]]
    bound = posterior.bind(operator, evaluation)
    covariance = to_numpy(bound.covariance_with_values(X, points, gather))
    variance = to_numpy(posterior.values_variance(points))
    attributions = bound.apply(X).distribution.numpy()
    some = slice(None) if chosen is None else [chosen]
    return NextMeasurement(
        posterior,
        points,
        # What is known without uncertainty covaries with nothing.
        np.ascontiguousarray(np.moveaxis(np.where(variance > 0, covariance, 0.0), 2, 0)),
        variance,
        to_numpy(levels),
        attributions.mean[:, some],
        attributions.need("var")[:, some],
        None if chosen is None else names[chosen],
        names if chosen is None else (names[chosen],),
        row_names(candidates, len(points)),
        labels,
        **about,
    )


def _require_gaussian(posterior: Posterior) -> None:
    """Refuse models for which the variance after a measurement depends on its outcome."""
    if len(posterior.components) > 1:
        raise UnsupportedModelError(
            "model: measure_next is for a single Gaussian process; in a mixture of"
            f" {len(posterior.components)} the outcome of a measurement also changes their weights,"
            " so that variances after it are not known before"
        )
    if posterior.link is not None:
        raise UnsupportedModelError(
            "model: measure_next is for measurements with Gaussian noise; the labels of a"
            " classifier are none"
        )
