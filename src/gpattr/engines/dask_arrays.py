"""Dask arrays (n, d), explained as Dask data frames: an array has no names for columns."""

from __future__ import annotations

from typing import Any

from gpattr._core.validation import Names
from gpattr.exceptions import InvalidInputError


def as_frame(array: Any, names: Names) -> Any:
    """Return an array as a Dask data frame, a partition for each chunk of rows.

    Rows are counted from 0 in its index where the sizes of all chunks are known, and from 0 in each
    partition where they are not.
    """
    import dask.dataframe as dd

    if array.ndim != 2 or array.shape[1] != len(names):
        raise InvalidInputError(
            f"table: expected rows with {len(names)} columns, got an array of shape {array.shape}"
        )
    return dd.from_dask_array(array.rechunk({1: -1}), columns=list(names))
