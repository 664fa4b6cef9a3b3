"""Dates as numbers: elapsed days, and the season, the weekday and the time of day as angles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import check_flag
from gpattr.exceptions import InvalidInputError

DAY_FIRST, MONTH_FIRST = "day first", "month first"
HALF_A_YEAR = 183.0  # days beyond which a season is distinguishable from elapsed time
DAY = 86_400_000_000  # microseconds


def _year(dates: Array) -> Array:
    """Return how much of its year has passed at each date, in [0, 1)."""
    year = dates.astype("datetime64[Y]")
    first, next_first = year.astype("datetime64[D]"), (year + 1).astype("datetime64[D]")
    return (dates.astype("datetime64[D]") - first).astype(np.float64) / (next_first - first).astype(
        np.float64
    )


def _week(dates: Array) -> Array:
    """Return the weekday of each date in parts of a week, from Monday 0 to Sunday 6/7.

    1970-01-01 was a Thursday.
    """
    return (dates.astype("datetime64[D]").astype(np.int64) + 3) % 7 / 7.0


def _time(dates: Array) -> Array:
    """Return how much of its day has passed at each date, in [0, 1)."""
    return dates.astype("datetime64[us]").astype(np.int64) % DAY / DAY


CYCLES: dict[str, Callable[[Array], Array]] = {
    "season": _year,
    "weekday": _week,
    "time of day": _time,
}


@dataclass(frozen=True)
class Dates:
    """The encoding of a column of dates: days since 1970, and its ``cycles`` u as angles.

    Each cycle gives two columns, sin 2πu and cos 2πu. The cycles are among "season", "weekday" and
    "time of day"; ``timed`` says that the dates have times. ``order`` is the order of days and
    months in texts such as 3/4/2024, where there are any.

    Examples
    --------
    >>> from gpattr.encoders import Dates
    >>> Dates(cycles=("season", "weekday"))
    Dates(cycles=('season', 'weekday'), timed=False, order=None)
    """

    cycles: tuple[str, ...] = ()
    timed: bool = False
    order: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.cycles, tuple) or not all(
            isinstance(cycle, str) and cycle in CYCLES for cycle in self.cycles
        ):
            raise InvalidInputError(
                f"cycles: expected some of {', '.join(CYCLES)} in a tuple, got {self.cycles!r}"
            )
        check_flag("timed", self.timed)
        if self.order is not None and self.order not in (DAY_FIRST, MONTH_FIRST):
            raise InvalidInputError(
                f"order: expected {DAY_FIRST!r}, {MONTH_FIRST!r} or None, got {self.order!r}"
            )

    @classmethod
    def of(cls, dates: Array, order: str | None = None) -> Dates:
        """Return the encoding for given dates.

        It has a season if they span more than half a year, and the other cycles in which
        they differ.
        """
        dates = dates.astype("datetime64[us]")
        days = dates.astype(np.int64) / DAY
        differ = {name: len(np.unique(cycle(dates))) > 1 for name, cycle in CYCLES.items()}
        differ["season"] = differ["season"] and bool(np.ptp(days) > HALF_A_YEAR)
        timed = bool((dates.astype(np.int64) % DAY != 0).any())
        return cls(tuple(name for name in CYCLES if differ[name]), timed, order)

    @property
    def parts(self) -> tuple[str, ...]:
        """The encoded columns: days, and two of each cycle."""
        return ("days", *(f"{cycle} ({wave})" for cycle in self.cycles for wave in ("sin", "cos")))

    def encode(self, dates: Array) -> Array:
        """Return dates (n,) as numbers (n, parts)."""
        dates = dates.astype("datetime64[us]")
        columns = [dates.astype(np.int64) / DAY]
        for cycle in self.cycles:
            angle = 2.0 * np.pi * CYCLES[cycle](dates)
            columns += [np.sin(angle), np.cos(angle)]
        return np.column_stack(columns)

    def decode(self, rows: Array) -> Array:
        """Return the dates (n,) of encoded rows (n, parts), to the second or to the day."""
        if not self.timed:
            return (
                np.floor(rows[:, 0])
                .astype(np.int64)
                .astype("datetime64[D]")
                .astype("datetime64[us]")
            )
        return (
            np.rint(rows[:, 0] * 86_400.0)
            .astype(np.int64)
            .astype("datetime64[s]")
            .astype("datetime64[us]")
        )

    def texts(self, rows: Array) -> list[str]:
        """Return encoded rows as texts, 2024-12-31 or 2024-12-31 08:30, with seconds if any."""
        dates = self.decode(rows)
        unit = (
            "D"
            if not self.timed
            else "m"
            if (dates == dates.astype("datetime64[m]")).all()
            else "s"
        )
        return [text.replace("T", " ") for text in np.datetime_as_string(dates, unit=unit).tolist()]

    def to_content(self) -> dict[str, Any]:
        """Return the encoding as JSON values."""
        return {"cycles": list(self.cycles), "timed": self.timed, "order": self.order}

    @classmethod
    def of_content(cls, content: Any) -> Dates:
        """Return the encoding that `to_content` described."""
        return cls(tuple(content["cycles"]), content["timed"], content["order"])


def as_dates(name: str, column: Any) -> Array:
    """Return a column as datetime64 (n,), by the clock of its time zone where it has one."""
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_localize(None)
    try:
        if column.dtype.kind in "iufb":
            raise TypeError
        dates = column.to_numpy().astype("datetime64[us]")
    except (TypeError, ValueError):
        wrong = column[~are_dates(column)]
        got = "a missing one" if not len(wrong) or wrong.isna().iloc[0] else repr(wrong.iloc[0])
        raise InvalidInputError(
            f"{name}: expected dates in column {column.name!r}, such as 2024-12-31, got {got}"
        ) from None
    if np.isnat(dates).any():
        raise InvalidInputError(
            f"{name}: expected dates in column {column.name!r}, got a missing one"
        )
    return dates


def are_dates(column: Any) -> np.ndarray:
    """Return which values of a column are dates, (n,)."""
    if column.dtype.kind == "M":
        return column.notna().to_numpy()
    if column.dtype.kind in "iufb":
        return np.zeros(len(column), dtype=bool)
    return np.array([_is_date(value) for value in column.to_numpy(dtype=object)], dtype=bool)


def _is_date(value: Any) -> bool:
    try:
        return not np.isnat(np.array([value], dtype=object).astype("datetime64[us]")).any()
    except (TypeError, ValueError):
        return False
