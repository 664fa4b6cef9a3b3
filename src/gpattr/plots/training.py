"""Which training rows made an attribution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpattr._array import to_numpy
from gpattr._validation import check_text, numbers
from gpattr.exceptions import InvalidInputError
from gpattr.plots.style import BLUE, GREY, INK, ORANGE, axes_for, largest, signed, tidy


def training(
    contributions: Any, *, names: Sequence[Any] | None = None, max_display: int = 10, ax: Axes | None = None, title: str = ""
) -> Axes:
    """Draw the shares of training rows in one attribution, ``explainer.training_contributions(x, feature)``, the largest first.

    The rest is added up. ``names`` are what the training rows are called, by default their positions.
    """
    shares = to_numpy(numbers("contributions", contributions))
    if shares.ndim != 1 or not len(shares):
        raise InvalidInputError(f"contributions: expected one number for each training row, got the shape {shares.shape}")
    if names is not None:
        if not isinstance(names, Iterable) or isinstance(names, (str, set)) or getattr(names, "ndim", 1) != 1:
            raise InvalidInputError(f"names: expected {len(shares)}, one for each training row, got {names!r}")
        names = list(names)
        if len(names) != len(shares):
            raise InvalidInputError(f"names: expected {len(shares)}, one for each training row, got {len(names)}")
    check_text("title", title)
    shown = largest(np.abs(shares), max_display)
    rest = np.setdiff1d(np.arange(len(shares)), shown)
    values = np.append(shares[shown], shares[rest].sum()) if len(rest) else shares[shown]
    labels = [f"row {i}" if names is None else str(names[i]) for i in shown]
    colors = np.where(values < 0, BLUE, ORANGE).astype(object)
    if len(rest):
        labels.append(f"{len(rest)} other rows")
        colors[-1] = GREY
    places = np.arange(len(values))[::-1]
    ax = axes_for(ax, 6.5, 1.1 + 0.36 * len(values))
    ax.barh(places, values, height=0.62, color=colors.tolist(), alpha=0.85)
    ax.axvline(0.0, color=INK, lw=0.8)
    ax.set_yticks(places, labels)
    total = signed(f"{shares.sum():.4g}")
    return tidy(ax, title or "Training rows behind one attribution", f"share of the attribution; all together {total}")
