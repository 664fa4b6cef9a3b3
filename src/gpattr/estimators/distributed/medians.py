"""Exact medians of columns without sorting, or moving, the rows.

The bits of a float64, read as a whole number, are ordered as the numbers are. A pass counts rows by
the next `BITS` bits of those that share the leading bits found so far, which narrows down where the
median lies; when few different values are left they are gathered with their counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BITS = 12
GATHERED = 5000  # different values of a column, at most
SIGN = np.uint64(1 << 63)

Found = list[list[tuple[np.ndarray, np.ndarray] | None]]


def medians(rows: Any) -> np.ndarray:
    """Return the median of each column of `DaskRows`, (d,), as NumPy does: bit for bit."""
    d, ranks = rows.d, np.array([(rows.n - 1) // 2, rows.n // 2])
    below = np.repeat(ranks[:, None], d, axis=1)  # of those that share the leading bits
    leading, shift = np.zeros((2, d), dtype=np.uint64), 64
    while shift:
        for _ in range(2):
            width = min(BITS, shift)
            shift -= width
            counts = rows.reduce(_counted, (leading, shift, width), np.add, "medians")
            until = counts.cumsum(axis=2)
            digit = (until <= below[:, :, None]).sum(axis=2)
            before = np.take_along_axis(until - counts, digit[:, :, None], axis=2)[:, :, 0]
            below = below - before
            leading = (leading << np.uint64(width)) | digit.astype(np.uint64)
            if not shift:
                break
        values = _values(rows, leading, shift, below) if shift else _number(leading)
        if values is not None:
            return values.mean(axis=0)
    raise AssertionError("unreachable")


def _values(rows: Any, leading: np.ndarray, shift: int, below: np.ndarray) -> np.ndarray | None:
    """Return the values of these ranks among values that share the leading bits, if few."""
    found: Found = rows.reduce(_gathered, (leading, shift), _merged, "medians")
    result = np.empty(leading.shape)
    for k, columns in enumerate(found):
        for i, pair in enumerate(columns):
            if pair is None:
                return None
            values, counts = pair
            result[k, i] = values[np.searchsorted(counts.cumsum(), below[k, i], side="right")]
    return result


def _key(values: np.ndarray) -> np.ndarray:
    """Return whole numbers that are ordered as the values are."""
    bits = (np.ascontiguousarray(values) + 0.0).view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def _number(key: np.ndarray) -> np.ndarray:
    return np.where(key & SIGN, key ^ SIGN, ~key).view(np.float64)


def _matching(leading: np.ndarray, shift: int, X: np.ndarray) -> Any:
    """Yield, for each rank and column, the keys that share the leading bits; none at first."""
    for i in range(X.shape[1]):
        keys = _key(X[:, i])
        start = keys >> np.uint64(shift) if shift < 64 else np.zeros(len(keys), dtype=np.uint64)
        for k in range(2):
            yield k, i, keys[start == leading[k, i]]


def _counted(search: tuple[np.ndarray, int, int], segment: Any) -> np.ndarray:
    """Return how often each next digit occurs, (2, d, 2**width)."""
    leading, shift, width = search
    counts = np.zeros((*leading.shape, 2**width), dtype=np.int64)
    for k, i, keys in _matching(leading, shift + width, segment[1]):
        digits = (keys >> np.uint64(shift)) & np.uint64(2**width - 1)
        counts[k, i] = np.bincount(digits.astype(np.intp), minlength=2**width)
    return counts


def _gathered(search: tuple[np.ndarray, int], segment: Any) -> Found:
    """Return the different values that share the leading bits, and how often each occurs."""
    leading, shift = search
    found: Found = [[None] * leading.shape[1] for _ in range(2)]
    for k, i, keys in _matching(leading, shift, segment[1]):
        values, counts = np.unique(keys, return_counts=True)
        found[k][i] = (_number(values), counts) if len(values) <= GATHERED else None
    return found


def _merged(one: Found, other: Found) -> Found:
    return [
        [_pooled(a, b) for a, b in zip(*pair, strict=True)] for pair in zip(one, other, strict=True)
    ]


def _pooled(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return None
    values, where = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    counts = np.bincount(where, np.concatenate([one[1], other[1]]), minlength=len(values)).astype(
        np.int64
    )
    return (values, counts) if len(values) <= GATHERED else None
