"""Figure 4: convergence of the right-hand rule with L partitions to the exact attributions.

Left: alcohol, for a red wine of quality 8 that is left out of training, against the mean of the
wines of quality 5. Right: x₁ in the simulated data of Figure 1, for the far corner (10, 10) against
the origin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr.estimators import GPRegressor
from gpattr.explainer.explainer import Explainer
from gpattr.paper.drawing import canvas, converging, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.figure_1 import PUBLISHED, simulated_model
from gpattr.paper.models import std_of, wines
from gpattr.rules import compare_rules

TITLE = "Figure 4: convergence of the right-hand rule"
PARTITIONS = range(1, 51)
LARGE = (256, 512, 1024)  # partitions for the order of convergence


def run(setting: Setting) -> Outcome:
    """Explain one wine and one simulated point with an increasing number of partitions."""
    data = wines(setting)
    simulated = simulated_model(PUBLISHED, restarts=0 if setting.reduced else 4)
    cases = (
        ("wine", data.model, data.x, data.average, 10, "red wine: attribution of alcohol"),
        (
            "simulated",
            simulated,
            [[10.0, 10.0]],
            [0.0, 0.0],
            0,
            "simulated data: attribution of $x_1$",
        ),
    )
    figure, numbers = canvas(10.0, 3.8), {}
    for axes, (name, model, x, baseline, feature, title) in zip(
        figure.subplots(1, 2), cases, strict=True
    ):
        setting.progress(f"{name}: up to {PARTITIONS[-1]} partitions")
        ex = Explainer(model, baseline)(x)[:, [feature]]
        exact = float(ex.values[0, 0]), float(std_of(ex)[0, 0])
        approximate = by_rule(model, x, baseline, feature, "right", PARTITIONS)
        converging(axes, PARTITIONS, approximate, exact, width=1.6, ms=3.5, lw=1.0, capsize=2)
        axes.legend(fontsize=8, loc="lower right")
        tidy(
            axes,
            title,
            "number of partitions L",
            "attribution (quality)" if name == "wine" else "attribution",
        )
        numbers |= {f"{name}: {what}": value for what, value in measure(approximate, exact).items()}
        numbers[f"{name}: order of convergence"] = order(model, x, baseline)
    return Outcome(figure, numbers)


def by_rule(
    model: GPRegressor, x: Any, baseline: Any, feature: int, rule: str, steps: Sequence[int]
) -> np.ndarray:
    """Return mean and standard deviation of one attribution by steps, (2, len(steps))."""
    explained = (
        Explainer(model, baseline, method=rule, n_steps=int(L))(x, uncertainty="std") for L in steps
    )
    return np.array([(ex.values[0, feature], std_of(ex)[0, feature]) for ex in explained]).T


def order(model: GPRegressor, x: Any, baseline: Any) -> float:
    """Return p if the largest error of a mean attribution decreases as L⁻ᵖ."""
    table = compare_rules(model, x, baseline, rules="right", n_steps=LARGE)
    return -float(np.polyfit(np.log(table["n_steps"]), np.log(table["mean_error"]), 1)[0])


def measure(approximate: np.ndarray, exact: tuple[float, float]) -> dict[str, float]:
    """Return the exact attribution, and the partitions needed for an error below 0.1 sd."""
    far = np.flatnonzero(np.abs(approximate[0] - exact[0]) > 0.1 * exact[1])
    first = far[-1] + 1 if len(far) else 0
    needed = PARTITIONS[first] if first < len(PARTITIONS) else math.inf
    return {
        "exact mean": exact[0],
        "exact sd": exact[1],
        "partitions needed for 0.1 sd": float(needed),
    }
