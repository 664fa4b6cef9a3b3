"""Steps from the baseline's prediction to the row's, feature by feature."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from gpattr._core.array import Array
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.text import has_baseline
from gpattr.plots.style import (
    BLUE,
    INK,
    ORANGE,
    axes_for,
    error_bars,
    leading,
    one_row,
    room,
    tidy,
    uncertain,
    uncertainty_words,
)
from gpattr.plots.words import (
    LETTER,
    baseline_of,
    comma,
    named,
    percent,
    prediction_title,
    share,
    steps,
)


def waterfall(
    explanation: Explanation,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw one row as steps from F(b), at the bottom, to F(x), at the top.

    Each step has the credible interval of its attribution around its end, and beside it how certain
    the model is of its sign.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ax = gpattr.plots.waterfall(ex, row=1)
    >>> ax.figure.savefig("waterfall.png")
    """
    ex = one_row(explanation, row)
    if not has_baseline(ex):
        raise InvalidInputError(
            "explanation: expected one that compares with a baseline, where the steps start"
        )
    ex = leading(ex, np.abs(ex.values[0]), max_display)
    values, places = ex.values[0], np.arange(len(ex.feature_names))[::-1]
    start, end = float(ex.base_values[0]), float(ex.predictions[0])
    stops = start + np.cumsum(values[::-1])[::-1]  # the smallest step is the first
    starts = stops - values
    ax = axes_for(ax, 7.5, 1.5 + 0.42 * len(values))
    color = np.where(values < 0, BLUE, ORANGE)
    ax.barh(places, values, left=starts, height=0.62, color=color, alpha=0.85)
    for stop, place in zip(stops[1:], places[1:], strict=True):
        ax.plot([stop, stop], [place - 0.31, place + 1.31], color=INK, lw=0.7, ls=":")
    ax.set_yticks(places, named(ex))
    ax.set_ylim(-0.6, len(values) - 0.4)
    right = np.maximum(starts, stops)
    if uncertain(ex):
        right = np.fmax(right, _intervals(ax, ex, stops, places, level))
    numbers = steps(values)
    for place, number, at in zip(places, numbers, right, strict=True):
        ax.annotate(
            number, (at, place), (5, 0), textcoords="offset points", va="center", fontsize=9
        )
    for value in (start, end):
        ax.axvline(value, color="0.6", lw=0.8, zorder=0)
    _make_room(ax, right, numbers)
    interval = uncertainty_words(ex, f"with {share(level)} intervals of each step")
    return tidy(ax, prediction_title(ex), comma(ex.quantity, interval), subtitle=baseline_of(ex))


def _intervals(ax: Axes, ex: Explanation, stops: Array, places: Array, level: float) -> Array:
    """Draw the intervals and how certain the signs are; return the upper ends of the intervals."""
    values, d = ex.values[0], len(places)
    low, high = (end[0] for end in ex.interval(level))
    error_bars(ax, stops, places, stops + low - values, stops + high - values)
    # A feature at its baseline contributes nothing, exactly.
    known = (values != 0) | (ex.distribution.need("var")[0] > 0)
    sure = [
        percent(max(p, 1.0 - p)) if some else "–"
        for p, some in zip(ex.prob_positive()[0], known, strict=True)
    ]
    side = ax.secondary_yaxis("right")
    side.set_yticks([d - 0.2, *places], ["sure of sign", *sure], fontsize=9)
    side.tick_params(length=0)
    side.spines["right"].set_visible(False)
    ax.set_ylim(-0.6, d)
    return stops + high - values


def _make_room(ax: Axes, right: np.ndarray, numbers: list[str]) -> None:
    """Widen the axes so that the numbers written at ``right`` stay inside."""
    low, high = ax.get_xlim()
    width = max(room(ax)[0] - 1.0, 1.0)
    # shares of the width
    needed = [min((12 / 72 + 9 * LETTER * len(text)) / width, 0.5) for text in numbers]
    ends = [low + (at - low) / (1.0 - part) for at, part in zip(right, needed, strict=True)]
    ax.set_xlim(low, max(high, *ends))
