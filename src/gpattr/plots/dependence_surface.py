"""Surface of the dependence on two features, with its standard deviation beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from gpattr._core.array import Array
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.dependence_words import rows_words, title_words, uncertain, value_words
from gpattr.plots.feature_axis import data_numbers, name_values, outside_mark
from gpattr.plots.legends import legend_across, mark
from gpattr.plots.style import INK, axes_for, color_scale, room, tidy
from gpattr.plots.surface_cells import (
    Colors,
    doubt_colors,
    draw_surface,
    hatch_outside,
    value_colors,
)
from gpattr.plots.words import short

MOST_DOTS = 1000


def dependence_surface(dependence: Dependence, ax: Axes | None) -> Axes:
    """Draw the surface and, on the other half of the axes, its standard deviation."""
    std = dependence.std if uncertain(dependence) else None
    ax = axes_for(ax, 6.4 if std is None else 10.4, 4.8)
    values = dependence.values
    x, y = map(short, dependence.features)
    colors, words = value_colors(values, dependence.centred), value_words(dependence)
    title, subtitle = title_words(dependence), rows_words(dependence)
    if std is None:
        _draw(ax, dependence, values, colors, words)
        tidy(ax, title, x, y, subtitle=subtitle)
        _legend(ax, dependence)
        return ax
    other, wide = divided(ax)
    _draw(ax, dependence, values, colors, words)
    _draw(other, dependence, std, doubt_colors(std), "standard deviation")
    tidy(ax, title, x if wide else "", y, subtitle=subtitle)
    tidy(other, "Standard deviation", x, "" if wide else y)
    other.tick_params(labelleft=not wide)
    _legend(ax if wide else other, dependence)
    return ax


def _legend(ax: Axes, dependence: Dependence) -> None:
    handles: list[Artist] = [mark("rows of the data", INK, "white")]
    if any(axis.outside.any() for axis in dependence.axes):
        handles.append(outside_mark())
    legend_across(ax, handles)


def divided(ax: Axes) -> tuple[Axes, bool]:
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
    across, upward = dependence.axes
    drawn = draw_surface(ax, across, upward, values, colors)
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    hatch_outside(ax, across, upward)
    _dots(ax, across, upward)
    color_scale(ax, drawn, name, aspect=30)
    name_values(ax, across)
    name_values(ax, upward, upward=True)


def _dots(ax: Axes, across: FeatureGrid, upward: FeatureGrid) -> None:
    """Draw the data as dots; those of categories are spread over their cells."""
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
