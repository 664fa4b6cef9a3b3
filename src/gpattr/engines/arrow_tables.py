"""Arrow tables, batches, readers and datasets; readers and datasets are explained as they are read.

A dataset is files, and results are none yet: its result is a reader, which
`pyarrow.dataset.write_dataset` and others take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.tasks import naming
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.dataset as ds

ROWS = 2**16  # of a batch
AHEAD = {"batch_size": ROWS, "batch_readahead": 2, "fragment_readahead": 2}  # bounds memory


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows; each keeps its Arrow type."""
    import pandas as pd

    return table.schema.empty_table().to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)


def run(table: Any, function: FrameFunction) -> Any:
    """Return the results: a table for a table, a batch for a batch, a reader for others."""
    import pyarrow as pa

    schema = result_schema(table.schema, function)
    if isinstance(table, pa.RecordBatch):
        return explained(table, function, schema)
    if isinstance(table, pa.Table):
        batches = table.to_batches(max_chunksize=ROWS)
        parts = [explained(part, function, schema) for part in batches]
        return pa.Table.from_batches(parts, schema)

    def explain() -> Iterator[Any]:
        is_reader = isinstance(table, pa.RecordBatchReader)
        for name, batch in enumerate(table) if is_reader else _batches(table):
            with naming(f"batch {name}" if is_reader else f"partition {name!r}"):
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
    """Return the results of a record batch; missing results are null."""
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


def _batches(table: ds.Dataset) -> Iterator[tuple[Any, Any]]:
    """Yield the record batches of a dataset, each with the name of the file it is from.

    Files are read one by one with their own types, so that one with others can be named, or passed
    over; files of a filtered dataset only together, as Arrow keeps its filter to itself.
    """
    if getattr(table, "_scan_options", None):
        for tagged in table.scanner(**AHEAD).scan_batches():
            yield _name(tagged.fragment), tagged.record_batch
        return
    for fragment in table.get_fragments():
        for batch in fragment.to_batches(schema=_own_types(table, fragment), **AHEAD):
            yield _name(fragment), batch


def _name(fragment: ds.Fragment) -> str:
    return getattr(fragment, "path", "in memory")


def _own_types(table: ds.Dataset, fragment: ds.Fragment) -> Any:
    """Return the dataset's schema, with the types that a file has itself."""
    import pyarrow as pa

    own = fragment.physical_schema
    return pa.schema(
        [own.field(field.name) if field.name in own.names else field for field in table.schema]
    )
