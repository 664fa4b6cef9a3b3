"""Dates on axes and in colours: a table's dates are drawn by their day."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import (
    HOURLY,
    MINUTELY,
    MONTHLY,
    SECONDLY,
    AutoDateLocator,
    ConciseDateFormatter,
)

from gpattr._core.array import Array

FEWEST = 4  # dates at an axis
LONGEST = {MONTHLY: 12, HOURLY: 24, MINUTELY: 60, SECONDLY: 60}  # steps of each unit
ISO = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d.*)?")


def days_of(labels: Sequence[str]) -> Array | None:
    """Return texts that are all dates as days since 1970, (n,); None for categories."""
    if not labels or not all(ISO.fullmatch(text) for text in labels):
        return None
    try:
        return (
            np.array([text.replace(" ", "T") for text in labels], dtype="datetime64[s]").astype(
                np.float64
            )
            / 86_400.0
        )
    except ValueError:  # the thirty-first of February is a category
        return None


def date_axis(ax: Axes, *, upward: bool = False, most: int = 7) -> None:
    """Write dates, at most ``most``, at an axis of days: that across, or that upward."""
    few = most < 7
    locator = AutoDateLocator(minticks=2 if few else 3, maxticks=max(most, FEWEST))
    if few:  # its own intervals do not reach from one unit to the next with so few ticks
        for unit, longest in LONGEST.items():
            locator.intervald[unit] = [*locator.intervald[unit], longest]
    axis = ax.yaxis if upward else ax.xaxis
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))
