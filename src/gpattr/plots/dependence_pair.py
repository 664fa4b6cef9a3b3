"""Curves of a number or date, one for each category of a second feature."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gpattr._core.array import Array
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.feature_grid import CATEGORY
from gpattr.plots.data_strip import make_room
from gpattr.plots.dependence_curve import DASHES, connected, draw_many, draw_values
from gpattr.plots.dependence_panel import draws_mark, finish_panel, opacity
from gpattr.plots.dependence_words import (
    doubt_words,
    rows_words,
    title_words,
    uncertain,
    value_words,
)
from gpattr.plots.legends import legend_across
from gpattr.plots.style import INK, SERIES, axes_for, tidy
from gpattr.plots.words import comma, short

MOST_CURVES = 6  # beyond that nobody tells bands apart


def paired(dependence: Dependence) -> bool:
    """Return whether one of two features has few categories, and the other none."""
    categories = [axis for axis in dependence.axes if axis.kind == CATEGORY]
    return len(categories) == 1 and len(categories[0]) <= MOST_CURVES


def dependence_pair(
    dependence: Dependence, ax: Axes | None, level: float, sample: Array | None
) -> Axes:
    """Draw a curve with its band, and with draws (s, G, H), for each category."""
    second = int(dependence.axes[1].kind == CATEGORY)
    categories, axis = dependence.axes[second], dependence.axes[1 - second]
    values = np.moveaxis(dependence.values, second, 0)
    ends = None
    if uncertain(dependence):
        ends = [np.moveaxis(end, second, 0) for end in dependence.interval(level)]
    draws = None if sample is None else np.moveaxis(sample, 1 + second, 0)
    ax = axes_for(ax, 7.0, 4.6)
    handles: list[Artist] = [Line2D([], [], ls="", label=f"{short(categories.name, 20)}:")]
    for k, label in enumerate(categories.values):
        band = None if ends is None else (ends[0][k], ends[1][k])
        unseen = bool(categories.outside[k])
        draw_values(ax, axis, values[k], band, SERIES[k], dashed=unseen)
        if draws is not None:
            draw_many(ax, axis, draws[k], SERIES[k], opacity(len(draws[k])))
        text = short(str(label), 20) + (", not in the data" if unseen else "")
        handles.append(
            Line2D([], [], color=SERIES[k], lw=1.8, ls=DASHES if unseen else "-", label=text)
        )
    others: list[Artist] = []
    if sample is not None:
        others.append(draws_mark(len(sample), connected(axis), INK))
    others += finish_panel(ax, dependence, axis)
    make_room(ax)
    what = comma(rows_words(dependence), doubt_words(dependence, level))
    tidy(ax, title_words(dependence), short(axis.name, 60), value_words(dependence), subtitle=what)
    legend_across(ax, handles)
    legend_across(ax, others)
    return ax
