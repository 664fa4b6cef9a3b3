"""Batches of explanations: of one table, of an iterable of tables, or along a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.table_kinds import lazy_kind
from gpattr._core.validation import Names, check_choice, check_count, column_names, is_frame
from gpattr.exceptions import GpattrError, InvalidInputError, UnsupportedModelError
from gpattr.explainer.rows import RowNames, Rows, row_names
from gpattr.explainer.task import Task
from gpattr.operators import Baselines, Paths
from gpattr.posteriors import UNCERTAINTY


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows as numbers (n, d), the names of features and rows, and the position of the first row."""

    rows: Array
    features: Names
    labels: RowNames
    first: int = 0


def batches_of(
    task: Task, X: Any, baselines: Any, uncertainty: str, batch_size: int
) -> Iterator[Any]:
    """Explanations of ``batch_size`` rows at a time."""
    check_count("batch_size", batch_size)
    check_choice("uncertainty", uncertainty, UNCERTAINTY)
    tables, own = tables_of(X), None
    if tables is None:
        rows = task.reader.matrix("X", X)
        own = task.own_baselines(baselines, len(rows))
        chunks = iter([Chunk(rows, task.names(X), row_names(X, len(rows)))])
    else:
        if baselines is not None:
            raise InvalidInputError(
                "baselines: they are those of one table; explain each table of an iterable by"
                " itself, or leave baselines out"
            )
        chunks = chunks_of(tables, task)

    def generate() -> Iterator[Any]:
        for chunk in chunks:
            for start in range(0, len(chunk.rows), batch_size):
                part = slice(start, min(start + batch_size, len(chunk.rows)))
                some = None if own is None else own[part]
                names, labels = chunk.features, chunk.labels[part]
                place = slice(chunk.first + part.start, chunk.first + part.stop)
                yield task.explain(chunk.rows[part], some, uncertainty, names, labels, place)

    return generate()


def explain_path(task: Task, x: Any, n_points: int, uncertainty: str) -> Any:
    """The explanation of points on the straight path from the baseline to x."""
    check_count("n_points", n_points, least=2)
    check_memory("n_points: the points", (n_points, task.posterior.n_features), "use fewer")
    check_choice("uncertainty", uncertainty, UNCERTAINTY)
    averaged = task.baseline is None or isinstance(task.baseline, Baselines)
    if averaged or task.reader.encoder is not None:
        raise UnsupportedModelError(
            "baseline: `along` needs one numeric baseline point; this explainer averages over"
            " several or has categories"
        )
    stop, names = task.reader.point("x", x), task.names(x)
    path = Paths(to_numpy(task.baseline)[None, :], to_numpy(stop)[None, :])
    points = path.at(np.linspace(0.0, 1.0, n_points))[:, 0]
    rows = task.posterior.rows("x", points)
    return task.explain(rows, None, uncertainty, names, tuple(range(n_points)))


def tables_of(X: Any) -> Iterator[Any] | None:
    """Return the tables of an iterator, or of a list of tables; None if X is one table itself."""
    if isinstance(X, Iterator) and lazy_kind(X) is None:
        return X
    if isinstance(X, (list, tuple)) and X and all(is_frame(x) or _is_matrix(x) for x in X):
        return iter(X)
    return None


def _is_matrix(x: Any) -> bool:
    return not isinstance(x, (list, tuple)) and getattr(x, "ndim", None) == 2


def chunks_of(tables: Iterator[Any], task: Task) -> Iterator[Chunk]:
    """Yield tables as chunks; empty tables are left out, and errors name the others."""
    first, known = 0, None
    for number, table in enumerate(tables):
        if _is_empty(table):
            continue
        try:
            matrix = task.reader.matrix("X", table)
            _require_same_columns(table, known, task.reader)
        except GpattrError as error:
            raise type(error)(f"table {number}: {error}") from error
        known = known or column_names(table)
        yield Chunk(matrix, task.names(table), _labels(table, len(matrix), first), first)
        first += len(matrix)


def _is_empty(table: Any) -> bool:
    return (is_frame(table) or _is_matrix(table)) and len(table) == 0


def _require_same_columns(table: Any, known: Names | None, rows: Rows) -> None:
    """Refuse columns that differ from earlier tables, if the model has no column names."""
    own = column_names(table)
    if rows.columns is None and known is not None and own is not None and own != known:
        raise InvalidInputError(f"X: expected the columns {list(known)}, got {list(own)}")


def _labels(table: Any, n: int, first: int) -> RowNames:
    """Return the index of a frame, unless it only counts rows: then they are counted on."""
    labels = row_names(table, n)
    counted = all(isinstance(label, int) for label in labels) and np.array_equal(labels, range(n))
    return tuple(range(first, first + n)) if counted else labels
