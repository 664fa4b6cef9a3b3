"""Integrated gradients by gpattr."""

from __future__ import annotations

import numpy as np

import gpattr

from .problem import Problem
from .tool import IG, Tool


def gpattr_tools(problem: Problem) -> list[Tool]:
    X, explainer = problem.X, gpattr.Explainer(problem.posterior)

    def one_by_one(uncertainty: str) -> np.ndarray:
        return np.concatenate([explainer(x[None], uncertainty=uncertainty).values for x in X])

    joint, none = "exact joint covariance under the posterior", "none: closed form"
    return [
        Tool(
            "gpattr, means",
            IG,
            lambda seed: explainer(X, uncertainty="none").values,
            "not asked for",
            points=none,
        ),
        Tool(
            "gpattr, means and covariance",
            IG,
            lambda seed: explainer(X).values,
            joint,
            points=none,
            column="gpattr",
        ),
        Tool(
            "gpattr, means, one row per call",
            IG,
            lambda seed: one_by_one("none"),
            "not asked for",
            one_row_a_call=True,
        ),
        Tool(
            "gpattr, means and covariance, one row per call",
            IG,
            lambda seed: one_by_one("cov"),
            joint,
            one_row_a_call=True,
        ),
    ]
