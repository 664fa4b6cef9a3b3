"""A comparison of two explanations of one row, feature by feature."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gpattr.explanation.comparison import INDEPENDENT, UNKNOWN, Comparison
from gpattr.plots.legends import legend
from gpattr.plots.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    axes_for,
    check_kind,
    largest,
    lines_of,
    one_row,
    tidy,
    uncertain,
)
from gpattr.plots.words import comma, not_shown, share, short


def comparison(
    comparison: Comparison,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the attributions of both explanations of one row, the largest differences first.

    Features whose sign changed with a probability of ``level`` or more are marked.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> mean, zeros = gpattr.Explainer(model), gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.comparison(gpattr.compare(mean, zeros, X[:1]), row=0)
    """
    check_kind("comparison", comparison, Comparison, "a gpattr Comparison")
    first, second = one_row(comparison.first, row), one_row(comparison.second, row)
    at = 0 if row is None else row
    changed = comparison.sign_changed(level)[at]
    order = largest(np.abs(comparison.values[at]), max_display)
    ax = axes_for(ax, 7.0, 1.9 + 0.45 * len(order))
    places = lines_of(ax, [short(first.feature_names[i]) for i in order])
    for ex, shift, marker, color in ((first, 0.13, "o", GREY), (second, -0.13, "D", BLUE)):
        values = ex.values[0, order]
        colors = [ORANGE if mark else color for mark in changed[order]]
        if uncertain(ex):
            low, high = (end[0, order] for end in ex.interval(level))
            ax.hlines(places + shift, low, high, colors=colors, lw=1.6)
        ax.scatter(values, places + shift, c=colors, marker=marker, s=34, zorder=3)
    ax.axvline(0.0, color=INK, lw=0.8)
    intervals = f"with {share(level)} intervals" if uncertain(first) else ""
    label = comma(f"attribution to the {first.quantity}", intervals)
    tidy(ax, f"Comparison, row {first.row_names[0]}", label, subtitle=_notes(comparison, order))
    names = (first.baseline_name, second.baseline_name)
    differ = comparison.dependence != INDEPENDENT and names[0] != names[1]
    words = [f": baseline {short(name, 40)}" if differ else "" for name in names]
    handles = [
        Line2D([], [], ls="", marker="o", color=GREY, label=f"first{words[0]}"),
        Line2D([], [], ls="", marker="D", color=BLUE, label=f"second{words[1]}"),
        Line2D([], [], ls="", marker="s", color=ORANGE, label=f"sign changed ({share(level)})"),
    ]
    legend(ax, handles, 1 if differ else 3)
    return ax


def _notes(comparison: Comparison, order: np.ndarray) -> str:
    """Return notes on differences that are not shown, and on the basis of changed signs."""
    unknown = comparison.dependence == UNKNOWN
    notes = [
        not_shown(len(order), comparison.shape[1], "smaller differences"),
        "the covariance between the two is not known" if unknown else "",
    ]
    return "; ".join(filter(None, notes))
