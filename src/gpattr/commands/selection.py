"""Which rows are meant by 1-10,17, and which baseline by row:17 or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gpattr.exceptions import InvalidInputError
from gpattr.operators import Baselines
from gpattr.tables import Columns, read_table


def chosen_rows(text: str | None, n: int) -> np.ndarray:
    """Return positions, from 0, of rows that are counted from 1: ``1-10,17``; all of them for None."""
    if text is None or text.strip().lower() == "all":
        return np.arange(n)
    chosen: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        try:
            ends = int(first), int(last or first)
        except ValueError:
            raise InvalidInputError(f"--rows: expected numbers and ranges such as 1-10,17, got {text!r}") from None
        if not 1 <= ends[0] <= ends[1] <= n:
            raise InvalidInputError(f"--rows: expected rows from 1 to {n}, got {part.strip()!r}")
        chosen += range(ends[0] - 1, ends[1])
    return np.array(list(dict.fromkeys(chosen)))


def chosen_baseline(text: str, X: Any, columns: Columns) -> Any:
    """Return a baseline: ``mean``, ``median``, ``row:17``, or a file with one row, or with several to average over."""
    if text in ("mean", "median"):
        return text
    if text.startswith("row:"):
        (row,) = chosen_rows(text[4:], len(X))[:1] if text[4:].strip().isdigit() else (None,)
        if row is None:
            raise InvalidInputError(f"--baseline: expected row:17 or the like, got {text!r}")
        return X.iloc[[row]]
    if not Path(text).is_file():
        raise InvalidInputError(f"--baseline: expected mean, median, row:17 or a file that exists, got {text!r}")
    points = columns.features(read_table(text), source=text)
    if len(points) == 1:
        return points
    if columns.categories:
        raise InvalidInputError(f"--baseline: expected one row in {text}, because there are categories, got {len(points)}")
    return Baselines(points)
