"""The encoding of frames with categories and dates as numeric columns.

There is one column for each number, one for each category unless categories have codes of their
own, and several for a date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import Names, as_matrix, is_frame, positions_of, refuse_lazy
from gpattr.encoders.dates import Dates, as_dates
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True)
class Encoder:
    """The columns ``names`` of a frame, of which some have ``categories``, {name: labels}.

    Each label is an encoded column of 0 and 1, unless the category has ``codes``, {name: numbers
    (labels, columns)}: then a label is a row of them, such as its descriptors or an integer, and
    integrated gradients follow the straight line between two rows. Others are ``dates``, {name:
    `Dates`}, with encoded columns for elapsed days, season, weekday and time of day.

    With ``as_one_feature`` the columns with categories, whose labels are numbers, are one feature
    that jumps: there is nothing between categories. Rows may then also be arrays. Columns that are
    not ``named`` by the user are taken in their order. Values in unused columns are not checked.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpattr.encoders import Encoder
    >>> encoder = Encoder(("size", "kind"), {"kind": ("a", "b")})
    >>> encoder.encoded_names
    ('size', 'kind=a', 'kind=b')
    >>> encoder.encode("X", pd.DataFrame({"size": [1.5], "kind": ["b"]}))
    array([[1.5, 0. , 1. ]])
    """

    names: Names
    categories: Mapping[str, tuple[Any, ...]]
    as_one_feature: bool = False
    named: bool = True
    unused: frozenset[str] = frozenset()
    dates: Mapping[str, Dates] = field(default_factory=dict)
    codes: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.codes:
            codes = {name: self._checked_codes(name, rows) for name, rows in self.codes.items()}
            object.__setattr__(self, "codes", codes)

    def _checked_codes(self, name: str, rows: Any) -> tuple[tuple[float, ...], ...]:
        """Return the codes of a category as tuples, which can be compared."""
        labels = self.categories.get(name, ())
        array = to_numpy(as_matrix(f"codes[{name!r}]", rows))
        if not labels or len(array) != len(labels) or len(np.unique(array, axis=0)) < len(array):
            raise InvalidInputError(
                f"codes[{name!r}]: expected a row of numbers for each of the categories"
                f" {list(labels)}, all different, got {array.tolist()}"
            )
        return tuple(map(tuple, array.tolist()))

    @cached_property
    def columns(self) -> tuple[tuple[str, Any], ...]:
        """The encoded columns as (feature, label).

        The label is None for numbers, a part for dates, and a position for codes.
        """
        parts: dict[str, Any] = {name: dates.parts for name, dates in self.dates.items()}
        parts |= {name: range(len(codes[0])) for name, codes in self.codes.items()}
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
                else f"{name}[{label}]"
                if name in self.codes
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
        codes = {labels[name]: found for name, found in self.codes.items()}
        return replace(
            self, names=names, categories=categories, dates=dates, codes=codes, named=True
        )

    def reference_points(
        self, points: Mapping[str, Array], *, whole: bool = False
    ) -> dict[str, Array]:
        """Return the points with the most frequent categories and with whole dates.

        The mean keeps category frequencies, unless categories jump, and the means of encoded
        dates, unless it is to be ``whole`` too. Of categories with codes the points have the one
        nearest to the mean. The centre of a search space is treated like the mean, and points with
        other names stay what they are.
        """
        if "mean" not in points:
            return dict(points)
        places = [i for i, (name, _) in enumerate(self.columns) if name in self.categories]
        result = {}
        for name, point in points.items():
            common = point.copy()
            common[places] = points["mean"][places]
            mixed = name in ("mean", "centre") and not (self.as_one_feature or whole)
            result[name] = (
                point
                if mixed or name not in ("mean", "median", "centre")
                else self.nearest_one_hot(common[None])[0]
            )
        return result

    def code(self, name: str) -> Array:
        """Return the categories of a column as encoded columns, (labels, columns)."""
        codes = self.codes.get(name)
        return np.eye(len(self.categories[name])) if codes is None else np.array(codes)

    def chosen(self, name: str, part: Array) -> Array:
        """Return the positions (n,) of the categories nearest to encoded columns, (n, columns)."""
        if name not in self.codes:
            return part.argmax(axis=1)
        distances = [((part - code) ** 2).sum(axis=1) for code in self.code(name)]
        return np.argmin(distances, axis=0)

    def seen(self, name: str, part: Array) -> Array:
        """Return the positions of the categories that occur in encoded columns, (n, columns)."""
        if name not in self.codes:
            return np.flatnonzero((part > 0).any(axis=0))
        return np.unique(self.chosen(name, part))

    def nearest_one_hot(self, rows: Array) -> Array:
        """Return encoded rows with one category per feature, the nearest, and valid dates."""
        rows = rows.copy()
        for feature, dates in self.dates.items():
            places = self.places(feature)
            rows[:, places] = dates.encode(dates.decode(rows[:, places]))
        for feature in self.categories:
            places = self.places(feature)
            rows[:, places] = self.code(feature)[self.chosen(feature, rows[:, places])]
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
                    part[:, 0]
                    if labels is None
                    else [labels[k] for k in self.chosen(feature, part)]
                )
        return pd.DataFrame(columns)

    def feature_values(self, rows: Array) -> Array:
        """Return encoded rows as one number a feature, (n, features); NaN for encoded features."""
        first = [int(column.argmax()) for column in self.gathering.T]
        blank = [np.nan if name in self.groups else 0.0 for name in self.features]
        return rows[:, first] + np.array(blank)

    def texts(self, rows: Array) -> dict[str, tuple[str, ...]]:
        """Return the categories and the dates of encoded rows as texts, by feature."""
        columns: dict[str, list[Any]] = {}
        for name, labels in self.categories.items():
            chosen = self.chosen(name, rows[:, self.places(name)])
            columns.setdefault(self._owner(name), []).append([str(labels[k]) for k in chosen])
        texts = {
            name: tuple(" & ".join(texts) for texts in zip(*parts, strict=True))
            for name, parts in columns.items()
        }
        return texts | {
            name: tuple(dates.texts(rows[:, self.places(name)]))
            for name, dates in self.dates.items()
        }

    def whole_texts(self, rows: Array) -> dict[str, tuple[str, ...]]:
        """Return the texts of the features of which all rows have a category, or a date.

        The mean of training inputs has frequencies of categories, of which none is named.
        """
        whole = (np.abs(rows - self.nearest_one_hot(rows)) <= 1e-6).all(axis=0)
        mixed = {self._owner(name) for k, (name, _) in enumerate(self.columns) if not whole[k]}
        return {name: texts for name, texts in self.texts(rows).items() if name not in mixed}

    def places(self, feature: str) -> list[int]:
        """Return the encoded columns of a column."""
        return [i for i, (owner, _) in enumerate(self.columns) if owner == feature]

    def encode(self, name: str, X: Any) -> Array:
        """Return a frame as numbers, (n, encoded columns); raise for unknown labels."""
        refuse_lazy(name, X)
        if is_frame(X) and not hasattr(X, "infer_objects"):  # of Polars, say
            import pandas as pd

            X = pd.DataFrame({label: X[label].to_numpy() for label in X.columns})
        if self.as_one_feature and not (is_frame(X) and self.named):
            import pandas as pd

            X = pd.DataFrame(
                to_numpy(as_matrix(name, X, n_features=len(self.names))), columns=list(self.names)
            )
        if not is_frame(X) and not self.named and np.shape(X)[-1:] == (len(self.names),):
            import pandas as pd

            rows = np.atleast_2d(np.asarray(to_numpy(X), dtype=object))
            X = pd.DataFrame(rows, columns=list(self.names)).infer_objects()
        if not is_frame(X):
            raise InvalidInputError(
                f"{name}: expected a frame with the columns {list(self.names)}, got a"
                f" {type(X).__name__}"
            )
        labels = list(map(str, X.columns))
        if labels != list(self.names):
            X = X[[X.columns[i] for i in positions_of(name, labels, self.names)]]
        result = np.zeros((len(X), len(self.columns)))
        for feature, column in zip(self.names, X.columns, strict=True):
            places, values = self.places(feature), X[column]
            if feature in self.unused and values.dtype.kind not in "iufb":
                continue
            if feature in self.dates:
                result[:, places] = self.dates[feature].encode(as_dates(name, values))
                continue
            if feature not in self.categories:
                result[:, places] = _numbers(name, X, column)
                continue
            values = values.to_numpy(dtype=object)
            found = np.array([values == label for label in self.categories[feature]], dtype=bool)
            unknown = ~found.any(axis=0)
            if unknown.any():
                label = values[int(unknown.argmax())]
                raise InvalidInputError(
                    f"{name}: expected one of {list(self.categories[feature])} in column"
                    f" {feature!r}, got {label!r}"
                )
            result[:, places] = self.code(feature)[found.argmax(axis=0)]
        return result


def _numbers(name: str, X: Any, column: Any) -> Array:
    """Return a column of a frame as finite numbers, (n, 1)."""
    if isinstance(X[column].dtype, np.dtype) and X[column].dtype.kind in "iufb":
        values = X[column].to_numpy(dtype=np.float64)
        if np.isfinite(values).all():
            return values[:, None]
    return as_matrix(name, X[[column]].infer_objects())
