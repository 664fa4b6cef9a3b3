"""pandas frames, which are explained at once, in blocks within the memory budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpattr.engines.frame_function import FrameFunction

if TYPE_CHECKING:
    import pandas as pd


def header(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of a table, without rows."""
    return table.iloc[:0]


def run(table: pd.DataFrame, function: FrameFunction) -> pd.DataFrame:
    """Return the results with the index of the table."""
    return function(table)
