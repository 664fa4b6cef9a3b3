"""Identifiers: columns whose values only name rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gpattr.tables.missing import missing

NEARLY_ALL = 0.9  # share of distinct texts among many
MANY = 30  # distinct texts, more than a column of categories has
FEWEST = 10  # rows; fewer may all be distinct by chance
NAMED = re.compile(r"(?:.*[_\s.-])?(?i:id|index|idx|nr|no|number|key|uuid)|.*[a-z](?:Id|ID|Nr|No)")


def looks_like_identifier(column: Any) -> bool:
    """Return whether texts are all distinct, or nearly so if there are many."""
    known = column[~missing(column)].astype(str).str.strip()
    different = known.nunique()
    if different == len(known):
        return len(known) >= FEWEST
    return different > MANY and different >= NEARLY_ALL * len(known)


def looks_numbered(values: Any, name: str) -> bool:
    """Return whether distinct integers count the rows, or are named like an identifier."""
    values = np.asarray(values, dtype=np.float64)
    values = values[~np.isnan(values)]
    if (
        len(values) < FEWEST
        or (values != np.floor(values)).any()
        or len(np.unique(values)) < len(values)
    ):
        return False
    return (
        bool(values[0] in (0, 1) and (np.diff(values) == 1).all())
        or NAMED.fullmatch(name.strip()) is not None
    )
