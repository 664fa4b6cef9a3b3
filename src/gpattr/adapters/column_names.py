"""Rows with the column names that a model was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np


def with_columns(rows: np.ndarray, model: Any) -> Any:
    """Return rows as a frame with the model's ``feature_names_in_``, if it has any."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(names))
