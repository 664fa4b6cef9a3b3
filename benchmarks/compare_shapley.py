"""Shapley values of one fitted GP by gpattr, shap, shapiq and GP-SHAP: times, errors, standard
deviations, from one run.

    python benchmarks/compare_shapley.py [--rounds 5] [--write docs/compare_shapley_results.md]

Prints Markdown. Needs shap and shapiq. Every tool gets the same scikit-learn model, rows and
background; every answer is held against coalitions enumerated here, by no code of gpattr's nor of
the tool's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from pages import digits, machine, paragraph, power, table, write_page
from shapiq.explainer.product_kernel import ProductKernelExplainer
from shapley_tools import ENUMERATED, Tool, every_tool
from shapley_truths import (
    N_TRAIN,
    Case,
    by_size,
    enumerated_deviations,
    enumerated_values,
    true_values_of_other_game,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from timing import processor_seconds_of

PACKAGES = "numpy gpattr shap shapiq scikit-learn"
N_ROWS, N_BACKGROUND = 20, 20
EXACT = 1e-9  # the error up to which a tool is called exact


def compare(rounds: int) -> str:
    """The whole page."""
    before = os.getloadavg()[0]
    one = Case.of(10, N_ROWS, 1)
    sections = [
        *section(one, rounds, "10 features, one baseline"),
        *section(Case.of(10, N_ROWS, N_BACKGROUND), rounds, "10 features, a background of 20 rows"),
        *section(Case.of(20, N_ROWS, 1), rounds, "20 features, one baseline"),
        *section(Case.of(50, N_ROWS, 1), rounds, "50 features, one baseline"),
    ]
    top = machine(PACKAGES, (before, os.getloadavg()[0]))
    return "\n\n".join([top, *set_up(one, rounds), *sections, *limits(one)])


# What is measured.


@dataclass(frozen=True)
class Measured:
    """Seconds per row of a tool and of gpattr timed next to it, and errors against the truth."""

    seconds: float
    ours: dict[str, float]
    error: float
    std_error: float | None

    @classmethod
    def of(cls, tool: Tool, case: Case, truth: np.ndarray, ours: list[Tool], rounds: int) -> Any:
        answers = [tool.explain(case.X, seed) for seed in range(1 + tool.random)]
        error = max(float(np.abs(values - truth).max()) for values, _ in answers)
        checked = case.deviations
        size = checked.max(axis=1, keepdims=True)
        off = [(std[: len(checked)] - checked) / size for _, std in answers if std is not None]
        times: dict[str, list[float]] = {each.name: [] for each in [*ours, tool]}
        for _ in range(rounds):
            for each in {each.name: each for each in [*ours, tool]}.values():
                times[each.name].append(processor_seconds_of(lambda e=each: e.explain(case.X, 0)))
        best = {name: min(some) / len(case.X) for name, some in times.items()}
        worst = max(float(np.abs(part).max()) for part in off) if off else None
        return cls(best[tool.name], best, error / float(np.abs(truth).max()), worst)


# The page.


def set_up(case: Case, rounds: int) -> list[str]:
    x = case.X[0]
    values, deviations = by_size(case, x)
    apart = np.abs(values - enumerated_values(case, x)).max() / np.abs(values).max()
    std_apart = np.abs(deviations - enumerated_deviations(case, x)).max() / deviations.max()
    model = paragraph(f"""
        **One model.** A `GaussianProcessRegressor` of scikit-learn with `normalize_y=True` and a
        squared exponential with one length-scale per feature (1 to 5 standard deviations of a
        feature for 10 features), {N_TRAIN} simulated training points, given hyperparameters. All
        tools explain the same {N_ROWS} rows of the same model against the same background: the mean
        of the training inputs, or {N_BACKGROUND} training rows.""")
    truth = paragraph(f"""
        **Errors** are the largest over all rows and features, those of values relative to the
        largest value, those of standard deviations to the largest deviation of the row, and the
        worse of two seeds. For 10 features the true values are found from scikit-learn's own
        predictions at all 1024 coalitions, the deviations from its kernel and Cholesky factor at
        all of them (the first row only with a background of {N_BACKGROUND}). For 20 and 50 features
        coalitions of one size are summed at once, which is exact for products; for the first row of
        10 features the two agree to {apart:.0e} and {std_apart:.0e}.""")
    times = paragraph(f"""
        **Times** are processor time on one thread, which the load of the machine disturbs less than
        the clock's; the best of {rounds} rounds after a call that is not timed.
        In every round gpattr is timed next to each tool, and a ratio is that of these two
        best times, not a quotient of the first column.
        gpattr explains all rows in one call; the other tools process rows one by one, so gpattr is
        also listed, and compared, with one row per call.""")
    return [model, truth, times]


def section(case: Case, rounds: int, title: str) -> list[str]:
    tools = every_tool(case)
    means, with_std, alone, alone_std = tools[:4]
    other = true_values_of_other_game(case)
    rows, notes = [], []
    exact: dict[str, list[tuple[float, str, list[float]]]] = {"shap": [], "shapiq": []}
    for tool in tools:
        truth = other if tool.other_game else case.values
        got = Measured.of(tool, case, truth, [means, with_std, alone, alone_std], rounds)
        ours = {each: got.seconds / got.ours[each.name] for each in tools[:4]}
        theirs = tool not in tools[:4]
        package = tool.name.split()[0]
        if package in exact and got.error < EXACT and not tool.other_game:
            exact[package].append((got.seconds, tool.name, [ours[each] for each in tools[:3]]))
        rows.append([
            tool.name + (" (another game)" if tool.other_game else ""),
            digits(1e3 * got.seconds),
            digits(ours[means]),
            digits(ours[with_std]) if tool.std else "",
            digits(ours[alone_std if tool.std else alone]) if theirs else "",
            power(got.error),
            "none" if got.std_error is None else power(got.std_error),
        ])  # fmt: skip
    if case.d <= ENUMERATED:
        notes.append(reading(exact))
    else:
        points = case.X[np.arange(1024) % len(case.X)]
        bare = processor_seconds_of(lambda: case.gp.predict(points)) / len(points) * 2.0**case.d
        notes.append(
            paragraph(f"""
            shap's Exact and shapiq's ExactComputer would evaluate 2^{case.d} points per row, which
            at scikit-learn's speed takes {span(bare)}; shap refuses more than 10⁵ by default.""")
        )
    head = ["tool", "ms per row", "× gpattr's means", "× gpattr's means and std",
            "× gpattr, one row per call", "error of values", "error of std"]  # fmt: skip
    return [f"### {title}", table(head, rows), *notes]


def reading(exact: dict[str, list[tuple[float, str, list[float]]]]) -> str:
    """The fastest exact way of each package next to gpattr."""
    sentences = [f"The fastest exact way (error below {EXACT:.0e}) to these values"]
    for package, found in exact.items():
        _, name, (means, with_std, alone) = min(found)
        sentences.append(f"""
            in {package} is {name}: {digits(means)} times the time of gpattr's means,
            {digits(with_std)} times that of its means and standard deviations, and {digits(alone)}
            times that of its means with one row per call""")
    return paragraph(f"{sentences[0]} {'; '.join(sentences[1:])}.")


def span(seconds: float) -> str:
    years = seconds / (365.25 * 24 * 3600)
    return f"{digits(seconds)} s" if years < 1 else f"{digits(years)} years"


def limits(case: Case) -> list[str]:
    """What shapiq's explainer for product kernels takes, tried here."""
    Z, y, x = case.gp.X_train_, case.gp.predict(case.gp.X_train_), case.X[:1]
    kernels = {
        "one length-scale per feature": RBF(case.lengthscale),
        "a variance (`ConstantKernel * RBF`)": ConstantKernel(2.0) * RBF(2.0),
    }
    refused = {}
    for name, kernel in kernels.items():
        gp = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(Z, y)
        try:
            ProductKernelExplainer(gp).explain_X(x)
        except ValueError as error:
            refused[name] = str(error)
    normalised = GaussianProcessRegressor(RBF(2.0), alpha=0.01, optimizer=None, normalize_y=True)
    explainer = ProductKernelExplainer(normalised.fit(Z, y))
    (result,) = explainer.explain_X(x)
    total = float(result.get_n_order_values(1).sum() + result.baseline_value)
    return [paragraph(f"""
        shapiq's ProductKernelExplainer takes one `RBF` with one length-scale; tried here, models
        with {' and with '.join(refused)} end in a `ValueError`. It ignores `normalize_y`: its
        values and baseline value add up to {total:.2f} where such a model predicts
        {normalised.predict(x)[0]:.2f}. In the tables it gets inputs in units of the length-scales
        and normalised targets, and its values are scaled back. It has no baseline: the factor of a
        missing feature is 1, so that its values are those of another game, against which its error
        is measured.""")]  # fmt: skip


if __name__ == "__main__":
    write_page(compare, __doc__, rounds=5)
