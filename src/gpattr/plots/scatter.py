"""How the attribution of a feature depends on its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from gpattr.exceptions import InvalidInputError
from gpattr.plots.style import BLUE, INK, SEQUENTIAL, axes_for, color_scale, one_feature, some_rows, tidy

if TYPE_CHECKING:
    from gpattr.explanation import Explanation


def scatter(
    explanation: Explanation,
    feature: str | int,
    *,
    color: str | int | None = None,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the attribution of ``feature`` against its value, one point a row, with credible intervals.

    ``color`` is a second feature, whose values colour the points: vertical spread that goes with the colour is an interaction.
    """
    ex = some_rows(explanation)
    shown = ex[:, [one_feature(ex, "feature", feature)]]
    second = None if color is None else ex[:, [one_feature(ex, "color", color)]]
    (name,), x, y = shown.feature_names, shown.data[:, 0], shown.values[:, 0]
    if np.isnan(x).any() and name not in ex.labels:
        raise InvalidInputError(f"feature: {name!r} is a group, which has no numbers to draw against")
    if second is not None and np.isnan(second.data).any():
        raise InvalidInputError(f"color: {color!r} is a group or has categories, which are no numbers to colour by")
    ax = axes_for(ax, 6.5, 4.2)
    if name in ex.labels:
        categories, places = np.unique(ex.labels[name], return_inverse=True)
        ax.set_xticks(np.arange(len(categories)), categories.tolist())
        x = places + np.random.default_rng(0).uniform(-0.25, 0.25, len(ex))  # beside each other, to be told apart
    if ex.var is not None:
        low, high = (end[:, 0] for end in shown.interval(level))
        ax.vlines(x, low, high, color="0.75", lw=0.9, zorder=1)
    options = {"s": 22, "zorder": 2, "lw": 0.4, "edgecolors": "white"}
    if second is None:
        ax.scatter(x, y, color=BLUE, **options)
    else:
        points = ax.scatter(x, y, c=second.data[:, 0], cmap=SEQUENTIAL, **options)
        color_scale(ax, points, second.feature_names[0])
    ax.axhline(0.0, color=INK, lw=0.8, zorder=0)
    interval = "" if ex.var is None else f"\nwith {level:.0%} intervals"
    return tidy(ax, f"{len(ex)} rows", name, f"attribution of {name}{interval}")
