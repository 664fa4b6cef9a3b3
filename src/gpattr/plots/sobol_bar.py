"""Sobol indices as bars: the shares of each feature alone, and together with others."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from gpattr._core.array import Array
from gpattr.plots.legends import legend
from gpattr.plots.style import BLUE, INK, axes_for, check_kind, error_bars, largest, lines_of, tidy
from gpattr.plots.words import comma, not_shown, share, short
from gpattr.sobol.indices import SobolIndices, variance_words

LIGHT_BLUE = "#9CC8E3"


def sobol_bar(
    indices: SobolIndices,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw first-order and total Sobol indices with credible intervals, largest total first.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> ax = gpattr.plots.sobol_bar(gpattr.sobol_indices(model, gpattr.Uniform(-1.0, 1.0)))
    """
    check_kind("indices", indices, SobolIndices, "gpattr.SobolIndices")
    order = largest(indices.total, max_display)
    ax = axes_for(ax, 7.0, 1.9 + 0.5 * len(order))
    places = lines_of(ax, [short(indices.feature_names[i]) for i in order])
    total, first = indices.total_interval(level), indices.first_interval(level)
    _bars(ax, places - 0.19, indices.total[order], [end[order] for end in total], LIGHT_BLUE)
    _bars(ax, places + 0.19, indices.first[order], [end[order] for end in first], BLUE)
    lowest = min(0.0, float(first[0].min()), float(total[0].min()))
    ax.set_xlim(1.1 * lowest, 1.05 * max(float(total[1].max()), float(first[1].max()), 1e-3))
    ax.axvline(0.0, color=INK, lw=0.8)
    title = f"Sobol indices of the {indices.quantity}"
    what = comma(indices.inputs, not_shown(len(order), len(indices)))
    label = f"share of the variance, with {share(level)} intervals"
    tidy(ax, title, label, subtitle="\n".join(filter(None, [variance_words(indices), what])))
    alone = Patch(color=BLUE, label="first order: the feature by itself")
    with_others = Patch(color=LIGHT_BLUE, label="total: with its interactions")
    legend(ax, [alone, with_others], 2)
    return ax


def _bars(ax: Axes, places: Array, values: Array, ends: Sequence[Array], color: str) -> None:
    """Draw thin bars with intervals."""
    ax.barh(places, values, height=0.36, color=color)
    error_bars(ax, values, places, *ends, capsize=2.5, lw=1.1)
