"""Strip at the foot of a picture that shows how a feature is distributed in the data."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import Patch, Rectangle

from gpattr._core.array import Array
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.feature_axis import data_numbers
from gpattr.plots.style import room

HEIGHT, ROOM = 0.09, 0.16  # of the axes: the strip, and what is kept free for it
GREY = "0.72"
FEW = 40  # rows that have a tick each, and different values that have a bar each
BINS = 40
COUNTED = 0.3  # inches between categories, so that numbers of rows can be written


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
        _ticks(ax, data)
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
    ax.set_ylim(low - ROOM / (1.0 - ROOM) * (high - low), high)


def _bars(ax: Axes, left: Array, width: Array, counts: Array) -> None:
    heights = HEIGHT * counts / counts.max(initial=1)
    bars = [
        Rectangle((x, 0.0), w, h) for x, w, h in zip(left, width, heights, strict=True) if h > 0
    ]
    strip = PatchCollection(bars, facecolors=GREY, lw=0, transform=ax.get_xaxis_transform())
    ax.add_collection(strip, autolim=False)


def _ticks(ax: Axes, data: Array) -> None:
    lines = [[(x, 0.0), (x, 0.6 * HEIGHT)] for x in data]
    strip = LineCollection(lines, colors=GREY, lw=1.2, transform=ax.get_xaxis_transform())
    ax.add_collection(strip, autolim=False)


def _counts(ax: Axes, places: Array, counts: Array) -> None:
    for place, count in zip(places, counts, strict=True):
        height = HEIGHT * count / counts.max()
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
