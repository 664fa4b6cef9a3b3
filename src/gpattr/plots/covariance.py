"""Correlations between the attributions of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from gpattr._core.readable_numbers import readable
from gpattr.plots.style import DIVERGING, INK, axes_for, color_scale, leading, one_row, tidy
from gpattr.plots.words import baseline_of, row_title, short

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation


def covariance(
    explanation: Explanation,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the correlation between the attributions of one row, with their standard deviations on
    the diagonal.

    Where two are strongly negative, the model knows what they do together better than what each
    does."""
    ex = one_row(explanation, row)
    ex._need("cov")
    ex = leading(ex, np.abs(ex.values[0]), max_display)
    assert ex.cov is not None
    C = ex.cov[0]
    std = np.sqrt(np.diagonal(C))
    free = std > 0
    scale = np.where(free, std, 1.0)
    R = np.clip(C / scale[:, None] / scale, -1.0, 1.0)
    d = len(R)
    ax = axes_for(ax, 3.4 + 0.56 * d, 2.6 + 0.46 * d)
    ax.imshow(
        np.where(free[:, None] & free & ~np.eye(d, dtype=bool), R, np.nan),
        cmap=DIVERGING,
        vmin=-1,
        vmax=1,
        aspect="auto",
    )
    for i in range(d):
        for j in range(d):
            text = (
                f"±{readable(std[i], 2)}"
                if i == j
                else _rounded(R[i, j])
                if free[i] and free[j]
                else ""
            )
            ink = INK if i == j or abs(R[i, j]) < 0.75 else "white"
            ax.text(
                j, i, text, ha="center", va="center", fontsize=8 if len(text) < 7 else 7, color=ink
            )
    names = [short(name, 26) for name in ex.feature_names]
    ax.set_yticks(np.arange(d), names)
    ax.set_xticks(np.arange(d), names, rotation=40, ha="right", rotation_mode="anchor")
    color_scale(
        ax,
        ScalarMappable(Normalize(-1, 1), DIVERGING),
        "correlation",
        aspect=30,
        ticks=[-1, -0.5, 0, 0.5, 1],
    )
    title = f"{row_title(ex)}: correlations between attributions to the {ex.quantity}"
    tidy(ax, title, subtitle=f"on the diagonal their standard deviations; {baseline_of(ex)}")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _rounded(correlation: float) -> str:
    text = f"{correlation:.2f}".replace("-", "−")
    return text.lstrip("−") if text.endswith("0.00") else text
