"""Table files: CSV with any common separator, Excel and Parquet."""

from __future__ import annotations

import csv
import io
import os
import re
import warnings
from collections.abc import Sequence
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpattr._core.optional import optional
from gpattr._core.validation import check_count, check_path, check_text
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

# The comma in 1,234 is ambiguous; in $1,234 and 1,234 sq ft it separates thousands.
THOUSANDS = re.compile(r"[-+(]?\s*[1-9]\d{0,2},\d{3}\s*[%‰]?\)?")
DECIMAL = r"[-+]?\d*{0}(?:\d{{1,2}}|\d{{4,}})"  # with three digits it might be thousands
SAMPLE = 20  # lines that determine the separator
ENDINGS = (".xlsx", ".xlsm")
OLD_ENDINGS = (".xls", ".xlsb", ".ods")
NAMELESS = "The first column was left out because it has no name."
WINDOWS = "The file is not UTF-8 and was read as Windows-1252: check special characters."
UNCLOSED = "contains other rows; is a quotation mark not closed?"
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


def read_table(
    path: str | PathLike[str], *, fewest: int = 2, sheet: str | None = None
) -> pd.DataFrame:
    """Return a CSV file as a frame of text, or a workbook or Parquet file with its own types.

    Rows are numbered from 1. A table with fewer columns than ``fewest`` is refused, since its
    separator is probably not supported. ``sheet`` names a workbook's sheet.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpattr.tables import read_table
    >>> pd.DataFrame({"alcohol": [9.4, 9.8], "quality": [5, 6]}).to_csv("wines.csv", index=False)
    >>> read_table("wines.csv")
      alcohol quality
    1     9.4       5
    2     9.8       6
    """
    name = check_path("path", path)
    check_count("fewest", fewest, most=10**6)
    if sheet is not None:
        check_text("sheet", sheet)
    if os.path.isdir(name):
        raise InvalidInputError(f"{name}: expected a file, got a folder")
    before = os.stat(name)
    frame = _read(name, fewest, sheet)
    after = os.stat(name)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise InvalidInputError(f"{name}: changed while it was read; try again when it is complete")
    return frame


def _read(name: str, fewest: int, sheet: str | None) -> pd.DataFrame:
    ending = os.path.splitext(name)[1].lower()
    if ending in ENDINGS:
        return _workbook(name, sheet)
    if sheet is not None:
        raise InvalidInputError(
            f"--sheet: only Excel workbooks ({', '.join(ENDINGS)}) have sheets, got {name}"
        )
    if ending in OLD_ENDINGS:
        raise InvalidInputError(
            f"{name}: expected a CSV, Parquet or .xlsx file; save the table as one of them"
        )
    if ending in (".parquet", ".pq"):
        return _parquet(name)
    text, notes = _text(name)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise InvalidInputError(
            f"{name}: expected a line of column names and rows below it, got {len(lines)}"
            f" line{'s' * (len(lines) != 1)}"
        )
    try:
        separator = separator_of(name, text, fewest)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InvalidInputError(f"{name}: cannot be read as CSV: {error}") from None
    return _without_index(_frame(name, rows, separator), notes)


def _without_index(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    if "" in frame.columns:  # an index that was saved with the table
        notes.append(NAMELESS)
        frame = frame.drop(columns="")
    frame.attrs["notes"] = notes
    return frame


def _workbook(name: str, sheet: str | None) -> pd.DataFrame:
    header, frame = _cells_of(name, sheet)
    check_header(name, header)
    texts = [
        [cell if isinstance(cell, str) else "" for cell in row] for row in frame.to_numpy().tolist()
    ]
    frame.attrs["point"] = point = decimal_point(texts)
    refuse_ambiguous(name, header, texts, point)
    return _without_index(frame, [])


def _text(name: str) -> tuple[str, list[str]]:
    """Return a file as text, and notes on its encoding."""
    with open(name, "rb") as file:
        content = file.read()
    if b"\0" in content:
        raise InvalidInputError(
            f"{name}: expected text, got a binary file; save the table as CSV (UTF-8)"
        )
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252"), [WINDOWS]
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"{name}: expected text in UTF-8; save the table as CSV (UTF-8)"
        ) from None


def separator_of(name: str, text: str, fewest: int) -> str:
    """Return the separator that splits the first lines into equally many, and most, columns."""

    def columns(separator: str) -> tuple[bool, int]:
        lines = (
            row
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            if any(map(str.strip, row))
        )
        counts = [len(row) for row in islice(lines, SAMPLE)]
        return len(set(counts)) == 1 and counts[0] >= fewest, counts[0] if counts else 0

    found = {separator: columns(separator) for separator in SEPARATORS}
    best = max(found, key=lambda separator: found[separator])
    if found[best][1] < fewest:
        known = ", ".join(SEPARATORS.values())
        raise InvalidInputError(
            f"{name}: expected at least {fewest} columns, got 1; columns are separated by {known}"
        )
    return best


def _frame(name: str, rows: list[list[str]], separator: str) -> pd.DataFrame:
    import pandas as pd

    numbered = [
        (number, [cell.strip() for cell in row])
        for number, row in enumerate(rows, 1)
        if any(map(str.strip, row))
    ]
    (_, header), body = numbered[0], numbered[1:]
    check_header(name, header)
    if not body:
        raise InvalidInputError(
            f"{name}: expected a line of column names and rows below it, got no rows"
        )
    for number, row in body:
        refuse_irregular(name, number, row, header, separator)
    cells = [row for _, row in body]
    point = decimal_point(cells)
    if separator != ";":  # with semicolons, commas are decimal points
        refuse_ambiguous(name, header, cells, point)
    frame = pd.DataFrame(cells, columns=header, index=range(1, len(body) + 1), dtype=object)
    frame.attrs["point"] = point
    return frame


def refuse_irregular(
    name: str, number: int, row: Sequence[str], header: Sequence[str], separator: str
) -> None:
    """Refuse a line with more or fewer cells than there are columns, or with rows in a cell."""
    if len(row) != len(header):
        raise InvalidInputError(
            f"{name}: expected {len(header)} columns in line {number}, got {len(row)}; columns are"
            f" separated by {SEPARATORS[separator]}s"
        )
    # Rows in a cell: lines with as many separators.
    if any(
        "\n" in cell
        and any(line.count(separator) == len(row) - 1 for line in cell.splitlines()[1:])
        for cell in row
    ):
        raise InvalidInputError(f"{name}: a cell in line {number} {UNCLOSED}")


def decimal_point(body: list[list[str]]) -> str:
    """Return the decimal point of a table's numbers, "." or ",", or "" if it has none or both."""
    found = [
        mark
        for mark in (".", ",")
        if any(
            mark in cell and re.fullmatch(DECIMAL.format(re.escape(mark)), cell)
            for row in body
            for cell in row
        )
    ]
    return found[0] if len(found) == 1 else ""


def refuse_ambiguous(name: str, header: list[str], body: list[list[str]], point: str = "") -> None:
    """Refuse columns whose commas may be decimal points or thousands separators.

    With a decimal ``point`` in other columns they are thousands separators.
    """
    if point == ".":
        return
    for label, cells in zip(header, zip(*body, strict=True), strict=True):
        with_comma = [cell for cell in cells if "," in cell]
        if with_comma and all(THOUSANDS.fullmatch(cell) for cell in with_comma):
            raise InvalidInputError(
                f"{name}: numbers such as {with_comma[0]!r} in column {label!r} are ambiguous;"
                " write them without the comma, or with a point, or leave the column out:"
                f" --drop {label!r}"
            )


def check_header(name: str, header: list[str]) -> None:
    """Refuse column names that are missing (except the first), repeated, or numbers."""
    if "" in header[1:] or header == [""]:
        raise InvalidInputError(
            f"{name}: expected a name for every column, got none for column"
            f" {len(header) - header[::-1].index('')}"
        )
    repeated = next((label for label in header if header.count(label) > 1), None)
    if repeated is not None:
        raise InvalidInputError(
            f"{name}: expected different column names, got {repeated!r} more than once"
        )
    if all(_is_number(label) for label in header if label):
        raise InvalidInputError(
            f"{name}: expected column names in the first line, got numbers:"
            f" {', '.join(header[:3])}, …"
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _parquet(name: str) -> pd.DataFrame:
    import pandas as pd

    optional("pyarrow", f"{name}: Parquet")
    try:
        frame = pd.read_parquet(name)
    except (ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InvalidInputError(
            f"{name}: expected a Parquet file, but it cannot be read: {error}"
        ) from None
    frame.columns = [str(label) for label in frame.columns]
    check_header(name, list(frame.columns))
    return frame.reset_index(drop=True).set_axis(range(1, len(frame) + 1))


def _cells_of(name: str, sheet: str | None = None) -> tuple[list[str], pd.DataFrame]:
    """Return the column names and cells of a ``sheet``, by default the only one not empty."""
    import pandas as pd

    optional("openpyxl", f"{name}: reading a workbook")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns about styles and controls it drops
        try:
            with pd.ExcelFile(name, engine="openpyxl") as book:
                cells = _cells(book, _chosen(name, book, sheet))
        except (InvalidInputError, FileNotFoundError):
            raise
        except Exception as error:  # zip, XML and cells may be broken
            raise InvalidInputError(
                f"{name}: expected an Excel workbook, but it cannot be read: {error}"
            ) from None
    if len(cells) < 2:
        raise InvalidInputError(
            f"{name}: expected a row of column names and rows below it, got {len(cells)} rows"
        )
    header = ["" if pd.isna(label) else str(label).strip() for label in cells.iloc[0]]
    body = cells.iloc[1:].set_axis(header, axis=1).set_axis(range(1, len(cells)), axis=0)
    return (
        header,
        body.map(lambda cell: cell.strip() if isinstance(cell, str) else cell).infer_objects(),
    )


def _chosen(name: str, book: Any, sheet: str | None) -> str:
    sheets = [str(label) for label in book.sheet_names]
    if sheet is not None:
        if sheet not in sheets:
            raise InvalidInputError(
                f"--sheet: expected one of {', '.join(map(repr, sheets))} in {name}, got {sheet!r}"
            )
        return sheet
    full = [label for label in sheets if len(sheets) == 1 or not _cells(book, label, 5).empty]
    if len(full) > 1:
        raise InvalidInputError(
            f"{name}: has {len(full)} sheets, {', '.join(map(repr, full))}; choose one with --sheet"
        )
    return full[0] if full else sheets[0]


def _cells(book: Any, sheet: str, rows: int | None = None) -> pd.DataFrame:
    """Return the cells of a sheet without empty rows and columns."""
    cells = book.parse(sheet, header=None, dtype=object, nrows=rows).dropna(how="all")
    return cells.dropna(axis=1, how="all")
