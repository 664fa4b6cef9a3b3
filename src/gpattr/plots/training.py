"""Training rows behind an attribution, and what remains where their shares cancel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpattr._core.array import to_numpy
from gpattr._core.validation import check_text, numbers
from gpattr.exceptions import InvalidInputError
from gpattr.plots.style import BLUE, GREY, INK, ORANGE, axes_for, largest, tidy
from gpattr.plots.words import baseline_of, short, steps


def training(
    contributions: Any,
    *,
    names: Sequence[Any] | None = None,
    max_display: int = 10,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Draw the shares of training rows in one attribution, ``explainer.training_contributions(x,
    feature)``, the largest first.

    The others are added up, those that raise the attribution and those that lower it by themselves;
    the last bar is the sum of all. Where shares nearly cancel it is far shorter than they are.
    ``names`` are what the training rows are called, by default their positions."""
    shares = to_numpy(numbers("contributions", contributions))
    if shares.ndim != 1 or not len(shares):
        raise InvalidInputError(
            "contributions: expected one number for each training row, got the shape"
            f" {shares.shape}"
        )
    if names is not None:
        if (
            not isinstance(names, Iterable)
            or isinstance(names, (str, set))
            or getattr(names, "ndim", 1) != 1
        ):
            raise InvalidInputError(
                f"names: expected {len(shares)}, one for each training row, got {names!r}"
            )
        names = list(names)
        if len(names) != len(shares):
            raise InvalidInputError(
                f"names: expected {len(shares)}, one for each training row, got {len(names)}"
            )
    check_text("title", title)
    shown = largest(np.abs(shares), max_display)
    rest = np.delete(shares, shown)
    bars = [(f"row {i}" if names is None else short(str(names[i])), shares[i]) for i in shown]
    for part, word in ((rest[rest > 0], "raise"), (rest[rest < 0], "lower")):
        if len(part):
            bars.append((f"{len(part):,} others that {word} it", part.sum()))
    bars.append((f"sum of all {len(shares):,} rows", shares.sum()))
    labels, values = zip(*bars, strict=True)
    values = np.array(values, dtype=float)
    colors = np.where(values < 0, BLUE, ORANGE).tolist()
    colors[-1] = GREY
    places = np.arange(len(values), 0.0, -1.0)
    places[-1] = 0.6  # apart from what is added up
    ax = axes_for(ax, 7.0, 1.7 + 0.36 * len(values))
    ax.barh(places, values, height=0.62, color=colors, alpha=0.85)
    ax.axvline(0.0, color=INK, lw=0.8)
    ax.axhline(1.3, color="0.75", lw=0.8)
    ax.set_yticks(places, labels)
    ax.margins(x=0.16)
    for place, value, text in zip(places, values, steps(values), strict=True):
        side = -1 if value < 0 else 1
        align = "right" if value < 0 else "left"
        ax.annotate(
            text,
            (value, place),
            (4 * side, 0),
            textcoords="offset points",
            va="center",
            ha=align,
            fontsize=9,
        )
    up, down, net = steps(
        np.array([shares[shares > 0].sum(), shares[shares < 0].sum(), shares.sum()])
    )
    feature = getattr(contributions, "feature", "")
    of = f"the attribution of {short(feature)}" if feature else "one attribution"
    quantity = getattr(contributions, "quantity", "prediction")
    row = getattr(contributions, "row_name", None)
    where = f"Row {row}: " if isinstance(row, int) else f"{short(row)}: " if row else ""
    heading = f"{where}training rows behind {of}"
    return tidy(
        ax,
        title or heading[0].upper() + heading[1:],
        f"share of the attribution to the {quantity}; {up} and {down} add up to {net}",
        subtitle=baseline_of(contributions) if getattr(contributions, "baseline_name", "") else "",
    )
