"""The columns of a table as controls: their ranges, labels and dates, and rows as their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import Names, finite_scalar
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True)
class ControlColumns:
    """The columns ``names`` of the rows that a model takes, encoded by ``encoder`` if it has one.

    The value of a column is a number, a label as text, or a date as text. ``rows`` (n, encoded
    columns) are those to start from; ``known`` more of them, for the range of sliders.
    """

    names: Names
    encoder: Encoder | None
    rows: Array
    known: Array | None = None

    def start(self, row: int) -> dict[str, Any]:
        """Return the values of a row."""
        if self.encoder is None:
            return dict(zip(self.names, self.rows[row].tolist(), strict=True))
        one = self.rows[row : row + 1]
        texts = self._texts(one)
        return {
            name: texts[name][0] if name in texts else float(one[0, self.encoder.places(name)[0]])
            for name in self.names
        }

    def starts(self) -> tuple[Array, dict[str, list[str]]]:
        """Return the numbers of all rows, (n, columns), and the texts of other columns."""
        if self.encoder is None:
            return self.rows, {}
        first = [self.encoder.places(name)[0] for name in self.names]
        return self.rows[:, first], self._texts(self.rows)

    def describe(self) -> list[dict[str, Any]]:
        """Return each column as JSON values."""
        points = self.rows if self.known is None else np.concatenate([self.rows, self.known])
        low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        places = (
            range(len(self.names))
            if self.encoder is None
            else [self.encoder.places(name)[0] for name in self.names]
        )
        return [
            {
                "name": name,
                "labels": self._labels(name),
                "dates": None if self._dates(name) is None else {"timed": self._dates(name).timed},
                "low": low[place],
                "high": high[place],
            }
            for name, place in zip(self.names, places, strict=True)
        ]

    def check(self, values: Any) -> dict[str, Any]:
        """Return values of some columns; raise for values that no row can have."""
        if not isinstance(values, Mapping) or not all(name in self.names for name in values):
            given = list(values) if isinstance(values, Mapping) else values
            raise InvalidInputError(
                f"values: expected values by column, of {list(self.names)}, got {given!r}"
            )
        return {name: self._checked(name, value) for name, value in values.items()}

    def table(self, values: Mapping[str, Any]) -> Any:
        """Return values of all columns as one row that an explainer takes."""
        if self.encoder is None:
            return np.array([[values[name] for name in self.names]])
        import pandas as pd

        return pd.DataFrame({name: [self._entry(name, values[name])] for name in self.names})

    def _entry(self, name: str, value: Any) -> Any:
        labels = self._labels(name)
        if labels is not None and self.encoder is not None:
            return self.encoder.categories[name][labels.index(value)]
        return value if self._dates(name) is None else np.datetime64(value.replace(" ", "T"), "us")

    def _checked(self, name: str, value: Any) -> Any:
        labels = self._labels(name)
        if labels is not None:
            if str(value) not in labels:
                raise InvalidInputError(
                    f"values: expected one of {labels} for {name!r}, got {value!r}"
                )
            return str(value)
        if self._dates(name) is None:
            return finite_scalar(f"values: {name!r}", value)
        try:
            date = np.datetime64(str(value).replace(" ", "T"), "s")
            if np.isnat(date):
                raise ValueError
        except ValueError:
            raise InvalidInputError(
                f"values: expected a date for {name!r}, such as 2024-12-31, got {value!r}"
            ) from None
        return str(date.astype("M8[D]") if not self._dates(name).timed else date).replace("T", " ")

    def _labels(self, name: str) -> list[str] | None:
        labels = None if self.encoder is None else self.encoder.categories.get(name)
        return None if labels is None else [str(label) for label in labels]

    def _dates(self, name: str) -> Any:
        return None if self.encoder is None else self.encoder.dates.get(name)

    def _texts(self, rows: Array) -> dict[str, list[str]]:
        """Return the labels and dates of encoded rows, column by column."""
        if self.encoder is None:
            return {}
        texts = {}
        for name in self.names:
            part = rows[:, self.encoder.places(name)]
            labels, dates = self._labels(name), self._dates(name)
            if labels is not None:
                texts[name] = [labels[k] for k in self.encoder.chosen(name, part)]
            elif dates is not None:
                texts[name] = list(dates.texts(part))
        return texts


def control_columns(reader: Any, rows: Array, names: Names) -> ControlColumns:
    """Return the columns of rows, as the `Rows` of an explainer read them."""
    encoder = reader.encoder
    known = reader.posterior.training_inputs
    if known is not None and known.shape[1] != rows.shape[1]:
        known = None
    return ControlColumns(
        names if encoder is None else encoder.names,
        encoder,
        to_numpy(rows),
        None if known is None else to_numpy(known),
    )
