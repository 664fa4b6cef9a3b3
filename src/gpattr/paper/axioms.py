"""Section 2.2: the seven axioms of integrated gradients, checked numerically on GPs.

The figure shows how far each axiom is violated, relative to the largest attribution (or variance):
by rounding at most.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gpattr.paper import demonstrations
from gpattr.paper.drawing import canvas, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.plots.style import BLUE, GREY

TITLE = "Section 2.2: the seven axioms"
FLOOR = 1e-18  # the end of the logarithmic axis


def run(setting: Setting) -> Outcome:
    """Demonstrate every axiom."""
    setting.progress("seven axioms on Gaussian processes")
    numbers = {
        **demonstrations.sensitivity(),
        **demonstrations.dummy(),
        **demonstrations.implementation_invariance(),
        **demonstrations.linearity(),
        **demonstrations.completeness(),
        **demonstrations.symmetry(),
        **demonstrations.positivity(),
    }
    return Outcome(draw(numbers), numbers)


def draw(numbers: dict[str, float]) -> Figure:
    """Draw how far each axiom is violated."""
    violations = {name: value for name, value in numbers.items() if "smallest" not in name}
    violations["7 non-decreasing positivity"] = max(
        0.0, -numbers["7 non-decreasing positivity: smallest attribution"]
    )
    figure = canvas(8.5, 3.7)
    axes = figure.subplots()
    places = np.arange(len(violations))[::-1]
    for place, value in zip(places, violations.values(), strict=True):
        axes.plot([FLOOR, max(value, FLOOR)], [place, place], color=BLUE, lw=2)
        axes.plot(max(value, FLOOR), place, "o", color=BLUE)
        axes.annotate(
            f"{value:.0e}" if value else "exactly 0",
            (1.0, place),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.set_xlim(FLOOR / 2, 1e-6)
    axes.axvline(np.finfo(float).eps, color=GREY, ls=":", lw=1)
    axes.set_yticks(places, list(violations))
    tidy(
        axes,
        "violation of each axiom (dotted: one rounding error)",
        "relative to the largest attribution, or variance",
    )
    return figure
