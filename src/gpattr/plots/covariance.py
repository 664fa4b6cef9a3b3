"""Correlations between the attributions of one row."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable
from gpattr.explanation.explanation import Explanation
from gpattr.plots.style import (
    DIVERGING,
    INK,
    axes_for,
    color_scale,
    leading,
    one_row,
    tidy,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, row_title, short


def covariance(
    explanation: Explanation,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the correlations between the attributions of one row.

    Their standard deviations are on the diagonal. Where a correlation is strongly negative, the
    model knows the sum of two attributions better than each of them.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ax = gpattr.plots.covariance(ex, row=1)
    """
    ex = one_row(explanation, row)
    ex.distribution.need("cov")
    ex = leading(ex, np.abs(ex.values[0]), max_display)
    C = ex.distribution.need("cov")[0]
    std = np.sqrt(np.diagonal(C))
    scale = np.where(std > 0, std, 1.0)
    R = np.clip(C / scale[:, None] / scale, -1.0, 1.0)
    d = len(R)
    ax = axes_for(ax, 3.4 + 0.56 * d, 2.6 + 0.46 * d)
    _cells(ax, R, std)
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
    diagonal = uncertainty_words(ex, "on the diagonal their standard deviations")
    tidy(ax, title, subtitle=baseline_of(ex, diagonal))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _cells(ax: Axes, R: Array, std: Array) -> None:
    """Draw correlations in colour and as numbers, and the standard deviations on the diagonal."""
    d, free = len(R), std > 0
    shown = free[:, None] & free & ~np.eye(d, dtype=bool)
    ax.imshow(np.where(shown, R, np.nan), cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    for i in range(d):
        for j in range(d):
            text = f"±{readable(std[i], 2)}" if i == j else _rounded(R[i, j]) if shown[i, j] else ""
            ink = INK if i == j or abs(R[i, j]) < 0.75 else "white"
            size = 8 if len(text) < 7 else 7
            ax.text(j, i, text, ha="center", va="center", fontsize=size, color=ink)


def _rounded(correlation: float) -> str:
    text = f"{correlation:.2f}".replace("-", "−")
    return text.lstrip("−") if text.endswith("0.00") else text
