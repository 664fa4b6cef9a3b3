"""Figure 7 (appendix): the right-hand rule, the trapezoid rule and Simpson's, against partitions and evaluations.

The attribution of alcohol for the wine of Figure 4. Simpson's rule is (g₀ + 4g½ + g₁)/6; the formula printed in the paper is the
trapezoid rule on 2L partitions. The right-hand rule evaluates at l/L, l = 1 … L. Gauss–Legendre, which the paper does not try,
is added: it needs about ten evaluations for all digits.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from gpattr.explainer import Explainer
from gpattr.paper.drawing import BLUE, GREEN, ORANGE, PURPLE, canvas, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.figure_4 import by_rule, order
from gpattr.paper.models import Wines, wines
from gpattr.rules import compare_rules

TITLE = "Figure 7 (appendix): quadrature rules"
RULES = {"right": ORANGE, "trapezoid": GREEN, "simpson": PURPLE, "gauss_legendre": BLUE}
NAMES = {"right": "right-hand", "trapezoid": "trapezoid", "simpson": "Simpson", "gauss_legendre": "Gauss–Legendre"}
STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024)
FITTED = {"right": (256, 512, 1024), "trapezoid": (64, 128, 256), "simpson": (8, 16, 32)}  # converging, above rounding
ALCOHOL = 10


def run(setting: Setting) -> Outcome:
    """Explain one wine by four rules with more and more evaluations."""
    data = wines(setting)
    table = pd.concat(errors(data, rule, setting) for rule in RULES)
    ex = Explainer(data.model, data.average)(data.x)
    numbers = {f"{NAMES[rule]}: order": order(data.model, data.x, data.average, rule, steps) for rule, steps in FITTED.items()}
    largest = float(np.abs(ex.values).max())
    for rule in RULES:
        mine = table[table["rule"] == rule]
        reached = mine["mean_error"] <= 1e-3 * largest
        numbers[f"{NAMES[rule]}: evaluations to 0.1 %"] = float(mine.loc[reached, "evaluations"].min())
    legendre = table[table["rule"] == "gauss_legendre"]
    numbers["Gauss–Legendre: evaluations to 1e-12"] = float(
        legendre.loc[legendre["mean_error"] <= 1e-12 * largest, "evaluations"].min()
    )
    return Outcome(draw(data, table, ex.values[0, ALCOHOL], ex.std[0, ALCOHOL]), numbers)  # pyright: ignore[reportOptionalSubscript]


def errors(data: Wines, rule: str, setting: Setting) -> pd.DataFrame:
    """Return the error of one rule for each number of steps."""
    setting.say(f"{NAMES[rule]} rule")
    steps = range(1, 17) if rule == "gauss_legendre" else STEPS[:-1] if rule == "simpson" else STEPS  # two evaluations a step
    return compare_rules(data.model, data.x, data.average, rules=rule, n_steps=steps)


def draw(data: Wines, table: pd.DataFrame, mean: float, std: float) -> Figure:
    """Draw the attribution against partitions and against evaluations, and the mean-square error."""
    figure = canvas(12.0, 4.0)
    by_partition, by_evaluation, error = figure.subplots(1, 3)
    for axes in (by_partition, by_evaluation):
        axes.axhspan(mean - std, mean + std, color="0.85", lw=0)
        axes.axhline(mean, color="k", lw=1.2, label="exact, ±1 sd")
    for shift, (rule, color) in enumerate(RULES.items()):
        steps = np.arange(1, 13)
        values, spread = by_rule(data.model, data.x, data.average, ALCOHOL, rule, steps.tolist())
        evaluations = {"right": steps, "trapezoid": steps + 1, "simpson": 2 * steps + 1, "gauss_legendre": steps}[rule]
        for axes, places in ((by_partition, steps), (by_evaluation, evaluations)):
            near = places <= 12
            axes.errorbar(
                places[near] + 0.16 * (shift - 1.5),
                values[near],
                spread[near],
                fmt="o",
                color=color,
                ms=3.5,
                lw=1.0,
                label=NAMES[rule],
            )
        mine = table[table["rule"] == rule]
        error.loglog(mine["evaluations"], mine["mse"], "o-", color=color, ms=3, lw=1.2)
    tidy(by_partition, "attribution of alcohol, mean ±1 sd", "partitions L", "attribution")
    tidy(by_evaluation, "the same against evaluations", "gradient evaluations")
    tidy(error, "mean-square error over the features", "gradient evaluations")
    by_evaluation.legend(fontsize=8, loc="lower right")
    return figure
