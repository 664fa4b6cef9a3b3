"""Figure 2: attributions of the predicted disease-free time of breast cancer patients.

The 151 patients without recurrence; the first is left out of training. The baseline is the average
patient.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpattr.datasets import load_breast_cancer_prognostic
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.explanation import Explanation
from gpattr.paper.drawing import canvas, stacked, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.models import normalised, std_of, train
from gpattr.plots.style import BLUE, ORANGE

TITLE = "Figure 2: breast cancer prognosis"
SHOWN, FOLLOWED = 6, 50  # patients in the upper and in the lower panels


def run(setting: Setting) -> Outcome:
    """Train on 150 patients and explain the first 50."""
    X, y = patients(setting)
    setting.progress("training on 150 patients")
    model = train(X.iloc[1:], y.iloc[1:], restarts=1 if setting.reduced else 9)
    setting.progress(f"explaining {FOLLOWED} patients")
    ex = Explainer(model, "zeros")(X.iloc[:FOLLOWED])
    return Outcome(draw(ex), measure(ex))


def patients(setting: Setting) -> tuple[pd.DataFrame, pd.Series]:
    """Return the normalised features and the times of the patients without recurrence."""
    data = load_breast_cancer_prognostic(data_home=setting.data_home)
    free = data.frame["outcome"] == "N"
    return normalised(data.data[free]), data.target[free]


def strongest(ex: Explanation) -> np.ndarray:
    """Return the features by decreasing mean |attribution|."""
    return np.argsort(-np.abs(ex.values).mean(axis=0))


def measure(ex: Explanation) -> dict[str, float]:
    """Return the numbers behind the figure."""
    order = strongest(ex)
    sizes = np.abs(ex.values).mean(axis=0)[order]
    top = order[:2]
    return {
        "patients": float(len(ex)),
        "predicted time of the average patient (months)": float(ex.base_values[0]),
        "features that carry 95 % of all attributions": float(
            np.searchsorted(np.cumsum(sizes) / sizes.sum(), 0.95) + 1
        ),
        "correlation of |mean| and sd, smaller of the two features": min(
            float(np.corrcoef(np.abs(ex.values[:, i]), std_of(ex)[:, i])[0, 1]) for i in top
        ),
        "mean |attribution| of the strongest feature (months)": float(sizes[0]),
        "held-out patient: sum of attributions (months)": float(ex.values[0].sum()),
        "largest completeness gap (months)": float(np.abs(ex.delta).max()),
    }


def draw(ex: Explanation) -> Figure:
    """Draw all attributions of six patients, and two features across fifty."""
    figure = canvas(11.0, 8.6)
    upper, lower = stacked(figure, 1.75, 1.0)
    upper.suptitle(
        f"Attributions ±1 sd, from the average patient ({ex.base_values[0]:.0f} months)",
        fontsize=11,
    )
    panels = upper.subplots(2, 3, sharex=True, sharey=True)
    for row, axes in enumerate(panels.flat):
        draw_patient(axes, ex[row], row)
    significant = (np.abs(ex.values[:SHOWN]) > std_of(ex)[:SHOWN]).sum(axis=0) > SHOWN / 2
    sizable = np.abs(ex.values[:SHOWN]).mean(axis=0) > 1.0
    named = np.flatnonzero(significant & sizable)
    for axes in panels[-1]:
        axes.set_xticks(named, [ex.feature_names[i] for i in named], rotation=90, fontsize=7.5)
    for axes in panels[:, 0]:
        axes.set_ylabel("attribution (months)", fontsize=9)
    for axes, i in zip(lower.subplots(1, 2, sharey=True), strongest(ex)[:2], strict=True):
        places, look = np.arange(1, len(ex) + 1), {"color": BLUE, "ms": 6, "mew": 1.6, "lw": 1.0}
        axes.errorbar(places, ex.values[:, i], yerr=std_of(ex)[:, i], fmt="_", **look)
        axes.axhline(0.0, color="0.2", lw=0.8)
        tidy(
            axes,
            f"{ex.feature_names[i]}: mean ±1 sd across {len(ex)} patients",
            "patient",
            "attribution (months)",
        )
    return figure


def draw_patient(axes: Axes, ex: Explanation, row: int) -> None:
    """Draw the thirty attributions of one patient."""
    places, values, std = np.arange(len(ex.feature_names)), ex.values[0], std_of(ex)[0]
    axes.bar(places, values, color=np.where(values < 0, BLUE, ORANGE), alpha=0.85, width=0.8)
    shown = std > 0.05  # smaller error bars would be invisible
    axes.errorbar(
        places[shown],
        values[shown],
        yerr=std[shown],
        fmt="none",
        ecolor="0.2",
        capsize=2,
        lw=1.0,
    )
    axes.axhline(0.0, color="0.2", lw=0.8)
    held_out = ", held out" if row == 0 else ""
    tidy(axes, f"patient {ex.row_names[0]}{held_out}: {ex.predictions[0]:.0f} months")
