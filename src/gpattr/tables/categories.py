"""Categories: the texts of a column, of which the most frequent are kept where there are too many."""

from __future__ import annotations

from itertools import chain, count
from typing import Any

MOST_CATEGORIES = 30
FEWEST_ROWS = 5  # of a category that is kept where not all can be: fewer teach nothing about it


def frequent_labels(texts: Any) -> tuple[tuple[str, ...], str | None]:
    """Return the labels of a column, sorted, and which of them stands for all others: None where
    every text has its own.

    More than 30 texts are the 29 most frequent, as far as they have 5 rows each, and "other", which
    is the last. There is none but "other" where no text has 5 rows."""
    counts = texts.value_counts()
    if len(counts) <= MOST_CATEGORIES:
        return tuple(sorted(counts.index)), None
    ranked = sorted(
        counts.items(), key=lambda item: (-item[1], item[0])
    )  # ties by name, for the order of rows says nothing
    kept = [label for label, rows in ranked[: MOST_CATEGORIES - 1] if rows >= FEWEST_ROWS]
    taken = {label.casefold() for label in counts.index}
    names = chain(("other", "all others"), (f"all others ({i})" for i in count(2)))
    other = next(name for name in names if name not in taken)
    return (*sorted(kept), other), other
