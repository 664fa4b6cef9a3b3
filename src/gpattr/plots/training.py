"""Training rows behind an attribution, and the remainder where their shares cancel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpattr._core.array import to_numpy
from gpattr._core.validation import check_text, numbers
from gpattr.distributions.positions import listed
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.contributions import Contributions
from gpattr.plots.style import BLUE, GREY, INK, ORANGE, axes_for, largest, tidy
from gpattr.plots.words import baseline_text, short, steps

_NOTHING = Contributions.of(np.empty(0), "", "prediction", None, "")


def training(
    contributions: Any,
    *,
    names: Sequence[Any] | None = None,
    max_display: int = 10,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Draw the shares of training rows in one attribution, the largest first.

    ``contributions`` is ``explainer.training_contributions(x, feature)``. The other rows are added
    up, those that raise the attribution and those that lower it separately; the last bar is the sum
    of all. Where shares nearly cancel it is far shorter than they are. ``names`` are the training
    rows' names, by default their positions.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ax = gpattr.plots.training(explainer.training_contributions([1.0, 0.0], "x0"))
    """
    shares = to_numpy(numbers("contributions", contributions))
    if shares.ndim != 1 or not len(shares):
        raise InvalidInputError(
            "contributions: expected one number for each training row, got the shape"
            f" {shares.shape}"
        )
    check_text("title", title)
    labels, values = _bars(shares, _checked_names(names, len(shares)), max_display)
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
    _write(ax, places, values)
    up, down, net = steps(
        np.array([shares[shares > 0].sum(), shares[shares < 0].sum(), shares.sum()])
    )
    about = contributions if isinstance(contributions, Contributions) else _NOTHING
    return tidy(
        ax,
        title or _heading(about),
        f"share of the attribution to the {about.quantity}; {up} and {down} add up to {net}",
        subtitle=baseline_text(about.baseline_name, about.attribution),
    )


def _checked_names(names: Any, count: int) -> list[Any] | None:
    """Return the names of the training rows as a list; None where there are none."""
    if names is None:
        return None
    table = isinstance(names, np.ndarray) and names.ndim > 1
    found = None if table or isinstance(names, set) else listed(names)
    if found is None or len(found) != count:
        got = repr(names) if found is None else len(found)
        raise InvalidInputError(f"names: expected {count}, one for each training row, got {got}")
    return found


def _bars(
    shares: np.ndarray, names: list[Any] | None, max_display: int
) -> tuple[list[str], np.ndarray]:
    """Return names and lengths: the largest shares, the sums of the others, the sum of all."""
    shown = largest(np.abs(shares), max_display)
    rest = np.delete(shares, shown)
    bars = [(f"row {i}" if names is None else short(str(names[i])), shares[i]) for i in shown]
    for part, word in ((rest[rest > 0], "raise"), (rest[rest < 0], "lower")):
        if len(part):
            bars.append((f"{len(part):,} others that {word} it", part.sum()))
    bars.append((f"sum of all {len(shares):,} rows", shares.sum()))
    return [name for name, _ in bars], np.array([value for _, value in bars], dtype=float)


def _write(ax: Axes, places: np.ndarray, values: np.ndarray) -> None:
    """Write the numbers beside their bars."""
    for place, value, text in zip(places, values, steps(values), strict=True):
        side, align = (-4, "right") if value < 0 else (4, "left")
        ax.annotate(
            text,
            (value, place),
            (side, 0),
            textcoords="offset points",
            va="center",
            ha=align,
            fontsize=9,
        )


def _heading(about: Contributions) -> str:
    """Return a title: which row and which feature the shares are about."""
    of = f"the attribution of {short(about.feature)}" if about.feature else "one attribution"
    row = about.row_name
    where = f"Row {row}: " if isinstance(row, int) else f"{short(row)}: " if row else ""
    heading = f"{where}training rows behind {of}"
    return heading[0].upper() + heading[1:]
