"""Players: which columns enter a coalition together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True)
class Players:
    """The player that each column belongs to, ``owner``, counted from 0, and their number.

    Columns of one player move together, from the baseline to the row. A player without columns
    takes part in nothing, and its value is 0.
    """

    owner: tuple[int, ...]
    count: int

    @classmethod
    def single(cls, d: int) -> Players:
        """Return d columns, each a player of its own."""
        return cls(tuple(range(d)), d)

    @classmethod
    def of(cls, name: str, owner: Any) -> Players:
        """Return the players given by the owner of each column, positions counted from 0."""
        whole = (int, np.integer)
        sequence = isinstance(owner, (Sequence, np.ndarray)) and not isinstance(owner, (str, bytes))
        given: list[Any] = list(owner) if sequence else []
        valid = all(isinstance(i, whole) and not isinstance(i, bool) for i in given)
        places = [int(i) for i in given] if valid else []
        if not places or set(places) != set(range(max(places) + 1)):
            raise InvalidInputError(
                f"{name}: expected the player of each column, counted from 0 and each with at least"
                f" one column, got {owner!r}"
            )
        return cls(tuple(places), max(places) + 1)

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

    def select(self, columns: Sequence[int]) -> Players:
        """Return the same players as seen through these columns only."""
        return Players(tuple(self.owner[column] for column in columns), self.count)

    def merged(self, owner: Sequence[int], count: int) -> Players:
        """Return the players of which player p of these belongs to ``owner[p]``."""
        return Players(tuple(owner[player] for player in self.owner), count)
