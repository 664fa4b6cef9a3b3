"""Steps from the baseline's prediction to the row's, feature by feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from gpattr.plots.style import BLUE, INK, ORANGE, axes_for, leading, one_row, room, tidy
from gpattr.plots.words import LETTER, baseline_of, named, percent, prediction_title, share, steps

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation


def waterfall(
    explanation: Explanation,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw one row as steps from F(b), at the bottom, to F(x), at the top.

    Each step has the credible interval of its attribution around its end, and beside it how sure
    the model is of its sign."""
    ex = one_row(explanation, row)
    ex = leading(ex, np.abs(ex.values[0]), max_display)
    values, places = ex.values[0], np.arange(len(ex.feature_names))[::-1]
    d = len(values)
    start, end = float(ex.base_values[0]), float(ex.predictions[0])
    stops = start + np.cumsum(values[::-1])[::-1]  # the smallest step is the first
    starts = stops - values
    ax = axes_for(ax, 7.5, 1.5 + 0.42 * d)
    ax.barh(
        places,
        values,
        left=starts,
        height=0.62,
        color=np.where(values < 0, BLUE, ORANGE),
        alpha=0.85,
    )
    for stop, place in zip(stops[1:], places[1:], strict=True):
        ax.plot([stop, stop], [place - 0.31, place + 1.31], color=INK, lw=0.7, ls=":")
    ax.set_yticks(places, named(ex))
    ax.set_ylim(-0.6, d - 0.4)
    right = np.maximum(starts, stops)
    if ex.var is not None:
        low, high = (end[0] for end in ex.interval(level))
        ax.errorbar(
            stops,
            places,
            xerr=np.maximum([values - low, high - values], 0.0),
            fmt="none",
            ecolor=INK,
            capsize=3,
            lw=1.2,
        )
        right = np.fmax(right, stops + high - values)
        positive = ex.prob_positive()[0]
        known = (values != 0) | (ex.var[0] > 0)  # a feature at its baseline is no reason, for sure
        sure = [
            percent(max(p, 1.0 - p)) if some else "–"
            for p, some in zip(positive, known, strict=True)
        ]
        side = ax.secondary_yaxis("right")
        side.set_yticks([d - 0.2, *places], ["sure of sign", *sure], fontsize=9)
        side.tick_params(length=0)
        side.spines["right"].set_visible(False)
        ax.set_ylim(-0.6, d)
    numbers = steps(values)
    for place, number, at in zip(places, numbers, right, strict=True):
        ax.annotate(
            number, (at, place), (5, 0), textcoords="offset points", va="center", fontsize=9
        )
    for value in (start, end):
        ax.axvline(value, color="0.6", lw=0.8, zorder=0)
    _make_room(ax, right, numbers)
    interval = f", with {share(level)} intervals of each step" if ex.var is not None else ""
    return tidy(ax, prediction_title(ex), f"{ex.quantity}{interval}", subtitle=baseline_of(ex))


def _make_room(ax: Axes, right: np.ndarray, numbers: list[str]) -> None:
    """Move the right end of the axes so far that the numbers written at ``right`` do not leave
    them.
    """
    low, high = ax.get_xlim()
    width = max(room(ax)[0] - 1.0, 1.0)
    needed = [
        min((12 / 72 + 9 * LETTER * len(text)) / width, 0.5) for text in numbers
    ]  # shares of the width
    ends = [low + (at - low) / (1.0 - part) for at, part in zip(right, needed, strict=True)]
    ax.set_xlim(low, max(high, *ends))
