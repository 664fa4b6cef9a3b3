"""Values that stay frozen through copying and pickling."""

from __future__ import annotations

from typing import Any

import numpy as np


class Frozen:
    """A mixin for values that hold read-only arrays: copies hold read-only arrays too."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)
