"""All rows at once: one point for each attribution, faint where its sign is not sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from gpattr._array import Array
from gpattr.plots.style import INK, SEQUENTIAL, axes_for, certainty, color_scale, leading, some_rows, tidy

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

BINS = 60
FAINTEST = 0.12


def beeswarm(explanation: Explanation, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95) -> Axes:
    """Draw a point for each row and feature: across, the attribution; its colour, the feature's value; its opacity, how sure the
    model is of the sign. ``level`` is the certainty of the sign from which points are drawn in full.
    """
    ex = some_rows(explanation)
    shown = leading(ex, np.abs(ex.values).mean(axis=0), max_display)
    n, d = shown.shape
    ax = axes_for(ax, 7.5, 1.2 + 0.45 * d)
    colors = mpl.colormaps[SEQUENTIAL]
    opacity = FAINTEST + (1.0 - FAINTEST) * certainty(shown, level)
    span = float(np.ptp(shown.values)) or 1.0
    for i in range(d):
        shade = _ranked(shown.data[:, i])
        rgba = np.array([(0.5, 0.5, 0.5, 1.0)] * n) if shade is None else colors(shade)
        rgba[:, 3] = opacity[:, i]
        place = d - 1 - i
        ax.scatter(shown.values[:, i], place + _spread(shown.values[:, i], span), c=rgba, s=14, lw=0, rasterized=n > 2000)
    ax.axvline(0.0, color=INK, lw=0.8, zorder=0)
    ax.set_yticks(np.arange(d)[::-1], list(shown.feature_names))
    ax.set_ylim(-0.6, d - 0.4)
    scale = color_scale(ax, ScalarMappable(cmap=SEQUENTIAL), "value of the feature", ticks=[0, 1])
    scale.ax.set_yticklabels(["low", "high"], fontsize=9)
    scale.ax.yaxis.labelpad = -12
    faint = "" if ex.var is None else f"; faint points are not {level:.0%} sure of their sign"
    return tidy(ax, f"{n} rows", f"attribution to the {ex.quantity}{faint}")


def _ranked(values: Array) -> Array | None:
    """Return where each value stands among the others, from 0 to 1; None where they do not differ or there are none."""
    if np.isnan(values).any() or np.ptp(values) == 0:
        return None
    distinct, place = np.unique(values, return_inverse=True)
    return place / (len(distinct) - 1)


def _spread(values: Array, span: float) -> Array:
    """Return heights that keep points of equal place apart, symmetric around 0 and within ±0.38."""
    bins = np.round(BINS * (values - values.min()) / span).astype(int)
    heights = np.zeros(len(values))
    counts = np.bincount(bins)
    for b in np.flatnonzero(counts > 1):
        members = np.flatnonzero(bins == b)
        steps = np.arange(len(members))
        heights[members] = np.where(steps % 2, 1, -1) * ((steps + 1) // 2)
    largest = np.abs(heights).max(initial=0.0)
    return heights * min(0.09, 0.38 / largest if largest else 0.0)
