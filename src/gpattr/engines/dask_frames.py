"""Dask data frames: one task for each partition, and the model as one task that all depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.parcel import pack, unpack
from gpattr.engines.tasks import task

if TYPE_CHECKING:
    import pandas as pd


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
