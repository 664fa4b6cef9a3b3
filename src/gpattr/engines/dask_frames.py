"""Dask data frames: one task for each partition, and the model as one task that all depend on.

A Dask array (n, d) becomes a data frame: it has no names for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpattr._core.validation import Names
from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.tasks import pack, task, unpack
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd


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


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows."""
    return table._meta


def run(table: Any, function: FrameFunction) -> Any:
    """Return a Dask data frame with the index and the divisions of the table.

    A worker fetches the model when it first needs it. The scheduler keeps it with the graph, and so
    can give it to workers that come later, or instead of others.
    """
    from dask.delayed import delayed

    model = delayed(unpack, pure=True)(pack(function))
    return table.map_partitions(explain, model, meta=function(header(table)))


def explain(
    frame: pd.DataFrame, function: FrameFunction, partition_info: Any = None
) -> pd.DataFrame:
    """Return the results of one partition."""
    number = "" if partition_info is None else f" {partition_info['number']}"
    with task(f"partition{number}"):
        return function(frame)
