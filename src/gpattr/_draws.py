"""What draws and intervals have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._array import Array
from gpattr._memory import require_room
from gpattr.exceptions import InvalidInputError


def check_level(level: float) -> float:
    """Return a credible level, strictly between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float, np.floating)) or not 0.0 < level < 1.0:
        raise InvalidInputError(f"level: expected a number between 0 and 1, got {level!r}")
    return float(level)


def standard_draws(name: str, n: int, size: int, random_state: Any) -> Array:
    """Return n standard normal draws of this size, (n, size)."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InvalidInputError(f"{name}: expected an integer of 1 or more, got {n!r}")
    require_room("The draws", (int(n), size), "use fewer draws or rows")
    try:
        generator = np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"random_state: expected None, an integer of 0 or more, or a generator, got {random_state!r}"
        ) from None
    return generator.standard_normal((int(n), size))
