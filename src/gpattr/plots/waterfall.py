"""From the baseline's prediction to the row's, feature by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from gpattr.plots.style import BLUE, INK, ORANGE, axes_for, leading, named, number, one_row, percent, row_title, tidy

if TYPE_CHECKING:
    from gpattr.explanation import Explanation


def waterfall(
    explanation: Explanation, row: int | None = None, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw one row as steps from F(b), at the bottom, to F(x), at the top.

    Each step has the credible interval of its attribution around its end, and beside it how sure the model is of its sign.
    """
    ex = one_row(explanation, row)
    ex = leading(ex, np.abs(ex.values[0]), max_display)
    values, places = ex.values[0], np.arange(len(ex.feature_names))[::-1]
    start, end = float(ex.base_values[0]), float(ex.predictions[0])
    stops = start + np.cumsum(values[::-1])[::-1]  # the smallest step is the first
    starts = stops - values
    ax = axes_for(ax, 7.5, 1.2 + 0.42 * len(values))
    ax.barh(places, values, left=starts, height=0.62, color=np.where(values < 0, BLUE, ORANGE), alpha=0.85)
    for stop, place in zip(stops[1:], places[1:], strict=True):
        ax.plot([stop, stop], [place - 0.31, place + 1.31], color=INK, lw=0.7, ls=":")
    right = np.maximum(starts, stops)
    if ex.var is not None:
        low, high = (end[0] for end in ex.interval(level))
        ax.errorbar(stops, places, xerr=np.maximum([values - low, high - values], 0.0), fmt="none", ecolor=INK, capsize=3, lw=1.2)
        right = np.fmax(right, stops + high - values)
        positive = ex.prob_positive()[0]
        known = (values != 0) | (ex.var[0] > 0)  # a feature at its baseline is no reason, for sure
        sure = [percent(max(share, 1.0 - share)) if some else "–" for share, some in zip(positive, known, strict=True)]
        side = ax.secondary_yaxis("right")
        side.set_yticks(places, sure, fontsize=9)
        side.tick_params(length=0)
        side.spines["right"].set_visible(False)
        ax.text(1.01, 1.01, "sure of the sign", transform=ax.transAxes, fontsize=9, ha="left", va="bottom", color=INK)
    write = number(values)
    for place, value, at in zip(places, values, right, strict=True):
        ax.annotate(write(value), (at, place), (5, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(places, named(ex))
    for value in (start, end):
        ax.axvline(value, color="0.6", lw=0.8, zorder=0)
    ax.set_ylim(-0.6, len(values) - 0.4)
    low_end, high_end = ax.get_xlim()
    ax.set_xlim(low_end, high_end + 0.1 * (high_end - low_end))  # room for the numbers
    interval = f", with {level:.0%} intervals" if ex.var is not None else ""
    name = ex.quantity.split(" of ")[0]
    title = f"{row_title(ex)}: {name} {end:.4g}, at the baseline {start:.4g}"
    return tidy(ax, title, f"{ex.quantity}{interval}")
