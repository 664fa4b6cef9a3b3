"""Integrated gradients, or Shapley values, by gpattr."""

from __future__ import annotations

import numpy as np

import gpattr

from .problem import Problem
from .tool import IG, SHAPLEY, Tool


def gpattr_tools(problem: Problem, attribution: str = "integrated_gradients") -> list[Tool]:
    """Means, means and covariance, and both of them with one row per call."""
    X, explainer = problem.X, gpattr.Explainer(problem.posterior, attribution=attribution)
    computes = SHAPLEY if attribution == "shapley" else IG

    def one_by_one(uncertainty: str) -> np.ndarray:
        return np.concatenate([explainer(x[None], uncertainty=uncertainty).values for x in X])

    joint, none = "exact joint covariance under the posterior", "none: closed form"
    return [
        Tool(
            "gpattr, means",
            computes,
            lambda seed: explainer(X, uncertainty="none").values,
            "not asked for",
            points=none,
        ),
        Tool(
            "gpattr, means and covariance",
            computes,
            lambda seed: explainer(X).values,
            joint,
            points=none,
            column="gpattr",
        ),
        Tool(
            "gpattr, means, one row per call",
            computes,
            lambda seed: one_by_one("none"),
            "not asked for",
            one_row_a_call=True,
        ),
        Tool(
            "gpattr, means and covariance, one row per call",
            computes,
            lambda seed: one_by_one("cov"),
            joint,
            one_row_a_call=True,
        ),
    ]
