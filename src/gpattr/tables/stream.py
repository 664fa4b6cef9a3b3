"""Tables in parts: a CSV or Parquet file, or a folder of them, of any size.

The parts are found once, by the files alone: who reads them, when and in which order changes
nothing. What each column is has been decided before, by a model or from a sample of the rows, and
no part decides it again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.optional import optional
from gpattr._core.validation import check_path
from gpattr.exceptions import InvalidInputError
from gpattr.tables import workbooks
from gpattr.tables.csv_parts import CsvFile
from gpattr.tables.parquet_parts import ParquetFile
from gpattr.tables.records import Part

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_ROWS = 20_000  # that tell what the columns are
SAMPLE_PARTS = 64  # that they come from
ENDS = 2**16  # bytes at both ends of a file that tell it from others
PARQUET = (".parquet", ".pq")
TEXTS = (".csv", ".tsv", ".txt")
KINDS = {"csv": CsvFile, "parquet": ParquetFile}


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
            file, found = kind.open(place, fewest).scanned(number, advance)
            files.append(file)
            parts += found
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
        """What to know about the way the files are read."""
        return list(dict.fromkeys(note for file in self.files for note in file.notes))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files, in the folder if it is one."""
        return tuple(self.stamps)

    def name_of(self, part: Part) -> str:
        """Return the file and rows of a part, in words."""
        path = self.files[part.file].path
        return f"{path}, part {self.parts.index(part)} (rows {part.first:,} to {part.last:,})"

    def read(
        self, part: Part, columns: Sequence[str], numbers: Collection[str] = ()
    ) -> pd.DataFrame:
        """Return the rows of a part, numbered from 1 in their file; some columns as numbers."""
        return self.files[part.file].read(part, columns, numbers)

    def sample(self, rows: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return about ``rows`` rows from across the table, always the same; all of a small one."""
        import pandas as pd

        columns = self.columns if columns is None else columns
        count = min(len(self.parts), SAMPLE_PARTS)
        chosen = np.unique(np.linspace(0, len(self.parts) - 1, count).round().astype(int))
        each, found = -(-rows // len(chosen)), []
        for place in chosen:
            part = self.parts[place]
            file = self.files[part.file]
            absent = [name for name in columns if name not in file.columns]
            if absent:
                raise InvalidInputError(
                    f"{file.path}: expected a column {absent[0]!r}, as in {self.names[0]}; the"
                    f" columns are {list(file.columns)}"
                )
            frame = file.head(part, each, columns)
            if self.is_folder:
                frame.index = [f"{row} of {self.names[part.file]}" for row in frame.index]
            found.append(frame)
        commas = list(dict.fromkeys(name for frame in found for name in frame.attrs["commas"]))
        for frame in found:
            frame.attrs = {}
        whole: pd.DataFrame = pd.concat(found)
        whole.attrs.update(commas=commas, notes=self.notes)
        return whole

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values."""
        kind = "parquet" if isinstance(self.files[0], ParquetFile) else "csv"
        fields = ("file", "start", "stop", "first", "rows", "line", "checksum", "regular")
        return {
            "kind": kind,
            "stamps": {name: list(stamp) for name, stamp in self.stamps.items()},
            "files": [file.to_content() for file in self.files],
            "parts": [[getattr(part, name) for name in fields] for part in self.parts],
        }

    @classmethod
    def of_content(cls, path: str, content: Any) -> Stream:
        """Return what `to_content` returned, for files at the same place."""
        kind, names = KINDS[content["kind"]], list(content["stamps"])
        places = [os.path.join(path, name) if os.path.isdir(path) else path for name in names]
        files = tuple(
            kind.of_content(place, each)
            for place, each in zip(places, content["files"], strict=True)
        )
        return cls(path, files, content["stamps"], tuple(Part(*part) for part in content["parts"]))

    def only(self, parts: Sequence[Part]) -> Stream:
        """Return the same table with some of its parts."""
        return replace(self, parts=tuple(parts))


def stamps_of(path: str) -> dict[str, list[Any]]:
    """Return what tells each file of a table from others, by its name (in the folder)."""
    optional("pyarrow", f"{path}: reading in parts, and writing Parquet,")
    return {
        name: _stamp(os.path.join(path, name) if os.path.isdir(path) else path)
        for name in _names(path)
    }


def is_parquet(path: str) -> bool:
    """Return whether a file is Parquet, by its name."""
    return path.lower().endswith(PARQUET)


def _names(path: str) -> Iterator[str]:
    """Return the names of the files of a table; refuse what is not read in parts."""
    if not os.path.isdir(path):
        ending = os.path.splitext(path)[1].lower()
        if ending in (*workbooks.ENDINGS, *workbooks.OLD_ENDINGS):
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
