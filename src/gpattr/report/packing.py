"""Arrays as text in a page."""

from __future__ import annotations

import base64

import numpy as np


def packed(array: np.ndarray, dtype: str = "<f4") -> str:
    """Return the numbers of an array, row by row, in base64."""
    with np.errstate(over="ignore"):  # what float32 does not reach is infinite on a screen
        return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode("ascii")
