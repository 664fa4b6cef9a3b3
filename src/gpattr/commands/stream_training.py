"""Models of tables that are read in parts: kinds of columns from a sample, the rest from all rows.

The columns are decided, and missing values are filled, by a sample of rows from across the table.
Few rows are then gathered for an exact or a sparse model; very many are added up, part by part, in
the sums of a random-feature model with the sample's length-scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpattr._core.memory import check_memory
from gpattr.commands.fit import Table, train, training_table
from gpattr.tables import TableModel
from gpattr.tables.choice import resolved_estimator
from gpattr.tables.columns import targets_of_part, typical_values
from gpattr.tables.model import fit_chunks
from gpattr.tables.part_features import PartReader, decimal_commas
from gpattr.tables.stream import SAMPLE_ROWS, Stream

Track = Callable[[Iterable[Any], int], Iterable[Any]]


class Training:
    """The training of a model on a ``stream``: its ``table`` is a sample of rows."""

    def __init__(
        self,
        stream: Stream,
        target: str,
        *,
        drop: Sequence[str] = (),
        strict: bool = False,
        task: str | None = None,
        errors: str = "raise",
    ) -> None:
        self.stream, self.target = stream, target
        path = Path(stream.path)
        sample = stream.sample(SAMPLE_ROWS)
        decimal = decimal_commas(stream, sample)
        self.table: Table = training_table(
            sample, path, target, drop=drop, strict=strict, task=task
        )
        columns = self.table.columns
        if len(sample) < stream.n_rows:
            self.table.notes.append(
                f"What the columns are was decided by {len(sample):,} of {stream.n_rows:,} rows,"
                " from across the table."
            )
        self.reader = PartReader(
            stream,
            columns,
            typical_values(columns, self.table.X),
            beside=(target,),
            strict=strict,
            errors=errors,
            drop=tuple(drop),
            decimal=decimal,
        )
        self.left_out = 0
        self.problem = ""

    def chosen(self, estimator: str) -> tuple[str, str]:
        """Return the estimator for so many rows, and a sentence on it."""
        return resolved_estimator(estimator, self.stream.n_rows, self.table.task, streamed=True)

    def train(
        self, estimator: str, kernel: str | None, *, verbose: bool, track: Track
    ) -> TableModel:
        """Return a model that is trained on all rows, or, for classes, on the sample."""
        self.reader.check_files()
        if self.table.task == "classification":
            return train(self.table, estimator=estimator, kernel=kernel, verbose=verbose)
        if estimator == "random-features":
            sample = self.table.X, self.table.y
            chunks = self._chunks(track)
            return fit_chunks(
                chunks, *sample, self.table.columns, kernel=kernel, verbose=int(verbose)
            )
        check_memory(
            "rows: the features",
            (self.stream.n_rows, len(self.table.columns.names)),
            "use --estimator random-features, which does not keep the rows",
            copies=4,
        )
        X, y = _gathered(self._chunks(track))
        whole = Table(self.table.columns, X, y, self.table.notes)
        return train(whole, estimator=estimator, kernel=kernel, verbose=verbose)

    def notes(self) -> list[str]:
        """Return a sentence on the rows that could not be used."""
        if not self.left_out:
            return []
        rows = "1 row was" if self.left_out == 1 else f"{self.left_out:,} rows were"
        why = f", the first because: {self.problem}" if self.problem else ""
        return [f"{rows} left out of the training{why}."]

    def _chunks(self, track: Track) -> Iterator[tuple[Any, Any]]:
        """Yield features and targets of the parts, without rows whose target is missing."""
        count = len(self.stream.parts)
        for number, frame in track(self.reader.frames(range(count)), count):
            rows = self.reader.read(number, frame)
            self.left_out += int((~rows.usable).sum())
            self.problem = self.problem or rows.problem
            if rows.X is None:
                continue
            used, source = rows.frame[rows.usable], self.reader.name_of(number)
            y = targets_of_part(self.table.columns, used, source)
            known = ~np.isnan(y)
            self.left_out += int((~known).sum())
            yield rows.X[known], y[known]


def _gathered(chunks: Iterable[tuple[Any, Any]]) -> tuple[Any, np.ndarray]:
    import pandas as pd

    X, y = zip(*chunks, strict=True)
    return pd.concat(X, ignore_index=True), np.concatenate(y)
