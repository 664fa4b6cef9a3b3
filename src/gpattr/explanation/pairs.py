"""Pairs of features: their positions, their labels, and matrices made of numbers pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import Names
from gpattr.distributions.positions import listed
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explanation.grouping import feature_index

PAIR = "pair"
Pair = tuple[int, int]
Pairs = tuple[Pair, ...]


def all_pairs(d: int) -> Pairs:
    """Return every unordered pair i ≤ j of d features, row by row of the upper triangle."""
    return tuple((i, j) for i in range(d) for j in range(i, d))


def check_pairs(pairs: Any, names: Names) -> Pairs:
    """Return pairs of names or positions as positions i ≤ j, each of them once."""
    found = listed(pairs)
    if not found:
        raise InvalidInputError(
            f"pairs: expected a list of at least one pair of features, got {pairs!r}"
        )
    checked = tuple(_check_pair(pair, names) for pair in found)
    seen: set[Pair] = set()
    for i, j in checked:
        if (i, j) in seen:
            raise InvalidInputError(
                f"pairs: expected each pair once, got {names[i]!r} and {names[j]!r} again"
            )
        seen.add((i, j))
    return checked


def pair_labels(pairs: Sequence[Pair], names: Names) -> Names:
    """Return the labels of pairs: "alcohol × pH"."""
    return tuple(f"{names[i]} × {names[j]}" for i, j in pairs)


def places(pairs: Sequence[Pair], d: int) -> np.ndarray:
    """Return where each entry of a symmetric matrix stands among pairs, (d, d); −1: nowhere."""
    found = np.full((d, d), -1)
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    found[i, j] = found[j, i] = np.arange(len(pairs))
    return found


def as_matrices(numbers: Array, pairs: Sequence[Pair], d: int) -> Array:
    """Return numbers of pairs, (..., k), as symmetric matrices (..., d, d); NaN for other pairs."""
    place = places(pairs, d)
    padded = np.concatenate([numbers, np.full((*numbers.shape[:-1], 1), np.nan)], axis=-1)
    return padded[..., place]  # the last, NaN, where the place is −1


def _check_pair(pair: Any, names: Names) -> Pair:
    members = listed(pair)
    if members is None or len(members) != 2:
        raise InvalidInputError(
            f"pairs: expected two features, by name or position, in each pair, got {pair!r}"
        )
    try:
        i, j = sorted(feature_index(member, names) for member in members)
    except InvalidIndexError as error:
        raise InvalidIndexError(f"pairs: {error}") from None
    return i, j
