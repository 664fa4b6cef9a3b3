"""Which columns are numbers, which are categories, and which cannot be explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._array import Array
from gpattr._validation import Names, check_flag, check_names, check_text, is_frame, positions_of
from gpattr.adapters.dates import Dates
from gpattr.adapters.encoder import Encoder
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
MOST_CATEGORIES = 30
WITH_UNIT = re.compile(r"[-+−]?\d+(?:[.,]\d+)?\s*(%|[€$£°]\S*|[^\W\d_]\S*)")
ADVICE = "fill them in, or let medians and the commonest categories stand for those of features: --impute"
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True)
class Columns:
    """The features ``names`` of a table; those in ``categories`` have labels, {name: labels}, ``dates`` are dates.

    ``target`` is the column that is predicted. ``units`` are the signs or units that numbers are written with, {name: unit}.
    ``others`` are the labels that stand for all categories that are too rare to have their own, {name: label}. Columns that are
    ``left_out`` may be in a table, and are not looked at. ``notes`` say what was decided, in sentences.
    """

    names: Names
    categories: Mapping[str, tuple[str, ...]]
    target: str
    dates: Mapping[str, Dates] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    left_out: Names = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_names("names", self.names, len(self.names) if isinstance(self.names, tuple) else 0)
        check_text("target", self.target)
        if not isinstance(self.categories, Mapping) or not set(self.categories) <= set(self.names):
            raise InvalidInputError(f"categories: expected a dictionary {{name: labels}} of features, got {self.categories!r}")

    @property
    def encoder(self) -> Encoder | None:
        """What makes numbers of features; None where they are numbers already."""
        if not self.categories and not self.dates:
            return None
        return Encoder(self.names, dict(self.categories), dates=dict(self.dates))

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values, without the notes."""
        return {
            "names": list(self.names),
            "categories": {name: list(labels) for name, labels in self.categories.items()},
            "target": self.target,
            "dates": {name: dates.to_content() for name, dates in self.dates.items()},
            "units": dict(self.units),
            "others": dict(self.others),
            "left_out": list(self.left_out),
        }

    @classmethod
    def of_content(cls, content: Any) -> Columns:
        """Return what `to_content` made; files of earlier versions have names, categories and the target only."""
        return cls(
            tuple(content["names"]),
            {name: tuple(labels) for name, labels in content["categories"].items()},
            content["target"],
            dates={name: Dates.of_content(dates) for name, dates in content.get("dates", {}).items()},
            units=dict(content.get("units", {})),
            others=dict(content.get("others", {})),
            left_out=tuple(content.get("left_out", ())),
        )

    @classmethod
    def of(cls, frame: Any, target: str, *, drop: Sequence[str] = (), source: str = "table") -> Columns:
        """Return what the columns of a table are; refuse dates, and text that is neither a number nor a category."""
        labels = list(require_frame("frame", frame).columns)
        check_text("target", target)
        if isinstance(drop, str) or not isinstance(drop, (list, tuple)):
            raise InvalidInputError(f"drop: expected a list of columns, got {drop!r}")
        for name in (target, *drop):
            if name not in labels:
                raise InvalidInputError(f"{source}: expected a column {name!r}; there are {labels}")
        if target in drop:
            raise InvalidInputError(f"{source}: the column {target!r} is the target, and cannot be left out")
        names = tuple(name for name in labels if name != target and name not in drop)
        if not names:
            raise InvalidInputError(f"{source}: expected at least one column besides the target {target!r}")
        categories = {}
        for name in names:
            found = _categories(frame[name], name, source)
            if found is not None:
                categories[name] = found
        return cls(names, categories, target)

    def features(
        self, frame: Any, *, impute: bool = False, typical: Mapping[str, Any] | None = None, source: str = "table"
    ) -> pd.DataFrame:
        """Return the features of a table: numbers as float64, categories as text.

        With ``impute`` holes are filled by ``typical`` values, or by medians and the commonest categories of the table itself.
        """
        import pandas as pd

        check_flag("impute", impute)
        if typical is not None and not isinstance(typical, Mapping):
            raise InvalidInputError(f"typical: expected a dictionary {{name: value}}, got {typical!r}")
        typical = typical or {}
        labels = list(require_frame("frame", frame).columns)
        positions_of(source, [label for label in labels if label != self.target], self.names)
        columns: dict[str, Any] = {}
        for name in self.names:
            if name in self.categories:
                columns[name] = _labels(frame[name], name, self.categories[name], impute, source, typical.get(name))
            else:
                columns[name] = _filled(_numbers(frame[name], name, source), name, impute, source, typical=typical.get(name))
        return pd.DataFrame(columns, index=frame.index)

    def measured(self, frame: Any) -> Array | None:
        """Return the target as numbers, with NaN where it is no number; None where the table has none."""
        require_frame("frame", frame)
        return _parsed(frame[self.target]).to_numpy() if self.target in frame.columns else None

    def targets(self, frame: Any, *, source: str = "table") -> Array:
        """Return the target as numbers; it must be known in every row, and not always the same."""
        if self.target not in require_frame("frame", frame).columns:
            raise InvalidInputError(f"{source}: expected a column {self.target!r}; there are {list(frame.columns)}")
        advice = "the target cannot be filled in: leave these rows out of the table"
        y = _filled(_numbers(frame[self.target], self.target, source), self.target, False, source, advice).to_numpy()
        if len(y) < 5:
            raise InvalidInputError(f"{source}: expected at least 5 rows to learn from, got {len(y)}")
        if np.ptp(y) == 0:
            raise InvalidInputError(f"{source}: expected targets that differ, got {y[0]:g} in every row of {self.target!r}")
        return y


def require_frame(name: str, frame: Any) -> Any:
    """Return ``frame`` if it is one."""
    if not is_frame(frame):
        raise InvalidInputError(f"{name}: expected a frame, got a {type(frame).__name__}")
    return frame


def missing(column: Any) -> Any:
    """Return which entries of a column are holes, however they are written."""
    return column.isna() | column.astype(str).str.strip().str.lower().isin(MISSING)


def _parsed(column: Any) -> Any:
    """Return a column as float64, with NaN for what is no number; a comma may stand for the point, 1.234,5 for 1234.5."""
    import pandas as pd

    if column.dtype.kind in "iufb":
        return column.astype(np.float64)
    text = column.astype(str).str.strip().where(~missing(column))
    for between, point in ((".", ","), (",", ".")):  # thousands are told by one number that has both, or two groups of them
        if text.str.fullmatch(rf"[-+]?\d{{1,3}}((\{between}\d{{3}})+\{point}\d+|(\{between}\d{{3}}){{2,}})").any():
            text = text.str.replace(between, "", regex=False)
            break
    values: Any = pd.to_numeric(text.str.replace(",", ".", regex=False), errors="coerce")
    return values.astype(np.float64)


def _categories(column: Any, name: str, source: str) -> tuple[str, ...] | None:
    """Return the labels of a column of categories; None for one of numbers."""
    known = column[~missing(column)]
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
    parts = [WITH_UNIT.fullmatch(label) for label in labels]
    if len(labels) > 2 and all(parts) and len({part[1] for part in parts if part}) == 1:
        raise InvalidInputError(
            f"{source}: the column {name!r} has numbers with a unit, such as {labels[0]!r}; leave the unit out, or the column: "
            f"--drop {name!r}"
        )
    if len(labels) > MOST_CATEGORIES:
        raise InvalidInputError(
            f"{source}: the column {name!r} has {len(labels)} different texts, more than categories can be ({MOST_CATEGORIES}); "
            f"leave it out: --drop {name!r}"
        )
    return labels


def _numbers(column: Any, name: str, source: str) -> Any:
    values = _parsed(column)
    wrong = values.isna() & ~missing(column)
    if wrong.any():
        row, text = wrong.index[wrong.to_numpy().argmax()], column[wrong].iloc[0]
        raise InvalidInputError(f"{source}: expected a number in column {name!r}, got {str(text)!r} in row {row}")
    if np.isinf(values).any():
        raise InvalidInputError(f"{source}: expected finite numbers in column {name!r}, got {values[np.isinf(values)].iloc[0]}")
    return values


def _filled(values: Any, name: str, impute: bool, source: str, advice: str = ADVICE, typical: float | None = None) -> Any:
    if not values.isna().any():
        return values
    if not impute:
        _refuse_missing(values.isna(), name, source, advice)
    return values.fillna(values.median() if typical is None else typical)


def _labels(column: Any, name: str, known: tuple[str, ...], impute: bool, source: str, typical: str | None = None) -> Any:
    holes = missing(column)
    text = column.astype(str).str.strip()
    if holes.any():
        if not impute:
            _refuse_missing(holes, name, source, ADVICE)
        text = text.where(~holes, text[~holes].mode().iloc[0] if typical is None else typical)
    strange = ~text.isin(known)
    if strange.any():
        row = strange.index[strange.to_numpy().argmax()]
        raise InvalidInputError(f"{source}: expected one of {list(known)} in column {name!r}, got {text[row]!r} in row {row}")
    return text


def _refuse_missing(holes: Any, name: str, source: str, advice: str) -> None:
    row = holes.index[holes.to_numpy().argmax()]
    raise InvalidInputError(
        f"{source}: {int(holes.sum())} values are missing in column {name!r}, the first in row {row}; {advice}"
    )
