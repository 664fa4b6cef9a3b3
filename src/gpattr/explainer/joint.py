"""Joint distribution over rows and outputs, and the shares of training rows in an attribution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpattr._core.array import FloatArray, to_numpy
from gpattr._core.validation import beside
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer.attributions import require_features
from gpattr.explainer.rows import row_name
from gpattr.explainer.task import Task
from gpattr.explanation.contributions import Contributions
from gpattr.explanation.grouping import feature_index
from gpattr.posteriors import MultiOutputPosterior


def joint_covariance(task: Task, X: Any, baselines: Any) -> FloatArray:
    """The covariance between features and between rows, (n, d, n, d)."""
    rows = task.reader.matrix("X", X)
    task.require_latent("joint and training_contributions are")
    evaluation = replace(task.evaluation, uncertainty="none")
    return to_numpy(task.single.bind(task.operator_for(rows, baselines), evaluation).joint(rows))


def covariance_across_outputs(task: Task, X: Any, baselines: Any) -> FloatArray:
    """The covariance of each row between features and outputs, (n, d, P, d, P)."""
    if not isinstance(task.posterior, MultiOutputPosterior):
        raise UnsupportedModelError(
            "model: this model has one output, and so no covariance between outputs"
        )
    task.require_latent("across_outputs is")
    rows = task.reader.matrix("X", X)
    bound = task.posterior.bind(task.operator_for(rows, baselines), task.evaluation)
    return to_numpy(bound.across(rows))


def contributions_to(task: Task, x: Any, feature: Any) -> Contributions:
    """The share of each training row in the attribution of a feature at x, (m,)."""
    point, features = task.reader.point("x", x)[None, :], task.names(x)
    row = beside("x", point, task.posterior.like)
    index = feature_index(feature, features)
    operator = task.operator()
    require_features(operator, "training_contributions are")
    task.require_latent("joint and training_contributions are")
    bound = task.single.bind(operator, replace(task.evaluation, uncertainty="none"))
    return Contributions.of(
        to_numpy(bound.contributions(row)[0])[index],
        feature=features[index],
        quantity=task.words,
        row_name=row_name(x),
        baseline_name=task.baseline_name,
        attribution=task.attribution_name,
    )
