"""The encoding of frames with categories and dates as numeric columns.

There is one column for each number and each category, and several for a date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import Names, as_matrix, is_frame, positions_of, refuse_lazy
from gpattr.encoders.dates import Dates
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True)
class Encoder:
    """The columns ``names`` of a frame, of which some have ``categories``, {name: labels}.

    Each label is an encoded column of 0 and 1. Others are ``dates``, {name: `Dates`}, with encoded
    columns for elapsed days, season, weekday and time of day.

    With ``as_one_feature`` the columns with categories, whose labels are numbers, are one feature
    that jumps: there is nothing between categories. Rows may then also be arrays. Columns that are
    not ``named`` by the user are taken in their order. Values in unused columns are not checked.
    """

    names: Names
    categories: Mapping[str, tuple[Any, ...]]
    as_one_feature: bool = False
    named: bool = True
    unused: frozenset[str] = frozenset()
    dates: Mapping[str, Dates] = field(default_factory=dict)

    @cached_property
    def columns(self) -> tuple[tuple[str, Any], ...]:
        """The encoded columns as (feature, label), with None for numbers and parts for dates."""
        parts = {name: dates.parts for name, dates in self.dates.items()}
        return tuple(
            (name, label)
            for name in self.names
            for label in {**self.categories, **parts}.get(name, (None,))
        )

    @cached_property
    def encoded_names(self) -> Names:
        """The names of the encoded columns."""
        return tuple(
            (
                name
                if label is None
                else f"{name}: {label}"
                if name in self.dates
                else f"{name}={label}"
            )
            for name, label in self.columns
        )

    @cached_property
    def features(self) -> Names:
        """The features to explain: the columns, or ``as_one_feature`` for all categories."""
        return tuple(dict.fromkeys(self._owner(name) for name in self.names))

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The encoded columns of every feature with categories, and of every date."""
        groups: dict[str, list[str]] = {}
        for encoded, (name, _) in zip(self.encoded_names, self.columns, strict=True):
            if name in self.categories or name in self.dates:
                groups.setdefault(self._owner(name), []).append(encoded)
        return groups

    @cached_property
    def gathering(self) -> Array:
        """The matrix (encoded columns, features) by which columns are added up to features."""
        owner = [self.features.index(self._owner(name)) for name, _ in self.columns]
        return np.eye(len(self.features))[owner]

    @cached_property
    def jumps(self) -> tuple[int, ...]:
        """The encoded columns that jump."""
        places = enumerate(self.columns)
        return (
            tuple(i for i, (name, _) in places if name in self.categories)
            if self.as_one_feature
            else ()
        )

    def _owner(self, name: str) -> str:
        return (
            " & ".join(self.categories) if self.as_one_feature and name in self.categories else name
        )

    def renamed(self, names: Names) -> Encoder:
        """Return the encoder of columns that the user calls so."""
        labels = dict(zip(self.names, names, strict=True))
        categories = {labels[name]: found for name, found in self.categories.items()}
        dates = {labels[name]: found for name, found in self.dates.items()}
        return replace(self, names=names, categories=categories, dates=dates, named=True)

    def reference_points(
        self, points: Mapping[str, Array], *, whole: bool = False
    ) -> dict[str, Array]:
        """Return the points with the most frequent categories and with whole dates.

        The mean keeps category frequencies, unless categories jump, and the means of encoded
        dates, unless it is to be ``whole`` too.
        """
        if "mean" not in points:
            return dict(points)
        places = [i for i, (name, _) in enumerate(self.columns) if name in self.categories]
        result = {}
        for name, point in points.items():
            common = point.copy()
            common[places] = points["mean"][places]
            result[name] = (
                point
                if name == "mean" and not (self.as_one_feature or whole)
                else self.nearest_one_hot(common[None])[0]
            )
        return result

    def nearest_one_hot(self, rows: Array) -> Array:
        """Return encoded rows with one category per feature, the largest, and valid dates."""
        rows = rows.copy()
        for feature, dates in self.dates.items():
            places = self.places(feature)
            rows[:, places] = dates.encode(dates.decode(rows[:, places]))
        for feature in self.categories:
            places = self.places(feature)
            best = rows[:, places].argmax(axis=1)
            rows[:, places] = np.eye(len(places))[best]
        return rows

    def decode(self, rows: Array) -> Any:
        """Return the frame of encoded rows that have exactly one category of every feature."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for feature in self.names:
            part = rows[:, self.places(feature)]
            labels = self.categories.get(feature)
            if feature in self.dates:
                columns[feature] = self.dates[feature].decode(part)
            else:
                columns[feature] = (
                    part[:, 0] if labels is None else [labels[k] for k in part.argmax(axis=1)]
                )
        return pd.DataFrame(columns)

    def feature_values(self, rows: Array) -> Array:
        """Return encoded rows as one number a feature, (n, features); NaN for what is encoded."""
        first = [int(column.argmax()) for column in self.gathering.T]
        blank = [np.nan if name in self.groups else 0.0 for name in self.features]
        return rows[:, first] + np.array(blank)

    def texts(self, rows: Array) -> dict[str, tuple[str, ...]]:
        """Return the categories and the dates of encoded rows as texts, by feature."""
        columns: dict[str, list[Any]] = {}
        for name, labels in self.categories.items():
            chosen = rows[:, self.places(name)].argmax(axis=1)
            columns.setdefault(self._owner(name), []).append([str(labels[k]) for k in chosen])
        texts = {
            name: tuple(" & ".join(texts) for texts in zip(*parts, strict=True))
            for name, parts in columns.items()
        }
        return texts | {
            name: tuple(dates.texts(rows[:, self.places(name)]))
            for name, dates in self.dates.items()
        }

    def places(self, feature: str) -> list[int]:
        """Return the encoded columns of a column."""
        return [i for i, (owner, _) in enumerate(self.columns) if owner == feature]

    def encode(self, name: str, X: Any) -> Array:
        """Return a frame as numbers, (n, encoded columns); raise for unknown labels."""
        refuse_lazy(name, X)
        if self.as_one_feature and not (is_frame(X) and self.named):
            import pandas as pd

            X = pd.DataFrame(
                to_numpy(as_matrix(name, X, n_features=len(self.names))), columns=list(self.names)
            )
        if not is_frame(X) and not self.named and np.ndim(X) == 2:
            import pandas as pd

            X = pd.DataFrame(np.asarray(X, dtype=object), columns=list(self.names)).infer_objects()
        if not is_frame(X):
            raise InvalidInputError(
                f"{name}: expected a frame with the columns {list(self.names)}, got a"
                f" {type(X).__name__}"
            )
        labels = list(map(str, X.columns))
        X = X[[X.columns[i] for i in positions_of(name, labels, self.names)]]
        result = np.zeros((len(X), len(self.columns)))
        for feature, column in zip(self.names, X.columns, strict=True):
            places = self.places(feature)
            if feature in self.unused and X[column].dtype.kind not in "iufb":
                continue
            if feature in self.dates:
                result[:, places] = self.dates[feature].encode(_as_dates(name, X[column]))
                continue
            if feature not in self.categories:
                result[:, places] = as_matrix(name, X[[column]].infer_objects())
                continue
            values = X[column].to_numpy(dtype=object)
            for place, label in zip(places, self.categories[feature], strict=True):
                result[:, place] = values == label
            unknown = ~result[:, places].any(axis=1)
            if unknown.any():
                label = values[int(unknown.argmax())]
                raise InvalidInputError(
                    f"{name}: expected one of {list(self.categories[feature])} in column"
                    f" {feature!r}, got {label!r}"
                )
        return result


def _as_dates(name: str, column: Any) -> Array:
    """Return a column as datetime64 (n,), by the clock of its time zone where it has one."""
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_localize(None)
    try:
        if column.dtype.kind in "iufb":
            raise TypeError
        dates = column.to_numpy().astype("datetime64[us]")
    except (TypeError, ValueError):
        first = column.iloc[0] if len(column) else None
        raise InvalidInputError(
            f"{name}: expected dates in column {column.name!r}, such as 2024-12-31, got {first!r}"
        ) from None
    if np.isnat(dates).any():
        raise InvalidInputError(
            f"{name}: expected dates in column {column.name!r}, got a missing one"
        )
    return dates
