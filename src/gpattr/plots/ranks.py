"""Probability of each rank for each feature of one row."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from gpattr.explanation.explanation import Explanation
from gpattr.plots.style import axes_for, largest, one_row, tidy, uncertainty_words
from gpattr.plots.words import baseline_of, row_title, short


def ranks(
    explanation: Explanation,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the probability of each rank, by |attribution|, for each feature of one row.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ax = gpattr.plots.ranks(ex, row=1)
    """
    ex = one_row(explanation, row)
    shares = ex.rank_probabilities()[0]  # (d, ranks)
    expected = shares @ np.arange(len(shares))
    order = largest(-expected, max_display)
    shares = shares[order][:, : len(order)]
    d = len(order)
    ax = axes_for(ax, 4.0 + 0.45 * d, 1.9 + 0.4 * d)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i in range(d):
        for j in range(d):
            if shares[i, j] >= 0.005:
                shade = mpl.colormaps["Blues"](shares[i, j])[:3]
                ink = "white" if np.dot(shade, (0.3, 0.6, 0.1)) < 0.5 else "0.1"
                ax.text(
                    j,
                    i,
                    f"{100 * shares[i, j]:.0f}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=ink,
                )
    ax.set_yticks(np.arange(d), [short(ex.feature_names[i]) for i in order])
    ax.set_xticks(np.arange(d), [str(j + 1) for j in range(d)])
    label = f"rank by |attribution| to the {ex.quantity}"
    tidy(
        ax,
        f"{row_title(ex)}: probability of each rank, in per cent",
        label,
        subtitle=baseline_of(ex, uncertainty_words(ex, "")),
    )
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax
