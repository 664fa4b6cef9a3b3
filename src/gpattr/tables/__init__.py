"""Tabular data: numbers, categories and dates, read from CSV, Excel and Parquet files."""

from gpattr.tables.columns import Columns
from gpattr.tables.model import TableModel
from gpattr.tables.reading import read_table

__all__ = ["Columns", "TableModel", "read_table"]
