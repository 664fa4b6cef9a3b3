"""Rows and baselines chosen on the command line: 1-10,17 and row:17."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from gpattr.exceptions import InvalidInputError
from gpattr.operators import Baselines
from gpattr.tables import Columns, read_table


def chosen_rows(text: str | None, rows: Any, option: str = "--rows") -> np.ndarray:
    """Return the positions, from 0, of the rows numbered ``1-10,17``; of all for None.

    Rows are numbered from 1 as in their file; ``rows`` are the numbers of the rows that are left,
    or how many rows there are.
    """
    numbers = np.arange(1, rows + 1) if isinstance(rows, int) else np.asarray(rows)
    n = int(numbers[-1]) if len(numbers) else 0
    if text is None or text.strip().lower() == "all":
        return np.arange(len(numbers))
    chosen: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]+)(-([0-9]*))?", part.strip())
        if found is None:
            raise InvalidInputError(
                f"{option}: expected numbers and ranges such as 1-10,17, got {text!r}"
            )
        ends = int(found[1]), int(found[3] or (n if found[2] else found[1]))
        if not 1 <= ends[0] <= ends[1] <= n:
            raise InvalidInputError(f"{option}: expected rows from 1 to {n}, got {part.strip()!r}")
        chosen += range(ends[0] - 1, ends[1])
    wanted = np.array(list(dict.fromkeys(chosen))) + 1
    absent = wanted[~np.isin(wanted, numbers)]
    if len(absent):
        raise InvalidInputError(
            f"{option}: row {absent[0]} was left out because its target is missing; choose other"
            " rows"
        )
    return np.searchsorted(numbers, wanted)


def chosen_attribution(text: str) -> str:
    """Return the attribution by the name that an `Explainer` gives it."""
    names = {"integrated-gradients": "integrated_gradients", "shapley": "shapley"}
    found = text.strip().lower().replace("_", "-")
    if found not in names:
        raise InvalidInputError(
            f"--attribution: expected integrated-gradients or shapley, got {text!r}"
        )
    return names[found]


def chosen_baseline(text: str, X: Any, columns: Columns, source: str) -> tuple[Any, str | None]:
    """Return the baseline given by ``mean``, ``median``, ``row:17`` or a file, and its name.

    A file has one row, or several rows to average over.
    """
    if text in ("mean", "median"):
        return text, None
    if text.startswith("row:"):
        (row,) = (
            chosen_rows(text[4:], X.index, "--baseline")[:1]
            if re.fullmatch(r"\s*[0-9]+\s*", text[4:])
            else (None,)
        )
        if row is None:
            raise InvalidInputError(f"--baseline: expected row:N, for example row:17, got {text!r}")
        return X.iloc[[row]], f"row {X.index[row]} of {source}"
    if not Path(text).is_file():
        raise InvalidInputError(
            f"--baseline: expected mean, median, row:N or an existing file, got {text!r}"
        )
    points = columns.features(read_table(text, fewest=1), strict=True, source=text)
    if len(points) == 1:
        return points, f"the row of {Path(text).name}"
    return Baselines(points), f"average over {len(points)} points of {Path(text).name}"
