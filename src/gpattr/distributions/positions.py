"""Positions in an array: an integer, a slice, a list or a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr.exceptions import InvalidIndexError


def positions(what: str, key: Any, length: int) -> np.ndarray:
    """Return the positions below ``length`` that ``key`` chooses, (k,)."""
    try:
        if key is None or isinstance(key, bool):
            raise IndexError
        chosen = np.atleast_1d(
            np.arange(length)[key if isinstance(key, slice) or np.size(key) else slice(0)]
        )
        if chosen.ndim > 1:
            raise IndexError
        return chosen
    except (IndexError, TypeError, ValueError):
        raise InvalidIndexError(
            f"{what}: expected positions below {length}, a slice or a mask, got {key!r}"
        ) from None


def position(what: str, key: Any, length: int) -> int:
    """Return the position below ``length`` of one entry."""
    if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
        raise InvalidIndexError(f"{what}: expected a position below {length}, got {key!r}")
    return int(positions(what, key, length)[0])


def listed(value: Any) -> list[Any] | None:
    """Return the items of a collection; None for a text, or for an object without items."""
    try:
        return None if isinstance(value, str) else list(value)
    except TypeError:
        return None
