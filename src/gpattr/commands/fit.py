"""``gpattr fit``: a table in, a model out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpattr.commands import notes
from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, TableModel, read_table
from gpattr.tables.target import Target, known_labels


@dataclass(frozen=True)
class Table:
    """A table as a model takes it: ``columns``, features ``X``, targets ``y`` where they are there, and what to know of it."""

    columns: Columns
    X: Any
    y: Any
    notes: list[str]
    task: str = "regression"


def read_training(data: Path, target: str, *, drop: Sequence[str] = (), impute: bool = False, task: str | None = None) -> Table:
    """Return a table to learn from; ``task`` is decided from the target unless given."""
    frame = read_table(data)
    columns = Columns.of(frame, target, drop=drop, source=str(data))
    asked = Target.of(frame, columns, task, source=str(data))
    if asked.task == "classification":
        labels = known_labels(frame, columns)
        frame, y = frame[labels != ""], labels[labels != ""]  # pyright: ignore[reportOptionalSubscript]
    else:
        y = columns.targets(frame, source=str(data))
    X = columns.features(frame.drop(columns=list(drop)), impute=impute, source=str(data))
    said = [asked.sentence] if asked.sentence else []
    return Table(columns, X, y, [*said, *notes.of_table(frame, X, columns)], asked.task)


def read_rows(data: Path, model: TableModel, *, drop: Sequence[str] = (), impute: bool = False) -> Table:
    """Return a table whose rows a model is asked about; its target need not be there. Holes are filled by what was trained on."""
    frame, columns = read_table(data, fewest=1), model.columns
    for name in drop:
        if name not in frame.columns:
            raise InvalidInputError(f"--drop: expected a column of {data}, got {name!r}; there are {list(frame.columns)}")
    X = columns.features(frame.drop(columns=list(drop)), impute=impute, typical=model.typical, source=str(data))
    y = columns.measured(frame) if model.task == "regression" else known_labels(frame, columns)
    return Table(columns, X, y, notes.of_table(frame, X, columns), model.task)


def train(table: Table, *, estimator: str, kernel: str | None, verbose: bool) -> TableModel:
    """Return a model of the table."""
    options: dict[str, Any] = {"estimator": estimator, "kernel": kernel, "verbose": int(verbose), "task": table.task}
    return TableModel.fit(table.X, table.y, table.columns, **options)
