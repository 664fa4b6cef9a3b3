"""Axes that are features: their values, areas outside the data, and a strip of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from gpattr._core.array import Array
from gpattr.explanation.feature_grid import CATEGORY, DATE, FeatureGrid, days
from gpattr.plots.dates import date_axis
from gpattr.plots.style import room
from gpattr.plots.words import short

HATCH, GROUND, LINES = "////", "0.965", "0.82"
WIDEST = 12  # categories of a matrix that has numbers in its cells
LONGEST, SHORTER = 20, 15  # letters of a category, and where there is little room
NARROW = 3.0  # inches
STRIP, FREE = 0.09, 0.16  # of the axes: the strip of the data, and what is kept free for it
GREY = "0.72"
FEW = 40  # rows that have a tick each, and different values that have a bar each
BINS = 40
COUNTED = 0.3  # inches between categories, so that numbers of rows can be written


def width_for(axis: FeatureGrid, least: float) -> float:
    """Return the width in inches of a picture across which the feature runs."""
    return max(least, 1.2 + 0.32 * len(axis)) if axis.kind == CATEGORY else least


def data_numbers(axis: FeatureGrid) -> Array:
    """Return the data as numbers on the axis; NaN for categories that are not on it."""
    if axis.kind == DATE:
        return days(axis.data)
    if axis.kind != CATEGORY:
        return np.asarray(axis.data, dtype=float)
    places = {label: float(place) for place, label in enumerate(axis.values)}
    return np.array([places.get(label, np.nan) for label in axis.data])


def known_range(axis: FeatureGrid) -> tuple[float, float]:
    """Return the ends of the range that is known to lie inside the data."""
    inside = np.concatenate([data_numbers(axis), axis.numbers[~axis.outside]])
    return float(inside.min()), float(inside.max())


def spans_outside(axis: FeatureGrid, limits: tuple[float, float]) -> list[tuple[float, float]]:
    """Return the parts of an axis with these limits that lie outside the data."""
    if not axis.outside.any():
        return []
    if axis.kind == CATEGORY:
        return [(place - 0.5, place + 0.5) for place in axis.numbers[axis.outside].tolist()]
    (low, high), numbers = known_range(axis), axis.numbers[axis.outside]
    spans = [(limits[0], low)] if numbers.min() < low else []
    return spans + ([(high, limits[1])] if numbers.max() > high else [])


def shade_outside(ax: Axes, axis: FeatureGrid) -> None:
    """Hatch the areas outside the data, behind everything else; the limits stay as they are."""
    limits = ax.get_xlim()
    for low, high in spans_outside(axis, limits):
        ax.axvspan(low, high, facecolor=GROUND, edgecolor=LINES, hatch=HATCH, lw=0, zorder=-1)
    ax.set_xlim(limits)


def outside_mark() -> Patch:
    """Return the entry of a legend for areas outside the data."""
    look: dict[str, Any] = {"facecolor": GROUND, "edgecolor": "0.6", "hatch": HATCH, "lw": 0}
    return Patch(label="outside the data", **look)


def name_values(ax: Axes, axis: FeatureGrid, *, upward: bool = False) -> None:
    """Write the categories or dates at the axis across, or at that upward; thin out numbers."""
    width, height = room(ax)
    if axis.kind == DATE:
        size = height / 0.4 if upward else width / 0.6
        date_axis(ax, upward=upward, most=int(np.clip(size, 3, 7)))
    elif axis.kind == CATEGORY:
        _name_categories(ax, axis, upward, height if upward else width)
    elif _few_whole(axis):
        (ax.yaxis if upward else ax.xaxis).set_ticks(axis.values)
    elif upward:
        ax.yaxis.set_major_locator(_ticks(height / 0.45))
    elif width < NARROW:
        ax.xaxis.set_major_locator(_ticks(width / 0.55))


def _few_whole(axis: FeatureGrid) -> bool:
    """Return whether the values are a few whole numbers with room between them, such as 1 and 2."""
    values = axis.values
    gaps = np.diff(values)
    whole = len(values) <= 6 and bool((values == np.round(values)).all())
    return whole and bool((gaps >= 0.12 * np.ptp(values)).all())


def _ticks(most: float) -> MaxNLocator:
    return MaxNLocator(int(np.clip(most, 2, 8)), steps=[1, 2, 2.5, 5, 10])


def _name_categories(ax: Axes, axis: FeatureGrid, upward: bool, length: float) -> None:
    longest = LONGEST if length > NARROW else SHORTER
    names = [short(str(label), longest) for label in axis.values]
    places = np.arange(len(names))
    size = 9 if length / len(names) >= 0.17 else 7
    # Where not all names fit, every second or third stands for its neighbours.
    step = max(1, int(np.ceil(len(names) * size / 50 / length)))
    if upward:
        ax.set_yticks(places[::step], names[::step], fontsize=size)
        return
    wide = sum(map(len, names)) * size * 0.6 / 72 + 0.12 * len(names) > length
    aslant: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(places[::step], names[::step], fontsize=size, **(aslant if wide else {}))


def data_strip(ax: Axes, axis: FeatureGrid) -> Patch:
    """Draw the strip on axes whose limits are final, and return its entry for a legend."""
    low, high = ax.get_xlim()
    data = data_numbers(axis)
    data = data[(data >= low) & (data <= high)]
    different, counts = np.unique(data, return_counts=True)
    if axis.kind == CATEGORY:
        _bars(ax, different - 0.25, np.full(len(different), 0.5), counts)
        if room(ax)[0] / len(axis) >= COUNTED:
            _counts(ax, different, counts)
    elif len(data) <= FEW and (counts == 1).all():
        _data_ticks(ax, data)
    elif len(different) <= FEW:
        gap = np.diff(different).min(initial=high - low)
        width = float(np.clip(0.7 * gap, 0.004 * (high - low), 0.02 * (high - low)))
        _bars(ax, different - 0.5 * width, np.full(len(different), width), counts)
    else:
        counts, edges = np.histogram(data, BINS)
        _bars(ax, edges[:-1], np.diff(edges), counts)
    return Patch(color=GREY, label="distribution of the data")


def make_room(ax: Axes) -> None:
    """Move the lower limit of the axis upward, so that nothing else covers the strip."""
    low, high = ax.get_ylim()
    ax.set_ylim(low - FREE / (1.0 - FREE) * (high - low), high)


def _bars(ax: Axes, left: Array, width: Array, counts: Array) -> None:
    heights = STRIP * counts / counts.max(initial=1)
    bars = [
        Rectangle((x, 0.0), w, h) for x, w, h in zip(left, width, heights, strict=True) if h > 0
    ]
    strip = PatchCollection(bars, facecolors=GREY, lw=0, transform=ax.get_xaxis_transform())
    ax.add_collection(strip, autolim=False)


def _data_ticks(ax: Axes, data: Array) -> None:
    lines = [[(x, 0.0), (x, 0.6 * STRIP)] for x in data]
    strip = LineCollection(lines, colors=GREY, lw=1.2, transform=ax.get_xaxis_transform())
    ax.add_collection(strip, autolim=False)


def _counts(ax: Axes, places: Array, counts: Array) -> None:
    for place, count in zip(places, counts, strict=True):
        height = STRIP * count / counts.max()
        ax.annotate(
            f"{count:,}",
            (place, height),
            (0, 1.5),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
            color="0.4",
        )
