"""Reasons to act: a feature's parts through the mean and through the uncertainty."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpattr.exceptions import InvalidInputError
from gpattr.explanation.explanation import Explanation
from gpattr.plots.legends import legend
from gpattr.plots.style import (
    BLUE,
    INK,
    ORANGE,
    axes_for,
    largest,
    lines_of,
    one_row,
    tidy,
    uncertainty_words,
)
from gpattr.plots.words import baseline_of, comma, named, not_shown, prediction_title, steps

SHOWN = {
    "exploit": (BLUE, "exploit: through the mean"),
    "explore": (ORANGE, "explore: through the uncertainty"),
}


def parts(
    explanation: Explanation,
    row: int | None = None,
    *,
    max_display: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw the two parts of each attribution of one row, and a line where they add up to it.

    The parts are of a confidence bound, or of integrated gradients of an improvement.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X, prior = np.array([[0.0], [1.0]]), gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> quantity = gpattr.quantities.UpperConfidenceBound(kappa=2.0)
    >>> ax = gpattr.plots.parts(gpattr.Explainer(posterior, quantity=quantity)([[0.8]]), row=0)
    """
    ex = one_row(explanation, row)
    if set(ex.parts) != set(SHOWN):
        raise InvalidInputError(
            "explanation: expected one with the parts exploit and explore, such as that of"
            " gpattr.quantities.UpperConfidenceBound(2.0)"
        )
    both = np.stack([ex.parts[name].values[0] for name in SHOWN])
    order = largest(np.abs(both).sum(axis=0), max_display)
    ax = axes_for(ax, 7.0, 1.9 + 0.5 * len(order))
    names = named(ex)
    places = lines_of(ax, [names[i] for i in order])
    for (color, _), values, shift in zip(SHOWN.values(), both, (0.19, -0.19), strict=True):
        ax.barh(places + shift, values[order], height=0.36, color=color, alpha=0.85)
    total = ex.values[0][order]
    ax.vlines(total, places - 0.4, places + 0.4, color=INK, lw=1.6)
    ax.axvline(0.0, color=INK, lw=0.8)
    sums = [f"{name} {text}" for name, text in zip(SHOWN, steps(both.sum(axis=1)), strict=True)]
    hidden = not_shown(len(order), ex.shape[1])
    subtitle = [f"in all: {', '.join(sums)}", baseline_of(ex), hidden]
    label = comma("attribution", uncertainty_words(ex, ""))
    tidy(ax, prediction_title(ex), label, subtitle="\n".join(filter(None, subtitle)))
    handles = [Patch(color=color, label=words) for color, words in SHOWN.values()]
    legend(ax, [*handles, Line2D([], [], color=INK, lw=1.6, label="both together")], 3)
    return ax
