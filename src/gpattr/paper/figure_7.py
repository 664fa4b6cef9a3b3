"""Figure 7 (appendix): the right-hand, trapezoid and Simpson rules by partitions and evaluations.

The attribution of alcohol for the wine of Figure 4. Simpson's rule is (g₀ + 4g½ + g₁)/6; the
formula printed in the paper is the trapezoid rule on 2L partitions. The right-hand rule evaluates
at l/L, l = 1 … L. Gauss–Legendre, which the paper does not include, needs eight evaluations
for full accuracy.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gpattr.closed_forms.quadrature.fixed_rules import nodes_and_weights
from gpattr.explainer.explainer import Explainer
from gpattr.paper.drawing import canvas, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.figure_4 import by_rule
from gpattr.paper.models import Wines, wines
from gpattr.plots.style import BLUE, GREEN, ORANGE, PURPLE

TITLE = "Figure 7 (appendix): quadrature rules"
RULES = {"right": ORANGE, "trapezoid": GREEN, "simpson": PURPLE, "gauss_legendre": BLUE}
NAMES = {
    "right": "right-hand",
    "trapezoid": "trapezoid",
    "simpson": "Simpson",
    "gauss_legendre": "Gauss–Legendre",
}
DOUBLED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024)
STEPS = {
    "right": DOUBLED,
    "trapezoid": DOUBLED,
    "simpson": DOUBLED[:-1],
    "gauss_legendre": range(1, 17),
}
FITTED = {
    "right": (256, 1024),
    "trapezoid": (64, 256),
    "simpson": (8, 32),
}  # steps: converging, above rounding
ALCOHOL = 10


def run(setting: Setting) -> Outcome:
    """Explain one wine by four rules with an increasing number of evaluations."""
    data = wines(setting)
    ex = Explainer(data.model, data.average)(data.x)
    assert ex.std is not None
    mean, std = float(ex.values[0, ALCOHOL]), float(ex.std[0, ALCOHOL])
    tables = {}
    for rule in RULES:
        setting.progress(f"{NAMES[rule]} rule")
        tables[rule] = errors(data, rule, mean)
    numbers = {
        f"{NAMES[rule]}: order": order(tables[rule], *steps) for rule, steps in FITTED.items()
    }
    for rule, table in tables.items():
        numbers[f"{NAMES[rule]}: evaluations to 0.1 %"] = needed(table, 1e-3 * abs(mean))
    numbers["Gauss–Legendre: evaluations to 1e-12"] = needed(
        tables["gauss_legendre"], 1e-12 * abs(mean)
    )
    return Outcome(draw(data, tables, mean, std), numbers)


def evaluations(rule: str, steps: int) -> int:
    """Return the number of gradients that a rule evaluates."""
    return len(nodes_and_weights(rule, steps)[0])


def errors(data: Wines, rule: str, exact: float) -> pd.DataFrame:
    """Return the error of the mean attribution of alcohol for each number of steps."""
    explainers = (Explainer(data.model, data.average, method=rule, n_steps=n) for n in STEPS[rule])
    values = [explainer(data.x, uncertainty="none").values[0, ALCOHOL] for explainer in explainers]
    counts = [evaluations(rule, n) for n in STEPS[rule]]
    return pd.DataFrame(
        {"evaluations": counts, "error": np.abs(np.array(values) - exact)}, index=list(STEPS[rule])
    )


def order(table: pd.DataFrame, few: int, many: int) -> float:
    """Return p where the error falls as L⁻ᵖ between two numbers of steps."""
    error = dict(zip(table.index, table["error"], strict=True))
    return math.log(error[few] / error[many]) / math.log(many / few)


def needed(table: pd.DataFrame, accuracy: float) -> float:
    """Return the fewest evaluations that reach an accuracy, of the numbers tried."""
    reached = table.loc[table["error"] <= accuracy, "evaluations"]
    return float(reached.min()) if len(reached) else math.inf


def draw(data: Wines, tables: dict[str, pd.DataFrame], mean: float, std: float) -> Figure:
    """Draw the attribution by partitions and by evaluations, and its squared error."""
    figure = canvas(12.0, 4.0)
    by_partition, by_evaluation, error = figure.subplots(1, 3)
    for axes in (by_partition, by_evaluation):
        axes.axhspan(mean - std, mean + std, color="0.85", lw=0)
        axes.axhline(mean, color="k", lw=1.2, label="exact, ±1 sd")
    steps = np.arange(1, 13)
    for shift, (rule, color) in zip(
        (-0.24, -0.08, 0.08, 0.24), RULES.items(), strict=True
    ):  # side by side, to be seen
        values, spread = by_rule(data.model, data.x, data.average, ALCOHOL, rule, steps.tolist())
        counts = np.array([evaluations(rule, int(n)) for n in steps])
        for axes, places in ((by_partition, steps), (by_evaluation, counts)):
            near = places <= steps[-1]
            style = {"fmt": "o", "color": color, "ms": 3.5, "lw": 1.0, "label": NAMES[rule]}
            axes.errorbar(places[near] + shift, values[near], spread[near], **style)
        table = tables[rule][tables[rule]["error"] > 0]
        error.loglog(table["evaluations"], table["error"] ** 2, "o-", color=color, ms=3, lw=1.2)
    tidy(
        by_partition,
        "alcohol, mean ±1 sd",
        "partitions L (nodes of Gauss–Legendre)",
        "attribution (quality)",
    )
    tidy(by_evaluation, "the same against evaluations", "gradient evaluations")
    tidy(error, "squared error of the mean", "gradient evaluations")
    by_evaluation.legend(fontsize=8, loc="lower right")
    return figure
