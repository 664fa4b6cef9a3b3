"""Rows by features, in colour, with uncertain cells faded, and the predictions above."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable, readable_all
from gpattr.explanation.explanation import Explanation
from gpattr.plots.style import (
    DIVERGING,
    INK,
    axes_for,
    certainty,
    color_scale,
    leading,
    some_rows,
    tidy,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, count_of, names_of, share, short

MOST_ROWS = 500  # columns of cells that a picture can show
USUAL = 0.98  # the share of each feature's attributions that the colours tell apart
AHEAD = 2.0  # and how far the largest feature's may reach beyond the second's


def heatmap(
    explanation: Explanation, *, max_display: int = 10, ax: Axes | None = None, level: float = 0.95
) -> Axes:
    """Draw attributions as colours: features from top to bottom, rows by their prediction.

    A cell is drawn in full where the model is sure of the sign to ``level``, and fades towards
    white as it is less so. The line above is the prediction. Colours end where few attributions are
    larger, or only one feature's; the colour bar has arrows then. Of many rows 500 are drawn, at
    equal distances in the order of their predictions.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.heatmap(explainer(X))
    """
    ex = some_rows(explanation)
    order = np.argsort(ex.predictions, kind="stable")
    if len(ex) > MOST_ROWS:
        order = order[np.linspace(0, len(ex) - 1, MOST_ROWS).round().astype(int)]
    shown = leading(ex[order], np.abs(ex.values).mean(axis=0), max_display)
    n, d = shown.shape
    ax = axes_for(ax, 8.0, 2.2 + 0.36 * d)
    limit = _limit(shown.values)
    norm = Normalize(-limit, limit)
    rgba = DIVERGING(norm(shown.values.T))  # (d, n, 4)
    sure = certainty(shown, level).T
    rgba[..., :3] = 1.0 - sure[..., None] * (1.0 - rgba[..., :3])
    ax.imshow(rgba, aspect="auto", interpolation="nearest")
    line = _line_above(shown.predictions)
    ax.plot(np.arange(n), line, color=INK, lw=1.2, marker="." if n < 4 else "")
    ax.set_ylim(d - 0.5, -2.3)
    ax.set_yticks([-1.4, *range(d)], [short(ex.quantity), *names_of(shown)])
    ax.set_xticks([])
    clipped = bool((np.abs(shown.values) > limit).any())
    ends = f" (colours end at ±{readable(limit, 2)})" if clipped else ""
    scale = ScalarMappable(norm, DIVERGING)
    color_scale(ax, scale, f"attribution{ends}", aspect=30, extend="both" if clipped else "neither")
    low, high = readable_all(shown.predictions[[0, -1]], 3, minus=True)
    faint = uncertainty_words(ex, f"cells fade where the sign is less than {share(level)} sure")
    rows = f"{count_of(n, len(ex))}, from the lowest prediction, {low}, to the highest, {high}"
    tidy(ax, f"Attributions to the {ex.quantity}", rows, subtitle=baseline_of(ex, faint))
    ax.spines[:].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _limit(values: Array) -> float:
    """Return where the colours end: one row or one feature must not leave the others white."""
    usual = np.sort(np.quantile(np.abs(values), USUAL, axis=0))[::-1]
    reach = usual[0] if len(usual) == 1 or usual[1] == 0 else min(usual[0], AHEAD * usual[1])
    return float(reach) or float(np.abs(values).max(initial=0.0)) or 1.0


def _line_above(predictions: Array) -> Array:
    """Return heights from −0.8, of the lowest prediction, to −2.0: above the cells."""
    span = float(np.ptp(predictions))
    return -0.8 - 1.2 * (
        (predictions - predictions.min()) / span if span else np.full(len(predictions), 0.5)
    )
