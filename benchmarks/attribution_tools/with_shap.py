"""Shapley values by shap, on scikit-learn's predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import shap

from .problem import Problem
from .tool import SAMPLED, SHAPLEY, Tool


def shap_tools(problem: Problem) -> list[Tool]:
    X, background = problem.X, problem.b[None]
    exact = shap.explainers.Exact(problem.predict, shap.maskers.Independent(background))
    kernel = shap.KernelExplainer(problem.predict, background)

    def values(seed: int, **options: Any) -> np.ndarray:
        # KernelExplainer takes no seed: it draws from this global state.
        np.random.seed(seed)  # noqa: NPY002
        return kernel.shap_values(X, silent=True, **options)

    few = f"shap Kernel, nsamples={SAMPLED}"
    return [
        Tool("shap Exact", SHAPLEY, lambda seed: exact(X, silent=True).values, column="shap Exact"),
        Tool("shap Kernel (default)", SHAPLEY, values, random=True, column="shap Kernel"),
        Tool(
            "shap Kernel, l1_reg=False",
            SHAPLEY,
            lambda seed: values(seed, l1_reg=False),
            random=True,
        ),
        Tool(
            few,
            SHAPLEY,
            lambda seed: values(seed, nsamples=SAMPLED),
            random=True,
            column=f"shap Kernel, {SAMPLED}",
        ),
    ]
