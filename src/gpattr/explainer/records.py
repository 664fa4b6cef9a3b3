"""Rows as optimisers write them: dictionaries of parameters, or lists of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpattr._core.validation import Names, is_frame


def as_frame(X: Any, names: Names | None) -> Any:
    """Return dictionaries {parameter: value}, one or a list of them, as a frame; others as is.

    With ``names``, those of a model with categories, lists of values in their order are taken too.
    """
    records = [X] if isinstance(X, Mapping) and not is_frame(X) else X
    if not isinstance(records, (list, tuple)) or not records:
        return X
    if all(isinstance(record, Mapping) and not is_frame(record) for record in records):
        import pandas as pd

        return pd.DataFrame([dict(record) for record in records])
    if names is None:
        return X
    rows = [records] if all(_is_value(value) for value in records) else records
    if all(
        isinstance(row, (list, tuple)) and len(row) == len(names) and all(map(_is_value, row))
        for row in rows
    ):
        import pandas as pd

        return pd.DataFrame(list(map(list, rows)), columns=list(names))
    return X


def _is_value(value: Any) -> bool:
    return isinstance(value, str) or not hasattr(value, "__len__")
