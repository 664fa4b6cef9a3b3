"""Missing values: empty entries, NA, ? and the like."""

from __future__ import annotations

from typing import Any, NoReturn

from gpattr.exceptions import InvalidInputError

ADVICE = "fill them in, or run without --strict to use medians and the most frequent categories"
CATEGORY = "none"  # a missing value among numbers, a category among words
MISSING = frozenset({"", "na", "n/a", "n.a.", "nan", "nat", "null", "none", "<na>", "?", "-"})


def missing(column: Any, words: bool | None = None) -> Any:
    """Return a mask of the missing entries of a column (empty, NA, ?, …).

    ``words`` says whether its values are words, of which "none" may be one, where this is known.
    """
    if column.dtype.kind in "iufbmM":
        return column.isna()
    text = column.astype(str).str.strip().str.lower()
    gaps = column.isna() | text.isin(MISSING)
    named = text.eq(CATEGORY) & ~column.isna()
    if named.any() and (are_words(text[~gaps]) if words is None else words):
        gaps = gaps & ~named  # a garage of brick, of wood, or none
    return gaps


def are_words(text: Any) -> bool:
    """Return whether most texts are neither numbers nor dates: they start with a letter."""
    return len(text) > 0 and bool(text.str.match(r"[^\W\d_]").mean() > 0.5)


def first_row(mask: Any) -> Any:
    """Return the label of the first row where a mask is True."""
    return mask.index[int(mask.to_numpy().argmax())]


def refuse_missing(gaps: Any, name: str, source: str, advice: str = ADVICE) -> NoReturn:
    """Refuse missing values, given by the mask ``gaps``."""
    values = "1 value is" if gaps.sum() == 1 else f"{gaps.sum()} values are"
    raise InvalidInputError(
        f"{source}: {values} missing in column {name!r}, the first in row {first_row(gaps)};"
        f" {advice}"
    )
