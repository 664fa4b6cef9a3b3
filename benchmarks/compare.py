"""One fitted GP explained by gpattr, SHAP, Captum, shapiq and GP-SHAP: values, uncertainty, errors
and times from one run.

    python benchmarks/compare.py [--rounds 15] [--write docs/compare_results.md]

Prints Markdown. Needs shap, shapiq, captum, gpytorch and mpmath. Every tool gets the same GP, rows
and baseline; every answer is held against a truth computed here in plain NumPy, by no code of
gpattr's nor of the tool's. The parts are in the folder attribution_tools."""

from __future__ import annotations

from attribution_tools.answers import Answer
from attribution_tools.page_of_tools import errors, questions, set_up, speed
from attribution_tools.page_of_values import difference, one_row, uncertainty
from attribution_tools.problem import Problem, diabetes
from attribution_tools.times import side_by_side
from attribution_tools.tool import Tool
from attribution_tools.truths import every_truth
from attribution_tools.with_captum import captum_tools
from attribution_tools.with_gp_shap import gp_shap_tools
from attribution_tools.with_gpattr import gpattr_tools
from attribution_tools.with_shap import shap_tools
from attribution_tools.with_shapiq import shapiq_tools
from pages import machine, write_page

PACKAGES = "numpy gpattr shap shapiq captum gpytorch torch scikit-learn"


def compare(rounds: int) -> str:
    """The whole page."""
    problem = diabetes()
    truths = every_truth(problem.gp, problem.X, problem.b)
    tools = every_tool(problem)
    answers = [Answer.of(tool, problem, truths[tool.computes]) for tool in tools]
    times = side_by_side(tools, rounds)
    parts = [
        machine(PACKAGES),
        *set_up(problem, truths),
        *questions(problem, tools, answers),
        *speed(problem, tools, times, rounds),
        *errors(problem, tools, answers, truths),
        *one_row(problem, tools, answers),
        *difference(problem, truths),
        *uncertainty(problem),
    ]
    return "\n\n".join(parts)


def every_tool(problem: Problem) -> list[Tool]:
    """gpattr's means, and its means and covariance, are the first two."""
    makers = gpattr_tools, captum_tools, shap_tools, shapiq_tools, gp_shap_tools
    return [tool for make in makers for tool in make(problem)]


if __name__ == "__main__":
    write_page(compare, __doc__, rounds=15)
