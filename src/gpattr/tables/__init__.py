"""Tables of people: files of columns, in which some are numbers and some are categories, as models and explanations need them."""

from gpattr.tables.columns import Columns
from gpattr.tables.model import TableModel
from gpattr.tables.reading import read_table

__all__ = ["Columns", "TableModel", "read_table"]
