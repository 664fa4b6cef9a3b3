"""Excel workbooks: one sheet with the column names in its first row."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from gpattr._core.optional import optional
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".xlsx", ".xlsm")
OLD_ENDINGS = (".xls", ".xlsb", ".ods")


def read_workbook(name: str, sheet: str | None = None) -> tuple[list[str], pd.DataFrame]:
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
