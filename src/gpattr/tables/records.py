"""Records of a CSV file: where they end, found in its bytes, and parts of a bounded size.

A newline ends a record unless it is inside of quotation marks. In a regular file these come in
pairs, the first of which starts a cell and the second ends it, so the newlines after an even number
of them are the ends. A part where that is not so (``5" pipe`` without quotes, or line ends without
newlines) is cut by Python's `csv`, which is slower. Either way a part depends on the file only: it
ends after `PART_ROWS` records, or before it would be larger than `PART_BYTES`.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from gpattr.exceptions import InvalidInputError

PART_ROWS = 2**16
PART_BYTES = 2**25  # of text: with its cells as Python's texts some 300 MB
LONGEST = 2**24  # bytes of a record; a longer one has a quotation mark that is not closed
BLANK = " \t\r\n\x0b\x0c"
UNCLOSED = "contains other rows; is a quotation mark not closed?"
NEWLINE, RETURN, QUOTE = 10, 13, 34
FIRST = 64  # letters of a record that are looked at to see that it is not blank


@dataclass(frozen=True)
class Part:
    """Rows of one file: ``rows`` of them from number ``first``, counted from 1 below the header.

    In a CSV file they are its bytes ``start`` to ``stop``, ``line`` is the number of the first
    record, ``checksum`` that of the bytes, and ``regular`` whether quotation marks are. In a
    Parquet file ``start`` and ``stop`` count rows.
    """

    file: int
    start: int
    stop: int
    first: int
    rows: int
    line: int = 0
    checksum: int = 0
    regular: bool = True

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + self.rows - 1


@dataclass(frozen=True)
class Cut:
    """The first records of some bytes: where they stop, how many, how many not blank."""

    stop: int
    records: int
    rows: int
    regular: bool


def parts_of(
    file: BinaryIO, name: str, number: int, start: int, line: int, separator: str, width: int
) -> Iterator[tuple[Part, bytes]]:
    """Yield the parts of a file, with their bytes, from the byte ``start`` on.

    ``line`` is the number of the record there, ``number`` that of the file, and ``width`` the
    number of columns.
    """
    first, guess = 1, PART_BYTES
    while True:
        found, content = Cut(0, 0, 0, True), b""
        for size in dict.fromkeys((guess, PART_BYTES, max(PART_BYTES, LONGEST))):
            if found.records == PART_ROWS or (found.records and size > PART_BYTES):
                break  # short records: less had to be looked at; the last size is for a long one
            file.seek(start)
            content = file.read(size)
            if not content:
                return
            at_end, most = len(content) < size, 1 if size > PART_BYTES else PART_ROWS
            found = cut(content, separator, width, at_end, name, line, most=most)
        if not found.records:
            raise InvalidInputError(f"{name}: a cell in line {line} {UNCLOSED}")
        content = content[: found.stop]
        guess = found.stop + found.stop // 8 if found.records == PART_ROWS else PART_BYTES
        start += found.stop
        part = Part(number, start - found.stop, start, first, found.rows, line)
        yield replace(part, checksum=zlib.crc32(content), regular=found.regular), content
        first, line = first + found.rows, line + found.records


def cut(
    content: bytes, separator: str, width: int, at_end: bool, name: str, line: int, *, most: int
) -> Cut:
    """Return the first ``most`` records of some bytes, or all whole ones if there are fewer.

    ``at_end`` says that the file ends with these bytes, and so does the last record.
    """
    found = _regular(content, separator, width, at_end, name, line, most)
    return _irregular(content, separator, at_end, most) if found is None else found


def _regular(
    content: bytes, separator: str, width: int, at_end: bool, name: str, line: int, most: int
) -> Cut | None:
    """Return the records of bytes with regular quotation marks; None if they are not."""
    if b"\r" in content and content.replace(b"\r\n", b"").rstrip(b"\r").count(b"\r"):
        return None
    data = np.frombuffer(content, dtype=np.uint8)
    newlines = np.flatnonzero(data == NEWLINE)
    quotes = np.flatnonzero(data == QUOTE) if b'"' in content else np.empty(0, dtype=np.intp)
    inside = np.searchsorted(quotes, newlines) % 2 == 1 if len(quotes) else None
    stops = (newlines if inside is None else newlines[~inside])[:most] + 1
    closed = at_end and len(quotes) % 2 == 0 and len(stops) < most
    if closed and (not len(stops) or stops[-1] < len(content)):
        stops = np.append(stops, len(content))  # the last line has no newline
    if not len(stops):
        return None if len(quotes) else Cut(0, 0, 0, True)
    if inside is not None:
        if not _come_in_pairs(data, quotes[quotes < stops[-1]], separator):
            return None
        _refuse_rows_in_cells(
            data, quotes, newlines, inside & (newlines < stops[-1]), separator, width, name, line
        )
    starts = np.concatenate([[0], stops[:-1]])
    return Cut(int(stops[-1]), len(stops), _filled(data, starts, stops, separator), True)


def _come_in_pairs(data: np.ndarray, quotes: np.ndarray, separator: str) -> bool:
    """Return whether every other quotation mark starts a cell, or ends one, or is doubled."""
    between = np.zeros(256, dtype=bool)
    between[[NEWLINE, RETURN, ord(separator)]] = True
    doubled = np.diff(quotes)[1::2] == 1  # one that ends a cell, and the next
    opens = between[data[np.maximum(quotes[::2] - 1, 0)]]
    opens[:1] |= quotes[:1] == 0
    opens[1:] |= doubled
    closing = quotes[1::2]
    closes = between[data[np.minimum(closing + 1, len(data) - 1)]]
    closes[-1:] |= closing[-1:] == len(data) - 1
    closes[: len(doubled)] |= doubled
    return bool(opens.all() and closes.all())


def _refuse_rows_in_cells(
    data: np.ndarray,
    quotes: np.ndarray,
    newlines: np.ndarray,
    inside: np.ndarray,
    separator: str,
    width: int,
    name: str,
    line: int,
) -> None:
    """Refuse a cell with a line in it that has as many separators as a row."""
    if not inside.any():
        return
    within = newlines[inside]
    ends = np.append(newlines, len(data))[np.searchsorted(newlines, within, side="right")]
    closing = np.append(quotes, len(data))[np.searchsorted(quotes, within)]
    between = np.flatnonzero(data == ord(separator))
    count = np.searchsorted(between, np.minimum(ends, closing)) - np.searchsorted(between, within)
    wrong = count == width - 1
    if wrong.any():
        before = int(np.searchsorted(newlines, within[wrong.argmax()]))
        number = line + int((np.searchsorted(quotes, newlines[:before]) % 2 == 0).sum())
        raise InvalidInputError(f"{name}: a cell in line {number} {UNCLOSED}")


def _filled(data: np.ndarray, starts: np.ndarray, stops: np.ndarray, separator: str) -> int:
    """Return how many records are not blank, which have more than separators and spaces."""
    blank = np.zeros(256, dtype=bool)
    blank[[ord(letter) for letter in BLANK + separator + '"']] = True
    undecided = np.arange(len(starts))
    for place in range(FIRST):  # as a rule one of the first letters is something
        at = starts[undecided] + place
        open_ = at < stops[undecided]
        undecided = undecided[~open_ | blank[data[np.minimum(at, len(data) - 1)]]]
        if not len(undecided):
            return len(starts)
    texts = (data[starts[place] : stops[place]].tobytes() for place in undecided)
    return len(starts) - sum(
        all(is_blank(row) for _, row in records(text, separator)) for text in texts
    )


def _irregular(content: bytes, separator: str, at_end: bool, most: int) -> Cut:
    """Return the records that Python's `csv` finds in bytes, of which each is one letter here."""
    found = Cut(0, 0, 0, False)
    for stop, row in records(content, separator):
        if stop == len(content) and not at_end:  # it may go on
            break
        found = Cut(stop, found.records + 1, found.rows + (not is_blank(row)), False)
        if found.records == most:
            break
    return found


def records(
    content: bytes, separator: str, encoding: str = "latin-1"
) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of bytes as Python's `csv` reads them, and where each of them stops."""
    stop = 0

    def lines() -> Iterator[str]:
        nonlocal stop
        for text in io.StringIO(content.decode(encoding), newline=""):
            stop += len(text.encode(encoding))
            yield text

    for row in csv.reader(lines(), delimiter=separator):
        yield stop, row


def is_blank(row: list[str]) -> bool:
    """Return whether a record has nothing but spaces."""
    return not any(cell.strip(BLANK) for cell in row)
