"""Polars frames, eager and lazy; lazy ones are explained in the batches of Polars' own engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction

if TYPE_CHECKING:
    import pandas as pd


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows; each keeps its type."""
    frame = _for_pandas(table.collect_schema().to_frame())
    return frame.to_pandas(use_pyarrow_extension_array=True)


def _for_pandas(frame: Any) -> Any:
    """Return a frame without integers that pandas does not know."""
    import polars as pl

    wide = [name for name, dtype in frame.schema.items() if str(dtype) in ("Int128", "UInt128")]
    return frame.with_columns(pl.col(wide).cast(pl.Float64)) if wide else frame


def run(table: Any, function: FrameFunction) -> Any:
    """Return the results, as lazily as the table is."""
    import polars as pl

    def explain(frame: pl.DataFrame) -> pl.DataFrame:
        results = function.computed(_for_pandas(frame).to_pandas())
        computed = pl.from_pandas(results, nan_to_null=True, schema_overrides=computed_schema)
        return pl.concat([frame.select(function.keep), computed], how="horizontal")

    computed_schema = dict.fromkeys(function.results, pl.Float64)
    if isinstance(table, pl.DataFrame):
        return explain(table)
    own = table.collect_schema()
    schema = {name: own[name] for name in function.keep} | computed_schema
    return table.map_batches(explain, schema=pl.Schema(schema), streamable=True)
