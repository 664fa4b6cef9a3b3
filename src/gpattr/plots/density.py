"""Distributions of the attributions of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpattr._core.array import Array
from gpattr.distributions import Draws
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.explanation import Explanation
from gpattr.plots.style import (
    INK,
    SERIES,
    axes_for,
    largest,
    one_feature,
    one_row,
    tidy,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, named, row_title, share, steps


def density(
    explanation: Explanation,
    row: int | None = None,
    *,
    features: Sequence[str | int] | None = None,
    max_display: int = 5,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the density of the attributions of ``features``, by default the largest.

    The credible interval is filled darker.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ax = gpattr.plots.density(ex, row=1)
    """
    ex = one_row(explanation, row)
    ex.distribution.need("var")
    ex = ex[:, _chosen(ex, features, max_display)]
    ax = axes_for(ax, 7.5, 4.2)
    _curves(ax, ex, level)
    ax.axvline(0.0, color=INK, lw=0.8, zorder=0)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.legend(frameon=False, fontsize=9)
    darker = uncertainty_words(ex, f"darker: {share(level)} intervals")
    tidy(
        ax,
        f"{row_title(ex)}: distributions of attributions",
        f"attribution to the {ex.quantity}; {darker}",
        "density",
        subtitle=baseline_of(ex),
    )
    ax.spines["left"].set_visible(False)
    return ax


def _chosen(ex: Explanation, features: Any, max_display: int) -> Any:
    """Return the positions of the features to draw."""
    if features is None:
        return largest(np.abs(ex.values[0]), max_display)
    listed = isinstance(features, (Sequence, np.ndarray)) and not isinstance(features, str)
    if not listed or not np.size(features):
        raise InvalidInputError(
            f"features: expected a list of names or positions, got {features!r}"
        )
    each = np.atleast_1d(np.asarray(features, dtype=object))
    return [one_feature(ex, "features", feature) for feature in each]


def _curves(ax: Axes, ex: Explanation, level: float) -> None:
    """Draw one curve for each feature, or a line where there is no uncertainty."""
    std = np.sqrt(ex.distribution.need("var")[0])
    low, high = ex.interval(level)
    ends = ex.values[0] + np.outer([-4.5, 4.5], std)
    grid = np.linspace(min(ends.min(), 0.0), max(ends.max(), 0.0), 1200)
    for i, (name, mean) in enumerate(zip(named(ex), steps(ex.values[0]), strict=True)):
        color = SERIES[i % len(SERIES)]
        if not std[i] > 0:
            ax.axvline(ex.values[0, i], color=color, lw=1.6, label=f"{name}: {mean}, for sure")
            continue
        curve = _curve(ex, i, grid)
        inside = (grid >= low[0, i]) & (grid <= high[0, i])
        ax.plot(grid, curve, color=color, lw=1.6, label=f"{name}: {mean}")
        ax.fill_between(grid, curve, color=color, alpha=0.10, lw=0)
        ax.fill_between(grid[inside], curve[inside], color=color, alpha=0.22, lw=0)


def _curve(ex: Explanation, i: int, grid: Array) -> Array:
    """Return the density of one attribution: Gaussian, of a mixture, or smoothed from draws."""
    if isinstance(ex.distribution, Draws):
        from scipy.stats import gaussian_kde

        return gaussian_kde(ex.distribution.draws[:, 0, i])(grid)
    mixture = ex[:, [i]].mixture()
    return np.array([mixture.density(np.full((1, 1), x))[0, 0] for x in grid])
