"""Explanations of several batches of rows as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    from gpattr.explanation import Explanation

SHARED = ("feature_names", "baseline_name", "quantity")


def concatenate(parts: Iterable[Explanation]) -> Explanation:
    """Return explanations by one explainer, of any rows, as one."""
    parts = list(parts)
    if not parts:
        raise InvalidInputError("parts: expected at least one explanation, got none")
    first = parts[0]
    dimensions = first.dimensions()
    arrays: dict[str, Any] = {}
    for k, part in enumerate(parts):
        different = [name for name in SHARED if getattr(part, name, None) != getattr(first, name)]
        if type(part) is not type(first) or different or part.dimensions() != dimensions or set(part.labels) != set(first.labels):
            what = " and ".join(different) or "kind of result"
            raise InvalidInputError(f"parts: expected explanations by one explainer, but the {what} of part {k} is another")
    for name, names in dimensions.items():
        pieces = [getattr(part, name) for part in parts]
        if "row" in names:
            arrays[name] = np.concatenate(pieces, axis=names.index("row"))
        elif any(not np.array_equal(piece, pieces[0], equal_nan=True) for piece in pieces):
            raise InvalidInputError(f"parts: expected explanations by one explainer, but their {name} differ")
    return replace(
        first,
        **arrays,
        row_names=tuple(name for part in parts for name in part.row_names),
        method=" + ".join(dict.fromkeys(part.method for part in parts)),
        labels={name: tuple(text for part in parts for text in part.labels[name]) for name in first.labels},
    )
