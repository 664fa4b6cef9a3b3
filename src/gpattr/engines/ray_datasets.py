"""Ray datasets: `map_batches`, with the model put into the object store once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.tasks import pack, task, unpack_once

if TYPE_CHECKING:
    import pandas as pd


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows; Ray reads the first rows if it has to."""
    import pandas as pd

    schema = table.schema()
    if schema is None:
        return pd.DataFrame()
    own = schema.base_schema
    if hasattr(own, "empty_table"):
        return own.empty_table().to_pandas()
    types = zip(own.names, own.types, strict=True)
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types})


def run(table: Any, function: FrameFunction) -> Any:
    """Return a dataset with the blocks of the table, in their order."""
    import ray

    parcel = ray.put(pack(function))
    result = table.map_batches(
        explain, fn_kwargs={"parcel": [parcel]}, batch_size=None, batch_format="pandas"
    )
    result.context.execution_options.preserve_order = True
    return result


def explain(frame: pd.DataFrame, parcel: list[Any]) -> pd.DataFrame:
    """Return the results of one block; the reference stands in a list, so Ray leaves it one."""
    import ray

    with task("block"):
        return unpack_once(ray.get(parcel[0]))(frame)
