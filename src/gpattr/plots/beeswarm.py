"""Attributions of all rows: one point each, hollow where its sign is not sure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_rgba

from gpattr._core.array import Array
from gpattr.plots.categories import category_colors, category_marks
from gpattr.plots.dates import days_of
from gpattr.plots.legends import hollow_legend, legend
from gpattr.plots.style import (
    INK,
    SEQUENTIAL,
    UNSURE,
    axes_for,
    color_scale,
    leading,
    sampled,
    some_rows,
    sure_of_sign,
    tidy,
)
from gpattr.plots.words import baseline_of, count_of, names_of

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

MOST_ROWS = 5000  # more points would cover each other
BINS, SIZE = 60, 16.0  # of few rows; points of many rows are smaller
NO_VALUE = (0.45, 0.45, 0.45, 1.0)


def beeswarm(
    explanation: Explanation, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw a point for each row and feature: across, the attribution; its colour, the feature's
    value or category.

    Points are hollow and grey where the model is less than ``level`` sure of the sign. Of many rows
    5,000 are drawn, a random sample that is always the same."""
    ex = some_rows(explanation)
    shown = leading(sampled(ex, MOST_ROWS), np.abs(ex.values).mean(axis=0), max_display)
    n, d = shown.shape
    days = {
        name: found for name, texts in shown.labels.items() if (found := days_of(texts)) is not None
    }
    coloured = [name for name in shown.feature_names if name in shown.labels and name not in days]
    categorical = {name: category_colors(shown.labels[name]) for name in coloured}
    ax = axes_for(ax, 7.5, 1.7 + 0.45 * d + 0.17 * len(categorical))
    sure = sure_of_sign(shown, level)
    span = float(np.ptp(shown.values)) or 1.0
    size = float(np.clip(SIZE * (300 / n) ** 0.6, 3.0, SIZE))
    bins = int(BINS * (SIZE / size) ** 0.5)
    for i, name in enumerate(shown.feature_names):
        rgba = (
            categorical[name][0]
            if name in categorical
            else _by_value(days.get(name, shown.data[:, i]))
        )
        edge = np.where(sure[:, i, None], rgba, to_rgba(UNSURE))
        face = np.where(sure[:, i, None], rgba, to_rgba("white"))
        places = d - 1 - i + _spread(shown.values[:, i], span, bins)
        look: dict[str, Any] = {
            "s": size,
            "facecolors": face,
            "edgecolors": edge,
            "lw": 0.12 * size**0.5 + 0.2,
        }
        ax.scatter(shown.values[:, i], places, rasterized=n > 500, **look)
    ax.axvline(0.0, color=INK, lw=0.8, zorder=0)
    ax.set_yticks(np.arange(d)[::-1], names_of(shown))
    ax.set_ylim(-0.6, d - 0.4)
    if len(categorical) < d:
        scale = color_scale(
            ax, ScalarMappable(cmap=SEQUENTIAL), "value of the feature", ticks=[0, 1]
        )
        scale.ax.set_yticklabels(["low", "high"], fontsize=9)
        scale.ax.yaxis.labelpad = (
            -12 if d > 4 else 2
        )  # between "low" and "high", where there is room
    tidy(
        ax,
        f"Attributions of {count_of(n, len(ex))}",
        f"attribution to the {ex.quantity}",
        subtitle=baseline_of(ex),
    )
    if ex.var is not None:
        hollow_legend(ax, level)
    if categorical:
        legend(ax, *category_marks({name: meaning for name, (_, meaning) in categorical.items()}))
    return ax


def _by_value(values: Array) -> Array:
    """Return the colour of each value by its place among the others, (n, 4); grey where they do not
    differ or there are none.
    """
    if np.isnan(values).any() or np.ptp(values) == 0:
        return np.tile(NO_VALUE, (len(values), 1))
    distinct, place = np.unique(values, return_inverse=True)
    return mpl.colormaps[SEQUENTIAL](place / (len(distinct) - 1))


def _spread(values: Array, span: float, bins: int) -> Array:
    """Return heights that keep points of equal place apart, symmetric around 0 and within ±0.4."""
    place = np.round(bins * (values - values.min()) / span).astype(int)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place)
    step = np.empty(len(values), dtype=int)
    step[order] = np.arange(len(values)) - np.repeat(
        np.cumsum(counts) - counts, counts
    )  # 0, 1, … within a bin
    heights = np.where(step % 2, 1, -1) * ((step + 1) // 2)
    largest = np.abs(heights).max(initial=0)
    return heights * min(0.09, 0.4 / largest if largest else 0.0)
