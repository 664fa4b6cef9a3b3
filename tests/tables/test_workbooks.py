"""Excel workbooks, and files that change while they are read."""

import datetime
import sys

import pandas as pd
import pytest

from gpattr.exceptions import InvalidInputError, OptionalPackageError
from gpattr.tables import Columns, read_table, reading

FRAME = pd.DataFrame(
    {
        "sold": [datetime.datetime(2024, 1, 31), datetime.datetime(2024, 3, 1), None],
        "kind": ["flat ", "house", None],
        "area": [80.5, None, 100],
        "price": [1, 2, 3],
    }
)


def book(path, **sheets):
    with pd.ExcelWriter(path) as writer:
        for name, (frame, options) in sheets.items():
            frame.to_excel(writer, sheet_name=name, **{"index": False} | options)
    return path


def test_a_workbook_is_a_table(tmp_path):
    path = book(tmp_path / "table.xlsx", Sheet1=(FRAME, {}), Sheet2=(pd.DataFrame(), {}))
    frame = read_table(path)
    assert list(frame.index) == [1, 2, 3]
    columns = Columns.of(frame, "price")
    assert set(columns.dates) == {"sold"}
    X = columns.features(frame)
    assert X["sold"].tolist() == [
        pd.Timestamp(2024, 1, 31),
        pd.Timestamp(2024, 3, 1),
        pd.Timestamp(2024, 2, 15),
    ]
    assert X["area"].tolist() == [80.5, 90.25, 100.0]
    assert X["kind"].tolist()[:2] == ["flat", "house"]


def test_an_index_and_empty_rows_around_the_table(tmp_path):
    path = book(tmp_path / "table.xlsx", Data=(FRAME, {"index": True, "startrow": 2}))
    frame = read_table(path)
    assert list(frame.columns) == list(FRAME.columns)
    assert frame.attrs["notes"] == ["The first column was left out because it has no name."]


def test_several_sheets_are_named(tmp_path):
    path = book(tmp_path / "table.xlsx", One=(FRAME, {}), Two=(FRAME[:2], {}))
    with pytest.raises(
        InvalidInputError, match="has 2 sheets, 'One', 'Two'; choose one with --sheet"
    ):
        read_table(path)
    assert len(read_table(path, sheet="Two")) == 2
    with pytest.raises(
        InvalidInputError, match="--sheet: expected one of 'One', 'Two' in .*, got 'two'"
    ):
        read_table(path, sheet="two")


def test_what_is_not_a_workbook(tmp_path, monkeypatch):
    path = tmp_path / "table.xlsx"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(
        InvalidInputError, match="expected an Excel workbook, but it cannot be read"
    ):
        read_table(path)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nowhere.xlsx")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="--sheet: only Excel workbooks .* have sheets"):
        read_table(tmp_path / "table.csv", sheet="One")
    (tmp_path / "table.xls").write_text("")
    with pytest.raises(
        InvalidInputError,
        match=r"expected a CSV, Parquet or .xlsx file; save the table as one of them",
    ):
        read_table(tmp_path / "table.xls")
    with pytest.raises(
        InvalidInputError, match="expected a row of column names and rows below it, got 1 rows"
    ):
        read_table(book(path, One=(FRAME[:0], {})))
    twice = pd.DataFrame([["a", "a"], [1, 2]])
    with pytest.raises(
        InvalidInputError, match="expected different column names, got 'a' more than once"
    ):
        read_table(book(path, One=(twice, {"header": False})))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    needed = r'reading a workbook needs openpyxl, which is not .*"gpattr\[excel\]"'
    with pytest.raises(OptionalPackageError, match=needed):
        read_table(path)


@pytest.mark.parametrize("later", ["a,b\n1,2\n3,4\n", "a,b\n5,6\n"])
def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch, later):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    separator = reading.separator_of

    def meanwhile(*arguments):
        path.write_text(later)
        return separator(*arguments)

    monkeypatch.setattr(reading, "separator_of", meanwhile)
    with pytest.raises(
        InvalidInputError, match="changed while it was read; try again when it is complete"
    ):
        read_table(path)
