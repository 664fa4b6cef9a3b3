"""Parts of a CSV file that is larger than memory: each is read by itself, from its own bytes.

pyarrow cuts the bytes of a part into texts (0.3 s for 32 MB where Python's `csv` takes 1 s); they
become numbers as in a table that is read at once, by the same functions.
"""

from __future__ import annotations

import csv
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpattr.exceptions import InvalidInputError
from gpattr.tables.reading import check_header, contains_rows, separator_of, wrong_width
from gpattr.tables.records import UNCLOSED, Part, cut, is_blank, parts_of, records

if TYPE_CHECKING:
    import pandas as pd

HEAD = 2**20  # bytes that tell the separator and the column names
MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of a file
BYTES_PER_ROW = 2**10  # read at first for a row of a sample
NAMELESS = "The first column was left out because it has no name."
WINDOWS = "The file is not UTF-8 and was read as Windows-1252: check special characters."


@dataclass(frozen=True)
class CsvFile:
    """A CSV file: its ``header``, and that the records below begin at the byte ``body``.

    ``line`` is the number of the first of them. ``encoding`` is that of the whole file.
    """

    path: str
    separator: str
    header: tuple[str, ...]
    body: int
    line: int
    encoding: str = "utf-8"

    @classmethod
    def open(cls, path: str, fewest: int) -> CsvFile:
        """Read the column names of a file, whose encoding is not known yet."""
        with open(path, "rb") as file:
            content = file.read(HEAD)
        if b"\0" in content:
            raise InvalidInputError(
                f"{path}: expected text, got a binary file; save the table as CSV (UTF-8)"
            )
        start = len(MARK) if content.startswith(MARK) else 0
        head = content[start:]
        if len(content) == HEAD:
            head = head[: head.rfind(b"\n") + 1] or head
        if not head.strip():
            raise InvalidInputError(
                f"{path}: expected a line of column names and rows below it, got 0 lines"
            )
        text = _decoded(head)
        with _readable(path):
            separator = separator_of(path, text, fewest)
            for line, (stop, row) in enumerate(records(head, separator), 1):
                if not is_blank(row):
                    names = _header(head[:stop], separator, _encoding(head))
                    check_header(path, list(names))
                    return cls(path, separator, names, start + stop, line + 1, _encoding(head))
        raise InvalidInputError(f"{path}: expected a line of column names, got none")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have a name."""
        return tuple(name for name in self.header if name)

    @property
    def notes(self) -> list[str]:
        """What to know about the way it is read."""
        nameless = [NAMELESS] if "" in self.header else []
        return [*([WINDOWS] if self.encoding != "utf-8" else []), *nameless]

    def scanned(self, number: int, advance: Callable[[int], Any]) -> tuple[CsvFile, list[Part]]:
        """Return the file with its encoding, and its parts; ``advance`` is told bytes read."""
        found, utf8, size = [], True, os.path.getsize(self.path)
        advance(self.body)
        with open(self.path, "rb") as file, _readable(self.path):
            for part, content in parts_of(
                file, self.path, number, self.body, self.line, self.separator, len(self.header)
            ):
                if b"\0" in content:
                    raise InvalidInputError(
                        f"{self.path}: expected text, got a zero byte after row {part.first}"
                    )
                utf8 = utf8 and _encoding(content) == "utf-8"
                advance(len(content))
                if part.rows:
                    found.append(part)
        if os.path.getsize(self.path) != size:
            raise changed(self.path)
        encoding = "utf-8" if utf8 else "cp1252"
        if encoding == self.encoding:
            return self, found
        with open(self.path, "rb") as file:
            head = file.read(self.body)
        names = _header(head.removeprefix(MARK), self.separator, encoding)
        return replace(self, encoding=encoding, header=names), found

    def read(
        self, part: Part, columns: Sequence[str], numbers: Collection[str] = ()
    ) -> pd.DataFrame:
        """Return the rows of a part as text; ``attrs["commas"]`` names columns with commas.

        Those of ``numbers`` are numbers already where they are written as numbers usually are.
        """
        with open(self.path, "rb") as file:
            file.seek(part.start)
            content = file.read(part.stop - part.start)
        if zlib.crc32(content) != part.checksum:
            raise changed(self.path)
        return self._frame(content, part, columns, numbers)

    def head(self, part: Part, rows: int, columns: Sequence[str]) -> pd.DataFrame:
        """Return the first rows of a part, at most ``rows``."""
        length = BYTES_PER_ROW * rows
        while True:
            length = min(length, part.stop - part.start)
            with open(self.path, "rb") as file:
                file.seek(part.start)
                content = file.read(length)
            whole = length == part.stop - part.start
            found = cut(
                content, self.separator, len(self.header), whole, self.path, part.line, most=rows
            )
            if found.rows or whole:
                break
            length *= 16
        some = replace(part, stop=part.start + found.stop, rows=found.rows, regular=found.regular)
        return self._frame(content[: found.stop], some, columns)

    def _frame(
        self, content: bytes, part: Part, columns: Sequence[str], numbers: Collection[str] = ()
    ) -> pd.DataFrame:
        import pandas as pd

        found = self._quickly(content, part, columns, numbers) if part.regular else None
        values, commas = found or self._slowly(content, part, columns)
        index = range(part.first, part.first + part.rows)
        texts = {
            name: pd.Series(column, index, None if name in numbers and found else object)
            for name, column in values.items()
        }
        frame = pd.DataFrame(texts, index=index)
        frame.attrs["commas"] = commas
        return frame

    def _quickly(
        self, content: bytes, part: Part, columns: Sequence[str], numbers: Collection[str]
    ) -> tuple[dict[str, Any], list[str]] | None:
        """Return columns as texts, by pyarrow; None where a row is not as it should be."""
        import pyarrow as pa
        from pyarrow import compute as functions
        from pyarrow import csv as reader

        pc: Any = functions  # made when it is imported, so type checkers do not know them

        names = [name or f"\0{place}" for place, name in enumerate(self.header)]
        try:
            table = reader.read_csv(
                pa.BufferReader(content),
                reader.ReadOptions(
                    column_names=names, block_size=len(content) + 1, encoding=self.encoding
                ),
                reader.ParseOptions(delimiter=self.separator, newlines_in_values=b'"' in content),
                reader.ConvertOptions(
                    column_types=dict.fromkeys(columns, pa.string()),
                    include_columns=list(columns),
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:  # the other reader says what is wrong, and where
            return None
        if len(table) != part.rows:  # there are blank records
            return None
        found, commas = {}, []
        for name in columns:
            texts = pc.utf8_trim_whitespace(table[name])
            values = _numbers(texts) if name in numbers else None
            if values is None:
                values = texts.to_numpy(zero_copy_only=False)
                if pc.any(pc.match_substring(texts, ",")).as_py():
                    commas.append(name)
            found[name] = values
        return found, commas

    def _slowly(
        self, content: bytes, part: Part, columns: Sequence[str]
    ) -> tuple[dict[str, Any], list[str]]:
        """Return columns as texts, by Python's `csv`; refuse rows of another length."""
        rows = []
        with _readable(self.path):
            for number, (_, row) in enumerate(
                records(content, self.separator, self.encoding), part.line
            ):
                if is_blank(row):
                    continue
                if len(row) != len(self.header):
                    raise wrong_width(self.path, number, row, self.header, self.separator)
                if contains_rows(row, self.separator):
                    raise InvalidInputError(f"{self.path}: a cell in line {number} {UNCLOSED}")
                rows.append([cell.strip() for cell in row])
        by_name = dict(zip(self.header, zip(*rows, strict=True), strict=True))
        found = {name: list(by_name[name]) for name in columns}
        return found, [name for name in columns if any("," in cell for cell in found[name])]

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values, without its path."""
        content = {name: getattr(self, name) for name in ("separator", "body", "line", "encoding")}
        return content | {"header": list(self.header)}

    @classmethod
    def of_content(cls, path: str, content: Any) -> CsvFile:
        """Return what `to_content` returned."""
        return cls(path, **content | {"header": tuple(content["header"])})


def changed(path: str) -> InvalidInputError:
    """Return the error for a file that another program has written to."""
    return InvalidInputError(f"{path}: changed while it was read; try again when it is complete")


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raise one sentence for what is not CSV, or not text."""
    try:
        yield
    except csv.Error as error:
        raise InvalidInputError(f"{path}: cannot be read as CSV: {error}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"{path}: expected text in UTF-8; save the table as CSV (UTF-8)"
        ) from None


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


def _header(content: bytes, separator: str, encoding: str) -> tuple[str, ...]:
    """Return the names in the last record of bytes that end with it."""
    *_, (_, row) = records(content, separator, encoding)
    return tuple(cell.strip() for cell in row)


def _encoding(content: bytes) -> str:
    if content.isascii():
        return "utf-8"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _decoded(content: bytes) -> str:
    return content.decode(_encoding(content), errors="replace")
