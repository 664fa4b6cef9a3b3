"""Frames with categories as numbers: one column for each number, one for each category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._array import Array
from gpattr._validation import Names, as_matrix, is_frame, positions_of
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True)
class Encoder:
    """The features ``names`` of a frame, of which some have ``categories``, {feature: labels}, each a column of 0 and 1."""

    names: Names
    categories: Mapping[str, tuple[Any, ...]]

    @cached_property
    def columns(self) -> tuple[tuple[str, Any], ...]:
        """The encoded columns: (feature, label), with None for the label of a number."""
        return tuple((name, label) for name in self.names for label in self.categories.get(name, (None,)))

    @cached_property
    def encoded_names(self) -> Names:
        """The names of the encoded columns."""
        return tuple(name if label is None else f"{name}={label}" for name, label in self.columns)

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """The encoded columns of every feature with categories."""
        return {
            feature: [encoded for encoded, (name, _) in zip(self.encoded_names, self.columns, strict=True) if name == feature]
            for feature in self.categories
        }

    @cached_property
    def gathering(self) -> Array:
        """The matrix (encoded columns, features) by which columns are added up to features."""
        owner = [self.names.index(name) for name, _ in self.columns]
        return np.eye(len(self.names))[owner]

    def whole(self, rows: Array) -> Array:
        """Return encoded rows with exactly one category of every feature: the largest."""
        rows = rows.copy()
        for feature in self.categories:
            places = self._places(feature)
            best = rows[:, places].argmax(axis=1)
            rows[:, places] = np.eye(len(places))[best]
        return rows

    def decode(self, rows: Array) -> Any:
        """Return the frame of encoded rows that have exactly one category of every feature."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for feature in self.names:
            part = rows[:, self._places(feature)]
            labels = self.categories.get(feature)
            columns[feature] = part[:, 0] if labels is None else [labels[k] for k in part.argmax(axis=1)]
        return pd.DataFrame(columns)

    def _places(self, feature: str) -> list[int]:
        return [i for i, (owner, _) in enumerate(self.columns) if owner == feature]

    def encode(self, name: str, X: Any) -> Array:
        """Return a frame as numbers, (n, encoded columns); refuse labels that are not known."""
        if not is_frame(X):
            raise InvalidInputError(f"{name}: expected a frame with the columns {list(self.names)}, got a {type(X).__name__}")
        labels = list(map(str, X.columns))
        X = X[[X.columns[i] for i in positions_of(name, labels, self.names)]]
        result = np.zeros((len(X), len(self.columns)))
        for feature, column in zip(self.names, X.columns, strict=True):
            places = self._places(feature)
            if feature not in self.categories:
                result[:, places] = as_matrix(name, X[[column]].infer_objects())
                continue
            values = X[column].to_numpy()
            for place, label in zip(places, self.categories[feature], strict=True):
                result[:, place] = values == label
            unknown = ~result[:, places].any(axis=1)
            if unknown.any():
                label = values[int(unknown.argmax())]
                raise InvalidInputError(
                    f"{name}: expected one of {list(self.categories[feature])} in column {feature!r}, got {label!r}"
                )
        return result
