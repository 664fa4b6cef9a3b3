"""Pairs of features: the outputs of operators that say how features act together.

There is one output for each unordered pair i ≤ j, in the order of the upper triangle of a matrix,
row by row, or for chosen pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.memory import check_memory
from gpattr.exceptions import InvalidInputError

NUMBERS = 8  # whose memory a pair takes, a tuple and its place in a list
Pairs = tuple[tuple[int, int], ...]


def all_pairs(d: int) -> Pairs:
    """Return the pairs i ≤ j of d features: (0, 0), (0, 1), …, (1, 1), (1, 2), …"""
    check_memory("d: the pairs of features", (d * (d + 1) // 2, NUMBERS), "choose some, pairs=[…]")
    return tuple((i, j) for i in range(d) for j in range(i, d))


def check_pairs(name: str, pairs: Any, d: int) -> Pairs | None:
    """Return chosen pairs of d features, each as i ≤ j; None for all of them."""
    if pairs is None:
        return None
    listed = isinstance(pairs, Sequence) and not isinstance(pairs, (str, bytes))
    listed = listed or (isinstance(pairs, np.ndarray) and pairs.ndim == 2)
    chosen = [_pair(name, pair) for pair in pairs] if listed else []
    if not chosen:
        raise InvalidInputError(
            f"{name}: expected pairs of positions of features, such as [(0, 1), (2, 2)], or None"
            f" for all, got {pairs!r}"
        )
    seen: set[tuple[int, int]] = set()
    for pair in chosen:
        if pair[1] >= d:
            raise InvalidInputError(f"{name}: expected positions below {d}, got the pair {pair}")
        if pair in seen:
            raise InvalidInputError(f"{name}: expected each pair once, got {pair} more than once")
        seen.add(pair)
    return tuple(chosen)


def _pair(name: str, pair: Any) -> tuple[int, int]:
    whole = (int, np.integer)
    if (
        not isinstance(pair, (tuple, list, np.ndarray))
        or len(pair) != 2
        or not all(isinstance(i, whole) and not isinstance(i, bool) and i >= 0 for i in pair)
    ):
        raise InvalidInputError(
            f"{name}: expected pairs of positions of features, counted from 0, got {pair!r}"
        )
    i, j = sorted(int(place) for place in pair)
    return i, j


def labels_of(pairs: Pairs) -> tuple[str, ...]:
    """Return a label "i,j" for each pair."""
    return tuple(f"{i},{j}" for i, j in pairs)


def pairs_within(pairs: Pairs, features: Sequence[int]) -> tuple[list[int], Pairs]:
    """Return which pairs have both features among ``features``, and these as pairs of positions.

    The positions are those in ``features``, where the features may be in any order.
    """
    place = {feature: position for position, feature in enumerate(features)}
    here = [at for at, (i, j) in enumerate(pairs) if i in place and j in place]
    inner = (sorted((place[i], place[j])) for i, j in (pairs[at] for at in here))
    return here, tuple((i, j) for i, j in inner)


def pairs_needed(encoding: Array, pairs: Pairs) -> Pairs:
    """Return the pairs of D columns that make up pairs of d features, for ``encoding`` (D, d).

    There is at least one, also where no column belongs to the features of any pair.
    """
    columns = all_pairs(encoding.shape[0])
    used = (sums_of_pairs(encoding, columns, pairs) != 0).any(axis=1)
    needed = tuple(pair for pair, use in zip(columns, used.tolist(), strict=True) if use)
    return needed or columns[:1]


def sums_of_pairs(encoding: Array, columns: Pairs, features: Pairs) -> Array:
    """Return the matrix (Q, q) by which pairs of columns become pairs of features.

    Γ[i, j] = Σ_{a ∈ i, b ∈ j} Γ[a, b] for a symmetric Γ, where ``encoding`` (D, d) says, as 0 and
    1, which column belongs to which feature: a pair of different columns of one feature counts
    twice.
    """
    xp = namespace(encoding)
    a, b = ([pair[side] for pair in columns] for side in (0, 1))
    i, j = ([pair[side] for pair in features] for side in (0, 1))
    left, right = encoding[a], encoding[b]  # (Q, d)
    different = xp.asarray([float(first != second) for first, second in columns])[:, None]
    return left[:, i] * right[:, j] + different * right[:, i] * left[:, j]
