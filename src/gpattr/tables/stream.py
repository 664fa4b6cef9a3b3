"""Tables in parts: a CSV or Parquet file, or a folder of them, of any size.

A part is a number of rows, which depends on the width of the table alone. The files are read from
the beginning, and parts that are not wanted are passed over, which takes seconds for gigabytes.
What each column is has been decided before, by a model or from a sample of the rows, and no part
decides it again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.optional import optional
from gpattr._core.validation import check_path
from gpattr.exceptions import InvalidInputError
from gpattr.tables.reading import ENDINGS, OLD_ENDINGS
from gpattr.tables.table_files import CsvFile, ParquetFile

if TYPE_CHECKING:
    import pandas as pd

PART_ROWS, PART_CELLS = 2**16, 2**20  # of a part, at most
SAMPLE_ROWS = 20_000  # that tell what the columns are
SAMPLE_PARTS = 64  # that they come from
ENDS = 2**16  # bytes at both ends of a file that tell it from others
PARQUET = (".parquet", ".pq")
TEXTS = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Part:
    """Rows of one file: ``rows`` of them from number ``first``, counted from 1 below the header."""

    file: int
    first: int
    rows: int

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + self.rows - 1


@dataclass(frozen=True)
class Stream:
    """A table at ``path`` in ``parts``, of one file or several.

    ``stamps`` tell the files from others: {name: (size, time of change, digest of both ends)}.
    """

    path: str
    files: tuple[CsvFile | ParquetFile, ...]
    stamps: Mapping[str, Sequence[Any]]
    parts: tuple[Part, ...]

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        *,
        fewest: int = 2,
        advance: Callable[[int], Any] = lambda count: None,
    ) -> Stream:
        """Find the parts of a table; ``advance`` is told how many bytes were looked at."""
        name = check_path("path", path)
        stamps = stamps_of(name)
        files: list[CsvFile | ParquetFile] = []
        parts: list[Part] = []
        for number, inside in enumerate(stamps):
            place = os.path.join(name, inside) if os.path.isdir(name) else name
            kind = ParquetFile if is_parquet(place) else CsvFile
            file, n = kind.open(place, fewest).counted(advance)
            files.append(file)
            size = max(1, min(PART_ROWS, PART_CELLS // len(file.header)))
            firsts = range(1, n + 1, size)
            parts += [Part(number, first, min(size, n + 1 - first)) for first in firsts]
        if not parts:
            raise InvalidInputError(
                f"{name}: expected a line of column names and rows below it, got no rows"
            )
        if stamps_of(name) != stamps:
            raise InvalidInputError(f"{name}: changed while it was read; try again later")
        return cls(name, tuple(files), stamps, tuple(parts))

    @property
    def n_rows(self) -> int:
        """The number of rows of all files."""
        return sum(part.rows for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return self.files[0].columns

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of files."""
        return os.path.isdir(self.path)

    @property
    def notes(self) -> list[str]:
        """Notes on the way the files are read."""
        return list(dict.fromkeys(note for file in self.files for note in file.notes))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files, in the folder if it is one."""
        return tuple(self.stamps)

    def read(
        self, parts: Iterable[Part], columns: Sequence[str], numbers: Collection[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows of parts, in the order of the files; columns in ``numbers`` as numbers.

        Rows are numbered from 1 in their file. Columns that a file does not have are left out.
        """
        for number, some in groupby(parts, lambda part: part.file):
            file = self.files[number]
            there = [name for name in columns if name in file.columns]
            for part, batches in _cut(file.batches(there), some, file.path):
                status = os.stat(file.path)
                if [status.st_size, status.st_mtime_ns] != list(
                    self.stamps[self.names[number]][:2]
                ):
                    raise _changed(file.path)
                frame = file.frame(batches, there, numbers)
                yield frame.set_axis(range(part.first, part.last + 1))

    def sample(self, rows: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return about ``rows`` rows from across the table, always the same; all of a small one."""
        import pandas as pd

        columns = self.columns if columns is None else columns
        count = min(len(self.parts), SAMPLE_PARTS)
        places = np.unique(np.linspace(0, len(self.parts) - 1, count).round().astype(int))
        each = -(-rows // len(places))
        chosen = [self.parts[place] for place in places]
        for part in chosen:
            file = self.files[part.file]
            absent = [name for name in columns if name not in file.columns]
            if absent:
                raise InvalidInputError(
                    f"{file.path}: expected a column {absent[0]!r}, as in {self.names[0]}; the"
                    f" columns are {list(file.columns)}"
                )
        heads = [replace(part, rows=min(part.rows, each)) for part in chosen]
        found, commas = [], {}
        for part, frame in zip(heads, self.read(heads, columns), strict=True):
            if self.is_folder:
                frame.index = [f"{row} of {self.names[part.file]}" for row in frame.index]
            commas |= dict.fromkeys(frame.attrs["commas"])
            frame.attrs = {}
            found.append(frame)
        whole: pd.DataFrame = pd.concat(found)
        whole.attrs.update(commas=list(commas), notes=self.notes)
        return whole

    def only(self, parts: Sequence[Part]) -> Stream:
        """Return the table with some of its parts only."""
        return replace(self, parts=tuple(parts))


def _cut(
    batches: Iterable[Any], parts: Iterable[Part], path: str
) -> Iterator[tuple[Part, list[Any]]]:
    """Yield the rows of each part of a file, as batches; rows between them are passed over."""
    source, batch, before = iter(batches), None, 0  # rows before the batch
    for part in parts:
        found = []
        while True:
            if batch is not None:
                stop = before + len(batch)
                if stop >= part.first:
                    found.append(batch[max(part.first - 1 - before, 0) : part.last - before])
                if stop >= part.last:
                    break
                before = stop
            batch = next(source, None)
            if batch is None:
                raise _changed(path)
        yield part, found


def _changed(path: str) -> InvalidInputError:
    return InvalidInputError(f"{path}: changed while it was read; try again when it is complete")


def stamps_of(path: str) -> dict[str, list[Any]]:
    """Return a stamp of each file of a table, by its name (in the folder)."""
    optional("pyarrow", f"{path}: reading in parts, and writing Parquet,")
    return {
        name: _stamp(os.path.join(path, name) if os.path.isdir(path) else path)
        for name in _names(path)
    }


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet, by its name."""
    return path.lower().endswith(PARQUET)


def _names(path: str) -> Iterator[str]:
    """Return the names of the files of a table; refuse files that are not read in parts."""
    if not os.path.isdir(path):
        ending = os.path.splitext(path)[1].lower()
        if ending in (*ENDINGS, *OLD_ENDINGS):
            raise InvalidInputError(
                f"{path}: a workbook is not read in parts; save the table as CSV or Parquet, or use"
                " --no-stream"
            )
        return iter([os.path.basename(path)])
    found: list[str] = []
    for folder, inside, names in os.walk(path):
        inside.sort()
        inside[:] = [name for name in inside if not name.startswith((".", "_"))]
        for name in names:
            if name.lower().endswith((*PARQUET, *TEXTS)) and not name.startswith((".", "_")):
                found.append(os.path.relpath(os.path.join(folder, name), path))
    tables = [name for name in found if not name.lower().endswith(".txt")]
    found = tables or found  # beside other tables, a text tells of them
    if not found:
        raise InvalidInputError(
            f"{path}: expected Parquet or CSV files in the folder (.parquet, .csv, …), got none"
        )
    kinds = {is_parquet(name) for name in found}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"{path}: expected Parquet or CSV files in the folder, got both; put them in two"
        )
    folders = [name for name in found if "=" in os.path.dirname(name)]
    if folders:
        raise InvalidInputError(
            f"{path}: folders that are named by a value, such as {os.path.dirname(folders[0])!r},"
            " are not supported; write the column into the files"
        )
    return iter(sorted(found))


def _stamp(path: str) -> list[Any]:
    """Return the size, the time of change and a digest of both ends of a file."""
    status = os.stat(path)
    with open(path, "rb") as file:
        ends = file.read(ENDS)
        file.seek(max(status.st_size - ENDS, 0))
        ends += file.read(ENDS)
    return [status.st_size, status.st_mtime_ns, hashlib.sha256(ends).hexdigest()]
