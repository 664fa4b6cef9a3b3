"""Surfaces of the dependence on two features: contours and cells in colour, or a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable_all
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.dependence_words import rows_words, title_words, uncertain, value_words
from gpattr.plots.feature_axis import (
    HATCH,
    data_numbers,
    name_values,
    outside_mark,
    spans_outside,
)
from gpattr.plots.legends import legend_across, mark
from gpattr.plots.style import DIVERGING, INK, SEQUENTIAL, axes_for, color_scale, room, tidy
from gpattr.plots.words import comma, short

DOUBT = LinearSegmentedColormap.from_list("gpattr_doubt", ["#ffffff", "#d0d0d0", "#8f8f8f"])
LEVELS = 10  # of contours, about
SMOOTH = 5  # values of both features from which on contours are drawn
MOST_DOTS = 1000
TWO_LINES = 0.36  # inches that a cell is high in which a number has two lines

Colors = tuple[Normalize, Any]  # a scale and its colours


def dependence_surface(dependence: Dependence, ax: Axes | None) -> Axes:
    """Draw the surface and, on the other half of the axes, its standard deviation."""
    std = dependence.std if uncertain(dependence) else None
    ax = axes_for(ax, 6.4 if std is None else 10.4, 4.8)
    x, y = map(short, dependence.features)
    other, wide = (ax, True) if std is None else _divided(ax)
    values, words = dependence.values, value_words(dependence)
    _draw(ax, dependence, values, _value_colors(dependence), words)
    if std is not None:
        _draw(other, dependence, std, (Normalize(*_ends(std)), DOUBT), "standard deviation")
    tidy(ax, title_words(dependence), x if wide else "", y, subtitle=rows_words(dependence))
    if std is not None:
        tidy(other, "Standard deviation", x, "" if wide else y)
        other.tick_params(labelleft=not wide)
    _legend(ax if wide else other, dependence, [mark("rows of the data", INK, "white")])
    return ax


def dependence_matrix(dependence: Dependence, ax: Axes | None) -> Axes:
    """Draw the values of two features with categories in colour and as numbers."""
    across, upward = dependence.axes
    width, height = 3.0 + 0.75 * len(across), 2.2 + 0.5 * len(upward)
    ax = axes_for(ax, max(width, 6.0), max(height, 3.6))
    values, std = dependence.values, dependence.std if uncertain(dependence) else None
    colors = _draw_cells(ax, across, upward, values, _value_colors(dependence))
    color_scale(ax, colors, value_words(dependence), aspect=30)
    _numbers(ax, dependence, std, colors.to_rgba(values))
    _hatch_outside(ax, across, upward)
    name_values(ax, across)
    name_values(ax, upward, upward=True)
    what = comma(rows_words(dependence), "" if std is None else "± one standard deviation")
    tidy(ax, title_words(dependence), *map(short, dependence.features), subtitle=what)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    _legend(ax, dependence, [])
    return ax


def _legend(ax: Axes, dependence: Dependence, handles: list[Artist]) -> None:
    outside = any(axis.outside.any() for axis in dependence.axes)
    legend_across(ax, [*handles, outside_mark()] if outside else handles)


def _divided(ax: Axes) -> tuple[Axes, bool]:
    """Return new axes in half of the place that axes had, and whether they are to the right.

    Else they are below. The axes that are given keep the other half.
    """
    figure: Any = ax.figure
    width, height = room(ax)
    wide = width >= 1.4 * height
    spec = ax.get_subplotspec()
    if spec is not None:
        halves = spec.subgridspec(1, 2) if wide else spec.subgridspec(2, 1)
        ax.set_subplotspec(halves[0])
        return figure.add_subplot(halves[1], sharex=ax, sharey=ax), wide
    place = ax.get_position()
    left, bottom, width, height = place.x0, place.y0, place.width, place.height
    # Between them is room for names and a colour bar.
    if wide:
        first = (left, bottom, 0.42 * width, height)
        rest = (left + 0.58 * width, bottom, 0.42 * width, height)
    else:
        first = (left, bottom + 0.6 * height, width, 0.4 * height)
        rest = (left, bottom, width, 0.4 * height)
    ax.set_axes_locator(None)  # pyright: ignore[reportArgumentType]
    ax.set_position(first)
    return figure.add_axes(rest, sharex=ax, sharey=ax), wide


def _draw(ax: Axes, dependence: Dependence, values: Array, colors: Colors, name: str) -> None:
    """Draw values (G, H) as filled contours, or as cells where they are few or categories."""
    across, upward = dependence.axes
    smooth = all(axis.kind != CATEGORY and len(axis) >= SMOOTH for axis in dependence.axes)
    if smooth and np.ptp(values) > 1e-12 * np.abs(values).max():
        drawn = _draw_contours(ax, across, upward, values, colors)
    else:
        drawn = _draw_cells(ax, across, upward, values, colors)
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    _hatch_outside(ax, across, upward)
    _dots(ax, across, upward)
    color_scale(ax, drawn, name, aspect=30)
    name_values(ax, across)
    name_values(ax, upward, upward=True)


def _draw_contours(
    ax: Axes, across: FeatureGrid, upward: FeatureGrid, values: Array, colors: Colors
) -> Any:
    (scale, cmap), place = colors, (across.numbers, upward.numbers, values.T)
    locator = MaxNLocator(LEVELS, steps=[1, 2, 2.5, 5, 10])
    steps = locator.tick_values(scale.vmin, scale.vmax)  # pyright: ignore[reportArgumentType]
    filled = ax.contourf(*place, levels=steps, cmap=cmap, norm=Normalize(steps[0], steps[-1]))
    filled.set_edgecolor("face")  # no seams in files of vectors
    ax.contour(*place, levels=steps, colors="white", linewidths=0.5, alpha=0.7)
    return filled


def _draw_cells(
    ax: Axes, across: FeatureGrid, upward: FeatureGrid, values: Array, colors: Colors
) -> Any:
    """Draw values (G, H) as one rectangle each."""
    (scale, cmap), edges = colors, (_edges(across.numbers), _edges(upward.numbers))
    drawn = ax.pcolormesh(*edges, values.T, cmap=cmap, norm=scale)
    if across.kind == CATEGORY:
        ax.vlines(edges[0][1:-1], edges[1][0], edges[1][-1], colors="white", lw=0.8)
    if upward.kind == CATEGORY:
        ax.hlines(edges[1][1:-1], edges[0][0], edges[0][-1], colors="white", lw=0.8)
    ax.set_xlim(edges[0][0], edges[0][-1])
    # Categories are read from the top.
    ax.set_ylim(*edges[1][[-1, 0] if upward.kind == CATEGORY else [0, -1]])
    return drawn


def _value_colors(dependence: Dependence) -> Colors:
    """Return the colours of values: from the least to the largest, or around zero."""
    if dependence.centred:
        limit = float(np.abs(dependence.values).max()) or 1.0
        return Normalize(-limit, limit), DIVERGING
    return Normalize(*_ends(dependence.values)), SEQUENTIAL


def _hatch_outside(ax: Axes, across: FeatureGrid, upward: FeatureGrid) -> None:
    """Hatch the area outside the data of either feature."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    boxes = [(a, bottom, b - a, top - bottom) for a, b in spans_outside(across, (left, right))]
    boxes += [(left, a, right - left, b - a) for a, b in spans_outside(upward, (bottom, top))]
    look: dict[str, Any] = {"facecolor": (1, 1, 1, 0.4), "edgecolor": "0.45", "hatch": HATCH}
    for x, y, width, height in boxes:
        ax.add_patch(Rectangle((x, y), width, height, lw=0, **look))


def _dots(ax: Axes, across: FeatureGrid, upward: FeatureGrid) -> None:
    """Draw the data as dots; dots of categories are spread over their cells."""
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(across.data))[:MOST_DOTS])
    x, y = (
        data_numbers(axis)[chosen]
        + (rng.uniform(-0.3, 0.3, len(chosen)) if axis.kind == CATEGORY else 0.0)
        for axis in (across, upward)
    )
    (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    shown = (x >= left) & (x <= right) & (y >= bottom) & (y <= top)
    size = float(np.clip(14 * (50 / len(chosen)) ** 0.4, 4, 14))
    look: dict[str, Any] = {"edgecolors": "white", "lw": 0.35, "rasterized": len(chosen) > 500}
    ax.scatter(x[shown], y[shown], s=size, color=INK, zorder=3, clip_on=False, **look)


def _numbers(ax: Axes, dependence: Dependence, std: Array | None, rgba: Array) -> None:
    """Write the values into their cells, which may be low."""
    across, upward = dependence.axes
    low = room(ax)[1] / len(upward) < TWO_LINES
    places = list(np.ndindex(*dependence.values.shape))
    for (i, j), (value, spread) in zip(places, _written(dependence.values, std), strict=True):
        outside = bool(across.outside[i] or upward.outside[j])
        # White on dark cells, as seen by the eye: green counts most.
        dark = float(np.dot(rgba[i, j][:3], (0.3, 0.59, 0.11))) < 0.45 and not outside
        look: dict[str, Any] = {"ha": "center", "va": "center", "linespacing": 1.25}
        if outside:  # readable on the hatching
            look["bbox"] = {"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1.0}
        text = f"{value}{' ' if low else chr(10)}{spread}" if spread else value
        size = 7 if low else 8
        ax.text(i, j, text, fontsize=size, color="white" if dark else "black", zorder=4, **look)


def _written(values: Array, std: Array | None) -> list[tuple[str, str]]:
    """Return each value, and its standard deviation if there is one, as text."""
    top, digits = float(np.abs(values).max()), 3
    spreads = [""] * values.size
    if std is not None:
        small = float(np.median(std))
        if small > 0 and top > 0:
            digits = int(np.clip(np.floor(np.log10(top)) - np.floor(np.log10(small)) + 2, 2, 5))
        spreads = [f"±{text}" for text in readable_all(std.ravel(), digits, largest=top)]
    texts = readable_all(values.ravel(), digits, minus=True, largest=top)
    return list(zip(texts, spreads, strict=True))


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
