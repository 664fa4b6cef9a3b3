"""Rows by features, in colour, with what is uncertain faded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from gpattr.plots.style import DIVERGING, axes_for, certainty, color_scale, leading, some_rows, tidy

if TYPE_CHECKING:
    from gpattr.explanation import Explanation


def heatmap(explanation: Explanation, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95) -> Axes:
    """Draw attributions as colours, rows from left to right by their prediction, features from top to bottom.

    A cell is drawn in full where the model is sure of the sign to ``level``, and fades towards white as it is less so.
    """
    ex = some_rows(explanation)
    shown = leading(ex, np.abs(ex.values).mean(axis=0), max_display)
    shown = shown[np.argsort(shown.predictions, kind="stable")]
    n, d = shown.shape
    ax = axes_for(ax, 8.0, 1.5 + 0.36 * d)
    largest = float(np.abs(shown.values).max(initial=0.0)) or 1.0
    norm = Normalize(-largest, largest)
    rgba = DIVERGING(norm(shown.values.T))  # (d, n, 4)
    sure = certainty(shown, level).T
    rgba[..., :3] = 1.0 - sure[..., None] * (1.0 - rgba[..., :3])
    ax.imshow(rgba, aspect="auto", interpolation="nearest")
    ax.set_yticks(np.arange(d), list(shown.feature_names))
    ends = f"{shown.predictions[0]:.4g} to {shown.predictions[-1]:.4g}"
    color_scale(ax, ScalarMappable(norm, DIVERGING), "attribution", aspect=30)
    tidy(ax, f"{n} rows; cells fade where the sign is not sure", f"rows, by their {ex.quantity}: {ends}")
    ax.spines[:].set_visible(False)
    return ax
