"""Values of one feature at which a function is averaged, beside the values of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr.exceptions import InvalidInputError

NUMBER, CATEGORY, DATE = "number", "category", "date"


@dataclass(frozen=True, eq=False)
class FeatureGrid(Frozen):
    """The ``values`` (G,) of the feature ``name``: numbers, categories or dates, as ``kind`` says.

    ``data`` (K,) are the background's values. ``outside`` (G,) says which values lie beyond all
    data the model has seen or been given: extrapolation.
    """

    name: str
    kind: str
    values: Array
    data: Array
    outside: Array

    def __post_init__(self) -> None:
        for name in ("values", "data", "outside"):
            own = np.array(self.__dict__[name])
            own.flags.writeable = False
            object.__setattr__(self, name, own)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGrid) and self.to_content() == other.to_content()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    @property
    def numbers(self) -> Array:
        """The values as numbers, for axes of pictures: days since 1970 for dates, else places."""
        if self.kind == NUMBER:
            return self.values
        if self.kind == DATE:
            return days(self.values)
        return np.arange(float(len(self)))

    def position(self, name: str, value: Any) -> Array:
        """Return the weights (G,) by which values of a curve are interpolated at ``value``."""
        if self.kind == CATEGORY:
            match = [label == value for label in self.values]
            if not any(match):
                raise InvalidInputError(
                    f"{name}: expected one of {self.values.tolist()}, got {value!r}"
                )
            return np.array(match, dtype=float)
        points = self.numbers
        try:
            at = float(days(dates_of([value]))[0]) if self.kind == DATE else float(value)
        except (TypeError, ValueError):
            raise InvalidInputError(f"{name}: expected a {self.kind}, got {value!r}") from None
        if not points[0] <= at <= points[-1]:
            low, high = self.values[0], self.values[-1]
            raise InvalidInputError(
                f"{name}: expected a value between the ends of the grid, {low} and {high}, got"
                f" {value!r}"
            )
        return np.array([np.interp(at, points, unit) for unit in np.eye(len(points))])

    def to_content(self) -> dict[str, Any]:
        """Return the grid as JSON values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "values": _plain(self.values, self.kind),
            "data": _plain(self.data, self.kind),
            "outside": [bool(value) for value in self.outside],
        }

    @classmethod
    def of_content(cls, content: Any) -> FeatureGrid:
        """Return the grid that `to_content` described."""
        kind = content["kind"]
        values, data = (_array(content[part], kind) for part in ("values", "data"))
        return cls(content["name"], kind, values, data, np.array(content["outside"], dtype=bool))


def days(dates: Array) -> Array:
    """Return dates as days since 1970."""
    return np.asarray(dates).astype("datetime64[us]").astype(np.int64) / 86_400e6


def dates_of(values: Any) -> Array:
    """Return values as datetime64; raise ValueError for numbers and missing ones."""
    given = np.asarray(values)
    if given.dtype.kind in "biufc":
        raise ValueError("numbers are no dates")
    if any(getattr(value, "tzinfo", None) is not None for value in given.ravel().tolist()):
        raise ValueError("dates with a time zone")
    dates = given.astype("datetime64[us]")
    if np.isnat(dates).any():
        raise ValueError("a date is missing")
    return dates


def labels_of(values: Any) -> Array:
    """Return categories as an array of objects."""
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def _plain(values: Array, kind: str) -> Any:
    if kind == NUMBER:
        return documents.encode(values, ("value",))
    if kind == DATE:
        return np.datetime_as_string(values.astype("datetime64[us]")).tolist()
    return [label.item() if isinstance(label, np.generic) else label for label in values]


def _array(values: Any, kind: str) -> Array:
    if kind == NUMBER:
        return documents.decode(values)
    return np.array(values, dtype="datetime64[us]") if kind == DATE else labels_of(values)
