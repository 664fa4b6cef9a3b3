"""Values of ``random_state``, everywhere in the library, and the generators they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gpattr.exceptions import InvalidInputError

RandomLike: TypeAlias = (
    int
    | Sequence[int]
    | np.random.SeedSequence
    | np.random.BitGenerator
    | np.random.Generator
    | np.random.RandomState
    | None
)
EXPECTED = "None, an integer of 0 or more, a numpy.random.Generator or RandomState"


def random_generator(random_state: Any) -> np.random.Generator:
    """Return the generator that ``random_state`` stands for, a `RandomLike`.

    An integer gives the same numbers each time, None fresh ones; generators are drawn from, and so
    advanced. A `RandomState` shares its stream.
    """
    if isinstance(random_state, np.random.RandomState):  # by default_rng from NumPy 2.2
        return np.random.Generator(random_state._bit_generator)  # pyright: ignore[reportAttributeAccessIssue]
    # NumPy would take True for 1, and the address of a set for a seed.
    if not isinstance(random_state, (bool, np.bool_, set, frozenset)):
        try:
            return np.random.default_rng(random_state)
        except (TypeError, ValueError):
            pass
    raise InvalidInputError(f"random_state: expected {EXPECTED}, got {random_state!r}")
