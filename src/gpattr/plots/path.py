"""Attributions along a segment, with bands."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from gpattr.exceptions import InvalidInputError
from gpattr.explanation.explanation import Explanation
from gpattr.plots.style import (
    INK,
    SERIES,
    axes_for,
    largest,
    some_rows,
    tidy,
    uncertain,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, comma, names_of, not_shown, share, short


def path(
    explanation: Explanation, *, max_display: int = 5, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw attributions of rows on one line, such as ``explainer.along(x)``, with credible bands.

    The horizontal axis is the feature that changes, where only one does; else how far along the
    line the rows are, from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.path(explainer.along([1.0, 2.0], n_points=11))
    """
    ex = some_rows(explanation)
    t, name = _position(ex)
    order = np.argsort(t, kind="stable")
    shown = largest(np.abs(ex.values).max(axis=0), max_display)
    hidden = not_shown(len(shown), ex.shape[1])
    ex, t = ex[order, shown], t[order]
    ax = axes_for(ax, 7.0, 4.2)
    bands = ex.interval(level) if uncertain(ex) else None
    for i, feature in enumerate(names_of(ex)):
        color = SERIES[i % len(SERIES)]
        if bands is not None:
            ax.fill_between(t, bands[0][:, i], bands[1][:, i], color=color, alpha=0.18, lw=0)
        ax.plot(t, ex.values[:, i], color=color, lw=1.8, label=feature)
    ax.axhline(0.0, color=INK, lw=0.8, zorder=0)
    ax.legend(frameon=False, fontsize=9)
    interval = uncertainty_words(ex, f"with {share(level)} bands")
    title = "; ".join(filter(None, [comma("Attributions along a path", interval), hidden]))
    return tidy(
        ax, title, short(name, 60), f"attribution to the {ex.quantity}", subtitle=baseline_of(ex)
    )


def _position(ex: Explanation) -> tuple[np.ndarray, str]:
    rows = np.nan_to_num(ex.data)
    step = rows - rows[0]
    far = step[np.argmax((step**2).sum(axis=1))]
    length = float(far @ far)
    if length == 0:
        raise InvalidInputError(
            "explanation: expected rows along a line, got rows that are all the same"
        )
    t = step @ far / length
    off = np.abs(step - t[:, None] * far).max(axis=0)
    if (off > 1e-6 * np.maximum(np.abs(far), np.abs(rows).max(axis=0))).any():
        raise InvalidInputError(
            "explanation: expected rows that lie on one line, such as explainer.along(x), got"
            " others"
        )
    moving = np.flatnonzero(far)
    if len(moving) == 1:
        return ex.data[:, moving[0]], ex.feature_names[moving[0]]
    return t - t.min(), "share of the path"
