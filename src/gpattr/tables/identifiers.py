"""Identifiers: columns whose values name rows, and say nothing of other rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gpattr.tables.missing import missing

NEARLY_ALL = 0.9  # of the texts that are different, where there are many
MANY = 30  # different texts, more than a column of categories has
FEWEST = 10  # rows from which on texts that are all different name them
NAMED = re.compile(r"(?:.*[_\s.-])?(?i:id|index|idx|nr|no|number|key|uuid)|.*[a-z](?:Id|ID|Nr|No)")


def looks_like_identifier(column: Any) -> bool:
    """Tell whether texts are all different, or nearly so where there are many of them."""
    known = column[~missing(column)].astype(str).str.strip()
    different = known.nunique()
    if different == len(known):
        return len(known) >= FEWEST
    return different > MANY and different >= NEARLY_ALL * len(known)


def looks_numbered(values: Any, name: str) -> bool:
    """Tell whether numbers are whole and all different, and count the rows from 0 or 1, or are
    called an identifier.
    """
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
