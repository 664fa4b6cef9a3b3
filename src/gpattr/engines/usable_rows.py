"""Rows of a frame that can be explained: no missing values, and no unknown categories."""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.validation import column_values, positions_of
from gpattr.encoders.dates import are_dates
from gpattr.explainer.rows import Rows

if TYPE_CHECKING:
    import pandas as pd


def usable_rows(rows: Rows, X: pd.DataFrame) -> np.ndarray:
    """Return which rows of X have a usable value in every column, (n,).

    Other columns than the model's, and columns of other types, raise `InvalidInputError`.
    """
    encoder = rows.encoder
    names = rows.columns if encoder is None else (encoder.names if encoder.named else None)
    if names is not None:
        X = X.iloc[:, positions_of("X", list(map(str, X.columns)), names)]
    keys = names or (() if encoder is None else encoder.names) or tuple(map(str, X.columns))
    usable = np.ones(len(X), dtype=bool)
    for i, name in enumerate(keys[: X.shape[1]]):
        column = X.iloc[:, i]
        if encoder is not None and name in encoder.unused:
            continue
        if encoder is not None and name in encoder.categories:
            usable &= column.isin(encoder.categories[name]).to_numpy()
        elif encoder is not None and name in encoder.dates:
            usable &= are_dates(column)
        else:
            usable &= _finite(name, column.infer_objects())
    return usable


def _finite(name: str, column: pd.Series) -> np.ndarray:
    """Return which values of a column are finite numbers, (n,); text among them is not."""
    if column.dtype != object:
        return np.isfinite(column_values("X", name, column))
    return np.array(
        [isinstance(value, (Real, Decimal)) and isfinite(value) for value in column], dtype=bool
    )
