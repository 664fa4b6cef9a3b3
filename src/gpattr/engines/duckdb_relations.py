"""DuckDB relations, explained in DuckDB's own vectors and threads when the result is asked for.

DuckDB drops the message of an error that is raised in Python, so the function returns it in a
column of its own, and SQL raises it. Columns to keep pass through as texts, marked, because a
vector in which everything is missing has no type in pandas.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.exceptions import GpattrError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

ERROR = "gpattr error"
NUMBERS = r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|DECIMAL\(.*\)"


def header(table: Any) -> pd.DataFrame:
    """Return the columns of a table, without rows; columns of non-numbers are texts."""
    frame, types = table.limit(0).df(), zip(table.columns, table.types, strict=True)
    return frame.astype({name: "string" for name, dtype in types if not _is_number(dtype)})


def run(table: Any, function: FrameFunction) -> Any:
    """Return a relation, on the connection of the table."""
    import duckdb

    _check_kept(function)
    types = dict(zip(table.columns, table.types, strict=True))
    text, number = duckdb.type("VARCHAR"), duckdb.type("DOUBLE")

    def explain(frame: pd.DataFrame) -> pd.DataFrame:
        try:
            return function(frame).assign(**{ERROR: ""})
        except GpattrError as error:
            blank = function.empty().reindex(frame.index)
            return frame[list(function.keep)].join(blank).assign(**{ERROR: str(error)})

    given = [
        _packed(name) if name in function.keep else _plain(name, dtype)
        for name, dtype in types.items()
    ]
    schema = dict.fromkeys(function.keep, text) | dict.fromkeys(function.results, number)
    mapped = table.project(", ".join(given)).map(explain, schema=schema | {ERROR: text})
    stop = f"CASE WHEN {_quoted(ERROR)} = '' THEN TRUE ELSE error({_quoted(ERROR)}) END"
    kept = [_unpacked(name, types[name]) for name in function.keep]
    computed = [f"{_number(name)} AS {_quoted(name)}" for name in function.results]
    return mapped.filter(stop).project(", ".join([*kept, *computed]))


def _is_number(dtype: Any) -> bool:
    return re.fullmatch(NUMBERS, str(dtype)) is not None


def _check_kept(function: FrameFunction) -> None:
    """Refuse names that DuckDB takes for names of the result, whatever their case."""
    results = {name.lower(): name for name in function.results}
    for name in function.keep:
        if name.lower() in results:
            raise InvalidInputError(
                f"keep: {name!r} is the same name as {results[name.lower()]!r}, a column of the"
                " result, for DuckDB"
            )


def _is_text(dtype: Any) -> bool:
    return str(dtype) == "VARCHAR" or str(dtype).startswith("ENUM")


def _plain(name: str, dtype: Any) -> str:
    """Return a column for the model; an ENUM as its text, since `map` would hand on its codes."""
    own = _quoted(name)
    return f"CAST({own} AS VARCHAR) AS {own}" if _is_text(dtype) else own


def _packed(name: str) -> str:
    own = _quoted(name)
    return f"CASE WHEN {own} IS NULL THEN '' ELSE '=' || CAST({own} AS VARCHAR) END AS {own}"


def _unpacked(name: str, dtype: Any) -> str:
    own = _quoted(name)
    return f"CASE WHEN {own} = '' THEN NULL ELSE CAST(substr({own}, 2) AS {dtype}) END AS {own}"


def _number(name: str) -> str:
    own = _quoted(name)
    return f"CASE WHEN isnan({own}) THEN NULL ELSE {own} END"


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
