"""Cells and contours of surfaces over two features, in colours that suit what they show."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from gpattr._core.array import Array
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.feature_axis import HATCH, spans_outside
from gpattr.plots.style import DIVERGING, SEQUENTIAL

DOUBT = LinearSegmentedColormap.from_list("gpattr_doubt", ["#ffffff", "#d0d0d0", "#8f8f8f"])
LEVELS = 10  # of contours, about
SMOOTH = 5  # values of both features from which on contours are drawn


class Colors(NamedTuple):
    """Colours of numbers from ``low`` to ``high``."""

    low: float
    high: float
    cmap: Colormap | str


def value_colors(values: Array, signed: bool) -> Colors:
    """Return the colours of values: from the least to the largest, or around zero."""
    if signed:
        limit = float(np.abs(values).max()) or 1.0
        return Colors(-limit, limit, DIVERGING)
    return Colors(*_ends(values), SEQUENTIAL)


def doubt_colors(std: Array) -> Colors:
    """Return the colours of standard deviations: white for the least, grey for the largest."""
    return Colors(*_ends(std), DOUBT)


def draw_surface(
    ax: Axes, across: FeatureGrid, upward: FeatureGrid, values: Array, colors: Colors
) -> Any:
    """Draw values (G, H) as filled contours, or as cells where they are few or categories."""
    smooth = all(axis.kind != CATEGORY and len(axis) >= SMOOTH for axis in (across, upward))
    if not smooth or np.ptp(values) <= 1e-12 * np.abs(values).max():
        return draw_cells(ax, across, upward, values, colors)
    steps = MaxNLocator(LEVELS, steps=[1, 2, 2.5, 5, 10]).tick_values(colors.low, colors.high)
    place = (across.numbers, upward.numbers, values.T)
    scale = Normalize(steps[0], steps[-1])
    filled = ax.contourf(*place, levels=steps, cmap=colors.cmap, norm=scale)
    filled.set_edgecolor("face")  # no seams in files of vectors
    ax.contour(*place, levels=steps, colors="white", linewidths=0.5, alpha=0.7)
    return filled


def draw_cells(
    ax: Axes, across: FeatureGrid, upward: FeatureGrid, values: Array, colors: Colors
) -> Any:
    """Draw values (G, H) as one rectangle each."""
    edges = _edges(across.numbers), _edges(upward.numbers)
    scale = Normalize(colors.low, colors.high)
    drawn = ax.pcolormesh(*edges, values.T, cmap=colors.cmap, norm=scale)
    if across.kind == CATEGORY:
        ax.vlines(edges[0][1:-1], edges[1][0], edges[1][-1], colors="white", lw=0.8)
    if upward.kind == CATEGORY:
        ax.hlines(edges[1][1:-1], edges[0][0], edges[0][-1], colors="white", lw=0.8)
    ax.set_xlim(edges[0][0], edges[0][-1])
    # Categories are read from the top.
    ax.set_ylim(*edges[1][[-1, 0] if upward.kind == CATEGORY else [0, -1]])
    return drawn


def hatch_outside(ax: Axes, across: FeatureGrid, upward: FeatureGrid) -> None:
    """Hatch what lies outside the data of either feature."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    boxes = [(a, bottom, b - a, top - bottom) for a, b in spans_outside(across, (left, right))]
    boxes += [(left, a, right - left, b - a) for a, b in spans_outside(upward, (bottom, top))]
    look: dict[str, Any] = {"facecolor": (1, 1, 1, 0.4), "edgecolor": "0.45", "hatch": HATCH}
    for x, y, width, height in boxes:
        ax.add_patch(Rectangle((x, y), width, height, lw=0, **look))


def _ends(values: Array) -> tuple[float, float]:
    """Return the least and the largest value, or ends around them where all are the same."""
    low, high = float(values.min()), float(values.max())
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    around = 0.5 * abs(high) or 0.5
    return low - around, high + around


def _edges(numbers: Array) -> Array:
    """Return the edges of cells (G + 1,) around numbers."""
    if len(numbers) == 1:
        half = 0.5 * max(1.0, 0.1 * abs(numbers[0]))
        return np.array([numbers[0] - half, numbers[0] + half])
    middles = 0.5 * (numbers[1:] + numbers[:-1])
    ends = 1.5 * numbers[[0, -1]] - 0.5 * numbers[[1, -2]]
    return np.concatenate([ends[:1], middles, ends[1:]])
