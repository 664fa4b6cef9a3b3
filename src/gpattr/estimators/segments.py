"""Segments of a fixed number of rows, and the tree in which sums over them are joined.

Both depend on the number of rows only. Rows that are in memory, come in chunks or lie in the
partitions of a Dask collection are summed in the same order, so that what is learned from them is
the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

SEGMENT = 32768  # rows
FAN_IN = 8  # sums that are joined one after the other, before their result is one of the next eight

T = TypeVar("T")


def segments(n: int) -> Iterator[slice]:
    """Yield the segments of n rows; the last one may be shorter."""
    for start in range(0, n, SEGMENT):
        yield slice(start, min(start + SEGMENT, n))


class Tree:
    """Sums joined as they come: one is kept for each level, and how many it was made of."""

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self.join = join
        self.levels: list[tuple[Any, int]] = []

    def add(self, part: Any) -> None:
        """Join the next part."""
        self.levels = self._with(part)

    def total(self, *last: Any) -> Any:
        """Return the sum of all parts, with a last one if it is given."""
        levels = self._with(*last) if last else self.levels
        carried: list[Any] = []
        for value, count in levels:
            if count:
                carried = [self.join(value, carried[0])] if carried else [value]
        return carried[0]

    def _with(self, part: Any) -> list[tuple[Any, int]]:
        levels = list(self.levels)
        for i in range(len(levels) + 1):
            value, count = levels[i] if i < len(levels) else (None, 0)
            value, count = (self.join(value, part), count + 1) if count else (part, 1)
            full = count == FAN_IN
            levels[i : i + 1] = [(None, 0) if full else (value, count)]
            if not full:
                break
            part = value
        return levels


def joined(join: Callable[[T, T], T], parts: Iterable[T]) -> T:
    """Return the sum of parts, at least one, in the order of the tree."""
    tree = Tree(join)
    for part in parts:
        tree.add(part)
    return tree.total()
