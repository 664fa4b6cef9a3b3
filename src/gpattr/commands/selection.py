"""Which rows are meant by 1-10,17, and which baseline by row:17 or a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from gpattr.exceptions import InvalidInputError
from gpattr.operators import Baselines
from gpattr.tables import Columns, read_table


def chosen_rows(text: str | None, n: int, option: str = "--rows") -> np.ndarray:
    """Return positions, from 0, of rows that are counted from 1: ``1-10,17``; all of them for None."""
    if text is None or text.strip().lower() == "all":
        return np.arange(n)
    chosen: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]+)(-([0-9]*))?", part.strip())
        if found is None:
            raise InvalidInputError(f"{option}: expected numbers and ranges such as 1-10,17, got {text!r}")
        ends = int(found[1]), int(found[3] or (n if found[2] else found[1]))
        if not 1 <= ends[0] <= ends[1] <= n:
            raise InvalidInputError(f"{option}: expected rows from 1 to {n}, got {part.strip()!r}")
        chosen += range(ends[0] - 1, ends[1])
    return np.array(list(dict.fromkeys(chosen)))


def chosen_baseline(text: str, X: Any, columns: Columns, source: str) -> tuple[Any, str | None]:
    """Return a baseline and its name: ``mean``, ``median``, ``row:17``, or a file with one row, or several to average over."""
    if text in ("mean", "median"):
        return text, None
    if text.startswith("row:"):
        (row,) = chosen_rows(text[4:], len(X), "--baseline")[:1] if re.fullmatch(r"\s*[0-9]+\s*", text[4:]) else (None,)
        if row is None:
            raise InvalidInputError(f"--baseline: expected row:17 or the like, got {text!r}")
        return X.iloc[[row]], f"row {row + 1} of {source}"
    if not Path(text).is_file():
        raise InvalidInputError(f"--baseline: expected mean, median, row:17 or a file that exists, got {text!r}")
    points = columns.features(read_table(text, fewest=1), source=text)
    if len(points) == 1:
        return points, f"the row of {Path(text).name}"
    if columns.categories:
        raise InvalidInputError(f"--baseline: expected one row in {text}, because there are categories, got {len(points)}")
    return Baselines(points), f"average over {len(points)} points of {Path(text).name}"
