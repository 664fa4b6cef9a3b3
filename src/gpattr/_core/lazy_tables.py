"""Tables whose rows are not in memory, recognised by the module of their type, not an import."""

from __future__ import annotations

from typing import Any

DASK = ("dask", "dask_expr")


def is_dask(value: Any) -> bool:
    """Return whether ``value`` is a Dask collection: a data frame, a series, an array."""
    package = type(value).__module__.partition(".")[0]
    return package in DASK and hasattr(type(value), "__dask_graph__")
