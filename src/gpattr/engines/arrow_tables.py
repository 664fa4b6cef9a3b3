"""Arrow tables, record batches and readers of them; readers are explained as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.tasks import naming
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

ROWS = 2**16  # of a batch


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows; each keeps its Arrow type."""
    import pandas as pd

    return table.schema.empty_table().to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)


def run(table: Any, function: FrameFunction) -> Any:
    """Return the results: a table for a table, a batch for a batch, a reader for a reader."""
    import pyarrow as pa

    schema = result_schema(table.schema, function)
    if isinstance(table, pa.RecordBatch):
        return explained(table, function, schema)
    if isinstance(table, pa.Table):
        batches = table.to_batches(max_chunksize=ROWS)
        parts = [explained(part, function, schema) for part in batches]
        return pa.Table.from_batches(parts, schema)

    def explain() -> Iterator[Any]:
        for number, batch in enumerate(table):
            with naming(f"batch {number}"):
                yield explained(batch, function, schema)

    return pa.RecordBatchReader.from_batches(schema, explain())


def result_schema(own: Any, function: FrameFunction) -> Any:
    """Return the Arrow schema of the result of a table with the schema ``own``."""
    import pyarrow as pa

    for name in function.keep:
        if own.names.count(name) > 1:
            raise InvalidInputError(f"keep: the table has several columns {name!r}")
    computed = [pa.field(name, pa.float64()) for name in function.results]
    return pa.schema([*(own.field(name) for name in function.keep), *computed])


def explained(batch: Any, function: FrameFunction, schema: Any) -> Any:
    """Return the results of a record batch; what is missing is null."""
    import pyarrow as pa

    # The index of a pandas frame that was written with it is a column here, as any other.
    results = function.computed(batch.to_pandas(ignore_metadata=True))
    computed = [pa.array(results[name], pa.float64(), from_pandas=True) for name in results]
    kept = []
    for name in function.keep:
        dtype = schema.field(name).type
        try:
            kept.append(batch.column(name).cast(dtype))
        except (pa.ArrowException, KeyError) as error:
            if function.errors == "missing":
                kept.append(pa.nulls(len(batch), dtype))
                continue
            raise InvalidInputError(f"keep: column {name!r}: {error}") from error
    return pa.record_batch([*kept, *computed], schema=schema)
