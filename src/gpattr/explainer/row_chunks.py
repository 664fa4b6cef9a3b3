"""Chunks of rows: one table, or an iterable of tables whose rows go on from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.table_kinds import lazy_kind
from gpattr._core.validation import Names, column_names, is_frame
from gpattr.exceptions import GpattrError, InvalidInputError
from gpattr.explainer.rows import RowNames, Rows, row_names


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows as numbers (n, d), the names of features and rows, and the position of the first row."""

    rows: Array
    features: Names
    labels: RowNames
    first: int = 0


def tables_of(X: Any) -> Iterator[Any] | None:
    """Return the tables of an iterator, or of a list of tables; None if X is one table itself."""
    if isinstance(X, Iterator) and lazy_kind(X) is None:
        return X
    if isinstance(X, (list, tuple)) and X and all(is_frame(x) or _is_matrix(x) for x in X):
        return iter(X)
    return None


def _is_matrix(x: Any) -> bool:
    return not isinstance(x, (list, tuple)) and getattr(x, "ndim", None) == 2


def chunks_of(
    tables: Iterator[Any], rows: Rows, features: Callable[[Any], Names]
) -> Iterator[Chunk]:
    """Yield tables as chunks; those without rows are left out, and errors name the others."""
    first, known = 0, None
    for number, table in enumerate(tables):
        if _is_empty(table):
            continue
        try:
            matrix = rows.matrix("X", table)
            _require_same_columns(table, known, rows)
        except GpattrError as error:
            raise type(error)(f"table {number}: {error}") from error
        known = known or column_names(table)
        yield Chunk(matrix, features(table), _labels(table, len(matrix), first), first)
        first += len(matrix)


def _is_empty(table: Any) -> bool:
    return (is_frame(table) or _is_matrix(table)) and len(table) == 0


def _require_same_columns(table: Any, known: Names | None, rows: Rows) -> None:
    """Refuse other columns than those of the tables before, if the model does not know them."""
    own = column_names(table)
    if rows.columns is None and known is not None and own is not None and own != known:
        raise InvalidInputError(f"X: expected the columns {list(known)}, got {list(own)}")


def _labels(table: Any, n: int, first: int) -> RowNames:
    """Return the index of a frame, unless it only counts rows: then they are counted on."""
    labels = row_names(table, n)
    counted = all(isinstance(label, int) for label in labels) and np.array_equal(labels, range(n))
    return tuple(range(first, first + n)) if counted else labels
