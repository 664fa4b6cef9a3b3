"""map_table: a table of any size and kind in, a table of the same kind out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gpattr._core.optional import optional
from gpattr._core.table_kinds import KINDS, table_kind
from gpattr.engines.frame_function import FrameFunction
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.explainer import Explainer

# Each module has `header(table)`, a pandas frame with the table's columns, and `run(table,
# function)`; a pandas frame needs neither.
ENGINES = {
    "Polars DataFrame": "polars_frames",
    "Polars LazyFrame": "polars_frames",
    "Arrow Table": "arrow_tables",
    "Arrow RecordBatch": "arrow_tables",
    "Arrow RecordBatchReader": "arrow_tables",
    "Arrow Dataset": "arrow_tables",
    "DuckDB relation": "duckdb_relations",
    "Dask DataFrame": "dask_frames",
    "Dask Array": "dask_frames",
    "Spark DataFrame": "spark_frames",
    "Ray Dataset": "ray_datasets",
}
# Besides the library of the table, which is imported where there is such a table.
NEEDED = {"polars_frames": "pyarrow", "spark_frames": "pyarrow"}


def map_table(
    explainer: Explainer, table: Any, uncertainty: str, errors: str, keep: Sequence[str]
) -> Any:
    """Return a table of predictions and attributions, as `Explainer.map_table` describes it."""
    function = FrameFunction(explainer, uncertainty, errors, keep)  # pyright: ignore[reportArgumentType]
    kind = table_kind(table)
    if kind is None:
        raise InvalidInputError(
            f"table: expected one of {', '.join(dict.fromkeys(KINDS.values()))}; got a"
            f" {type(table).__module__}.{type(table).__qualname__}"
        )
    if kind == "pandas DataFrame":
        return function.for_table(table.iloc[:0])(table)
    if ENGINES[kind] in NEEDED:
        optional(NEEDED[ENGINES[kind]], f"map_table of a {kind}")
    engine = import_module(f"gpattr.engines.{ENGINES[kind]}")
    if kind == "Dask Array":
        table = engine.as_frame(table, function.inputs)
    return engine.run(table, function.for_table(engine.header(table)))
