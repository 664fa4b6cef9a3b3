"""Parts of a Parquet file that is larger than memory: a fixed number of rows each."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpattr.exceptions import InvalidInputError
from gpattr.tables import records
from gpattr.tables.reading import check_header
from gpattr.tables.records import Part

if TYPE_CHECKING:
    import pandas as pd

BUFFER = 2**20  # bytes of a column that are read at a time


@dataclass
class _Place:
    """The rows that come next in a file which is read from one part to the next."""

    row: int = -1
    columns: tuple[str, ...] = ()
    batches: Iterator[Any] | None = None


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file: its ``header`` and the ``types`` of its columns."""

    path: str
    header: tuple[str, ...]
    types: tuple[str, ...]
    _place: _Place = field(default_factory=_Place, compare=False, repr=False)

    @classmethod
    def open(cls, path: str, fewest: int) -> ParquetFile:
        """Read the columns of a file; those that pandas saved as its index are left out."""
        schema = _open(path).schema_arrow
        known = (schema.pandas_metadata or {}).get("index_columns", [])
        index = {name for name in known if isinstance(name, str)}
        columns = [column for column in schema if column.name not in index]
        names = tuple(column.name for column in columns)
        if len(names) < fewest:
            raise InvalidInputError(f"{path}: expected at least {fewest} columns, got {len(names)}")
        check_header(path, list(names))
        return cls(path, names, tuple(str(column.type) for column in columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetFile, (self.path, self.header, self.types)  # without the place it is read at

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.header

    @property
    def notes(self) -> list[str]:
        """What to know about the way it is read: nothing."""
        return []

    def scanned(self, number: int, advance: Callable[[int], Any]) -> tuple[ParquetFile, list[Part]]:
        """Return the file and its parts; ``advance`` is told the bytes read."""
        n, size = _open(self.path).metadata.num_rows, records.PART_ROWS
        advance(os.path.getsize(self.path))
        stops = [min(start + size, n) for start in range(0, n, size)]
        return self, [
            Part(number, start, stop, start + 1, stop - start)
            for start, stop in zip(range(0, n, size), stops, strict=True)
        ]

    def read(
        self, part: Part, columns: Sequence[str], numbers: Collection[str] = ()
    ) -> pd.DataFrame:
        """Return the rows of a part, with the types of the file."""
        return self._rows(part, part.rows, columns)

    def head(self, part: Part, rows: int, columns: Sequence[str]) -> pd.DataFrame:
        """Return the first rows of a part, at most ``rows``."""
        return self._rows(part, min(part.rows, rows), columns)

    def _rows(self, part: Part, rows: int, columns: Sequence[str]) -> pd.DataFrame:
        import pyarrow as pa

        place = self._place
        if place.row != part.start or place.columns != tuple(columns):
            place.batches, place.columns = self._from(part.start, columns), tuple(columns)
        place.row, found, missing = -1, [], rows
        while missing:
            assert place.batches is not None
            batch = next(place.batches, None)
            if batch is None:
                raise InvalidInputError(
                    f"{self.path}: expected {part.last:,} rows, but there are fewer now"
                )
            found.append(batch[:missing])
            if len(batch) > missing:
                place.batches = _before(batch[missing:], place.batches)
            missing -= len(found[-1])
        place.row = part.start + rows
        frame = (
            pa.Table.from_batches(found)
            .replace_schema_metadata()
            .to_pandas(integer_object_nulls=True)
        )
        frame = frame[list(columns)].set_axis(range(part.first, part.first + rows))
        frame.attrs["commas"] = []
        return frame

    def _from(self, row: int, columns: Sequence[str]) -> Iterator[Any]:
        """Yield batches of rows from number ``row``, counted from 0."""
        file = _open(self.path)
        groups = []
        for number in range(file.num_row_groups):
            n = file.metadata.row_group(number).num_rows
            if row >= n and not groups:
                row -= n
            else:
                groups.append(number)
        names = list(columns) or None
        for batch in file.iter_batches(
            min(records.PART_ROWS, 2**14), row_groups=groups, columns=names, use_threads=False
        ):
            if row >= len(batch):
                row -= len(batch)
                continue
            yield batch[row:]
            row = 0

    def to_content(self) -> dict[str, Any]:
        """Return it as JSON values, without its path."""
        return {"header": list(self.header), "types": list(self.types)}

    @classmethod
    def of_content(cls, path: str, content: Any) -> ParquetFile:
        """Return what `to_content` returned."""
        return cls(path, tuple(content["header"]), tuple(content["types"]))


def _before(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def _open(path: str) -> Any:
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
