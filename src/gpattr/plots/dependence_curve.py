"""Curves with bands, dashed outside the data, and points with intervals where there is no curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from gpattr._core.array import Array
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.feature_axis import known_range

MARKED = 12  # values of a grid that have a point each
SIDEWAYS = 0.5  # of the distance of two categories, across which several points of one are spread
DASHES = (0, (4, 2))

Ends = tuple[Array, Array]


def connected(axis: FeatureGrid) -> bool:
    """Return whether values are joined by a curve: categories and a single value are not."""
    return axis.kind != CATEGORY and len(axis) > 1


def draw_values(
    ax: Axes,
    axis: FeatureGrid,
    values: Array,
    ends: Ends | None,
    color: str,
    *,
    shift: float = 0.0,
    width: float = 1.8,
    dashed: bool = False,
) -> None:
    """Draw values (G,) with their interval, joined or, for categories, ``shift`` to the side.

    The line is dashed outside the data, or everywhere.
    """
    if not connected(axis):
        _points(ax, axis, values, ends, color, shift)
        return
    x = axis.numbers
    _line(ax, axis, values, color, width, dashed)
    if len(axis) <= MARKED:
        face = np.where(axis.outside[:, None], to_rgba("white"), to_rgba(color))
        ax.scatter(x, values, s=18, facecolors=face, edgecolors=color, lw=1.0, zorder=3)
    if ends is not None:
        ax.fill_between(x, *ends, color=color, alpha=0.18, lw=0, zorder=1)


def draw_many(ax: Axes, axis: FeatureGrid, curves: Array, color: str, opacity: float) -> None:
    """Draw thin lines (n, G) behind others; of categories and single values, small dots."""
    n = len(curves)
    if connected(axis):
        lines = [np.column_stack([axis.numbers, curve]) for curve in curves]
        look: dict[str, Any] = {"colors": color, "alpha": opacity, "lw": 0.7, "zorder": 1.5}
        ax.add_collection(LineCollection(lines, rasterized=n > 200, **look))
        ax.autoscale_view()
        return
    aside = np.random.default_rng(0).uniform(-0.5, 0.5, n) * SIDEWAYS * (axis.kind == CATEGORY)
    x = axis.numbers + aside[:, None]
    look = {"s": 5, "color": color, "alpha": min(1.0, 1.5 * opacity), "lw": 0, "zorder": 1.5}
    ax.scatter(x.ravel(), curves.ravel(), rasterized=n > 200, **look)


def _line(
    ax: Axes, axis: FeatureGrid, values: Array, color: str, width: float, dashed: bool
) -> None:
    look: dict[str, Any] = {"color": color, "lw": width, "zorder": 2.5}
    x = axis.numbers
    if dashed or not axis.outside.any():
        ax.plot(x, values, ls=DASHES if dashed else "-", **look)
        return
    low, high = known_range(axis)
    at = np.union1d(x, [end for end in (low, high) if x[0] < end < x[-1]])
    y = np.interp(at, x, values)
    inside = (at >= low) & (at <= high)
    for part, style in ((inside, "-"), (at <= low, DASHES), (at >= high, DASHES)):
        if part.sum() > 1:
            ax.plot(at[part], y[part], ls=style, **look)


def _points(
    ax: Axes, axis: FeatureGrid, values: Array, ends: Ends | None, color: str, shift: float
) -> None:
    x = axis.numbers + shift
    if ends is not None:
        # A mean may lie outside a narrow interval.
        spread = np.maximum([values - ends[0], ends[1] - values], 0.0)
        ax.errorbar(x, values, yerr=spread, fmt="none", ecolor=color, capsize=3, lw=1.3, zorder=2)
    face = np.where(axis.outside[:, None], to_rgba("white"), to_rgba(color))
    ax.scatter(x, values, s=34, facecolors=face, edgecolors=color, lw=1.3, zorder=3)
