"""Spark data frames: `mapInPandas`, with the model as a broadcast variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.tasks import Parcel, pack, task, unpack_once

if TYPE_CHECKING:
    import pandas as pd


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows."""
    return table.limit(0).toPandas()


def run(table: Any, function: FrameFunction) -> Any:
    """Return a Spark data frame with the partitions of the table."""
    from pyspark.sql.types import DoubleType, StructField, StructType

    parcel, spark = pack(function), table.sparkSession
    # Spark Connect has no broadcast variables: there the bytes go with the function.
    connected = type(table).__module__.startswith("pyspark.sql.connect")
    carrier = SimpleNamespace(value=parcel) if connected else spark.sparkContext.broadcast(parcel)

    def explain(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        yield from explained(carrier.value, frames)

    kept = [table.schema[name] for name in function.keep]
    computed = [StructField(name, DoubleType()) for name in function.results]
    return table.mapInPandas(explain, StructType([*kept, *computed]))


def explained(parcel: Parcel, frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield the results of the batches of one partition."""
    from pyspark import TaskContext

    context, function = TaskContext.get(), unpack_once(parcel)
    part = "partition" if context is None else f"partition {context.partitionId()}"
    for frame in frames:
        with task(part):
            results = function(frame)
        yield results
