"""Which columns are numbers, which are categories, and which cannot be explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._array import Array
from gpattr._validation import Names, positions_of
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
MOST_CATEGORIES = 30
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True)
class Columns:
    """The features ``names`` of a table; those in ``categories`` have labels, {name: labels}, the others are numbers.

    ``target`` is the column that is predicted.
    """

    names: Names
    categories: Mapping[str, tuple[str, ...]]
    target: str

    @classmethod
    def of(cls, frame: Any, target: str, *, drop: Sequence[str] = (), source: str = "table") -> Columns:
        """Return what the columns of a table are; refuse dates, and text that is neither a number nor a category."""
        labels = list(frame.columns)
        for name in (target, *drop):
            if name not in labels:
                raise InvalidInputError(f"{source}: expected a column {name!r}; there are {labels}")
        names = tuple(name for name in labels if name != target and name not in drop)
        if not names:
            raise InvalidInputError(f"{source}: expected at least one column besides the target {target!r}")
        categories = {}
        for name in names:
            found = _categories(frame[name], name, source)
            if found is not None:
                categories[name] = found
        return cls(names, categories, target)

    def features(self, frame: Any, *, impute: bool = False, source: str = "table") -> pd.DataFrame:
        """Return the features of a table: numbers as float64, categories as text."""
        import pandas as pd

        positions_of(source, [label for label in frame.columns if label != self.target], self.names)
        columns: dict[str, Any] = {}
        for name in self.names:
            if name in self.categories:
                columns[name] = _labels(frame[name], name, self.categories[name], impute, source)
            else:
                columns[name] = _filled(_numbers(frame[name], name, source), name, impute, source)
        return pd.DataFrame(columns, index=frame.index)

    def targets(self, frame: Any, *, source: str = "table") -> Array:
        """Return the target as numbers; it must be known in every row, and not always the same."""
        if self.target not in frame.columns:
            raise InvalidInputError(f"{source}: expected a column {self.target!r}; there are {list(frame.columns)}")
        y = _filled(_numbers(frame[self.target], self.target, source), self.target, False, source).to_numpy()
        if len(y) < 5:
            raise InvalidInputError(f"{source}: expected at least 5 rows to learn from, got {len(y)}")
        if np.ptp(y) == 0:
            raise InvalidInputError(f"{source}: expected targets that differ, got {y[0]:g} in every row of {self.target!r}")
        return y


def _missing(column: Any) -> Any:
    return column.isna() | column.astype(str).str.strip().str.lower().isin(MISSING)


def _parsed(column: Any) -> Any:
    """Return a column as float64, with NaN for what is no number; a comma may stand for the point."""
    import pandas as pd

    if column.dtype.kind in "iufb":
        return column.astype(np.float64)
    text = column.astype(str).str.strip()
    values: Any = pd.to_numeric(text.where(~_missing(column)).str.replace(",", ".", regex=False), errors="coerce")
    return values.astype(np.float64)


def _categories(column: Any, name: str, source: str) -> tuple[str, ...] | None:
    """Return the labels of a column of categories; None for one of numbers."""
    known = column[~_missing(column)]
    if not len(known):
        raise InvalidInputError(f"{source}: the column {name!r} is empty; leave it out: --drop {name!r}")
    if known.dtype.kind == "M" or known.astype(str).str.strip().str.fullmatch(DATE).all():
        raise InvalidInputError(
            f"{source}: the column {name!r} has dates; make numbers of them (days since the first, month, weekday) or leave "
            f"them out: --drop {name!r}"
        )
    wrong = _parsed(known).isna()
    if not wrong.any():
        return None
    if wrong.mean() < 0.5:
        row, text = wrong.index[wrong.to_numpy().argmax()], known[wrong].iloc[0]
        raise InvalidInputError(f"{source}: expected a number in column {name!r}, got {str(text)!r} in row {row}")
    labels = tuple(sorted(set(known.astype(str).str.strip())))
    if len(labels) > MOST_CATEGORIES:
        raise InvalidInputError(
            f"{source}: the column {name!r} has {len(labels)} different texts, more than categories can be ({MOST_CATEGORIES}); "
            f"leave it out: --drop {name!r}"
        )
    return labels


def _numbers(column: Any, name: str, source: str) -> Any:
    values = _parsed(column)
    wrong = values.isna() & ~_missing(column)
    if wrong.any():
        row, text = wrong.index[wrong.to_numpy().argmax()], column[wrong].iloc[0]
        raise InvalidInputError(f"{source}: expected a number in column {name!r}, got {str(text)!r} in row {row}")
    if np.isinf(values).any():
        raise InvalidInputError(f"{source}: expected finite numbers in column {name!r}, got {values[np.isinf(values)].iloc[0]}")
    return values


def _filled(values: Any, name: str, impute: bool, source: str) -> Any:
    if not values.isna().any():
        return values
    if not impute:
        _refuse_missing(values.isna(), name, source)
    return values.fillna(values.median())


def _labels(column: Any, name: str, known: tuple[str, ...], impute: bool, source: str) -> Any:
    missing = _missing(column)
    text = column.astype(str).str.strip()
    if missing.any():
        if not impute:
            _refuse_missing(missing, name, source)
        text = text.where(~missing, text[~missing].mode().iloc[0])
    strange = ~text.isin(known)
    if strange.any():
        row = strange.index[strange.to_numpy().argmax()]
        raise InvalidInputError(f"{source}: expected one of {list(known)} in column {name!r}, got {text[row]!r} in row {row}")
    return text


def _refuse_missing(missing: Any, name: str, source: str) -> None:
    row = missing.index[missing.to_numpy().argmax()]
    raise InvalidInputError(
        f"{source}: {int(missing.sum())} values are missing in column {name!r}, the first in row {row}; fill them in, or let "
        "medians and the commonest categories stand for those of features: --impute"
    )
