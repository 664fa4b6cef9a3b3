"""Features of one part of a table, by decisions that were made before and hold for every part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.validation import positions_of
from gpattr.exceptions import InvalidInputError
from gpattr.tables.columns import Columns
from gpattr.tables.reading import THOUSANDS, refuse_ambiguous
from gpattr.tables.stream import Stream

if TYPE_CHECKING:
    import pandas as pd

ERRORS = ("raise", "missing")
MOST_WRONG = 1000  # rows of a part; more are another table


@dataclass(frozen=True)
class PartReader:
    """The parts of a ``stream`` as features of ``columns``, with missing values as ``typical``.

    ``beside`` are columns that come with them. Rows that contradict the columns are errors, or are
    left out with ``errors="missing"``. ``decimal`` are columns in which commas are decimal points;
    in others a number such as 1,234 is ambiguous. ``drop`` are columns that files may have and
    that are not read.
    """

    stream: Stream
    columns: Columns
    typical: Mapping[str, Any]
    beside: tuple[str, ...] = ()
    strict: bool = False
    errors: str = "raise"
    drop: tuple[str, ...] = ()
    decimal: Collection[str] = field(default_factory=frozenset)

    def check_files(self) -> list[str]:
        """Refuse files with other columns, or return sentences on them if errors are missing."""
        found = []
        for name in self.drop:
            if name not in self.stream.columns:
                raise InvalidInputError(
                    f"--drop: expected a column of {self.stream.path}, got {name!r}; the columns"
                    f" are {list(self.stream.columns)}"
                )
        for file in self.stream.files:
            try:
                self._check(file.path, file.columns)
            except InvalidInputError as error:
                if self.errors == "raise" or len(self.stream.files) == 1:
                    raise
                found.append(f"Nothing of {file.path} is explained: {error}.")
        return found

    def name_of(self, number: int) -> str:
        """Return the file and rows of a part, in words."""
        part = self.stream.parts[number]
        path = self.stream.files[part.file].path
        return f"{path}, part {number} (rows {part.first:,} to {part.last:,})"

    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[int, pd.DataFrame]]:
        """Yield parts, in ascending order, as they are in the files."""
        wanted = list(dict.fromkeys((*self.columns.names, *self.beside)))
        parts = [self.stream.parts[number] for number in numbers]
        return zip(numbers, self.stream.read(parts, wanted, self._numbers), strict=True)

    def read(self, number: int, frame: Any = None) -> Read:
        """Return the rows of a part, whose ``frame`` comes from `frames`."""
        if frame is None:
            ((_, frame),) = self.frames([number])
        file, source = self.stream.files[self.stream.parts[number].file], self.name_of(number)
        try:
            self._check(source, file.columns)
        except InvalidInputError as error:
            if self.errors == "raise":
                raise
            return Read(frame, None, np.zeros(len(frame), dtype=bool), str(error))
        return self.features(frame, source)

    def features(self, frame: Any, source: str) -> Read:
        """Return the features of some rows of the stream, and which rows have them."""
        undecided = [
            name
            for name in frame.attrs.get("commas", ())
            if name in self._numbers
            and name not in self.decimal
            and not self.columns.separators.get(name)
        ]
        frame.attrs = {}

        def features(rows: pd.DataFrame) -> pd.DataFrame:
            for name in undecided:
                _refuse_ambiguous_cells(rows[name], source)
            return self.columns.features(
                rows[list(self.columns.names)],
                strict=self.strict,
                typical=self.typical,
                fixed=True,
                source=source,
            )

        if self.errors == "raise":
            return Read(frame, features(frame), np.ones(len(frame), dtype=bool))
        return _usable(frame, features, source)

    @property
    def _numbers(self) -> list[str]:
        """The columns that are read as numbers; other columns keep their texts."""
        return [
            name
            for name in self.columns.names
            if name not in self.beside
            and name not in self.columns.categories
            and name not in self.columns.dates
            and self.columns.separators.get(name) != "."
        ]

    def _check(self, source: str, names: Sequence[str]) -> None:
        aside = {self.columns.target, *self.columns.left_out, *self.beside}
        aside = (aside - set(self.columns.names)) | set(self.drop)
        positions_of(source, [name for name in names if name not in aside], self.columns.names)
        absent = [name for name in self.beside if name not in names]
        if absent:
            raise InvalidInputError(
                f"{source}: expected a column {absent[0]!r}; the columns are {list(names)}"
            )


@dataclass(frozen=True)
class Read:
    """Rows of a part: the ``frame``, features ``X`` of the ``usable`` ones, and the first error."""

    frame: Any
    X: Any
    usable: np.ndarray
    problem: str = ""


def decimal_commas(stream: Stream, sample: Any) -> frozenset[str]:
    """Return columns in which commas are decimal points, by a sample; refuse ambiguous ones."""
    if not any(getattr(file, "separator", ";") != ";" for file in stream.files):
        return frozenset(sample.columns)  # with semicolons, or types, nothing is ambiguous
    commas = sample.attrs.get("commas", [])
    refuse_ambiguous(stream.path, commas, sample[commas].to_numpy().tolist())
    return frozenset(commas)


def _refuse_ambiguous_cells(column: Any, source: str) -> None:
    """Refuse numbers whose comma may be a decimal point, where no earlier row decides it."""
    wrong = column.map(lambda cell: isinstance(cell, str) and bool(THOUSANDS.fullmatch(cell)))
    if wrong.any():
        row = wrong.index[int(wrong.to_numpy().argmax())]
        raise InvalidInputError(
            f"{source}: the number {column[row]!r} in column {column.name!r}, row {row}, is"
            " ambiguous; write it without the comma, or with a point"
        )


def _usable(frame: Any, features: Callable[[Any], Any], source: str) -> Read:
    """Return the features of the rows that have some; others are found by halving."""
    import pandas as pd

    usable, found, problems = np.ones(len(frame), dtype=bool), [], []

    def take(start: int, stop: int) -> None:
        try:
            found.append(features(frame.iloc[start:stop]))
        except InvalidInputError as error:
            if stop - start == 1:
                usable[start] = False
                problems.append(str(error))
                return
            if len(problems) > MOST_WRONG:
                return
            middle = (start + stop) // 2
            take(start, middle)
            take(middle, stop)

    take(0, len(frame))
    if len(problems) > MOST_WRONG:
        raise InvalidInputError(
            f"{source}: more than {MOST_WRONG:,} rows cannot be explained, the first because:"
            f" {problems[0]}"
        )
    X = pd.concat(found) if found else None
    return Read(frame, X, usable, problems[0] if problems else "")
