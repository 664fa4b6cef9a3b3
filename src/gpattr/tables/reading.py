"""Files of columns: CSV with any usual separator, Parquet. What is wrong with one is said in one sentence."""

from __future__ import annotations

import csv
import io
import os
from os import PathLike
from typing import TYPE_CHECKING

from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def read_table(path: str | PathLike[str]) -> pd.DataFrame:
    """Return a file as a frame of text, as it stands there, or of what a Parquet file holds; rows are counted from 1."""
    name = os.fspath(path)
    if name.lower().endswith((".parquet", ".pq")):
        return _parquet(name)
    try:
        with open(name, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise InvalidInputError(f"{name}: expected text in UTF-8; save the table as CSV (UTF-8)") from None
    if "\0" in text:
        raise InvalidInputError(f"{name}: expected text, got a binary file; save the table as CSV (UTF-8)")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise InvalidInputError(f"{name}: expected a line of column names and rows below it, got {len(lines)} lines")
    separator = _separator(name, lines)
    return _frame(name, list(csv.reader(io.StringIO(text, newline=""), delimiter=separator)), separator)


def _separator(name: str, lines: list[str]) -> str:
    """Return the separator that cuts the first line, and those below it, into the most columns."""

    def columns(line: str, separator: str) -> int:
        return len(next(csv.reader([line], delimiter=separator), []))

    counts = {separator: columns(lines[0], separator) for separator in SEPARATORS}
    best = max(counts, key=lambda separator: counts[separator])
    if counts[best] < 2:
        known = ", ".join(SEPARATORS.values())
        raise InvalidInputError(f"{name}: expected at least two columns, got one; columns are separated by {known}")
    return best


def _frame(name: str, rows: list[list[str]], separator: str) -> pd.DataFrame:
    import pandas as pd

    numbered = [(number, [cell.strip() for cell in row]) for number, row in enumerate(rows, 1) if any(map(str.strip, row))]
    (_, header), body = numbered[0], numbered[1:]
    check_header(name, header)
    for number, row in body:
        if len(row) != len(header):
            cut = f"columns are separated by {SEPARATORS[separator]}s"
            raise InvalidInputError(f"{name}: expected {len(header)} columns in line {number}, got {len(row)}; {cut}")
    return pd.DataFrame([row for _, row in body], columns=header, index=range(1, len(body) + 1), dtype=object)


def check_header(name: str, header: list[str]) -> None:
    """Refuse column names that are missing, repeated, or numbers."""
    if "" in header:
        raise InvalidInputError(f"{name}: expected a name for every column, got none for column {header.index('') + 1}")
    repeated = next((label for label in header if header.count(label) > 1), None)
    if repeated is not None:
        raise InvalidInputError(f"{name}: expected different column names, got {repeated!r} more than once")
    if all(_is_number(label) for label in header):
        raise InvalidInputError(f"{name}: expected column names in the first line, got numbers: {', '.join(header[:3])}, …")


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _parquet(name: str) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(name)
    except ImportError:
        raise InvalidInputError(f'{name}: Parquet needs pyarrow, which is not installed: pip install "gpattr[parquet]"') from None
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InvalidInputError(f"{name}: expected a Parquet file, but it cannot be read: {error}") from None
    frame.columns = [str(label) for label in frame.columns]
    check_header(name, list(frame.columns))
    return frame.reset_index(drop=True).set_axis(range(1, len(frame) + 1))
