"""Attributions of all rows: one point each, hollow where its sign is not sure."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_rgba

from gpattr._core.array import Array
from gpattr.explanation.explanation import Explanation
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
    uncertain,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, comma, count_of, names_of

MOST_ROWS = 5000  # more points would cover each other
BINS, SIZE = 60, 16.0  # of few rows; points of many rows are smaller
NO_VALUE = (0.45, 0.45, 0.45, 1.0)


def beeswarm(
    explanation: Explanation, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw a point for each row and feature: its attribution, coloured by the feature's value.

    Points are hollow and grey where the model is less than ``level`` sure of the sign. Of many rows
    5,000 are drawn, a random sample that is always the same.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.beeswarm(explainer(X))
    """
    ex = some_rows(explanation)
    shown = leading(sampled(ex, MOST_ROWS), np.abs(ex.values).mean(axis=0), max_display)
    n, d = shown.shape
    days = {
        name: found for name, texts in shown.labels.items() if (found := days_of(texts)) is not None
    }
    coloured = [name for name in shown.feature_names if name in shown.labels and name not in days]
    categorical = {name: category_colors(shown.labels[name]) for name in coloured}
    ax = axes_for(ax, 7.5, 1.7 + 0.45 * d + 0.17 * len(categorical))
    colors = [
        categorical[name][0] if name in categorical else _by_value(days.get(name, shown.data[:, i]))
        for i, name in enumerate(shown.feature_names)
    ]
    _points(ax, shown, colors, sure_of_sign(shown, level))
    if len(categorical) < d:
        _value_scale(ax, d)
    tidy(
        ax,
        f"Attributions of {count_of(n, len(ex))}",
        comma(f"attribution to the {ex.quantity}", uncertainty_words(ex, "")),
        subtitle=baseline_of(ex),
    )
    if uncertain(ex):
        hollow_legend(ax, level)
    if categorical:
        legend(ax, *category_marks({name: meaning for name, (_, meaning) in categorical.items()}))
    return ax


def _points(ax: Axes, ex: Explanation, colors: list[Array], sure: Array) -> None:
    """Draw the points of each feature on a line of its own, hollow where the sign is not sure."""
    n, d = ex.shape
    span = float(np.ptp(ex.values)) or 1.0
    size = float(np.clip(SIZE * (300 / n) ** 0.6, 3.0, SIZE))
    bins = int(BINS * (SIZE / size) ** 0.5)
    for i, rgba in enumerate(colors):
        look: dict[str, Any] = {
            "s": size,
            "facecolors": np.where(sure[:, i, None], rgba, to_rgba("white")),
            "edgecolors": np.where(sure[:, i, None], rgba, to_rgba(UNSURE)),
            "lw": 0.12 * size**0.5 + 0.2,
        }
        places = d - 1 - i + _spread(ex.values[:, i], span, bins)
        ax.scatter(ex.values[:, i], places, rasterized=n > 500, **look)
    ax.axvline(0.0, color=INK, lw=0.8, zorder=0)
    ax.set_yticks(np.arange(d)[::-1], names_of(ex))
    ax.set_ylim(-0.6, d - 0.4)


def _value_scale(ax: Axes, d: int) -> None:
    """Add the colour bar of the features' values."""
    scale = color_scale(ax, ScalarMappable(cmap=SEQUENTIAL), "value of the feature", ticks=[0, 1])
    scale.ax.set_yticklabels(["low", "high"], fontsize=9)
    # between "low" and "high", where there is room
    scale.ax.yaxis.labelpad = -12 if d > 4 else 2


def _by_value(values: Array) -> Array:
    """Return the colour of each value by its place among the others, (n, 4).

    It is grey where they do not differ or there are none.
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
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    step[order] = np.arange(len(values)) - starts  # 0, 1, … within a bin
    heights = np.where(step % 2, 1, -1) * ((step + 1) // 2)
    largest = np.abs(heights).max(initial=0)
    return heights * min(0.09, 0.4 / largest if largest else 0.0)
