"""Players: which columns enter a coalition together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import Checked, positions
from gpattr._core.array import is_tensor, to_numpy
from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError

MOST_COLUMNS = 10**6
MOST_PLAYERS = 12  # whose 2^12 coalitions can be enumerated


@dataclass(frozen=True)
class Players(Checked):
    """The player that each column belongs to, ``owner``, counted from 0, and their number.

    Columns of one player move together, from the baseline to the row. A player without columns
    takes part in nothing, and its value is 0.

    Examples
    --------
    >>> from gpattr.operators import Players
    >>> Players(owner=(0, 1, 1), count=2)  # the last two columns move together
    Players(owner=(0, 1, 1), count=2)
    """

    checks: ClassVar[Any] = {"d": partial(check_count, most=MOST_COLUMNS), "columns": positions}

    owner: tuple[int, ...]
    count: int

    def __post_init__(self) -> None:
        check_count("count", self.count)
        owner = whole_numbers(self.owner)
        if owner is None or any(not 0 <= player < self.count for player in owner):
            raise InvalidInputError(
                f"owner: expected the player of each column, 0 to {self.count - 1}, got"
                f" {self.owner!r}"
            )
        object.__setattr__(self, "owner", owner)

    @classmethod
    def single(cls, d: int) -> Players:
        """Return d columns, each a player of its own."""
        return cls(tuple(range(d)), d)

    @cached_property
    def seen(self) -> tuple[int, ...]:
        """The players that have columns, in order."""
        return tuple(sorted(set(self.owner)))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each player that has some, in the order of `seen`."""
        columns: dict[int, list[int]] = {player: [] for player in self.seen}
        for column, owner in enumerate(self.owner):
            columns[owner].append(column)
        return tuple(map(tuple, columns.values()))

    @cached_property
    def singles(self) -> bool:
        """Whether every player has exactly one column, in their order."""
        return self.owner == tuple(range(self.count))

    def select(self, columns: Any) -> Players:
        """Return the same players as seen through these columns only."""
        if not isinstance(columns, slice):
            columns = to_numpy(columns) if is_tensor(columns) else np.asarray(columns)
            columns = columns if len(columns) else slice(0)
        return Players(tuple(np.array(self.owner, dtype=int)[columns].tolist()), self.count)


def as_players(name: str, owner: Any) -> Players:
    """Return the players given by the owner of each column, positions counted from 0."""
    if isinstance(owner, Players):
        return owner
    places = whole_numbers(owner)
    if not places or set(places) != set(range(max(places) + 1)):
        raise InvalidInputError(
            f"{name}: expected the player of each column, counted from 0 and each with at least"
            f" one column, got {owner!r}"
        )
    return Players(places, max(places) + 1)


def whole_numbers(values: Any) -> tuple[int, ...] | None:
    """Return whole numbers as a tuple; None if these are not a sequence of such."""
    listed = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if not listed and not (isinstance(values, np.ndarray) and values.ndim == 1):
        return None
    whole = (int, np.integer)
    if any(not isinstance(i, whole) or isinstance(i, bool) for i in values):
        return None
    return tuple(int(i) for i in values)
