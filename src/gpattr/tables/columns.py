"""Which columns are numbers, categories or dates, which are left out, and which cannot be
explained.
"""

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
from gpattr.tables.missing import first_row, missing, refuse_missing
from gpattr.tables.numbers import read_numbers, refuse_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """The features ``names`` of a table; those in ``categories`` have labels, {name: labels},
    ``dates`` are dates.

    ``target`` is the column that is predicted. ``units`` are the signs or units that numbers are
    written with, {name: unit}, and ``separators`` what separates their thousands, {name: "," or
    "."}. ``others`` are the labels that stand for all categories that are too rare to have their
    own, {name: label}. Columns that are ``left_out`` may be in a table, and are not looked at.
    ``notes`` say what was decided, in sentences."""

    names: Names
    categories: Mapping[str, tuple[str, ...]]
    target: str
    dates: Mapping[str, Dates] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    left_out: Names = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    separators: Mapping[str, str] = field(default_factory=dict)

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
        _check_mapping("others", self.others, tuple(self.categories), str)
        for name in ("left_out", "notes"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(text, str) for text in value):
                raise InvalidInputError(f"{name}: expected a tuple of texts, got {value!r}")

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
            "separators": dict(self.separators),
            "others": dict(self.others),
            "left_out": list(self.left_out),
        }

    @classmethod
    def of_content(cls, content: Any) -> Columns:
        """Return what `to_content` made; files of earlier versions have names, categories and the
        target only.
        """
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
        """Return what the columns of a table are, and say in `notes` what was decided; with
        ``strict`` refuse to decide.

        Columns that are empty, almost all missing or identifiers are left out, rare categories are
        grouped. Text among numbers, mixed currencies and dates that cannot be read are refused."""
        labels = list(require_frame("frame", frame).columns)
        check_text("target", target)
        check_flag("strict", strict)
        if isinstance(drop, str) or not isinstance(drop, (list, tuple)):
            raise InvalidInputError(f"drop: expected a list of columns, got {drop!r}")
        for name in (target, *drop):
            if name not in labels:
                raise InvalidInputError(f"{source}: expected a column {name!r}; there are {labels}")
        if target in drop:
            raise InvalidInputError(
                f"{source}: the column {target!r} is the target, and cannot be left out"
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
        found = Decisions(frame, source, strict)
        for name in names:
            found.look_at(name)
        found.read_dates()
        kept = tuple(name for name in names if name not in found.left_out)
        if not kept:
            raise InvalidInputError(
                f"{source}: expected at least one column that can be used besides the target"
                f" {target!r}; "
                + "; ".join(f"{name!r} {why}" for name, why in found.left_out.items())
            )
        units, separators = dict(found.units), dict(found.separators)
        numbers = read_numbers(frame[target], target, source)
        if numbers.unit:
            units[target] = numbers.unit
        if numbers.separator:
            separators[target] = numbers.separator
        left_out = (*drop, *found.left_out)
        return cls(
            kept,
            found.categories,
            target,
            found.dates,
            units,
            found.others,
            left_out,
            tuple(found.notes()),
            separators,
        )

    def features(
        self,
        frame: Any,
        *,
        strict: bool = False,
        impute: bool = True,
        typical: Mapping[str, Any] | None = None,
        source: str = "table",
    ) -> pd.DataFrame:
        """Return the features of a table: numbers as float64, categories as text, dates as
        datetime64.

        Missing values are filled with ``typical`` values, or with medians and the most frequent
        categories of the table itself; with ``strict``, or impute=False, they are refused. Texts
        that are not known become the label for other categories, where the column has one."""
        import pandas as pd

        refuse = check_flag("strict", strict) or not check_flag("impute", impute)
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
                values = _labels(
                    frame[name], name, self.categories[name], self.others.get(name), source
                )
            elif name in self.dates:
                values = _dates(frame[name], name, self.dates[name], source)
            else:
                values = self._numbers(frame[name], name, source)
            columns[name] = self._filled(values, name, usual, refuse, source)
        return pd.DataFrame(columns, index=frame.index)

    def _filled(self, values: Any, name: str, usual: Any, refuse: bool, source: str) -> Any:
        """Return a column without missing values; with ``refuse`` there must be none."""
        holes = values.isna()
        if not holes.any():
            return values
        if refuse:
            refuse_missing(holes, name, source)
        known = values[~holes]
        if usual is None and not len(known):
            raise InvalidInputError(
                f"{source}: the column {name!r} is empty, and nothing is known to fill it with"
            )
        if usual is None and name in self.categories:
            usual = known.mode().iloc[0]
        elif usual is None and name in self.dates:
            encoding = self.dates[name]
            usual = encoding.decode(np.median(encoding.encode(known.to_numpy()), axis=0)[None])[0]
        elif usual is None:
            usual = known.median()
        return values.where(~holes, usual)

    def _numbers(self, column: Any, name: str, source: str) -> Any:
        """Return a column as numbers, as those it is known by are written."""
        return _numbers(
            column, name, source, self.units.get(name, ""), self.separators.get(name, "")
        )

    def measured(self, frame: Any) -> Array | None:
        """Return the target as numbers, with NaN where it is not a number; None where the table has
        none.
        """
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


def require_frame(name: str, frame: Any) -> Any:
    """Return ``frame`` if it is one."""
    if not is_frame(frame):
        raise InvalidInputError(f"{name}: expected a frame, got a {type(frame).__name__}")
    return frame


def _check_mapping(name: str, value: Any, known: Sequence[str], kind: type) -> None:
    if (
        not isinstance(value, Mapping)
        or not set(value) <= set(known)
        or not all(isinstance(v, kind) for v in value.values())
    ):
        raise InvalidInputError(
            f"{name}: expected a dictionary {{column: {kind.__name__}}}, got {value!r}"
        )


def _numbers(column: Any, name: str, source: str, unit: str = "", separator: str = "") -> Any:
    """Return a column as float64, with NaN where values are missing; they may be written with their
    unit, or without.
    """
    found = read_numbers(column, name, source, separator)
    values, known = found.values, ~missing(column)
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
    holes = missing(column)
    text = column.astype(str).str.strip().astype(object)
    strange = ~text.isin(known) & ~holes
    if strange.any() and other is None:
        label, row = text[strange].iloc[0], first_row(strange)
        raise InvalidInputError(
            f"{source}: expected one of {list(known)} in column {name!r}, got {label!r} in row"
            f" {row}"
        )
    return text.where(~strange, other).where(~holes)
