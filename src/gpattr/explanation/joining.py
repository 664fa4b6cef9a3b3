"""Explanations of several batches of rows as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

SHARED = ("feature_names", "baseline_name", "quantity")


def concatenate(parts: Iterable[Explanation]) -> Explanation:
    """Return explanations by one explainer, of any rows, as one."""
    from gpattr.explanation.explanation import Explanation

    if not isinstance(parts, Iterable) or getattr(parts, "ndim", 1) == 0:
        raise InvalidInputError(
            f"parts: expected explanations, one output each, got a {type(parts).__name__}"
        )
    parts = list(parts)
    for k, part in enumerate(parts):
        if not isinstance(part, Explanation):
            raise InvalidInputError(
                f"parts: expected explanations, one output each, got a {type(part).__name__} as"
                f" part {k}"
            )
    if not parts:
        raise InvalidInputError("parts: expected at least one explanation, got none")
    first = parts[0]
    dimensions = first.dimensions()
    arrays: dict[str, Any] = {}
    for k, part in enumerate(parts):
        different = [name for name in SHARED if getattr(part, name, None) != getattr(first, name)]
        if different or part.dimensions() != dimensions or set(part.labels) != set(first.labels):
            what = different[0] if different else f"set of arrays ({', '.join(part.dimensions())})"
            raise InvalidInputError(
                f"parts: expected explanations by one explainer, but the {what} of part {k} is"
                " another"
            )
    for name, names in dimensions.items():
        pieces = [getattr(part, name) for part in parts]
        sizes = {
            tuple(size for size, dim in zip(np.shape(piece), names, strict=True) if dim != "row")
            for piece in pieces
        }
        if "row" in names and len(sizes) == 1:
            arrays[name] = np.concatenate(pieces, axis=names.index("row"))
        elif len(sizes) > 1 or any(
            not np.array_equal(piece, pieces[0], equal_nan=True) for piece in pieces
        ):
            raise InvalidInputError(
                f"parts: expected explanations by one explainer, but their {name} differ"
            )
    return replace(
        first,
        **arrays,
        row_names=tuple(name for part in parts for name in part.row_names),
        method=" + ".join(dict.fromkeys(part.method for part in parts)),
        labels={
            name: tuple(text for part in parts for text in part.labels[name])
            for name in first.labels
        },
    )
