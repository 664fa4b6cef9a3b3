"""Panel of the dependence on one feature: average or individual curves over the data's strip."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gpattr._core.array import Array
from gpattr.explanation.dependence import INDIVIDUAL, Dependence
from gpattr.explanation.feature_grid import CATEGORY, FeatureGrid
from gpattr.plots.data_strip import data_strip
from gpattr.plots.dependence_curve import connected, draw_many, draw_values
from gpattr.plots.dependence_words import FEW_ROWS, MOST_ROWS, uncertain
from gpattr.plots.feature_axis import name_values, outside_mark, shade_outside
from gpattr.plots.style import BLUE, INK, SERIES
from gpattr.plots.words import count_of, short


def draw_panel(
    ax: Axes, dependence: Dependence, level: float, sample: Array | None = None
) -> list[Artist]:
    """Draw everything but words, with draws (s, …), and return the entries of a legend."""
    axis = dependence.axes[0]
    ends = dependence.interval(level) if uncertain(dependence) else None
    if dependence.kind == INDIVIDUAL:
        handles = _individual(ax, dependence, ends, sample)
    else:
        draw_values(ax, axis, dependence.values, ends, BLUE)
        handles = []
        if sample is not None:
            draw_many(ax, axis, sample, BLUE, opacity(len(sample)))
    if sample is not None:
        handles.append(draws_mark(len(sample), connected(axis)))
    return handles + finish_panel(ax, dependence, axis)


def finish_panel(ax: Axes, dependence: Dependence, axis: FeatureGrid) -> list[Artist]:
    """Draw what lies around curves of one feature: its values, zero, the data and their ends."""
    if axis.kind == CATEGORY:
        ax.set_xlim(-0.6, len(axis) - 0.4)
    if dependence.centred or dependence.derivative:
        ax.axhline(0.0, color=INK, lw=0.8, zorder=0)
    name_values(ax, axis)
    ax.set_xlim(ax.get_xlim())
    shade_outside(ax, axis)
    strip: Artist = data_strip(ax, axis)
    return [strip, outside_mark()] if axis.outside.any() else [strip]


def draws_mark(draws: int, joined: bool, color: str = BLUE) -> Line2D:
    """Return the entry of a legend for draws."""
    return _mark(f"{draws:,} draw{'s' * (draws > 1)}", color, 0.8, joined)


def _mark(label: str, color: str, width: float, joined: bool) -> Line2D:
    """Return the entry of a legend for curves, or for the points that stand for them."""
    look: dict[str, Any] = {"lw": width}
    if not joined:
        look = {"ls": "", "marker": "o", "ms": 2.5 if width < 1 else 5.5}
    return Line2D([], [], color=color, label=label, **look)


def _individual(ax: Axes, dependence: Dependence, ends: Any, sample: Array | None) -> list[Artist]:
    axis, values = dependence.axes[0], dependence.values
    n = len(values)
    joined = connected(axis)
    mean = _mark("their mean", INK, 2.2, joined)
    if n > FEW_ROWS:
        shown = values[np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])]
        draw_values(ax, axis, values.mean(axis=0), None, INK, width=2.2)
        draw_many(ax, axis, shown, BLUE, opacity(len(shown)))
        return [_mark(count_of(len(shown), n), BLUE, 0.8, joined), mean]
    shifts = np.linspace(-0.3, 0.3, n + 1) if n > 1 else np.zeros(1)
    handles: list[Artist] = []
    for k in range(n):
        own = None if ends is None else (ends[0][k], ends[1][k])
        draw_values(ax, axis, values[k], own, SERIES[k], shift=shifts[k], width=1.4)
        if sample is not None:
            draw_many(ax, axis, sample[:, k], SERIES[k], opacity(len(sample)))
        name = dependence.row_names[k]
        label = f"row {name}" if isinstance(name, int) else short(name, 20)
        handles.append(_mark(label, SERIES[k], 1.4, joined))
    if n == 1:
        return []
    draw_values(ax, axis, values.mean(axis=0), None, INK, shift=shifts[n], width=2.2)
    return [*handles, mean]


def opacity(n: int) -> float:
    """Return how opaque each of n thin lines is, so that many together stay light."""
    return float(np.clip(0.55 * (10 / max(n, 1)) ** 0.45, 0.06, 0.55))
