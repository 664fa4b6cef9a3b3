"""Other tools on one fitted GP: time per row, and difference from exact integrated gradients."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from attribution_tools.problem import Problem
from attribution_tools.tool import IG, Tool
from scipy.special import erf
from timing import best_time

from gpattr import Explainer, Explanation
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior

N_ROWS = 5


def printed_formula(posterior: ExactPosterior, X: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Mean attributions by the formula as the paper prints it, Aₙᵢ with e^((2a+b)²/8a), row by row
    as its code does.
    """
    kernel, Z = posterior.kernel, posterior.inputs
    result = np.empty_like(X)
    for k, x in enumerate(X):
        D, E = (x - b) / kernel.lengthscale, (b - Z) / kernel.lengthscale
        a, beta, c = D @ D, 2 * E @ D, (E * E).sum(axis=1)
        d, f = -kernel.variance * D**2, -kernel.variance * D * E
        root = np.sqrt(2 * a)
        bracket = (
            np.sqrt(2 * np.pi)
            * np.exp((2 * a + beta) ** 2 / (8 * a))
            * (erf(beta / (2 * root)) - erf((2 * a + beta) / (2 * root)))
        )
        A = np.exp(-(a + beta + c) / 2)[:, None] * (
            bracket[:, None] * (beta[:, None] * d - 2 * a * f)
            + 4 * np.sqrt(a) * d * (np.exp((a + beta) / 2) - 1)[:, None]
        )
        result[k] = posterior.alpha @ A / (4 * a**1.5)
    return result


def peers(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    m, d = (200, 6) if quick else (500, 8)
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(m, d))
    targets = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.1 * rng.normal(size=m)
    posterior = ExactPosterior(SquaredExponential(lengthscale=2.0), Z, targets, noise=0.01)
    rows, b = rng.normal(size=(N_ROWS, d)), Z.mean(axis=0)
    explainer = Explainer(posterior)
    exact = explainer(rows)
    many = rng.normal(size=(1000, d))
    time_mean = best_time(lambda: explainer(many, uncertainty="none")) / 1000
    time_cov = best_time(lambda: explainer(many)) / 1000
    table = _of_gpattr(exact, time_mean, time_cov)
    for name, (kind, compute) in _others(posterior, rows, b).items():
        seconds, gap = best_time(compute), np.abs(compute() - exact.values).max()
        table.append(
            _row(name, seconds / N_ROWS, time_mean, kind, "largest difference", f"{gap:.0e}")
        )
    for distance in (1e-6, 40.0):
        table.append(_of_printed_formula(posterior, b, distance, time_mean))
    return f"One GP of {m} points × {d} features, per explained row", table


def _of_gpattr(exact: Explanation, time_mean: float, time_cov: float) -> list[dict[str, str]]:
    return [
        _row(
            "gpattr, mean",
            time_mean,
            time_mean,
            "exact",
            "completeness gap",
            f"{np.abs(exact.delta).max():.0e}",
        ),
        _row(
            "gpattr, mean and covariance",
            time_cov,
            time_mean,
            "exact, with joint uncertainty",
            "",
            "",
        ),
    ]


def _others(
    posterior: ExactPosterior, rows: np.ndarray, b: np.ndarray
) -> dict[str, tuple[str, Callable[[], np.ndarray]]]:
    """Return {tool: (what it computes, a call that computes it)} of those that are installed."""
    problem = Problem.of(posterior, rows, names=[])
    others = {
        "the paper's printed formula": (
            IG,
            lambda: printed_formula(posterior, rows, b),
        ),
    }
    tools: dict[str, Tool] = {}
    if find_spec("captum") and find_spec("gpytorch"):
        from attribution_tools.with_captum import captum_tools

        tools["Captum on GPyTorch, 50 steps"] = captum_tools(problem)[0]
    if find_spec("shap"):
        from attribution_tools.with_shap import shap_tools

        tools["shap ExactExplainer"], tools["shap KernelExplainer"] = shap_tools(problem)[:2]
    calls = {
        name: (tool.computes, lambda tool=tool: tool.explain(0)) for name, tool in tools.items()
    }
    return others | calls


def _of_printed_formula(
    posterior: ExactPosterior, b: np.ndarray, distance: float, time_mean: float
) -> dict[str, str]:
    """Compare the formula as printed with gpattr, for a path of this many length-scales."""
    x = b + distance * np.ones(len(b)) / len(b) ** 0.5 * 2.0
    with np.errstate(all="ignore"):
        printed = printed_formula(posterior, x[None], b)
    ours = Explainer(posterior, b)(x[None])
    wrong = np.abs(printed - ours.values).max() / np.abs(ours.values).max()
    name = f"the paper's formula at {distance:g} length-scales"
    return _row(name, float("nan"), time_mean, "", "relative error", f"{wrong:.0e}")


def _row(
    what: str, seconds: float, reference: float, kind: str, measure: str, value: str
) -> dict[str, str]:
    shown = "" if np.isnan(seconds) else f"{1e3 * seconds:.3g} ms"
    ratio = "" if np.isnan(seconds) else f"{seconds / reference:.3g} × gpattr's mean"
    return {
        "what": what,
        "time": shown,
        "comparison": ratio,
        "it computes": kind,
        "against exact": measure,
        "": value,
    }
