"""Rows of the user as a posterior takes them: names, categories, points and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import (
    Names,
    as_matrix,
    as_vector,
    beside,
    check_choice,
    check_names,
    column_names,
    is_frame,
    is_series,
    numbers,
    positions_of,
)
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.operators import Baselines, Marginals
from gpattr.posteriors import Posterior

NAMED_BASELINES = {
    "mean": "mean of the training inputs",
    "median": "median of the training inputs",
    "zeros": "zeros",
    "best": "best point measured so far",
    "centre": "centre of the search space",
}
OF_OPTIMISERS = ("best", "centre")
EXPECTED_BASELINE = "'mean', 'median', 'zeros', a point, gpattr.Baselines or gpattr.Marginals"
RowNames = tuple[str | int, ...]


class Rows:
    """Rows as numbers for one ``posterior``: frames aligned by name, categories encoded.

    ``columns`` are the names of the posterior's columns, where they are known: of the frame it was
    trained on, ``feature_names``, or of a ``baseline`` with names.
    """

    def __init__(
        self,
        posterior: Posterior,
        feature_names: Sequence[str] | None,
        baseline: Any,
    ) -> None:
        self.posterior = posterior
        self.n_columns = posterior.n_columns
        self.encoder: Encoder | None = posterior.encoder
        known = posterior.feature_names
        if self.encoder is not None:
            known = self.encoder.names if self.encoder.named else None
        if feature_names is not None:
            width = posterior.n_features if self.encoder is None else len(self.encoder.names)
            given = check_names("feature_names", feature_names, width)
            if known is not None and given != known:
                raise InvalidInputError(
                    f"feature_names: the model was trained on the columns {list(known)}, got"
                    f" {list(given)}; leave feature_names out"
                )
            known = given
        # If only the baseline has names, their order in the model is unknown.
        self.by_baseline = known is None
        if known is None:
            known = (
                baseline.feature_names
                if isinstance(baseline, Baselines)
                else column_names(baseline)
            )
        if self.encoder is not None:
            if (
                known is not None
                and not self.encoder.named
                and len(known) == len(self.encoder.names)
            ):
                self.encoder = self.encoder.renamed(known)
            known = self.encoder.encoded_names
        self.columns: Names | None = known

    @property
    def _value_names(self) -> Names | None:
        """The names of the values in lists of them, for a model with categories."""
        return None if self.encoder is None or not self.encoder.named else self.encoder.names

    @property
    def jumps(self) -> tuple[int, ...]:
        """The columns of categories that have nothing in between."""
        return () if self.encoder is None else self.encoder.jumps

    def names(self, X: Any) -> Names:
        """Return the names of the posterior's columns, or of X's columns if it has none."""
        own = self.columns or (None if is_series(X) else column_names(X))
        return own or self._positions

    @cached_property
    def _positions(self) -> Names:
        """The names of columns that have none."""
        return tuple(f"x{i}" for i in range(self.n_columns))

    def data(self, rows: Array) -> np.ndarray:
        """Return rows as one number a feature, (n, features); NaN for categories and dates."""
        array = to_numpy(rows)
        return array if self.encoder is None else self.encoder.feature_values(array)

    def labels(self, rows: Array) -> dict[str, tuple[str, ...]]:
        """Return the categories and dates of rows as texts, by feature."""
        return {} if self.encoder is None else self.encoder.texts(to_numpy(rows))

    def whole_labels(self, rows: Array) -> dict[str, tuple[str, ...]]:
        """Return the categories of rows as texts, of features that have one in every row."""
        return {} if self.encoder is None else self.encoder.whole_texts(to_numpy(rows))

    def features(self, X: Any) -> Names:
        """Return the names of the features that are explained."""
        return self.names(X) if self.encoder is None else self.encoder.features

    def matrix(self, name: str, X: Any) -> Array:
        """Return rows as numbers."""
        like = self.posterior.like
        if not isinstance(X, np.ndarray):
            X = as_frame(X, self._value_names)
        if self.by_baseline:
            self._refuse_other_order(name, column_names(X))
        if self.encoder is not None:
            return beside(name, self.encoder.encode(name, X), like)
        return as_matrix(name, X, names=self.columns, n_features=self.n_columns, like=like)

    def _refuse_other_order(self, name: str, own: Names | None) -> None:
        known = self.columns if self.encoder is None else self.encoder.names
        if own is not None and known is not None and own != known and set(own) == set(known):
            raise InvalidInputError(
                f"{name}: has its columns in another order than the baseline, {list(own)}, and the"
                " model does not know their names; give feature_names= in the order of the model"
            )

    def point(self, name: str, x: Any) -> Array:
        """Return one row as numbers."""
        x = as_frame(x, self._value_names)
        if self.encoder is not None and is_series(x):
            x = x.to_frame().T
        if self.jumps and not is_frame(x) and x is not None and numbers(name, x).ndim == 1:
            x = to_numpy(numbers(name, x))[None, :]
        if (
            self.encoder is not None
            or is_frame(x)
            or (x is not None and numbers(name, x).ndim == 2)
        ):
            rows = self.matrix(name, x)
            if len(rows) != 1:
                advice = (
                    "gpattr.Baselines(points) averages over a set, explainer(X, baselines=B) gives"
                    " each row its own"
                )
                raise InvalidInputError(
                    f"{name}: expected one row, got {len(rows)}"
                    + (f"; {advice}" if name == "baseline" else "")
                )
            return rows[0]
        if x is None or numbers(name, x).ndim == 0:
            raise InvalidInputError(
                f"{name}: expected {EXPECTED_BASELINE if name == 'baseline' else 'one row'}, got"
                f" {x!r}"
            )
        return as_vector(
            name,
            x,
            length=self.n_columns,
            names=self.columns,
            unit="numbers (one per feature)",
        )

    def baseline(self, baseline: Any, *, whole: bool = False) -> tuple[Array | Baselines, str]:
        """Return a baseline as numbers, and its name.

        With ``whole`` a named one has one category of every feature, and not their frequencies.
        """
        like = self.posterior.like
        if isinstance(baseline, str):
            check_choice("baseline", baseline, tuple(NAMED_BASELINES))
            points = {**self.posterior.reference_points, **self.posterior.named_points}
            if self.encoder is not None:
                points = self.encoder.reference_points(points, whole=whole)
            if baseline == "zeros":
                points["zeros"] = (
                    np.zeros(self.n_columns) if self.encoder is None else self._coded_zeros()
                )
            if baseline not in points and baseline in OF_OPTIMISERS:
                raise InvalidInputError(
                    f'baseline: "{baseline}" is a point of an optimiser that knows its search space'
                    " and, by one objective, what is best; this model does not, or has several"
                    " objectives; give a point"
                )
            if baseline not in points:
                raise InvalidInputError(
                    f'baseline: "{baseline}" needs the training inputs, which this model does not'
                    " store (or the parts of which it is made have different ones); give a"
                    f" baseline of {self.n_columns} numbers"
                )
            whole = self.encoder is not None and (
                baseline == "median"
                or (baseline in ("mean", "centre") and (bool(self.jumps) or whole))
            )
            return points[baseline], NAMED_BASELINES[baseline] + (
                ""
                if not whole
                else ", with the nearest categories"
                if self.encoder is not None and self.encoder.codes
                else ", with the most frequent categories"
            )
        if isinstance(baseline, Baselines) and baseline.frame is not None and self.encoder:
            rows = beside("baseline", self.encoder.encode("baseline", baseline.frame), like)
            return type(baseline)(rows, baseline.weights), _averaged(baseline)
        if isinstance(baseline, Baselines) and self.jumps:
            points = self.matrix("baseline", self._labelled(baseline))
            return type(baseline)(points, baseline.weights), _averaged(baseline)
        if isinstance(baseline, Baselines):
            if baseline.points.shape[1] != self.n_columns:
                raise InvalidInputError(
                    f"baseline: expected points with {self.n_columns} features, got"
                    f" {baseline.points.shape[1]}"
                )
            return self._aligned(baseline), _averaged(baseline)
        return self.point("baseline", baseline), "given point"

    def _coded_zeros(self) -> Array:
        if self.encoder is None or not self.jumps:
            raise InvalidInputError(
                'baseline: "zeros" has no categories; give a frame with one row'
            )
        return self.point("baseline", np.zeros(len(self.encoder.names)))

    @staticmethod
    def _labelled(baselines: Baselines) -> Any:
        if baselines.feature_names is None:
            return baselines.points
        import pandas as pd

        return pd.DataFrame(to_numpy(baselines.points), columns=list(baselines.feature_names))

    def baselines(self, baselines: Any, n: int) -> Array:
        """Return one baseline for each of n rows as numbers."""
        if isinstance(baselines, (str, Baselines)):
            raise InvalidInputError(
                f"baselines: expected one baseline per row of X, got {baselines!r}; a baseline"
                " shared by all rows goes to Explainer(...), and uncertainty= is an argument of"
                " its own"
            )
        own = self.matrix("baselines", baselines)
        if len(own) != n:
            raise InvalidInputError(
                f"baselines: expected one row per row of X ({n}), got {len(own)}"
            )
        return own

    def _aligned(self, baselines: Baselines) -> Baselines:
        names = baselines.feature_names
        if names is None or self.columns is None or names == self.columns:
            return baselines
        return type(baselines)(
            baselines.points[:, positions_of("baseline", names, self.columns)], baselines.weights
        )


def _averaged(baselines: Baselines) -> str:
    """Return the name of a set of baselines."""
    k = len(baselines)
    if isinstance(baselines, Marginals):
        return f"features drawn independently from {k} rows"
    return f"average over {k} points"


def row_names(X: Any, n: int) -> RowNames:
    """Return the names of the rows of X: the index of a frame, else their positions."""
    if not (is_frame(X) and hasattr(X, "index")):
        return tuple(range(n))
    whole = (int, np.integer)
    return tuple(
        int(label) if isinstance(label, whole) and not isinstance(label, bool) else str(label)
        for label in X.index
    )


def row_name(x: Any) -> str | int | None:
    """Return the name of one row, from a series or the index of a frame; None if it has none."""
    name = (
        x.name
        if is_series(x)
        else row_names(x, 1)[0]
        if is_frame(x) and hasattr(x, "index")
        else None
    )
    if name is None or (isinstance(name, (int, np.integer)) and not isinstance(name, bool)):
        return None if name is None else int(name)
    return str(name)


def as_frame(X: Any, names: Names | None) -> Any:
    """Return dictionaries {parameter: value}, one or a list of them, as a frame; others as is.

    With the ``names`` of a model with categories, lists of values in their order are taken too.
    """
    records = [X] if isinstance(X, Mapping) and not is_frame(X) else X
    if not isinstance(records, (list, tuple)) or not records:
        return X
    if all(isinstance(record, Mapping) and not is_frame(record) for record in records):
        import pandas as pd

        return pd.DataFrame([dict(record) for record in records])
    if names is None:
        return X
    rows = [records] if all(_is_value(value) for value in records) else records
    if all(
        isinstance(row, (list, tuple)) and len(row) == len(names) and all(map(_is_value, row))
        for row in rows
    ):
        import pandas as pd

        return pd.DataFrame(list(map(list, rows)), columns=list(names))
    return X


def _is_value(value: Any) -> bool:
    return isinstance(value, str) or not hasattr(value, "__len__")
