"""Matrix of interactions: signed values in colour, squares that shrink where signs are unsure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from gpattr._core.array import Array
from gpattr._core.readable_numbers import readable, readable_all
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.plots.interaction_summary import InteractionSummary, certainty, summary_of
from gpattr.plots.legends import legend
from gpattr.plots.style import DIVERGING, GREY, INK, UNSURE, axes_for, color_scale, tidy
from gpattr.plots.words import baseline_of, share, short

WITH_NUMBERS = 12  # features at most, so that numbers can be read in their cells
FULL, HALF, LEAST = (
    0.94,
    0.62,
    0.2,
)  # sides of squares: sure, almost sure, a sign as good as unknown


def interaction_matrix(
    explanation: InteractionExplanation,
    row: int | None = None,
    *,
    max_display: int = 12,
    ax: Axes | None = None,
    level: float = 0.95,
) -> Axes:
    """Draw the interactions of one row, or their mean over all rows, as a symmetric matrix.

    Colours are signed values; a square fills its cell where the model is sure of the sign to
    ``level``, and is smaller the less it is so. Of at most twelve features the lower half has the
    same as numbers, with standard deviations, and the diagonal the main effects. Colours end at the
    largest interaction: main effects may be larger, and the colour bar has arrows then. Features
    come in the order of how much they interact, at most ``max_display``.

    The uncertainty of a mean over rows is its upper bound: rows share one unknown function.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros", attribution="shapley")
    >>> ax = gpattr.plots.interaction_matrix(explainer.interactions(X[:5]), row=0)
    """
    whole = summary_of(explanation, row)
    shown = whole.leading(max_display)
    d = len(shown.names)
    numbers = d <= WITH_NUMBERS
    wide, high = (3.3 + 0.62 * d, 2.5 + 0.5 * d) if numbers else (3.6 + 0.27 * d, 3.6 + 0.27 * d)
    ax = axes_for(ax, max(wide, 6.4), high)
    limit = _limit(shown.values)
    beyond = not numbers and bool((np.abs(np.nan_to_num(shown.values)) > limit).any())
    ends = f" (colours end at ±{readable(limit, 2)})" if beyond else ""
    colored = np.ones((d, d), dtype=bool)
    if numbers:
        colored = np.triu(colored, 1)
        _numbers(ax, shown, level)
    _squares(ax, shown, colored & ~np.isnan(shown.values), level, limit)
    _grid(ax, shown)
    scale = ScalarMappable(Normalize(-limit, limit), DIVERGING)
    arrows = "both" if beyond else "neither"
    color_scale(ax, scale, f"interaction{ends}", aspect=30, extend=arrows)
    tidy(ax, shown.title, subtitle=baseline_of(explanation.by_pair, _words(whole, d, numbers)))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if shown.std is not None:
        _legend(ax, level, numbers)
    return ax


def _limit(values: Array) -> float:
    """Return where colours end: at the largest interaction, main effects left out."""
    size = np.nan_to_num(np.abs(values))
    largest = float(size[np.triu_indices(len(size), 1)].max(initial=0.0))
    return largest or float(size.max(initial=0.0)) or 1.0


def _squares(ax: Axes, shown: InteractionSummary, drawn: Array, level: float, limit: float) -> None:
    i, j = np.nonzero(drawn)
    sure = certainty(shown.sure[i, j], level)
    side = np.where(sure >= 1.0, FULL, LEAST + (HALF - LEAST) * sure)
    squares = [Rectangle((x - s / 2, y - s / 2), s, s) for x, y, s in zip(j, i, side, strict=True)]
    colors = DIVERGING(Normalize(-limit, limit, clip=True)(shown.values[i, j]))
    # A pale square of a small value stays visible, so that its size can be read.
    ax.add_collection(
        PatchCollection(squares, facecolors=colors, edgecolors="0.72", linewidths=0.4)
    )


def _numbers(ax: Axes, shown: InteractionSummary, level: float) -> None:
    """Write values, with standard deviations, below the diagonal and on it."""
    d = len(shown.names)
    i, j = np.tril_indices(d)
    known = ~np.isnan(shown.values[i, j])
    i, j = i[known], j[known]
    values, spreads = _written(shown.values[i, j], None if shown.std is None else shown.std[i, j])
    sure = certainty(shown.sure[i, j], level) >= 1.0
    for x, y, text, spread, certain in zip(j, i, values, spreads, sure, strict=True):
        ink, weight = (INK, "bold") if certain else ("0.45", "normal")
        lift = -0.13 if spread else 0.0
        size = 8 if len(text) < 7 else 7
        place: dict[str, Any] = {"ha": "center", "va": "center"}
        ax.text(x, y + lift, text, fontsize=size, color=ink, fontweight=weight, **place)
        ax.text(x, y + 0.2, spread, fontsize=6.5, color="0.45", **place)


def _written(values: Array, std: Array | None) -> tuple[list[str], list[str]]:
    """Return values and standard deviations as texts, rounded where these are uncertain."""
    top = float(np.abs(values).max(initial=0.0))
    if std is None:
        return readable_all(values, 3, sign="+", minus=True), [""] * len(values)
    # two digits of a typical standard deviation that begins with 1 or 2, one digit of others
    typical, digits = float(np.median(std)) / 3.0 if len(std) else 0.0, 3
    if typical > 0 and top > 0:
        digits = int(np.clip(np.floor(np.log10(top)) - np.floor(np.log10(typical)) + 1, 2, 5))
    spreads = readable_all(std, digits, largest=top)
    texts = readable_all(values, digits, sign="+", minus=True, largest=top)
    return texts, [f"±{spread}" for spread in spreads]


def _grid(ax: Axes, shown: InteractionSummary) -> None:
    """Draw the cells and the names of the features."""
    d = len(shown.names)
    lines = np.arange(d + 1) - 0.5
    ax.hlines(lines, -0.5, d - 0.5, color="0.9", lw=0.6, zorder=0)
    ax.vlines(lines, -0.5, d - 0.5, color="0.9", lw=0.6, zorder=0)
    for k in range(d):
        ax.add_patch(Rectangle((k - 0.5, k - 0.5), 1, 1, facecolor="0.94", lw=0, zorder=0))
    ax.set_xlim(-0.5, d - 0.5)
    ax.set_ylim(d - 0.5, -0.5)
    names = [short(name, 26) for name in shown.names]
    small = 9 if d <= 20 else 8
    ax.set_yticks(np.arange(d), names, fontsize=small)
    ax.set_xticks(
        np.arange(d), names, rotation=40, ha="right", rotation_mode="anchor", fontsize=small
    )


def _words(whole: InteractionSummary, d: int, numbers: bool) -> str:
    """Return the contents of the picture's parts, in words."""
    parts = [] if d == len(whole.names) else [f"{d} of {len(whole.names)} features"]
    bound = "at most " if whole.mean else ""
    spread = "" if whole.std is None else f", ± {bound}one standard deviation"
    parts.append(
        f"numbers below the diagonal{spread}; main effects on it"
        if numbers
        else "main effects on the diagonal"
    )
    return "; ".join(parts)


def _legend(ax: Axes, level: float, numbers: bool) -> None:
    texts = {
        f"sign at least {share(level)} sure{' (bold)' if numbers else ''}": (FULL, GREY),
        "less sure": (HALF, UNSURE),
        "sign unknown": (LEAST, UNSURE),
    }
    marks = [
        Line2D([], [], ls="", marker="s", ms=8 * side, mfc=color, mec=color, label=text)
        for text, (side, color) in texts.items()
    ]
    legend(ax, marks, 3)
