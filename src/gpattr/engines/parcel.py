"""Parcels: a function as bytes, which the engine carries to each of its workers once.

The bytes are a plain pickle of arrays and of classes that a worker can import. Functions are never
sent as code: a model that holds one of the user's script is refused by name.
"""

from __future__ import annotations

import io
import pickle
from functools import lru_cache
from typing import Any

from gpattr.engines.frame_function import FrameFunction
from gpattr.exceptions import UnsupportedModelError

KEPT = 4  # functions that a worker keeps unpacked


class _Packer(pickle.Pickler):
    """A pickler that refuses functions and classes which only this process knows."""

    def reducer_override(self, value: Any) -> Any:
        home, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if name is not None and (home == "__main__" or "<" in str(name)):
            raise UnsupportedModelError(
                f"model: it cannot travel to workers, because it has {name!r}, which is defined in"
                " this program; define it in a module that workers can import"
            )
        return NotImplemented


def pack(function: FrameFunction) -> bytes:
    """Return a function as bytes; raise `UnsupportedModelError` if its model cannot travel."""
    content = io.BytesIO()
    try:
        _Packer(content, protocol=pickle.HIGHEST_PROTOCOL).dump(function)
    except UnsupportedModelError:
        raise
    except Exception as error:  # whatever a part of a user's model raises
        raise UnsupportedModelError(
            f"model: it cannot travel to workers, because a part of it cannot be pickled: {error}"
        ) from error
    return content.getvalue()


@lru_cache(maxsize=KEPT)
def unpack(parcel: bytes) -> FrameFunction:
    """Return the function of a parcel, the same for all tasks of a worker process."""
    return pickle.loads(parcel)
