"""Dask frames, series and arrays as parts: one array for each partition, checked where it is."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed

from gpattr._core.array import to_numpy
from gpattr._core.lazy_tables import is_dask
from gpattr._core.validation import Names, as_matrix, is_frame, is_series
from gpattr.estimators.distributed.cluster import computed, each
from gpattr.exceptions import GpattrError, InvalidInputError


@dataclass(frozen=True)
class Parts:
    """The partitions of X, or of y, as nodes of arrays (r, width) with their ``lengths``."""

    name: str
    names: Names | None
    width: int
    nodes: list[Delayed]
    lengths: list[int]

    @cached_property
    def ends(self) -> list[int]:
        """The number of rows up to the end of each partition."""
        return list(accumulate(self.lengths))

    @property
    def n(self) -> int:
        return sum(self.lengths)

    def between(self, start: int, stop: int) -> list[Delayed]:
        """Return nodes of the rows from ``start`` to ``stop``, whatever the partitions."""
        found = []
        last = min(bisect_left(self.ends, stop) + 1, len(self.ends))
        for i in range(bisect_right(self.ends, start), last):
            first = self.ends[i] - self.lengths[i]
            low, high = max(start - first, 0), min(stop - first, self.lengths[i])
            if low < high:
                whole = high - low == self.lengths[i]
                node = self.nodes[i]
                found.append(node if whole else delayed(_cut, pure=False)(node, low, high))
        return found


def parts_of(X: Any, y: Any, verbose: int = 0) -> tuple[Parts, Parts]:
    """Return inputs and targets in parts of known lengths, after a pass that checks every row.

    Rows are paired by their position; partitions may differ.
    """
    plans = _inputs(X), _targets(y)
    surveys = [
        node
        for name, names, width, partitions in plans
        for node in each(_survey, (name, names, width), list(enumerate(partitions)))
    ]
    found = computed(surveys, parts=surveys, verbose=verbose, what="checking rows")
    wrong = [problem for _, problem in found if problem]
    if wrong:
        raise InvalidInputError(wrong[0])
    result, at = [], 0
    for name, names, width, partitions in plans:
        lengths = [n for n, _ in found[at : at + len(partitions)]]
        at += len(partitions)
        nodes = each(_read, (name, names, width), list(enumerate(partitions)))
        result.append(Parts(name, names, width, nodes, lengths))
    inputs, targets = result
    if inputs.n != targets.n:
        raise InvalidInputError(
            f"y: expected {inputs.n} targets (one per row of X), got {targets.n}"
        )
    if not inputs.n:
        raise InvalidInputError("X: expected at least one row, got empty partitions only")
    return inputs, targets


def width_of(X: Any) -> int:
    """Return the number of columns of the inputs."""
    return _inputs(X)[2]


def _inputs(X: Any) -> tuple[str, Names | None, int, list[Any]]:
    _require_dask("X", X, "y")
    if _is_table(X, 2):
        names = tuple(map(str, X.columns))
        if not names:
            raise InvalidInputError("X: expected at least one column, got none")
        return "X", names, len(names), list(X.to_delayed())
    if not _is_array(X) or X.ndim != 2:
        raise InvalidInputError(
            f"X: expected a Dask data frame or a Dask array (n, d), got {_described(X)}"
        )
    return "X", None, _columns("X", X), _row_chunks(X)


def _targets(y: Any) -> tuple[str, Names | None, int, list[Any]]:
    _require_dask("y", y, "X")
    if _is_array(y) and y.ndim in (1, 2):
        several, chunks = 1 if y.ndim == 1 else _columns("y", y), _row_chunks(y)
    elif _is_table(y, 1) or _is_table(y, 2):
        several, chunks = 1 if y.ndim == 1 else len(y.columns), list(y.to_delayed())
    else:
        raise InvalidInputError(
            f"y: expected a Dask series or a Dask array (n,), got {_described(y)}"
        )
    if several != 1:
        raise InvalidInputError(
            f"y: expected targets (n,), got {several} columns; models of several outputs train on"
            " rows in memory (MultiOutputGPRegressor)"
        )
    return "y", None, 1, chunks


def _is_array(value: Any) -> bool:
    return hasattr(type(value), "chunks")


def _is_table(value: Any, ndim: int) -> bool:
    return hasattr(type(value), "npartitions") and not _is_array(value) and value.ndim == ndim


def _require_dask(name: str, value: Any, other: str) -> None:
    if not is_dask(value):
        raise InvalidInputError(
            f"{name}: expected a Dask collection, because {other} is one, got"
            f" {type(value).__name__}; dask.array.from_array({name}) makes one of an array"
        )


def _described(value: Any) -> str:
    shape = f" of shape {tuple(value.shape)}" if _is_array(value) else ""
    return f"a Dask {type(value).__name__}{shape}"


def _columns(name: str, array: Any) -> int:
    d = array.shape[1]
    if math.isnan(d):
        raise InvalidInputError(
            f"{name}: expected a known number of columns, got an array of unknown chunk sizes along"
            f" axis 1; call {name}.compute_chunk_sizes() first"
        )
    if not d:
        raise InvalidInputError(f"{name}: expected at least one column, got none")
    return int(d)


def _row_chunks(array: Any) -> list[Any]:
    """Return the chunks of an array along its rows; their lengths need not be known."""
    if array.ndim == 2:
        array = array.rechunk({1: -1})
    return list(array.to_delayed().ravel())


def _survey(what: tuple[str, Names | None, int], part: tuple[int, Any]) -> tuple[int, str]:
    """Return the number of rows of a partition, and their defects."""
    try:
        return len(_read(what, part)), ""
    except InvalidInputError as error:
        return 0, str(error)


def _read(what: tuple[str, Names | None, int], part: tuple[int, Any]) -> np.ndarray:
    """Return a partition as finite numbers (r, width); an error names partition and column."""
    (name, names, width), (number, rows) = what, part
    if is_series(rows):
        rows = rows.to_frame(name if rows.name is None else rows.name)
    elif not is_frame(rows) and np.ndim(rows) == 1:
        rows = np.reshape(rows, (-1, 1))
    try:
        if len(rows) == 0:
            return np.empty((0, width))
        array = as_matrix(name, rows, names=names, n_features=width)
    except GpattrError as error:
        message = str(error).removeprefix(f"{name}: ")
        raise InvalidInputError(f"{name}: partition {number}: {message}") from None
    return np.ascontiguousarray(to_numpy(array))


def _cut(rows: np.ndarray, low: int, high: int) -> np.ndarray:
    return rows[low:high].copy()  # what is sent, or kept, is no more than these rows
