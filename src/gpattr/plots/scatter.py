"""Attributions of a feature against its values."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba

from gpattr._core.array import Array
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.explanation import Explanation
from gpattr.plots.categories import category_colors, category_marks
from gpattr.plots.dates import date_axis, days_of
from gpattr.plots.legends import hollow_legend, legend
from gpattr.plots.style import (
    BLUE,
    INK,
    SEQUENTIAL,
    axes_for,
    color_scale,
    one_feature,
    sampled,
    some_rows,
    sure_of_sign,
    tidy,
    uncertain,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, comma, count_of, share, short

MOST_ROWS = 3000  # intervals of more would cover everything
SIZE = 24.0


def scatter(
    explanation: Explanation,
    feature: str | int,
    *,
    color: str | int | None = None,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the attribution of ``feature`` against its value, one point a row, with intervals.

    Points are hollow where the model is less than ``level`` sure of the sign. ``color`` is a second
    feature, whose values or categories colour the points: vertical spread that goes with the colour
    is an interaction. Of many rows 3,000 are drawn, a random sample that is always the same.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.scatter(explainer(X), "x1", color="x0")
    """
    whole = some_rows(explanation)
    index = one_feature(whole, "feature", feature)
    second = None if color is None else one_feature(whole, "color", color)
    ex = sampled(whole, MOST_ROWS)
    shown = ex[:, [index]]
    name = shown.feature_names[0]
    if np.isnan(shown.data).any() and name not in ex.labels:
        raise InvalidInputError(
            f"feature: {name!r} is a group, which has no numbers to draw against"
        )
    ax = axes_for(ax, 7.0, 4.8)
    days = days_of(ex.labels.get(name, ()))
    x = shown.data[:, 0] if days is None else days
    if days is None and name in ex.labels:
        x = _beside_each_other(ax, ex.labels[name])
    _points(ax, shown, x, _colored(ax, ex, second), level)
    interval = uncertainty_words(ex, f"with {share(level)} intervals")
    tidy(
        ax,
        comma(f"Attributions of {count_of(len(ex), len(whole))}", interval),
        short(name, 60),
        f"attribution of {short(name)} to the {ex.quantity}",
        subtitle=baseline_of(ex),
    )
    if days is not None:
        date_axis(ax)
    if uncertain(ex):
        hollow_legend(ax, level)
    other = "" if second is None else ex.feature_names[second]
    if other in ex.labels and days_of(ex.labels[other]) is None:
        legend(ax, *category_marks({other: category_colors(ex.labels[other])[1]}))
    return ax


def _points(ax: Axes, ex: Explanation, x: Array, rgba: Array, level: float) -> None:
    """Draw the points of one feature with their intervals."""
    n = len(ex)
    if uncertain(ex):
        low, high = (end[:, 0] for end in ex.interval(level))
        # Together they stay lighter than the points.
        opacity = float(np.clip(0.3 * (300 / n) ** 0.86, 0.03, 0.55))
        width = 1.1 if n < 300 else 0.8
        line = to_rgba(INK, opacity)
        ax.vlines(x, low, high, color=line, lw=width, zorder=1, rasterized=n > 500)
    ax.scatter(
        x,
        ex.values[:, 0],
        s=float(np.clip(SIZE * (150 / n) ** 0.5, 5.0, SIZE)),
        facecolors=np.where(sure_of_sign(ex, level), rgba, to_rgba("white")),
        edgecolors=rgba,
        lw=0.8 if n < 300 else 0.5,
        zorder=2,
        rasterized=n > 500,
    )
    ax.axhline(0.0, color=INK, lw=0.8, zorder=0)


def _beside_each_other(ax: Axes, labels: tuple[str, ...]) -> Array:
    """Return the places of categories' points, and name the categories at the axis."""
    categories, places = np.unique(labels, return_inverse=True)
    names = [short(category, 20) for category in categories.tolist()]
    aslant = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        if sum(map(len, names)) > 50
        else {}
    )
    ax.set_xticks(np.arange(len(names)), names, **aslant)
    return places + np.random.default_rng(0).uniform(-0.25, 0.25, len(labels))


def _colored(ax: Axes, ex: Explanation, second: int | None) -> Array:
    """Return the colour of each row, (n, 4), by the second feature, and draw its colour bar."""
    if second is None:
        return np.tile(to_rgba(BLUE), (len(ex), 1))
    name, values = ex.feature_names[second], ex.data[:, second]
    days = days_of(ex.labels.get(name, ()))
    if days is None and name in ex.labels:
        return category_colors(ex.labels[name])[0]
    values = values if days is None else days
    if np.isnan(values).any():
        raise InvalidInputError(f"color: {name!r} is a group, which has no numbers to colour by")
    norm = (
        Normalize(*np.quantile(values, [0.02, 0.98]))
        if len(ex) > 50
        else Normalize(values.min(), values.max())
    )
    extend = (
        "both"
        if values.min() < (norm.vmin or 0.0) or values.max() > (norm.vmax or 0.0)
        else "neither"
    )
    scale = color_scale(ax, ScalarMappable(norm, SEQUENTIAL), short(name), extend=extend)
    if days is not None:
        scale.ax.yaxis.set_major_formatter(lambda day, _: str(np.datetime64(round(day), "D")))
    return mpl.colormaps[SEQUENTIAL](norm(values))
