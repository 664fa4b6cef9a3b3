"""Colours of categories: the most frequent have one each, the others share one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D

from gpattr._core.array import Array
from gpattr.plots.legends import mark
from gpattr.plots.style import SERIES
from gpattr.plots.words import short

MOST = 5  # colours a feature; more than that nobody tells apart in a crowd
OTHERS = "0.25"
LONGEST = 14  # letters, so that one line of a legend fits into a picture


def category_colors(labels: Sequence[str]) -> tuple[Array, list[tuple[str, str]]]:
    """Return the colour of each row, (n, 4), and a legend: [("wood", "#0072B2"), …].

    The most frequent categories come first.
    """
    counts = Counter(labels)
    names = sorted(counts, key=lambda name: (-counts[name], name))
    own = names if len(names) <= MOST else names[: MOST - 1]
    meaning = {name: SERIES[i] for i, name in enumerate(own)}
    rgba = to_rgba_array([meaning.get(name, OTHERS) for name in labels])
    rest = len(names) - len(own)
    return rgba, [*meaning.items()] + ([(f"{rest} others", OTHERS)] if rest else [])


def category_marks(meanings: dict[str, list[tuple[str, str]]]) -> tuple[list[Line2D], int]:
    """Return the entries of a legend with one line for each feature, and its number of columns."""
    columns = 1 + max(map(len, meanings.values()))
    grid = np.full((len(meanings), columns), None, dtype=object)
    for line, (feature, meaning) in zip(grid, meanings.items(), strict=True):
        line[0] = Line2D([], [], ls="", label=f"{short(feature, 20)}:")
        line[1 : 1 + len(meaning)] = [
            mark(short(name, LONGEST), color, color) for name, color in meaning
        ]
    blank: Any = Line2D([], [], ls="", label=" ")
    return [
        blank if entry is None else entry for entry in grid.T.ravel()
    ], columns  # legends are filled column by column
