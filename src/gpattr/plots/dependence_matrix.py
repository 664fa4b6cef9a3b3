"""Matrix of the dependence on two features that have categories, with numbers in its cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable_all
from gpattr.explanation.dependence import Dependence
from gpattr.plots.dependence_words import rows_words, title_words, uncertain, value_words
from gpattr.plots.feature_axis import name_values, outside_mark
from gpattr.plots.legends import legend_across
from gpattr.plots.style import axes_for, color_scale, room, tidy
from gpattr.plots.surface_cells import draw_cells, hatch_outside, value_colors
from gpattr.plots.words import comma, short

TWO_LINES = 0.36  # inches that a cell is high in which a number has two lines


def dependence_matrix(dependence: Dependence, ax: Axes | None) -> Axes:
    """Draw the values in colour and as numbers, with standard deviations."""
    across, upward = dependence.axes
    width, height = 3.0 + 0.75 * len(across), 2.2 + 0.5 * len(upward)
    ax = axes_for(ax, max(width, 6.0), max(height, 3.6))
    values = dependence.values
    colors = draw_cells(ax, across, upward, values, value_colors(values, dependence.centred))
    color_scale(ax, colors, value_words(dependence), aspect=30)
    known = uncertain(dependence)
    _numbers(ax, dependence, dependence.std if known else None, colors.to_rgba(values))
    hatch_outside(ax, across, upward)
    name_values(ax, across)
    name_values(ax, upward, upward=True)
    spread = "± one standard deviation" if known else ""
    what = comma(rows_words(dependence), spread)
    x, y = map(short, dependence.features)
    tidy(ax, title_words(dependence), x, y, subtitle=what)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if any(axis.outside.any() for axis in dependence.axes):
        legend_across(ax, [outside_mark()])
    return ax


def _numbers(ax: Axes, dependence: Dependence, std: Array | None, rgba: Array) -> None:
    """Write the values into their cells, which may be low."""
    across, upward = dependence.axes
    low = room(ax)[1] / len(upward) < TWO_LINES
    for (i, j), (value, spread) in _written(dependence.values, std).items():
        outside = bool(across.outside[i] or upward.outside[j])
        # White on dark cells, as seen by the eye: green counts most.
        dark = float(np.dot(rgba[i, j][:3], (0.3, 0.59, 0.11))) < 0.45 and not outside
        look: dict[str, Any] = {"ha": "center", "va": "center", "linespacing": 1.25}
        if outside:  # readable on the hatching
            look["bbox"] = {"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1.0}
        text = f"{value}{' ' if low else chr(10)}{spread}" if spread else value
        size = 7 if low else 8
        ax.text(i, j, text, fontsize=size, color="white" if dark else "black", zorder=4, **look)


def _written(values: Array, std: Array | None) -> dict[tuple[int, int], tuple[str, str]]:
    """Return each value, and its standard deviation if there is one, as text, by its place."""
    places = list(np.ndindex(*values.shape))
    top = float(np.abs(values).max())
    digits = 3
    spreads = [""] * len(places)
    if std is not None:
        small = float(np.median(std))
        if small > 0 and top > 0:
            digits = int(np.clip(np.floor(np.log10(top)) - np.floor(np.log10(small)) + 2, 2, 5))
        spreads = [f"±{text}" for text in readable_all(std.ravel(), digits, largest=top)]
    texts = readable_all(values.ravel(), digits, minus=True, largest=top)
    return dict(zip(places, zip(texts, spreads, strict=True), strict=True))
