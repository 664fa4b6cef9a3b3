"""FrameFunction: a frame of rows in, a frame of predictions and attributions out.

Every engine runs it on the parts of a table. It depends only on the given frame, so a part that is
computed again, elsewhere, gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.memory import blocks, budget_in_force, memory_budget
from gpattr._core.validation import (
    Names,
    NotNumericError,
    check_choice,
    check_names,
    column_values,
    positions_of,
)
from gpattr.distributions.positions import listed
from gpattr.encoders.dates import are_dates
from gpattr.exceptions import InvalidInputError, ToleranceError
from gpattr.explainer.attributions import require_features
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.rows import Rows
from gpattr.posteriors import Posterior

if TYPE_CHECKING:
    import pandas as pd

UNCERTAINTY = ("std", "none")
ERRORS = ("raise", "missing")
COPIES = 16  # arrays (n, d) that an explanation holds, or has held, at a time


@dataclass(frozen=True, eq=False, repr=False)
class FrameFunction:
    """The function that explains the rows of a pandas frame, as a frame of float64 columns.

    The columns are ``prediction``, ``baseline_prediction``, ``attribution:<feature>`` for every
    feature and, with ``uncertainty="std"``, ``std:<feature>``. A model with several outputs has
    all of them once for each output, with its name before them: ``price:prediction``. The index is
    the frame's, and a frame without rows gives one without rows.

    Rows that cannot be explained (missing values, unknown categories, other columns or types) stop
    with ``errors="raise"``, and have missing values in all columns with ``errors="missing"``.
    ``keep`` are columns of the frame that stand before the result, unchanged, and are not given to
    the model. ``columns`` are the names of the features of a model that does not know them.
    The `memory_budget` in force where the function is made holds wherever it is called.
    """

    explainer: Explainer
    uncertainty: str = "std"
    errors: str = "raise"
    keep: Names = ()
    columns: Names | None = None
    budget: Mapping[str, float | None] = field(default_factory=budget_in_force)

    def __post_init__(self) -> None:
        if not isinstance(self.explainer, Explainer):
            raise InvalidInputError(
                f"explainer: expected a gpattr.Explainer, got a {type(self.explainer).__name__}"
            )
        if isinstance(self.uncertainty, str) and self.uncertainty == "cov":
            raise InvalidInputError(
                "uncertainty: a table has columns for standard deviations and not for covariances;"
                ' use "std" or "none", or explainer.batches for covariances'
            )
        check_choice("uncertainty", self.uncertainty, UNCERTAINTY)
        check_choice("errors", self.errors, ERRORS)
        _check_attribution(self.explainer)
        if self.columns is not None:
            width = self.explainer.posterior.n_features
            object.__setattr__(self, "columns", check_names("columns", self.columns, width))
        keep = None if isinstance(self.keep, (set, frozenset)) else listed(self.keep)
        if keep is None:
            raise InvalidInputError(f"keep: expected names of columns, got {self.keep!r}")
        object.__setattr__(self, "keep", check_names("keep", keep, len(keep)))
        taken = [name for name in self.keep if name in self.results]
        if taken:
            raise InvalidInputError(f"keep: {taken[0]!r} is the name of a column of the result")

    @cached_property
    def inputs(self) -> Names:
        """The columns that the model takes, in its order."""
        rows = self.explainer.task.reader
        if rows.encoder is not None:
            return rows.encoder.names
        return rows.columns or self.columns or rows.names(None)

    @cached_property
    def features(self) -> Names:
        """The features, or players, that predictions are attributed to."""
        return self.explainer.task.names(None if self.columns is None else _header(self.columns))

    @cached_property
    def results(self) -> Names:
        """The names of the columns that are computed, in their order."""
        kinds = ["prediction", "baseline_prediction"]
        kinds += [f"attribution:{name}" for name in self.features]
        kinds += [f"std:{name}" for name in self.features if self.uncertainty == "std"]
        outputs: Mapping[str, Posterior] = self.explainer.posterior.outputs
        several = self.explainer.posterior.several_outputs
        return tuple(
            f"{output}:{kind}" if several else kind for output in outputs for kind in kinds
        )

    def empty(self) -> pd.DataFrame:
        """Return the schema of the computed columns: a frame without rows."""
        import pandas as pd

        return pd.DataFrame(np.empty((0, len(self.results))), columns=list(self.results))

    def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return one row for each row of a pandas frame, in its order and with its index."""
        import pandas as pd

        computed = self.computed(frame)
        if not self.keep:
            return computed
        blank = pd.DataFrame(None, index=frame.index, columns=list(self.keep))
        kept = frame[list(self.keep)] if self._has_kept(frame) else blank
        return pd.concat([kept, computed], axis=1)

    def computed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the computed columns alone."""
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise InvalidInputError(
                f"frame: expected a pandas DataFrame, got a {type(frame).__name__}"
            )
        self._has_kept(frame)
        if len(frame):
            with memory_budget(**self.budget):
                values = self._values(frame.drop(columns=list(self.keep), errors="ignore"))
        else:
            values = np.empty((0, len(self.results)))
        return pd.DataFrame(values, index=frame.index, columns=list(self.results), copy=False)

    def for_table(self, header: pd.DataFrame) -> FrameFunction:
        """Return the function for a table with the columns of ``header``, or refuse the table.

        A model that does not know the names of its features takes them from the table.
        """
        self.check(header)
        if self.explainer.task.reader.columns is not None:
            return self
        names = tuple(str(name) for name in header.columns if name not in self.keep)
        return replace(self, columns=names)

    def check(self, header: pd.DataFrame) -> None:
        """Raise `InvalidInputError` unless a table with the columns of ``header`` can be explained.

        The header may have no rows, so columns that hold objects are believed to be numbers.
        """
        rows = self.explainer.task.reader
        self._has_kept(header, strict=True)
        header = header.drop(columns=list(self.keep))
        labels = list(map(str, header.columns))
        if rows.columns is None and self.columns is None:
            check_names("table: columns", labels, len(self.inputs))
        else:
            _require_columns(labels, self.inputs)
        encoder, encoded = rows.encoder, set()
        if encoder is not None:
            encoded = {*encoder.categories, *encoder.dates, *encoder.unused}
        for label in header.columns:
            if encoder is not None and label in encoder.categories:
                _require_labels(label, header[label].dtype, encoder.categories[label])
            if str(label) not in encoded and not _may_be_numbers(header[label].dtype):
                raise NotNumericError(
                    f"table: expected numbers in column {label!r}, got {header[label].dtype}"
                )

    def _has_kept(self, frame: pd.DataFrame, *, strict: bool = False) -> bool:
        """Return whether the columns to keep are there; raise if they must be."""
        absent = [name for name in self.keep if name not in frame.columns]
        if absent and (strict or (self.errors == "raise" and len(frame))):
            raise InvalidInputError(
                f"keep: expected columns of the table, got {absent[0]!r}; there are"
                f" {list(map(str, frame.columns))}"
            )
        return bool(self.keep) and not absent

    def _values(self, X: pd.DataFrame) -> np.ndarray:
        """Return the computed columns of rows, (n, k)."""
        if self.errors == "raise":
            return self._explained(self._aligned(X))
        values = np.full((len(X), len(self.results)), np.nan)
        try:
            X = self._aligned(X)
            rows = np.flatnonzero(_usable_rows(self.explainer.task.reader, X))
            if len(rows):
                self.explainer.task.reader.matrix("X", X.iloc[rows])
        except InvalidInputError:
            return values  # other columns or types: no row of this frame can be explained
        self._fill(values, X, rows)
        return values

    def _fill(self, values: np.ndarray, X: pd.DataFrame, rows: np.ndarray) -> None:
        """Write the results of some rows; rows whose explanation fails stay missing."""
        if not len(rows):
            return
        try:
            values[rows] = self._explained(X.iloc[rows])
        except (InvalidInputError, ToleranceError) as error:
            if str(error).startswith("baseline:"):  # which is not the fault of any row
                raise
            if len(rows) > 1:
                for half in np.array_split(rows, 2):
                    self._fill(values, X, half)

    def _aligned(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the frame with its columns in order, where only the table knows their names."""
        if self.columns is None or self.explainer.task.reader.columns is not None:
            return X
        return X.iloc[:, positions_of("X", list(map(str, X.columns)), self.columns)]

    def _explained(self, X: pd.DataFrame) -> np.ndarray:
        """Return the computed columns of rows that can be explained, (n, k)."""
        values = np.empty((len(X), len(self.results)))
        done = 0
        for ex in self._batches(X):
            parts = ex.outputs.values() if self.explainer.posterior.several_outputs else [ex]
            columns = [column for part in parts for column in self._columns(part)]
            values[done : done + len(ex)] = np.column_stack(columns)
            done += len(ex)
        return values

    def _columns(self, ex: Any) -> Iterator[np.ndarray]:
        """Yield the columns of one output, in blocks."""
        yield ex.predictions
        yield ex.base_values
        yield ex.values
        if self.uncertainty == "std":
            yield ex.std

    def _batches(self, X: pd.DataFrame) -> Iterator[Any]:
        """Yield explanations of as many rows at a time as the memory budget allows."""
        posterior = self.explainer.posterior
        numbers = COPIES * (posterior.n_features + posterior.n_columns) * len(posterior.outputs)
        if self.explainer.output == "probability" and self.uncertainty == "std":
            numbers += 2 * self.explainer.n_draws * posterior.n_columns
        size = next(blocks(len(X), 8.0 * numbers)).stop
        return self.explainer.batches(X, None, self.uncertainty, batch_size=size)


def _check_attribution(explainer: Explainer) -> None:
    """Refuse operators whose numbers have no place in a table, or that fit only certain rows."""
    operator = explainer.task.operator()
    require_features(operator, "map_table is")
    reference = operator.reference
    if reference is not None and reference.per_row:
        raise InvalidInputError(
            "baseline: a table is explained from one baseline, or one set of them, and this"
            " operator has one for each of its rows"
        )


def _require_columns(labels: list[str], names: Names) -> None:
    """Refuse a table that has other columns than the model's."""
    try:
        positions_of("table", labels, names)
    except InvalidInputError as error:
        more = set(labels) - set(names)
        advice = "; keep= names columns that are carried along" if more else ""
        raise InvalidInputError(f"{error}{advice}") from None


def _header(columns: Names) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=list(columns))


def _require_labels(name: str, dtype: Any, categories: Sequence[Any]) -> None:
    """Refuse a column of numbers whose categories are texts."""
    if getattr(dtype, "kind", "O") in "buif" and all(isinstance(each, str) for each in categories):
        raise InvalidInputError(
            f"table: expected one of {list(categories)} in column {name!r}, got {dtype}"
        )


def _may_be_numbers(dtype: Any) -> bool:
    """Return whether a column of this type can hold real numbers."""
    import pandas as pd

    if isinstance(dtype, pd.ArrowDtype):
        return dtype.kind in "buif" or "decimal" in str(dtype) or "null" in str(dtype)
    texts = isinstance(dtype, (pd.StringDtype, pd.CategoricalDtype))
    return not texts and getattr(dtype, "kind", "O") in "buifO"


def _usable_rows(rows: Rows, X: pd.DataFrame) -> np.ndarray:
    """Return which rows of X have a usable value in every column, (n,).

    Other columns than the model's, and columns of other types, raise `InvalidInputError`.
    """
    encoder = rows.encoder
    names = rows.columns if encoder is None else (encoder.names if encoder.named else None)
    if names is not None:
        X = X.iloc[:, positions_of("X", list(map(str, X.columns)), names)]
    keys = names or (() if encoder is None else encoder.names) or tuple(map(str, X.columns))
    usable = np.ones(len(X), dtype=bool)
    for i, name in enumerate(keys[: X.shape[1]]):
        column = X.iloc[:, i]
        if encoder is not None and name in encoder.unused:
            continue
        if encoder is not None and name in encoder.categories:
            usable &= column.isin(encoder.categories[name]).to_numpy()
        elif encoder is not None and name in encoder.dates:
            usable &= are_dates(column)
        else:
            usable &= _finite(name, column.infer_objects())
    return usable


def _finite(name: str, column: pd.Series) -> np.ndarray:
    """Return which values of a column are finite numbers, (n,); text among them is not."""
    if column.dtype != object:
        return np.isfinite(column_values("X", name, column))
    return np.array(
        [isinstance(value, (Real, Decimal)) and isfinite(value) for value in column], dtype=bool
    )
