"""Columns of a table: numbers, categories, dates, and omitted columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import (
    Names,
    check_flag,
    check_names,
    check_text,
    is_frame,
    positions_of,
)
from gpattr.encoders.dates import Dates
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.tables.dates import DateTexts, wall_clock
from gpattr.tables.decisions import Decisions
from gpattr.tables.missing import are_words, first_row, missing, refuse_missing
from gpattr.tables.numbers import read_numbers, refuse_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """The features ``names`` of a table, and how each of them is read.

    ``categories`` are the labels of the categorical ones, {name: labels}, and ``dates`` the
    encodings of dates. ``target`` is the column to predict. ``units`` are the signs or units that
    numbers are written with, {name: unit}, and ``separators`` their thousands separators, {name:
    "," or "."}. ``words`` among numbers are read as missing values, {name: words}. ``others`` are
    the labels that stand for all rare categories, {name: label}.
    Columns in ``left_out`` may be in a table, and are ignored. ``notes`` are sentences on what was
    decided.

    Examples
    --------
    >>> from gpattr.tables import Columns
    >>> Columns(("size", "kind"), {"kind": ("a", "b")}, target="price").names
    ('size', 'kind')
    """

    names: Names
    categories: Mapping[str, tuple[str, ...]]
    target: str
    dates: Mapping[str, Dates] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    left_out: Names = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    separators: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_names("names", self.names, len(self.names) if isinstance(self.names, tuple) else 0)
        check_text("target", self.target)
        if not isinstance(self.categories, Mapping) or not set(self.categories) <= set(self.names):
            raise InvalidInputError(
                "categories: expected a dictionary {name: labels} of features, got"
                f" {self.categories!r}"
            )
        _check_mapping("dates", self.dates, self.names, Dates)
        _check_mapping("units", self.units, (*self.names, self.target), str)
        _check_mapping("separators", self.separators, (*self.names, self.target), str)
        _check_mapping("words", self.words, self.names, tuple)
        _check_mapping("others", self.others, tuple(self.categories), str)
        for name in ("left_out", "notes"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(text, str) for text in value):
                raise InvalidInputError(f"{name}: expected a tuple of texts, got {value!r}")

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the features as numbers; None if they are all numbers."""
        if not self.categories and not self.dates:
            return None
        return Encoder(self.names, dict(self.categories), dates=dict(self.dates))

    def to_content(self) -> dict[str, Any]:
        """Return the columns as JSON values, without the notes."""
        return {
            "names": list(self.names),
            "categories": {name: list(labels) for name, labels in self.categories.items()},
            "target": self.target,
            "dates": {name: dates.to_content() for name, dates in self.dates.items()},
            "units": dict(self.units),
            "separators": dict(self.separators),
            "words": {name: list(words) for name, words in self.words.items()},
            "others": dict(self.others),
            "left_out": list(self.left_out),
        }

    @classmethod
    def of_content(cls, content: Any) -> Columns:
        """Return `to_content`'s columns; older files have names, categories and target only."""
        if not isinstance(content, Mapping):
            raise InvalidInputError(
                f"content: expected what Columns.to_content returns, got a {type(content).__name__}"
            )
        return cls(
            tuple(content["names"]),
            {name: tuple(labels) for name, labels in content["categories"].items()},
            content["target"],
            dates={
                name: Dates.of_content(dates) for name, dates in content.get("dates", {}).items()
            },
            units=dict(content.get("units", {})),
            others=dict(content.get("others", {})),
            left_out=tuple(content.get("left_out", ())),
            separators=dict(content.get("separators", {})),
            words={name: tuple(words) for name, words in content.get("words", {}).items()},
        )

    @classmethod
    def of(
        cls,
        frame: Any,
        target: str,
        *,
        drop: Sequence[str] = (),
        strict: bool = False,
        source: str = "table",
    ) -> Columns:
        """Decide each column's kind in a table, with `notes` on it; with ``strict``, fail instead.

        Columns that are empty, almost empty or identifiers are left out, rare categories are
        grouped; a few words among numbers make them categories, or are missing values. Much text
        among numbers, mixed currencies and unreadable dates are errors.
        """
        check_flag("strict", strict)
        names = _candidates(frame, target, drop, source)
        found = Decisions(frame, source, strict)
        for name in names:
            found.look_at(name)
        found.read_dates()
        kept = tuple(name for name in names if name not in found.left_out)
        if not kept:
            raise InvalidInputError(
                f"{source}: expected at least one usable column besides the target {target!r}; "
                + "; ".join(f"{name!r} {why}" for name, why in found.left_out.items())
            )
        units, separators = dict(found.units), dict(found.separators)
        numbers = read_numbers(frame[target], target, source, point=found.point)
        if numbers.unit:
            units[target] = numbers.unit
        if numbers.separator:
            separators[target] = numbers.separator
        return cls(
            kept,
            found.categories,
            target,
            dates=found.dates,
            units=units,
            others=found.others,
            left_out=(*drop, *found.left_out),
            notes=tuple(found.notes()),
            separators=separators,
            words=found.words,
        )

    def features(
        self,
        frame: Any,
        *,
        strict: bool = False,
        impute: bool = True,
        typical: Mapping[str, Any] | None = None,
        fixed: bool = False,
        source: str = "table",
    ) -> pd.DataFrame:
        """Return the features: numbers as float64, categories as text, dates as datetime64.

        Missing values are filled with ``typical`` values, or with medians and the most frequent
        categories of the table itself; with ``strict``, or impute=False, they are errors. Unknown
        texts become the label for other categories, if the column has one. With ``fixed``, for a
        part of a table, thousands separators that the columns do not have are errors: another part
        would read the same text as another number.
        """
        import pandas as pd

        refuse = check_flag("strict", strict) or not check_flag("impute", impute)
        check_flag("fixed", fixed)
        if typical is not None and not isinstance(typical, Mapping):
            raise InvalidInputError(
                f"typical: expected a dictionary {{name: value}}, got {typical!r}"
            )
        labels = list(require_frame("frame", frame).columns)
        aside = {self.target, *self.left_out} - set(self.names)
        positions_of(source, [label for label in labels if label not in aside], self.names)
        columns: dict[str, Any] = {}
        for name in self.names:
            usual = (typical or {}).get(name)
            if name in self.categories:
                column = self._without_words(frame[name], name)
                labels, other = self.categories[name], self.others.get(name)
                values = _labels(column, name, labels, other, source)
            elif name in self.dates:
                values = _dates(frame[name], name, self.dates[name], source)
            else:
                values = self._numbers(frame[name], name, source, fixed)
            columns[name] = self._filled(values, name, usual, refuse, source)
        return pd.DataFrame(columns, index=frame.index)

    def _filled(self, values: Any, name: str, usual: Any, refuse: bool, source: str) -> Any:
        """Return a column with missing values filled; with ``refuse`` they are errors."""
        gaps = values.isna()
        if not gaps.any():
            return values
        if refuse:
            refuse_missing(gaps, name, source)
        known = values[~gaps]
        if usual is None and not len(known):
            raise InvalidInputError(
                f"{source}: the column {name!r} is empty, and there is no value to fill it with"
            )
        return values.where(~gaps, self._usual(known, name) if usual is None else usual)

    def _usual(self, known: Any, name: str) -> Any:
        """Return the median of a column, or its most frequent category."""
        if name in self.categories:
            return known.mode().iloc[0]
        if name in self.dates:
            encoding = self.dates[name]
            return encoding.decode(np.median(encoding.encode(known.to_numpy()), axis=0)[None])[0]
        return known.median()

    def _numbers(self, column: Any, name: str, source: str, fixed: bool = False) -> Any:
        """Return a column as numbers, with the unit and separator it is known by."""
        unit, separator = self.units.get(name, ""), self.separators.get(name, "")
        column = self._without_words(column, name)
        return _numbers(column, name, source, unit, separator, fixed)

    def _without_words(self, column: Any, name: str) -> Any:
        """Return a column whose words that count as missing values are missing."""
        if name not in self.words:
            return column
        return column.mask(column.astype(str).str.strip().isin(self.words[name]))

    def measured(self, frame: Any) -> Array | None:
        """Return the target as numbers, NaN where it is not one; None if the table has none."""
        require_frame("frame", frame)
        if self.target not in frame.columns:
            return None
        return read_numbers(
            frame[self.target], separator=self.separators.get(self.target, "")
        ).values.to_numpy()

    def targets(self, frame: Any, *, source: str = "table") -> Array:
        """Return the target as numbers; it must be known in every row, and not always the same."""
        if self.target not in require_frame("frame", frame).columns:
            raise InvalidInputError(
                f"{source}: expected a column {self.target!r}; there are {list(frame.columns)}"
            )
        values = self._numbers(frame[self.target], self.target, source)
        if values.isna().any():
            advice = "the target cannot be filled in: leave these rows out of the table"
            refuse_missing(values.isna(), self.target, source, advice)
        y = values.to_numpy()
        if len(y) < 5:
            raise InvalidInputError(
                f"{source}: expected at least 5 rows to learn from, got {len(y)}"
            )
        if np.ptp(y) == 0:
            raise InvalidInputError(
                f"{source}: expected targets that differ, got {y[0]:g} in every row of"
                f" {self.target!r}"
            )
        return y


def typical_values(columns: Columns, X: Any) -> dict[str, Any]:
    """Return the medians and the most frequent categories of features, by column."""
    return {name: columns._usual(X[name], name) for name in columns.names}


def targets_of_part(columns: Columns, frame: Any, source: str) -> Array:
    """Return the targets of some rows as numbers, NaN where they are missing."""
    column = frame[columns.target]
    return columns._numbers(column, columns.target, source, fixed=True).to_numpy()


def require_frame(name: str, frame: Any) -> Any:
    """Return ``frame`` if it is a data frame."""
    if not is_frame(frame):
        raise InvalidInputError(f"{name}: expected a data frame, got a {type(frame).__name__}")
    return frame


def _candidates(frame: Any, target: str, drop: Sequence[str], source: str) -> list[str]:
    """Return the columns besides the target and dropped ones; refuse impossible requests."""
    labels = list(require_frame("frame", frame).columns)
    check_text("target", target)
    if isinstance(drop, str) or not isinstance(drop, (list, tuple)):
        raise InvalidInputError(f"drop: expected a list of columns, got {drop!r}")
    for name in (target, *drop):
        if name not in labels:
            raise InvalidInputError(
                f"{source}: expected a column {name!r}; the columns are {labels}"
            )
    if target in drop:
        raise InvalidInputError(
            f"{source}: the column {target!r} is the target and cannot be left out"
        )
    if len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        raise InvalidInputError(
            f"{source}: expected different column names, got {repeated!r} more than once"
        )
    names = [name for name in labels if name != target and name not in drop]
    if not names:
        raise InvalidInputError(
            f"{source}: expected at least one column besides the target {target!r}"
        )
    return names


def _check_mapping(name: str, value: Any, known: Sequence[str], kind: type) -> None:
    if (
        not isinstance(value, Mapping)
        or not set(value) <= set(known)
        or not all(isinstance(v, kind) for v in value.values())
    ):
        raise InvalidInputError(
            f"{name}: expected a dictionary {{column: {kind.__name__}}}, got {value!r}"
        )


def _numbers(
    column: Any, name: str, source: str, unit: str = "", separator: str = "", fixed: bool = False
) -> Any:
    """Return a column as float64, NaN where values are missing, with or without their unit.

    With ``fixed``, the column must not have a thousands separator other than ``separator``.
    """
    found = read_numbers(column, name, source, separator)
    values = found.values
    if fixed and found.separator != separator:
        there = column.astype(str).str.contains(found.separator, regex=False)
        raise InvalidInputError(
            f"{source}: expected numbers without thousands separators in column {name!r}, as in the"
            f" rows that the model was trained on, got {str(column[there].iloc[0])!r} in row"
            f" {first_row(there)}"
        )
    if not values.isna().any() and np.isfinite(values).all() and (found.units == "").all():
        return values
    known = ~missing(column)
    wrong = values.isna() & known
    if wrong.any():
        refuse_text(wrong, column, name, source)
    strange = known & ~found.units.isin(["", unit])
    if strange.any():
        text, what = (
            str(column[strange].iloc[0]),
            f"numbers in {unit}" if unit else "numbers without a unit",
        )
        raise InvalidInputError(
            f"{source}: expected {what} in column {name!r}, got {text!r} in row"
            f" {first_row(strange)}"
        )
    if np.isinf(values).any():
        raise InvalidInputError(
            f"{source}: expected finite numbers in column {name!r}, got"
            f" {values[np.isinf(values)].iloc[0]}"
        )
    return values


def _dates(column: Any, name: str, dates: Dates, source: str) -> Any:
    """Return a column as datetime64[us], with NaT where values are missing."""
    import pandas as pd

    if column.dtype.kind == "M":
        return pd.Series(wall_clock(column), index=column.index)
    there = ~missing(column).to_numpy()
    values = np.full(len(column), np.datetime64("NaT"), dtype="datetime64[us]")
    if (texts := DateTexts.of(column[there], fewest=0.0)) is not None:
        values[there] = texts.dates(dates.order, name, source)
    return pd.Series(values, index=column.index)


def _labels(column: Any, name: str, known: tuple[str, ...], other: str | None, source: str) -> Any:
    """Return a column as labels, with NaN where values are missing."""
    import pandas as pd

    gaps = missing(column, words=are_words(pd.Series(known, dtype=object)))
    text = column.astype(str).str.strip().astype(object)
    strange = ~text.isin(known) & ~gaps
    if strange.any() and other is None:
        label, row = text[strange].iloc[0], first_row(strange)
        raise InvalidInputError(
            f"{source}: expected one of {list(known)} in column {name!r}, got {label!r} in row"
            f" {row}"
        )
    return text.where(~strange, other).where(~gaps)
