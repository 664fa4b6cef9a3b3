"""``gpattr fit``: a table in, a model out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpattr.tables import Columns, TableModel, read_table


def fit(
    data: Path,
    target: str,
    *,
    estimator: str = "exact",
    kernel: str | None = None,
    drop: Sequence[str] = (),
    impute: bool = False,
    verbose: bool = False,
) -> tuple[TableModel, Any, Any]:
    """Return a model trained on a table, with its features and targets."""
    frame = read_table(data)
    columns = Columns.of(frame, target, drop=drop, source=str(data))
    y = columns.targets(frame, source=str(data))
    X = columns.features(frame.drop(columns=list(drop)), impute=impute, source=str(data))
    return TableModel.fit(X, y, columns, estimator=estimator, kernel=kernel, verbose=int(verbose)), X, y
