"""Shapley values by shapiq, on scikit-learn's predictions, and of its product-kernel game."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import shapiq
from shapiq.explainer.product_kernel import ProductKernelExplainer
from shapiq.game_theory.exact import ExactComputer
from shapiq.imputer import BaselineImputer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from .problem import Problem
from .tool import OTHER_GAME, SAMPLED, SHAPLEY, Tool


def shapiq_tools(problem: Problem) -> list[Tool]:
    X, gp, d = problem.X, problem.gp, problem.d
    # The baseline is the mean of Z. (Given b alone, the values are the same but shapiq reports a
    # baseline value of 0.)
    explainer = shapiq.TabularExplainer(
        problem.predict, gp.Z, imputer="baseline", index="SV", max_order=1
    )
    # ProductKernelExplainer takes a kernel of RBF alone, with one length-scale: the same mean, in
    # units of the length-scales.
    scaled = GaussianProcessRegressor(RBF(1.0), alpha=gp.noise / gp.variance, optimizer=None)
    kernel_explainer = ProductKernelExplainer(scaled.fit(gp.Z / gp.lengthscale, gp.y - gp.constant))

    def exact(seed: int) -> np.ndarray:
        games = [BaselineImputer(problem.predict, problem.b[None], x=x) for x in X]
        return first_order([ExactComputer(game, n_players=d)("SV", order=1) for game in games])

    def regression(budget: int) -> Callable[[int], np.ndarray]:
        return lambda seed: first_order(explainer.explain_X(X, budget=budget, random_state=seed))

    def product_kernel(seed: int) -> np.ndarray:
        return first_order(kernel_explainer.explain_X(X / gp.lengthscale))

    few, none = f"shapiq KernelSHAP, budget {SAMPLED}", "none: closed form"
    return [
        Tool("shapiq ExactComputer", SHAPLEY, exact),
        Tool(f"shapiq KernelSHAP, budget {2**d}", SHAPLEY, regression(2**d), random=True),
        Tool(few, SHAPLEY, regression(SAMPLED), random=True, column=f"shapiq, {SAMPLED}"),
        Tool(
            "shapiq ProductKernelExplainer",
            OTHER_GAME,
            product_kernel,
            points=none,
            column="shapiq ProductKernel",
        ),
    ]


def first_order(results: list[shapiq.InteractionValues]) -> np.ndarray:
    return np.array([result.get_n_order_values(1) for result in results])
