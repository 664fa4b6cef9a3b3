"""Arrow datasets: folders of files, explained file by file as the result is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpattr.engines.arrow_tables import ROWS, explained, header, result_schema
from gpattr.engines.frame_function import FrameFunction
from gpattr.engines.tasks import naming

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["header", "run"]

AHEAD = {"batch_size": ROWS, "batch_readahead": 2, "fragment_readahead": 2}  # bounds memory


def run(table: ds.Dataset, function: FrameFunction) -> Any:
    """Return a reader of the results, which `pyarrow.dataset.write_dataset` and others take.

    A dataset is files, and results are none yet: the reader computes them once, as it is read.
    """
    import pyarrow as pa

    schema = result_schema(table.schema, function)

    def explain() -> Iterator[Any]:
        for fragment, batch in _batches(table):
            with naming(f"partition {getattr(fragment, 'path', 'in memory')!r}"):
                yield explained(batch, function, schema)

    return pa.RecordBatchReader.from_batches(schema, explain())


def _batches(table: ds.Dataset) -> Iterator[tuple[Any, Any]]:
    """Yield the record batches of a dataset, each with the file it is from.

    Files are read one by one with their own types, so that one with others can be named, or passed
    over; those of a filtered dataset only together, as Arrow keeps its filter to itself.
    """
    if getattr(table, "_scan_options", None):
        for tagged in table.scanner(**AHEAD).scan_batches():
            yield tagged.fragment, tagged.record_batch
        return
    for fragment in table.get_fragments():
        for batch in fragment.to_batches(schema=_own_types(table, fragment), **AHEAD):
            yield fragment, batch


def _own_types(table: ds.Dataset, fragment: ds.Fragment) -> Any:
    """Return the dataset's schema, with the types that a file has itself."""
    import pyarrow as pa

    own = fragment.physical_schema
    return pa.schema(
        [own.field(field.name) if field.name in own.names else field for field in table.schema]
    )
