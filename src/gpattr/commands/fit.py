"""``gpattr fit``: a table in, a model out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpattr.commands import notes
from gpattr.exceptions import InvalidInputError
from gpattr.tables import Columns, TableModel, read_table
from gpattr.tables.missing import missing, refuse_missing
from gpattr.tables.target import Target, known_labels


@dataclass(frozen=True)
class Table:
    """A table ready for a model: ``columns``, features ``X``, targets ``y`` if any, and notes."""

    columns: Columns
    X: Any
    y: Any
    notes: list[str]
    task: str = "regression"


def read_training(
    data: Path,
    target: str,
    *,
    drop: Sequence[str] = (),
    strict: bool = False,
    sheet: str | None = None,
    task: str | None = None,
) -> Table:
    """Return a table to train on, without the rows whose target is missing.

    ``task`` is decided from the target by default.
    """
    frame = read_table(data, sheet=sheet)
    return training_table(frame, data, target, drop=drop, strict=strict, task=task)


def training_table(
    frame: Any,
    data: Path,
    target: str,
    *,
    drop: Sequence[str] = (),
    strict: bool = False,
    task: str | None = None,
) -> Table:
    """Return the rows of a frame that was read from ``data``, or a sample of it, to train on."""
    unknown = missing(frame[target]) if target in frame.columns else None
    if unknown is not None and unknown.any():
        if strict or unknown.all():
            advice = "remove these rows from the table" + (
                ", or run without --strict" if not unknown.all() else ""
            )
            refuse_missing(unknown, target, str(data), f"the target cannot be filled in: {advice}")
        frame = frame[~unknown]
        rows = "1 row was" if unknown.sum() == 1 else f"{unknown.sum():,} rows were"
        frame.attrs["notes"] = [
            *frame.attrs.get("notes", ()),
            f"{rows} left out because {target} is missing.",
        ]
    columns = Columns.of(frame, target, drop=drop, strict=strict, source=str(data))
    asked = Target.of(frame, columns, task, source=str(data))
    classified = asked.task == "classification"
    y = known_labels(frame, columns) if classified else columns.targets(frame, source=str(data))
    X = columns.features(frame, strict=strict, source=str(data))
    decided = [asked.sentence] if asked.sentence else []
    return Table(columns, X, y, [*decided, *notes.of_table(frame, X, columns)], asked.task)


def read_rows(
    data: Path,
    model: TableModel,
    *,
    drop: Sequence[str] = (),
    strict: bool = False,
    sheet: str | None = None,
) -> Table:
    """Return a table whose rows a model is to explain; it need not have the target.

    Missing values are filled with values typical of the rows the model was trained on.
    """
    frame, columns = read_table(data, fewest=1, sheet=sheet), model.columns
    for name in drop:
        if name not in frame.columns:
            raise InvalidInputError(
                f"--drop: expected a column of {data}, got {name!r}; the columns are"
                f" {list(frame.columns)}"
            )
    X = columns.features(
        frame.drop(columns=list(drop)), strict=strict, typical=model.typical, source=str(data)
    )
    y = columns.measured(frame) if model.task == "regression" else known_labels(frame, columns)
    return Table(columns, X, y, notes.of_table(frame, X, columns), model.task)


def train(table: Table, *, estimator: str, kernel: str | None, verbose: bool) -> TableModel:
    """Train a model on the table."""
    options: dict[str, Any] = {
        "estimator": estimator,
        "kernel": kernel,
        "verbose": int(verbose),
        "task": table.task,
    }
    return TableModel.fit(table.X, table.y, table.columns, **options)
