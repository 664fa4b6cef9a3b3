"""Tasks of engines: a part of a table in one thread, with the model as bytes.

The engine carries the bytes to each of its workers once. They are a plain pickle of arrays and of
classes that a worker can import. Functions are never sent as code: a model that holds one of the
user's script is refused by name.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gpattr._core.workers import one_thread
from gpattr.engines.frame_function import FrameFunction
from gpattr.exceptions import GpattrError, UnsupportedModelError

_unpacked: dict[str, FrameFunction] = {}  # the last one that this process has used


@dataclass(frozen=True)
class Parcel:
    """A function as bytes, and their digest, by which a worker knows it again."""

    content: bytes
    key: str


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


def pack(function: FrameFunction) -> Parcel:
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
    return Parcel(content.getvalue(), hashlib.sha256(content.getbuffer()).hexdigest())


def unpack(parcel: Parcel) -> FrameFunction:
    """Return the function of a parcel."""
    return pickle.loads(parcel.content)


def unpack_once(parcel: Parcel) -> FrameFunction:
    """Return the function of a parcel, the same for all tasks of a worker process."""
    function = _unpacked.get(parcel.key)
    if function is None:
        function = unpack(parcel)
        _unpacked.clear()
        _unpacked[parcel.key] = function
    return function


@contextmanager
def task(part: str) -> Iterator[None]:
    """Run a ``with`` block in one thread, as one of many tasks, and name the part in errors."""
    with one_thread(), naming(part):
        yield


@contextmanager
def naming(part: str) -> Iterator[None]:
    """Name the part of a table in the errors of a ``with`` block."""
    try:
        yield
    except GpattrError as error:
        raise type(error)(f"{part}: {error}") from error
