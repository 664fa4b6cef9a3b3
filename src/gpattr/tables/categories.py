"""Categories: the distinct texts of a column, or the most frequent of too many."""

from __future__ import annotations

from itertools import chain, count
from typing import Any

MOST_CATEGORIES = 30
FEWEST_ROWS = 5  # of a category that is kept if not all can be


def frequent_labels(texts: Any) -> tuple[tuple[str, ...], str | None]:
    """Return the sorted labels of a column, and the one that stands for all others, or None.

    Of more than 30 texts, the 29 most frequent with at least 5 rows each are kept, and "other" is
    the last label. If no text has 5 rows, "other" is the only one.
    """
    counts = texts.value_counts()
    if len(counts) <= MOST_CATEGORIES:
        return tuple(sorted(counts.index)), None
    # Ties are broken by name, since the order of the rows is arbitrary.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [label for label, rows in ranked[: MOST_CATEGORIES - 1] if rows >= FEWEST_ROWS]
    taken = {label.casefold() for label in counts.index}
    names = chain(("other", "all others"), (f"all others ({i})" for i in count(2)))
    other = next(name for name in names if name not in taken)
    return (*sorted(kept), other), other
