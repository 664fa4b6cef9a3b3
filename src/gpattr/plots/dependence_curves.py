"""Curves of one feature with bands, dashed outside the data; points where there is no curve."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D

from gpattr._core.array import Array
from gpattr.explanation.dependence import INDIVIDUAL, Dependence
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.dependence_words import FEW_ROWS, MOST_ROWS, titled, uncertain
from gpattr.plots.feature_axis import (
    data_strip,
    known_range,
    make_room,
    name_values,
    outside_mark,
    shade_outside,
)
from gpattr.plots.legends import legend_across
from gpattr.plots.style import BLUE, INK, SERIES, axes_for, error_bars
from gpattr.plots.words import count_of, short

MARKED = 12  # values of a grid that have a point each
SIDEWAYS = 0.5  # of the distance of two categories, across which several points of one are spread
DASHES = (0, (4, 2))
MOST_CURVES = 6  # categories, beyond which nobody tells bands apart

Ends = tuple[Array, Array]


def draw_panel(
    ax: Axes, dependence: Dependence, level: float, sample: Array | None = None
) -> list[Artist]:
    """Draw everything but words, with draws (s, …), and return the entries of a legend."""
    axis = dependence.axes[0]
    if dependence.kind == INDIVIDUAL:
        handles = _individual(ax, dependence, level, sample)
    else:
        ends = dependence.interval(level) if uncertain(dependence) else None
        _draw(ax, axis, dependence.values, ends, sample, BLUE)
        handles = []
    if sample is not None:
        handles.append(_draws_mark(axis, sample, BLUE))
    return handles + _surroundings(ax, dependence, axis)


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
    ax = axes_for(ax, 7.0, 4.6)
    handles: list[Artist] = [Line2D([], [], ls="", label=f"{short(categories.name, 20)}:")]
    for k, curve in enumerate(_each(dependence, level, sample, second)):
        unseen = bool(categories.outside[k])
        _draw(ax, axis, *curve, SERIES[k], dashed=unseen)
        name = short(str(categories.values[k]), 20) + (", not in the data" if unseen else "")
        look: dict[str, Any] = {"color": SERIES[k], "lw": 1.8, "ls": DASHES if unseen else "-"}
        handles.append(Line2D([], [], label=name, **look))
    others = [] if sample is None else [_draws_mark(axis, sample, INK)]
    others += _surroundings(ax, dependence, axis)
    make_room(ax)
    titled(ax, dependence, axis, level)
    legend_across(ax, handles)
    legend_across(ax, others)
    return ax


def _individual(
    ax: Axes, dependence: Dependence, level: float, sample: Array | None
) -> list[Artist]:
    """Draw the curves of rows and their mean: with bands if they are few, else as thin lines."""
    axis, values = dependence.axes[0], dependence.values
    n, average = len(values), values.mean(axis=0)
    mean = _mark(axis, "their mean", INK, 2.2)
    if n > FEW_ROWS:
        shown = values[np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])]
        _draw(ax, axis, average, None, shown, INK, thin=BLUE, width=2.2)
        return [_mark(axis, count_of(len(shown), n), BLUE, 0.8), mean]
    shifts = np.linspace(-0.3, 0.3, n + 1) if n > 1 else np.zeros(1)
    handles: list[Artist] = []
    for k, curve in enumerate(_each(dependence, level, sample, 0)):
        _draw(ax, axis, *curve, SERIES[k], shift=shifts[k], width=1.4)
        name = dependence.row_names[k]
        label = f"row {name}" if isinstance(name, int) else short(name, 20)
        handles.append(_mark(axis, label, SERIES[k], 1.4))
    if n == 1:
        return []
    _draw(ax, axis, average, None, None, INK, shift=shifts[n], width=2.2)
    return [*handles, mean]


def _each(
    dependence: Dependence, level: float, sample: Array | None, along: int
) -> Iterable[tuple[Array, Ends | None, Array | None]]:
    """Return values, interval and draws of each curve, numbered along this axis of the values."""
    values = np.moveaxis(dependence.values, along, 0)
    ends: Any = [None] * len(values)
    if uncertain(dependence):
        ends = zip(*(np.moveaxis(end, along, 0) for end in dependence.interval(level)), strict=True)
    draws = [None] * len(values) if sample is None else np.moveaxis(sample, 1 + along, 0)
    return zip(values, ends, draws, strict=True)


def _surroundings(ax: Axes, dependence: Dependence, axis: FeatureGrid) -> list[Artist]:
    """Draw the surroundings of curves of one feature: its values, zero, the data and their ends."""
    if axis.kind == CATEGORY:
        ax.set_xlim(-0.6, len(axis) - 0.4)
    if dependence.centred or dependence.derivative:
        ax.axhline(0.0, color=INK, lw=0.8, zorder=0)
    name_values(ax, axis)
    ax.set_xlim(ax.get_xlim())
    shade_outside(ax, axis)
    strip: Artist = data_strip(ax, axis)
    return [strip, outside_mark()] if axis.outside.any() else [strip]


def _connected(axis: FeatureGrid) -> bool:
    """Return whether values are joined by a curve: categories and a single value are not."""
    return axis.kind != CATEGORY and len(axis) > 1


def _mark(axis: FeatureGrid, label: str, color: str, width: float) -> Line2D:
    """Return the entry of a legend for curves, or for the points that stand for them."""
    look: dict[str, Any] = {"lw": width}
    if not _connected(axis):
        look = {"ls": "", "marker": "o", "ms": 2.5 if width < 1 else 5.5}
    return Line2D([], [], color=color, label=label, **look)


def _draws_mark(axis: FeatureGrid, sample: Array, color: str) -> Artist:
    return _mark(axis, f"{len(sample):,} draw{'s' * (len(sample) > 1)}", color, 0.8)


def _draw(
    ax: Axes,
    axis: FeatureGrid,
    values: Array,
    ends: Ends | None,
    draws: Array | None,
    color: str,
    *,
    thin: str = "",
    shift: float = 0.0,
    width: float = 1.8,
    dashed: bool = False,
) -> None:
    """Draw values (G,) with their interval, joined or, for categories, ``shift`` to the side.

    ``draws`` (s, G) are thin, of the same colour or of ``thin``. The line is dashed outside the
    data, or everywhere.
    """
    face = np.where(axis.outside[:, None], to_rgba("white"), to_rgba(color))
    look: dict[str, Any] = {"facecolors": face, "edgecolors": color, "zorder": 3}
    x = axis.numbers + shift
    if not _connected(axis):
        if ends is not None:
            error_bars(ax, x, values, *ends, upward=True, ecolor=color, lw=1.3, zorder=2)
        ax.scatter(x, values, s=34, lw=1.3, **look)
    else:
        x = axis.numbers
        _line(ax, axis, values, color, width, dashed)
        if len(axis) <= MARKED:
            ax.scatter(x, values, s=18, lw=1.0, **look)
        if ends is not None:
            ax.fill_between(x, *ends, color=color, alpha=0.18, lw=0, zorder=1)
    if draws is not None:
        _thin_lines(ax, axis, draws, thin or color)


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


def _thin_lines(ax: Axes, axis: FeatureGrid, curves: Array, color: str) -> None:
    """Draw lines (n, G) behind others, so that many together stay light; without a curve, dots."""
    n = len(curves)
    opacity = float(np.clip(0.55 * (10 / max(n, 1)) ** 0.45, 0.06, 0.55))
    look: dict[str, Any] = {"zorder": 1.5, "rasterized": n > 200}
    if _connected(axis):
        lines = [np.column_stack([axis.numbers, curve]) for curve in curves]
        ax.add_collection(LineCollection(lines, colors=color, alpha=opacity, lw=0.7, **look))
        ax.autoscale_view()
        return
    aside = np.random.default_rng(0).uniform(-0.5, 0.5, n) * SIDEWAYS * (axis.kind == CATEGORY)
    x, opacity = axis.numbers + aside[:, None], min(1.0, 1.5 * opacity)
    ax.scatter(x.ravel(), curves.ravel(), s=5, color=color, alpha=opacity, lw=0, **look)
