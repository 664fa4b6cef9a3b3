"""Files of a table that is read in parts: CSV and Parquet, a batch after the other.

pyarrow splits a CSV file into cells as Python's `csv` does, and ten times faster. They become
numbers as in a table that is read at once, by the same functions.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpattr.exceptions import InvalidInputError
from gpattr.tables.reading import (
    NAMELESS,
    UNCLOSED,
    WINDOWS,
    check_header,
    refuse_irregular,
    separator_of,
)

if TYPE_CHECKING:
    import pandas as pd

HEAD = 2**20  # bytes that tell the separator and the column names
BLOCK = 2**22  # bytes that are parsed at a time; longer records have a mark that is not closed
BATCH = 2**14  # rows of a Parquet file that are read at a time
BUFFER = 2**20  # bytes of a column of a Parquet file that are read at a time

Advance = Callable[[int], Any]


@dataclass(frozen=True)
class TableFile:
    """A file of a table, with the names of its columns in the ``header``."""

    path: str
    header: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have a name."""
        return tuple(name for name in self.header if name)

    @property
    def notes(self) -> list[str]:
        """Notes on the way the file is read."""
        return [NAMELESS] if "" in self.header else []


@dataclass(frozen=True)
class CsvFile(TableFile):
    """A CSV file: its header is record number ``line``.

    ``blank`` says whether it has rows of nothing but spaces, which do not count.
    """

    separator: str
    line: int
    encoding: str = "utf-8"
    blank: bool = False

    @classmethod
    def open(cls, path: str, fewest: int) -> CsvFile:
        """Read the column names of a file, and find its encoding."""
        encoding = _encoding(path)
        with open(path, "rb") as file:
            head = file.read(HEAD)
        if len(head) == HEAD:
            head = head[: head.rfind(b"\n") + 1] or head
        text = head.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
        if not text.strip():
            raise InvalidInputError(
                f"{path}: expected a line of column names and rows below it, got 0 lines"
            )
        with _readable(path):
            separator = separator_of(path, text, fewest)
            for line, row in enumerate(
                csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1
            ):
                if any(map(str.strip, row)):
                    header = tuple(cell.strip() for cell in row)
                    check_header(path, list(header))
                    return cls(path, header, separator, line, encoding)
        raise InvalidInputError(f"{path}: expected a line of column names, got none")

    @property
    def notes(self) -> list[str]:
        """Notes on the way the file is read."""
        return [*([WINDOWS] if self.encoding != "utf-8" else []), *super().notes]

    def counted(self, advance: Advance) -> tuple[CsvFile, int]:
        """Return the file and the number of its rows; refuse rows that are none.

        ``advance`` is told the bytes read.
        """
        n, blank, checked = 0, False, False
        for batch in self._parsed(self.header, advance):
            gaps = _blank(batch)
            blank, n = blank or gaps > 0, n + len(batch) - gaps
            if not checked and _may_contain_rows(batch, self.separator):
                self._refuse_irregular()
                checked = True
        return replace(self, blank=blank), n

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as record batches of text, with at least these columns."""
        if not self.blank:
            yield from self._parsed(columns)
            return
        for batch in self._parsed(self.header):
            yield batch.filter(_filled(batch)) if _blank(batch) else batch

    def frame(
        self, batches: list[Any], columns: Sequence[str], numbers: Collection[str]
    ) -> pd.DataFrame:
        """Return rows as text; ``attrs["commas"]`` names columns with commas.

        Those of ``numbers`` are numbers already where they are written as numbers usually are.
        """
        import pandas as pd
        import pyarrow as pa
        from pyarrow import compute as functions

        pc: Any = functions  # made when it is imported, so type checkers do not know them
        table, found, commas = pa.Table.from_batches(batches), {}, []
        for name in columns:
            texts = pc.utf8_trim_whitespace(table[name])
            values = _numbers(texts) if name in numbers else None
            if values is None:
                values = pd.Series(texts.to_numpy(zero_copy_only=False), dtype=object)
                if pc.any(pc.match_substring(texts, ",")).as_py():
                    commas.append(name)
            found[name] = values
        frame = pd.DataFrame(found, index=range(len(table)))
        frame.attrs["commas"] = commas
        return frame

    def _parsed(
        self, columns: Sequence[str], advance: Advance = lambda count: None
    ) -> Iterator[Any]:
        """Yield batches of all rows that have something between separators, or are short."""
        import pyarrow as pa
        from pyarrow import csv as reader

        def decided(row: Any) -> str:
            text = row.text.replace(self.separator, " ").replace('"', " ")
            return "error" if text.strip() else "skip"

        growth = 1 if self.encoding == "utf-8" else 3
        options = (
            reader.ReadOptions(
                use_threads=False,
                block_size=BLOCK * growth,
                column_names=self.header,
                skip_rows_after_names=self.line,
            ),
            reader.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, invalid_row_handler=decided
            ),
            reader.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
        done = 0
        try:
            with _Blocks(self.path, self.encoding, growth) as file, _readable(self.path):
                for batch in reader.open_csv(file, *options):
                    advance(file.tell() - done)
                    done = file.tell()
                    yield batch
        except pa.ArrowInvalid as error:
            if self._refuse_irregular():  # otherwise there is nothing below the header
                raise InvalidInputError(f"{self.path}: cannot be read as CSV: {error}") from None

    def _refuse_irregular(self) -> int:
        """Refuse the first record that is no row, as Python's `csv` reads it; return their number.

        Blank ones are passed over.
        """
        n, encoding = 0, "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with open(self.path, encoding=encoding, newline="") as file:
            try:
                for n, row in enumerate(csv.reader(file, delimiter=self.separator), 1):
                    if n > self.line and any(map(str.strip, row)):
                        refuse_irregular(self.path, n, row, self.header, self.separator)
            except csv.Error:  # a cell that is too long
                raise InvalidInputError(f"{self.path}: a cell in line {n + 1} {UNCLOSED}") from None
        return n - self.line


@dataclass(frozen=True)
class ParquetFile(TableFile):
    """A Parquet file."""

    @classmethod
    def open(cls, path: str, fewest: int) -> ParquetFile:
        """Read the columns of a file; columns that pandas saved as its index are left out."""
        schema = _parquet(path).schema_arrow
        known = (schema.pandas_metadata or {}).get("index_columns", [])
        index = {name for name in known if isinstance(name, str)}
        names = tuple(name for name in schema.names if name not in index)
        if len(names) < fewest:
            raise InvalidInputError(f"{path}: expected at least {fewest} columns, got {len(names)}")
        check_header(path, list(names))
        return cls(path, names)

    def counted(self, advance: Advance) -> tuple[ParquetFile, int]:
        """Return the file and the number of its rows; ``advance`` is told the bytes read."""
        advance(os.path.getsize(self.path))
        return self, _parquet(self.path).metadata.num_rows

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the rows as record batches."""
        options: dict[str, Any] = {"columns": list(columns) or None, "use_threads": False}
        return _parquet(self.path).iter_batches(BATCH, **options)

    def frame(
        self, batches: list[Any], columns: Sequence[str], numbers: Collection[str]
    ) -> pd.DataFrame:
        """Return rows with the types of the file."""
        import pyarrow as pa

        table = pa.Table.from_batches(batches).replace_schema_metadata()
        frame = table.to_pandas(integer_object_nulls=True)[list(columns)]
        frame.attrs["commas"] = []
        return frame


class _Blocks(io.FileIO):
    """A file as UTF-8, which is not cut between the two letters of a line end.

    In a quoted cell pyarrow (26) would lose the second one. A byte of another encoding may become
    as many as its ``growth``.
    """

    def __init__(self, path: str, encoding: str, growth: int) -> None:
        super().__init__(path)
        self.encoding, self.growth = encoding, growth

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size // self.growth if size else size) or b""
        if len(content) > 1 and content.endswith(b"\r") and (following := super().read(1)):
            cut = following == b"\n"
            self.seek(-1 - cut, os.SEEK_CUR)
            content = content[:-1] if cut else content
        return content if self.growth == 1 else content.decode(self.encoding).encode()


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raise one sentence for files that are not CSV, or not text."""
    try:
        yield
    except csv.Error as error:
        raise InvalidInputError(f"{path}: cannot be read as CSV: {error}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"{path}: expected text in UTF-8; save the table as CSV (UTF-8)"
        ) from None


def _encoding(path: str) -> str:
    """Return the encoding of a whole file; refuse one that is not text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    found = "utf-8"
    with open(path, "rb") as file:
        while content := file.read(HEAD):
            if b"\0" in content:
                raise InvalidInputError(
                    f"{path}: expected text, got a binary file; save the table as CSV (UTF-8)"
                )
            try:
                decoder.decode(content) if found == "utf-8" else None
            except UnicodeDecodeError:
                found = "cp1252"
    try:
        decoder.decode(b"", final=True) if found == "utf-8" else None
    except UnicodeDecodeError:  # the file ends within a character
        found = "cp1252"
    return found


def _filled(batch: Any) -> Any:
    """Return a mask of the rows that have more than spaces."""
    from pyarrow import compute as functions

    pc: Any = functions
    filled: Any = False
    for column in batch.columns:
        filled = pc.or_(filled, pc.not_equal(pc.utf8_trim_whitespace(column), ""))
        if pc.all(filled, min_count=0).as_py():  # as a rule, by the first column
            break
    return filled


def _blank(batch: Any) -> int:
    """Return the number of blank rows."""
    return len(batch) - (_filled(batch).true_count if len(batch) else 0)


def _may_contain_rows(batch: Any, separator: str) -> bool:
    """Return whether a line in a cell has as many separators as a row."""
    from pyarrow import compute as functions

    pc: Any = functions
    for column in batch.columns:
        cells = column.filter(pc.match_substring(column, "\n"))
        lines = pc.list_flatten(pc.split_pattern(cells, "\n"))
        count = pc.count_substring(lines, separator)
        if pc.any(pc.equal(count, batch.num_columns - 1)).as_py():
            return True
    return False


def _numbers(texts: Any) -> Any:
    """Return texts as float64, NaN for empty ones; None where one is not a finite number.

    The numbers are those that `read_numbers` returns: both are rounded correctly.
    """
    import pyarrow as pa
    from pyarrow import compute as functions

    pc: Any = functions
    for column in (texts, pc.if_else(pc.equal(texts, ""), None, texts)):
        try:
            values = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:
            continue
        if pc.all(pc.is_finite(values), min_count=0).as_py():
            return values.to_numpy(zero_copy_only=False)
    return None


def _parquet(path: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)
    except (pa.ArrowInvalid, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InvalidInputError(
            f"{path}: expected a Parquet file, but it cannot be read: {error}"
        ) from None
