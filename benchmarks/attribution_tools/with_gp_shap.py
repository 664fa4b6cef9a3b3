"""GP-SHAP: the joint posterior of Shapley values, by our own code."""

from __future__ import annotations

import numpy as np
from games import coalitions, mixtures
from scipy.linalg import cho_solve

import gpattr

from .plain_gp import PlainGP
from .problem import Problem
from .tool import SHAPLEY, Tool


def gp_shap_tools(problem: Problem) -> list[Tool]:
    X, b, joint, points = (
        problem.X,
        problem.b,
        "exact joint covariance under the posterior",
        f"{2**problem.d}, jointly",
    )

    def by_definition(seed: int) -> np.ndarray:
        return np.array([gp_shap_by_definition(problem.posterior, x, b)[0] for x in X])

    def short(seed: int) -> np.ndarray:
        return np.array([gp_shap(problem.gp, x, b)[0] for x in X])

    return [
        Tool("GP-SHAP (our code)", SHAPLEY, by_definition, joint, points=points),
        Tool(
            "GP-SHAP (our code), shortened", SHAPLEY, short, joint, points=points, column="GP-SHAP"
        ),
    ]


def gp_shap_by_definition(
    posterior: gpattr.posteriors.Posterior, x: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the Shapley values of f ~ the posterior: a linear map of the joint law
    of f at all 2ᵈ mixtures.
    """
    sets, shapley = coalitions(len(b))
    mean, cov = posterior.predict(mixtures(x, b, sets), return_cov=True)
    return shapley @ mean, shapley @ cov @ shapley.T


def gp_shap(gp: PlainGP, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same, mapped before it is solved: d right-hand sides instead of 2ᵈ."""
    sets, shapley = coalitions(len(b))
    points = mixtures(x, b, sets)
    cross = shapley @ gp.kernel(points, gp.Z)
    return cross @ gp.alpha, shapley @ gp.kernel(points, points) @ shapley.T - cross @ cho_solve(
        gp.factor, cross.T
    )
