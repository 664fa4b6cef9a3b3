"""Arrays encoded as text."""

from __future__ import annotations

import base64

import numpy as np


def packed(array: np.ndarray, dtype: str = "<f4") -> str:
    """Return the numbers of an array, row by row, in base64."""
    with np.errstate(over="ignore"):  # infinite if too large for float32
        return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode("ascii")
