"""Distributions of the attributions of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from gpattr._core.array import Array
from gpattr.exceptions import InvalidInputError
from gpattr.plots.style import INK, SERIES, axes_for, largest, one_feature, one_row, tidy
from gpattr.plots.words import baseline_of, named, row_title, share, steps

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation


def density(
    explanation: Explanation,
    row: int | None = None,
    *,
    features: Sequence[str | int] | None = None,
    max_display: int = 5,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the density of the attributions of ``features``, by default the largest; the credible
    interval is filled darker.
    """
    ex = one_row(explanation, row)
    ex._need("var")
    shown = largest(np.abs(ex.values[0]), max_display)
    if features is not None:
        if (
            isinstance(features, str)
            or not isinstance(features, (Sequence, np.ndarray))
            or not np.size(features)
        ):
            raise InvalidInputError(
                f"features: expected a list of names or positions, got {features!r}"
            )
        shown = [
            one_feature(ex, "features", feature)
            for feature in np.atleast_1d(np.asarray(features, dtype=object))
        ]
    ex = ex[:, shown]
    assert ex.std is not None
    low, high = ex.interval(level)
    free = ex.std[0] > 0
    ends = ex.values[0] + np.outer([-4.5, 4.5], ex.std[0])
    grid = np.linspace(min(ends.min(), 0.0), max(ends.max(), 0.0), 1200)
    ax = axes_for(ax, 7.5, 4.2)
    means = steps(ex.values[0])
    for i, (name, mean) in enumerate(zip(named(ex), means, strict=True)):
        color = SERIES[i % len(SERIES)]
        if not free[i]:
            ax.axvline(ex.values[0, i], color=color, lw=1.6, label=f"{name}: {mean}, for sure")
            continue
        curve = _curve(ex, i, grid)
        inside = (grid >= low[0, i]) & (grid <= high[0, i])
        ax.plot(grid, curve, color=color, lw=1.6, label=f"{name}: {mean}")
        ax.fill_between(grid, curve, color=color, alpha=0.10, lw=0)
        ax.fill_between(grid[inside], curve[inside], color=color, alpha=0.22, lw=0)
    ax.axvline(0.0, color=INK, lw=0.8, zorder=0)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.legend(frameon=False, fontsize=9)
    label = f"attribution to the {ex.quantity}; darker: {share(level)} intervals"
    tidy(
        ax,
        f"{row_title(ex)}: distributions of attributions",
        label,
        "density",
        subtitle=baseline_of(ex),
    )
    ax.spines["left"].set_visible(False)
    return ax


def _curve(ex: Explanation, i: int, grid: Array) -> Array:
    """Return the density of one attribution: Gaussian, of a mixture, or smoothed from draws."""
    if hasattr(ex, "draws"):
        from scipy.stats import gaussian_kde

        return gaussian_kde(ex.draws[:, 0, i])(grid)  # pyright: ignore[reportAttributeAccessIssue]
    mixture = ex[:, [i]].mixture()
    return np.array([mixture.density(np.full((1, 1), x))[0, 0] for x in grid])
