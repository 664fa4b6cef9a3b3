"""Kinds of tables, told by the module and the name of their class; no library is imported."""

from __future__ import annotations

from typing import Any

# By the first part of the module and the name of the class, or of one it derives from.
KINDS = {
    ("pandas", "DataFrame"): "pandas DataFrame",
    ("polars", "DataFrame"): "Polars DataFrame",
    ("polars", "LazyFrame"): "Polars LazyFrame",
    ("pyarrow", "Table"): "Arrow Table",
    ("pyarrow", "RecordBatch"): "Arrow RecordBatch",
    ("pyarrow", "RecordBatchReader"): "Arrow RecordBatchReader",
    ("pyarrow", "Dataset"): "Arrow Dataset",
    ("duckdb", "DuckDBPyRelation"): "DuckDB relation",
    ("dask", "DataFrame"): "Dask DataFrame",
    ("dask", "Array"): "Dask Array",
    ("pyspark", "DataFrame"): "Spark DataFrame",
    ("ray", "Dataset"): "Ray Dataset",
}
LAZY = frozenset(KINDS.values()) - {
    "pandas DataFrame",
    "Polars DataFrame",
    "Arrow Table",
    "Arrow RecordBatch",
}
# Columns and other collections that would be collected too, but are no tables.
PARTS = {("dask", "Series"): "Dask Series", ("dask", "Index"): "Dask Index"}


def table_kind(table: Any) -> str | None:
    """Return the kind of a table; None for other objects."""
    return _found(table, KINDS)


def lazy_kind(value: Any) -> str | None:
    """Return the kind of a lazy table, or of a part of one; None if it is in memory."""
    kind = _found(value, KINDS | PARTS)
    return kind if kind in LAZY or kind in PARTS.values() else None


def _found(value: Any, kinds: dict[tuple[str, str], str]) -> str | None:
    for ancestor in type(value).__mro__:
        module = ancestor.__module__
        if module.startswith("pyspark.pandas"):  # a pandas-like frame, and not one of Spark's own
            return None
        kind = kinds.get((module.split(".")[0].lstrip("_"), ancestor.__name__))
        if kind is not None:
            return kind
    return None
