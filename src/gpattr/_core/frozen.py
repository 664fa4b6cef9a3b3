"""Values that stay frozen through copying and pickling."""

from __future__ import annotations

from typing import Any

import numpy as np


class FrozenMapping(dict[str, Any]):
    """A dictionary that cannot be written to, and can be copied and pickled."""

    def _refuse(self, *args: Any, **options: Any) -> Any:
        raise TypeError("this dictionary cannot be written to")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = _refuse
    setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]

    def __reduce__(self) -> Any:
        return type(self), (dict(self),)


class Frozen:
    """A mixin for values that hold read-only arrays: copies hold read-only arrays too."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)
