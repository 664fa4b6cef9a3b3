"""How the uncertain attributions of one row belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from gpattr.plots.style import DIVERGING, INK, axes_for, leading, one_row, row_title, signed, tidy

if TYPE_CHECKING:
    from gpattr.explanation import Explanation


def covariance(
    explanation: Explanation, row: int | None = None, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw the correlation between the attributions of one row, with their standard deviations on the diagonal.

    Where two are strongly negative, the model knows what they do together better than what each does.
    """
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
    ax = axes_for(ax, 2.2 + 0.52 * d, 1.6 + 0.46 * d)
    ax.imshow(np.where(free[:, None] & free & ~np.eye(d, dtype=bool), R, np.nan), cmap=DIVERGING, vmin=-1, vmax=1)
    for i in range(d):
        for j in range(d):
            text = f"± {std[i]:.2g}" if i == j else signed(f"{R[i, j]:.2f}") if free[i] and free[j] else ""
            ax.text(j, i, text, ha="center", va="center", fontsize=8, color=INK if i == j else "0.1")
    ax.set_yticks(np.arange(d), list(ex.feature_names))
    ax.set_xticks(np.arange(d), list(ex.feature_names), rotation=40, ha="right", rotation_mode="anchor")
    tidy(ax, f"{row_title(ex)}: correlation of attributions")
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax
