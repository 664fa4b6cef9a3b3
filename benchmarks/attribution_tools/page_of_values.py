"""The page: one row by every tool, the two quantities, and the uncertainty by brute force."""

from __future__ import annotations

import numpy as np
from pages import paragraph, table

from .answers import Answer
from .posterior_draws import N_DRAWS, N_STEPS, brute_force
from .problem import Problem
from .tool import IG, SHAPLEY, Tool
from .with_gp_shap import gp_shap


def one_row(problem: Problem, tools: list[Tool], answers: list[Answer]) -> list[str]:
    """The first row by every tool that has a column for it."""
    x, b = problem.X[0], problem.b
    deviations = {
        "gpattr": problem.explanation.std[0],
        "GP-SHAP": np.sqrt(np.diag(gp_shap(problem.gp, x, b)[1])),
    }
    columns = {
        tool.column: signed(answer.values[0], deviations.get(tool.column))
        for tool, answer in zip(tools, answers, strict=True)
        if tool.column
    }
    labels = [[name, f"{x[i]:.4g}", f"{b[i]:.4g}"] for i, name in enumerate(problem.names)] + [
        ["sum", "", ""]
    ]
    rows = [[*label, *(column[i] for column in columns.values())] for i, label in enumerate(labels)]
    at_x, at_b = problem.gp.predict(np.array([x, b]))
    notes = paragraph(f"""
        In the units of the target, the progression of the disease (25 to 346); ± is one
        standard deviation. F(x) = {at_x:.3f}, F(b) = {at_b:.3f}, F(x) − F(b) =
        {at_x - at_b:+.3f}. gpattr and Captum show integrated gradients, the others Shapley
        values; ProductKernel's sum to F(x) minus {problem.worth_of_nothing:.1f}, the worth of
        the empty coalition in its game. shapiq's exact values are those of shap Exact.""")
    return ["### The first explained row", table(["feature", "x", "b", *columns], rows), notes]


def signed(values: np.ndarray, std: np.ndarray | None) -> list[str]:
    """A column of the table: values, with their standard deviations where there are any, and the
    sum.
    """
    more = [""] * len(values) if std is None else [f" ± {s:.3f}" for s in std]
    return [
        f"{value:+.3f}{end}"
        for value, end in zip([*values, values.sum()], [*more, ""], strict=True)
    ]


def difference(problem: Problem, truths: dict[str, np.ndarray]) -> list[str]:
    """How far the two exact quantities, and their standard deviations, are apart."""
    ig, shapley, std = truths[IG], truths[SHAPLEY], problem.explanation.std
    gap = np.abs(ig - shapley)
    shapley_std = np.sqrt([np.diag(gp_shap(problem.gp, x, problem.b)[1]) for x in problem.X])
    same = (np.abs(ig).argmax(axis=1) == np.abs(shapley).argmax(axis=1)).sum()
    low, middle, high = np.quantile(shapley_std / std, [0.05, 0.5, 0.95])
    rows = [
        ["RMS of the integrated gradients", f"{rms(ig):.2f}"],
        ["RMS of the difference", f"{rms(gap):.2f}, or {100 * rms(gap) / rms(ig):.1f} %"],
        ["largest difference", f"{gap.max():.2f}"],
        ["correlation", f"{np.corrcoef(ig.ravel(), shapley.ravel())[0, 1]:.4f}"],
        ["same strongest feature", f"{same} of {len(ig)} rows"],
        ["RMS of gpattr's standard deviations", f"{rms(std):.2f}"],
        [
            "difference less than gpattr's standard deviation",
            f"{(gap < std).sum()} of {gap.size} attributions",
        ],
        [
            "std of the Shapley value / std of the integrated gradient: median (5 % to 95 %)",
            f"{middle:.2f} ({low:.2f} to {high:.2f})",
        ],
    ]
    notes = paragraph(
        f"""
        The exact values of the two quantities, over {len(ig)} rows × {problem.d} features, and
        the exact standard deviations of gpattr and GP-SHAP. They are specific to this GP; with
        stronger interactions the two quantities differ more."""
    )
    head = ["integrated gradients and Shapley values", "value"]
    return ["### Differences between the two quantities", table(head, rows), notes]


def rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def uncertainty(problem: Problem) -> list[str]:
    """gpattr's standard deviations against functions drawn from the posterior."""
    std, cov = problem.explanation.std[0], problem.explanation.cov[0]
    draws, grid = brute_force(problem.gp, problem.X[0], problem.b)
    drawn, undrawn = draws.std(axis=0, ddof=1), np.sqrt(np.diag(grid))
    rows = [
        [
            name,
            f"{std[i]:.4g}",
            f"{drawn[i]:.4g}",
            f"{100 * (drawn[i] / std[i] - 1):+.1f} %",
            f"{100 * (undrawn[i] / std[i] - 1):+.3f} %",
        ]
        for i, name in enumerate(problem.names)
    ]
    apart = np.abs(np.corrcoef(draws.T) - cov / np.outer(std, std)).max()
    of_std, of_correlation = 100 / np.sqrt(2 * (N_DRAWS - 1)), 1 / np.sqrt(N_DRAWS)
    notes = paragraph(f"""
        For the first row, f was drawn {N_DRAWS} times from the posterior, jointly at
        {2 * problem.d * N_STEPS} points about the path (with the posterior covariance in plain
        NumPy), differentiated by finite differences and integrated over {N_STEPS} steps. The
        standard deviation of {N_DRAWS} draws has itself a standard error of {of_std:.1f} %, a
        correlation one of up to {of_correlation:.3f}. The last column takes the covariance of
        the same sums of differences without drawing, which leaves the error of the differences.
        The correlations between features, of the draws and of gpattr, differ by at most
        {apart:.3f}.""")
    head = [
        "feature",
        "std, gpattr",
        f"std of {N_DRAWS} draws",
        "difference",
        "difference without drawing",
    ]
    return ["### gpattr's uncertainty, by brute force", table(head, rows), notes]
