"""Dates written as 2024-12-31, 31/12/2024, 12/31/2024, 31.12.2024 or 31 Dec 2024, with times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr.encoders.dates import DAY_FIRST, MONTH_FIRST
from gpattr.exceptions import InvalidInputError

MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTHS = {name: i for i, name in enumerate(MONTH_NAMES, 1)}
NAMED_MONTH = rf"(?P<month>(?i:{'|'.join(MONTHS)})[A-Za-z]{{0,6}})\.?"
TIME = (
    r"(?:(?:T|,?"
    r" +)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)? ?"
    r"(?P<half>[AaPp]\.?[Mm]\.?)? ?(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2})?)?"
)
FORMS = (
    rf"(?P<year>\d{{4}})(?P<sep>[-/.])(?P<two>\d{{1,2}})(?P=sep)(?P<one>\d{{1,2}}){TIME}",
    rf"(?P<first>\d{{1,2}})(?P<sep>[-/.])(?P<second_>\d{{1,2}})(?P=sep)"
    rf"(?P<year>\d{{4}}|\d{{2}}){TIME}",
    (
        rf"(?P<one>\d{{1,2}})(?:st|nd|rd|th|\.)?[ /-]?{NAMED_MONTH},?["
        rf" /-]?(?P<year>\d{{4}}|\d{{2}}){TIME}"
    ),
    rf"{NAMED_MONTH} +(?P<one>\d{{1,2}})(?:st|nd|rd|th)?,? +(?P<year>\d{{4}}){TIME}",
    r"(?P<year>(?:1[5-9]|20|21)\d{2})[-/](?P<two>0[1-9]|1[0-2])",
)
NAMES = (
    "year",
    "one",
    "two",
    "first",
    "second_",
    "month",
    "sep",
    "hour",
    "minute",
    "second",
    "fraction",
    "half",
    "zone",
)
PIVOT = 69  # two-digit years are 1969 to 2068, as in POSIX
SHARE = 0.5  # of the values that must look like dates


@dataclass(frozen=True)
class DateTexts:
    """The parsed dates of a column: ``texts``, their ``parts`` (a column each), and ``rows``."""

    texts: Any
    parts: Any
    rows: Any

    @classmethod
    def of(cls, known: Any, *, fewest: float = SHARE) -> DateTexts | None:
        """Return the parsed values of a column, or None if fewer than half look like dates."""
        import pandas as pd

        texts = known.astype(str).str.strip().reset_index(drop=True)
        if not len(texts) or texts.iloc[:1000].map(_looks_like_date).mean() < fewest:
            return None
        parts = pd.DataFrame("", index=texts.index, columns=list(NAMES), dtype=object)
        left = pd.Series(True, index=texts.index)
        for form in FORMS:
            found = texts[left].str.extract(rf"^{form}$").fillna("")
            found = found[found["year"] != ""]
            for label in found.columns:
                parts.loc[found.index, label] = found[label].astype(object)
            left.loc[found.index] = False
            if not left.any():
                break
        return None if (~left).mean() < fewest else cls(texts, parts, known.index)

    @property
    def ambiguous(self) -> str:
        """An example of an ambiguous date, with different day and month if there is one."""
        first, second = (_whole(self.parts[label]) for label in ("first", "second_"))
        told = self.texts[(first >= 0) & (first != second)]
        return str((told if len(told) else self.texts[first >= 0]).iloc[0])

    @property
    def orders(self) -> set[str]:
        """The orders of day and month that no value contradicts."""
        first, second = self._large
        # 12.31.2024 is not in use.
        dotted = ((self.parts["sep"] == ".") & (self.parts["first"] != "")).any()
        orders = set()
        if not (second & ~first).any():
            orders.add(DAY_FIRST)
        if not (first & ~second).any() and not (dotted and orders):
            orders.add(MONTH_FIRST)
        return orders

    @property
    def _large(self) -> tuple[Array, Array]:
        """Masks: the first number, and the second, is too large for a month."""
        first, second = (_whole(self.parts[label]) > 12 for label in ("first", "second_"))
        return first, second

    @property
    def numeric(self) -> bool:
        """Whether there are dates whose order matters, such as 3/4/2024."""
        return bool((self.parts["first"] != "").any())

    @property
    def likely(self) -> str:
        """The default order: the day is a number that is always 1, or else comes first."""
        first, second = (
            _whole(self.parts[label])[self.parts["first"] != ""] for label in ("first", "second_")
        )
        return MONTH_FIRST if (second == 1).all() and not (first == 1).all() else DAY_FIRST

    @property
    def short_years(self) -> str:
        """An example of a two-digit year, or ""."""
        short = self.parts["year"].str.len() == 2
        return str(self.texts[short].iloc[0]) if short.any() else ""

    @property
    def zones(self) -> int:
        """The number of distinct time zones."""
        timed = self.parts["hour"] != ""
        return self.parts["zone"][timed].nunique()

    def refuse_contradiction(self, name: str, source: str) -> None:
        """Refuse a column where the day comes first in one row and second in another."""
        if self.orders:
            return
        first, second = self._large
        places = sorted(
            int((one & ~other).argmax()) for one, other in ((first, second), (second, first))
        )
        shown = " and ".join(f"{self.texts[place]!r} in row {self.rows[place]}" for place in places)
        raise InvalidInputError(
            f"{source}: expected dates in one order in column {name!r}, got {shown}; write them as"
            f" 2024-12-31, or leave them out: --drop {name!r}"
        )

    def dates(self, order: str | None, name: str, source: str) -> Array:
        """Return the dates as datetime64[us]; refuse unreadable ones."""
        parts = self.parts
        one, two = (_whole(parts[label]) for label in ("one", "two"))
        first, second = (_whole(parts[label]) for label in ("first", "second_"))
        day, month = (first, second) if order != MONTH_FIRST else (second, first)
        named = (
            parts["month"]
            .str.slice(0, 3)
            .str.lower()
            .map(MONTHS)
            .fillna(-1)
            .astype(np.int64)
            .to_numpy()
        )
        day = np.where(first >= 0, day, np.where(one >= 0, one, 1))  # 2024-12 is its first day
        month = np.where(first >= 0, month, np.where(two >= 0, two, named))
        year = _whole(parts["year"])
        short = (parts["year"].str.len() == 2).to_numpy()
        year = np.where(short, year + np.where(year < PIVOT, 2000, 1900), year)
        months = (year - 1970).astype("timedelta64[Y]").astype("timedelta64[M]") + (
            month - 1
        ).astype("timedelta64[M]")
        days = (np.datetime64("1970-01", "M") + months).astype("datetime64[D]") + (day - 1).astype(
            "timedelta64[D]"
        )
        right = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1)
        right &= days.astype("datetime64[M]") == np.datetime64("1970-01", "M") + months
        microseconds, in_day = self._times()
        right &= in_day
        if not right.all():
            at = int((~right).argmax())
            how = "" if order is None else f" with the {order}"
            raise InvalidInputError(
                f"{source}: expected a date{how} in column {name!r}, got {self.texts[at]!r} in row"
                f" {self.rows[at]}"
            )
        return days.astype("datetime64[us]") + microseconds

    def _times(self) -> tuple[Array, Array]:
        """Return the times of day in microseconds, 0 where absent, and whether they exist."""
        parts = self.parts
        hour, minute, second = (
            np.maximum(_whole(parts[label]), 0) for label in ("hour", "minute", "second")
        )
        half = parts["half"].str.slice(0, 1).str.lower().to_numpy()
        right = (
            (hour < 24)
            & (minute < 60)
            & (second < 60)
            & ((half == "") | ((hour >= 1) & (hour <= 12)))
        )
        hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
        fraction = _whole(
            parts["fraction"].str.ljust(6, "0").str.slice(0, 6).where(parts["fraction"] != "", "0")
        )
        return ((hour * 60 + minute) * 60 + second).astype("timedelta64[s]") + fraction.astype(
            "timedelta64[us]"
        ), right


def chosen_order(column: DateTexts, others: Mapping[str, DateTexts]) -> tuple[str | None, bool]:
    """Return the order of day and month in a column, or None, and whether it is ambiguous.

    An ambiguous order is taken from the other columns of dates, if they agree.
    """
    if not column.numeric:
        return None, False
    if len(column.orders) == 1:
        return next(iter(column.orders)), False
    told = {
        next(iter(other.orders))
        for other in others.values()
        if other.numeric and len(other.orders) == 1
    }
    return (next(iter(told)) if len(told) == 1 else column.likely), True


def wall_clock(column: Any) -> Array:
    """Return a column of datetime64 as datetime64[us], in local time if it has a time zone."""
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_localize(None)
    return column.to_numpy().astype("datetime64[us]")


def _looks_like_date(text: str) -> bool:
    return any(re.fullmatch(form, text) for form in FORMS)


def _whole(texts: Any) -> Array:
    """Return texts of digits as integers, −1 for an empty text."""
    return texts.where(texts != "", "-1").astype(np.int64).to_numpy()
