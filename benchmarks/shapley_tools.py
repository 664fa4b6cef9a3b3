"""Shapley values of one fitted GP by gpattr, shap, shapiq and GP-SHAP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import shap
import shapiq
from attribution_tools.with_shapiq import first_order
from games import coalitions, mixtures
from scipy.linalg import solve_triangular
from shapiq.explainer.product_kernel import ProductKernelExplainer
from shapiq.game_theory.exact import ExactComputer
from shapiq.imputer import BaselineImputer, MarginalImputer
from shapley_truths import NOISE, VARIANCE, Case
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import gpattr

SAMPLED = 2048  # coalitions of the sampling explainers where there are too many
FEW = 500  # coalitions of GP-SHAP, sampled, at d = 10
ENUMERATED = 12  # features up to which coalitions are enumerated

Result = tuple[np.ndarray, np.ndarray | None]  # values and standard deviations, (n, d)


@dataclass(frozen=True)
class Tool:
    """A way to explain the rows of a case: ``explain(X, seed)``."""

    name: str
    explain: Callable[[np.ndarray, int], Result]
    random: bool = False
    std: bool = False
    exact: bool = True
    other_game: bool = False
    one_row_a_call: bool = False


def every_tool(case: Case) -> list[Tool]:
    makers = gpattr_tools, shap_tools, shapiq_tools, gp_shap_tools
    return [tool for make in makers for tool in make(case)]


def gpattr_tools(case: Case) -> list[Tool]:
    alone = len(case.background) == 1
    start = case.background[0] if alone else gpattr.Baselines(case.background)
    explainer = gpattr.Explainer(case.gp, start, attribution="shapley")

    def means(X: np.ndarray, seed: int) -> Result:
        return explainer(X, uncertainty="none").values, None

    def with_std(X: np.ndarray, seed: int) -> Result:
        explanation = explainer(X, uncertainty="std")
        return explanation.values, explanation.std

    return [
        Tool("gpattr, means", means),
        Tool("gpattr, means and std", with_std, std=True),
        Tool("gpattr, means, one row per call", row_by_row(means), one_row_a_call=True),
        Tool(
            "gpattr, means and std, one row per call",
            row_by_row(with_std),
            std=True,
            one_row_a_call=True,
        ),
    ]


def row_by_row(explain: Callable[[np.ndarray, int], Result]) -> Callable[[np.ndarray, int], Result]:
    def each(X: np.ndarray, seed: int) -> Result:
        results = [explain(x[None], seed) for x in X]
        deviations = [std for _, std in results if std is not None]
        values = np.concatenate([value for value, _ in results])
        return values, np.concatenate(deviations) if deviations else None

    return each


def shap_tools(case: Case) -> list[Tool]:
    """shap with its interventional background; Exact refuses more than 10⁵ evaluations."""
    masker = shap.maskers.Independent(case.background, max_samples=len(case.background))
    kernel = shap.KernelExplainer(case.gp.predict, case.background)

    def by_kernel(X: np.ndarray, seed: int, **options: Any) -> Result:
        # KernelExplainer takes no seed: it draws from this global state.
        np.random.seed(seed)  # noqa: NPY002
        return kernel.shap_values(X, silent=True, **options), None

    def by_permutation(X: np.ndarray, seed: int) -> Result:
        explainer = shap.explainers.Permutation(case.gp.predict, masker, seed=seed)
        return explainer(X, silent=True).values, None

    exact = shap.explainers.Exact(case.gp.predict, masker)
    enumerates = case.d <= ENUMERATED
    tools = [
        Tool("shap Kernel, l1_reg=False", lambda X, seed: by_kernel(X, seed, l1_reg=False),
             random=True, exact=enumerates),
        Tool("shap Permutation (default)", by_permutation, random=True, exact=False),
    ]  # fmt: skip
    if enumerates:
        tools.insert(0, Tool("shap Exact", lambda X, seed: (exact(X, silent=True).values, None)))
    return tools


def shapiq_tools(case: Case) -> list[Tool]:
    predict, background, d = case.gp.predict, case.background, case.d
    budget = 2**d if d <= ENUMERATED else SAMPLED

    def game(x: np.ndarray) -> Any:
        if len(background) == 1:
            return BaselineImputer(predict, background, x=x)
        return MarginalImputer(predict, background, x=x, sample_size=len(background))

    def exact(X: np.ndarray, seed: int) -> Result:
        computed = [ExactComputer(game(x), n_players=d)("SV", order=1) for x in X]
        return first_order(computed), None

    def regression(X: np.ndarray, seed: int) -> Result:
        games = [(game(x), shapiq.KernelSHAP(n=d, random_state=seed)) for x in X]
        return first_order([method.approximate(budget, game) for game, method in games]), None

    tools = [
        Tool(f"shapiq KernelSHAP, budget {budget}", regression, random=True,
             exact=d <= ENUMERATED),
    ]  # fmt: skip
    if d <= ENUMERATED:
        tools.insert(0, Tool("shapiq ExactComputer", exact))
    return [*tools, product_kernel(case)] if len(background) == 1 else tools


def product_kernel(case: Case) -> Tool:
    """shapiq's explainer for product kernels.

    It takes one RBF with one length-scale and ignores normalize_y: it is given inputs in units of
    the length-scales and normalised targets, and its values are scaled back.
    """
    gp = case.gp
    scaled = GaussianProcessRegressor(RBF(1.0), alpha=NOISE / VARIANCE, optimizer=None)
    explainer = ProductKernelExplainer(scaled.fit(gp.X_train_ / case.lengthscale, gp.y_train_))

    def explain(X: np.ndarray, seed: int) -> Result:
        return case.unit * first_order(explainer.explain_X(X / case.lengthscale)), None

    return Tool("shapiq ProductKernelExplainer", explain, other_game=True)


def gp_shap_tools(case: Case) -> list[Tool]:
    """GP-SHAP by our code: weighted least squares on the joint posterior of the worths."""
    if len(case.background) > 1:
        return []
    sampled = FEW if case.d <= ENUMERATED else SAMPLED

    def tool(name: str, count: int | None, first: bool = False) -> Tool:
        def explain(X: np.ndarray, seed: int) -> Result:
            pairs = [gp_shap(case, x, count, seed, first) for x in X]
            values, deviations = map(np.array, zip(*pairs, strict=True))
            return values, deviations

        return Tool(name, explain, random=count is not None, std=True, exact=count is None)

    tools = [tool(f"GP-SHAP (our code), {sampled} coalitions", sampled)]
    if case.d <= ENUMERATED:
        all_of_them = f"GP-SHAP (our code), all {2**case.d} coalitions"
        tools = [tool(all_of_them, None), tool(f"{all_of_them}, mapped first", None, True), *tools]
    return tools


def gp_shap(
    case: Case, x: np.ndarray, count: int | None, seed: int, first: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Shapley values and standard deviations of one row by GP-SHAP's estimator.

    The values are a linear map of the worths of coalitions, whose joint distribution is scikit-
    learn's; ``first`` maps the kernel before the linear solve, which the paper does not.
    """
    gp, (sets, shapley) = case.gp, regression_map(case.d, count, seed)
    points = mixtures(x, case.background[0], sets)
    if not first:
        mean, cov = gp.predict(points, return_cov=True)
        return shapley @ mean, np.sqrt(np.diag(shapley @ cov @ shapley.T))
    cross = shapley @ gp.kernel_(points, gp.X_train_)
    explained = solve_triangular(gp.L_, cross.T, lower=True)
    prior = np.einsum("ij,ij->i", shapley @ gp.kernel_(points), shapley)
    std = np.sqrt(prior - (explained**2).sum(axis=0))
    return case.unit * (cross @ gp.alpha_), case.unit * std


def regression_map(d: int, count: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Coalitions, (c, d), and the matrix (d, c) that makes Shapley values of their worths.

    Weighted least squares with weights (d − 1)/(C(d, s) s (d − s)) of coalitions of size s, subject
    to Σφ = v(all) − v(none). All coalitions, or ``count`` drawn by those weights.
    """
    if count is None:
        sets = coalitions(d)[0]
        proper = sets[(sets.any(axis=1)) & ~(sets.all(axis=1))]
        weight = np.array([(d - 1) / (comb(d, s) * s * (d - s)) for s in proper.sum(axis=1)])
    else:
        rng, sizes = np.random.default_rng(seed), np.arange(1, d)
        chance = 1 / (sizes * (d - sizes))
        drawn = rng.choice(sizes, size=count, p=chance / chance.sum())
        ranks = rng.random((count, d)).argsort(axis=1)
        proper, repeats = np.unique(ranks < drawn[:, None], axis=0, return_counts=True)
        weight = repeats.astype(float)
    weighted = proper.T * weight  # (d, c)
    inverse = np.linalg.inv(weighted @ proper)
    free, ones = inverse @ weighted, inverse.sum(axis=1) / inverse.sum()
    free -= np.outer(ones, free.sum(axis=0))  # so that these add up to zero over features
    none = -free.sum(axis=1) - ones  # v(none) is subtracted from all worths
    ends = np.array([np.zeros(d, bool), np.ones(d, bool)])
    return np.vstack([ends, proper]), np.column_stack([none, ones, free])
