"""Missing values, however they are written."""

from __future__ import annotations

from typing import Any, NoReturn

from gpattr.exceptions import InvalidInputError

ADVICE = (
    "fill them in, or run without --strict: medians and the most frequent categories then stand for"
    " them"
)
CATEGORY = "none"  # which is missing among numbers, and one of the categories among words
MISSING = frozenset({"", "na", "n/a", "nan", "nat", "null", "none", "<na>", "?", "-"})


def missing(column: Any) -> Any:
    """Return a mask of the missing entries of a column (empty, NA, ?, …)."""
    if column.dtype.kind in "iufbmM":
        return column.isna()
    text = column.astype(str).str.strip().str.lower()
    holes = column.isna() | text.isin(MISSING)
    named = text.eq(CATEGORY) & ~column.isna()
    if named.any() and _are_words(text[~holes]):
        holes = holes & ~named  # a garage of brick, of wood, or none
    return holes


def _are_words(text: Any) -> bool:
    """Tell whether most of these texts are neither numbers nor dates: they have a letter first."""
    return len(text) > 0 and bool(text.str.match(r"[^\W\d_]").mean() > 0.5)


def first_row(mask: Any) -> Any:
    """Return the label of the first row of a mask that is set."""
    return mask.index[int(mask.to_numpy().argmax())]


def refuse_missing(holes: Any, name: str, source: str, advice: str = ADVICE) -> NoReturn:
    """Refuse missing values, whose places ``holes`` are."""
    values = "1 value is" if holes.sum() == 1 else f"{holes.sum()} values are"
    raise InvalidInputError(
        f"{source}: {values} missing in column {name!r}, the first in row {first_row(holes)};"
        f" {advice}"
    )
