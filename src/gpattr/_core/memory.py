"""Memory budgets: blocks of rows for temporaries, and errors for results that would not fit."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from gpattr._core.array import Array, free_device_memory
from gpattr._core.validation import positive_scalar
from gpattr.exceptions import TooLargeError

# 64 MiB: enough right-hand sides at a time for the triangular solve to run at its full speed, and
# not more.
WORKING = 2.0**26

_BUDGETS: dict[str, ContextVar[float | None]] = {
    name: ContextVar(name, default=None) for name in ("working", "result")
}


@contextmanager
def memory_budget(*, working: float | None = None, result: float | None = None) -> Iterator[None]:
    """Set the bytes for temporaries and for one result in a ``with`` block.

    The setting belongs to the current context: threads started inside the block see the defaults.

    Parameters
    ----------
    working : float, optional
        For temporaries; by default 64 MiB on a CPU and an eighth of free memory on a GPU.
    result : float, optional
        For one result, which is refused before any work is done if it is larger; by default half of
        the machine's memory, or nine tenths of a GPU's free memory.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> with gpattr.memory_budget(working=2**20):
    ...     ex = explainer(X)
    >>> ex.shape
    (30, 2)
    """
    given = {"working": working, "result": result}
    checked = {
        name: positive_scalar(name, value) for name, value in given.items() if value is not None
    }
    tokens = [(_BUDGETS[name], _BUDGETS[name].set(value)) for name, value in checked.items()]
    try:
        yield
    finally:
        for variable, token in tokens:
            variable.reset(token)


def budget_in_force() -> dict[str, float | None]:
    """Return the present `memory_budget`, to set it again in another thread or process."""
    return {name: variable.get() for name, variable in _BUDGETS.items()}


def blocks(n: int, bytes_per_row: float, like: Array | None = None) -> Iterator[slice]:
    """Yield slices that cover range(n), each within the working budget of the device of ``like``.

    Each has at least one row.
    """
    budget = _BUDGETS["working"].get() or free_device_memory(like) / 8 or WORKING
    size = max(1, min(n, int(budget // max(bytes_per_row, 1.0))))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


_kept = threading.local()


def workspace(name: str, size: int) -> np.ndarray:
    """Return a buffer of float64 for temporaries; up to 16 MiB for each thread and name are kept.

    Where the C library maps the memory of every array anew, as it does in Dask's workers, fresh
    memory takes longer than the arithmetic.
    """
    if size > 2**21:
        return np.empty(size)
    buffers = _kept.__dict__
    if name not in buffers or buffers[name].size < size:
        buffers[name] = np.empty(size)
    return buffers[name][:size]


def check_memory(
    what: str, shape: tuple[int, ...], remedy: str, *, copies: int = 1, like: Array | None = None
) -> None:
    """Raise `TooLargeError` if ``copies`` float64 arrays of this shape exceed `result_limit`."""
    size, limit = 8.0 * copies, result_limit(like)
    for length in shape:
        size *= min(length, 10**30)  # beyond float64's range it does not fit either
    if size > limit:
        dimensions = " × ".join(map(str, shape))
        raise TooLargeError(
            f"{what} ({dimensions}) would take {readable_bytes(size)}, more than the"
            f" {readable_bytes(limit)} allowed: {remedy}"
        )


def result_limit(like: Array | None = None) -> float:
    """Return the bytes that one result may take where ``like`` is.

    By default these are half of the machine's memory, or nine tenths of a GPU's free memory.
    """
    free = 0.9 * free_device_memory(like)
    return _BUDGETS["result"].get() or free or 0.5 * _physical_memory()


@contextmanager
def device_memory(what: str, like: Array) -> Iterator[None]:
    """Turn a GPU's failure to allocate in a ``with`` block into a `TooLargeError`."""
    try:
        yield
    except RuntimeError as error:
        free = free_device_memory(like)
        if "out of memory" not in str(error).lower() or not free:
            raise
        raise TooLargeError(
            f"{what} does not fit on the GPU, of whose memory {readable_bytes(free)} is free"
            " now: go through fewer rows at a time, or make temporaries smaller with"
            f" gpattr.memory_budget(working={free / 32:.0e})"
        ) from None


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # no sysconf on this platform
        return 2.0**33


def available_memory() -> float:
    """Return the bytes that are free, or could be; the physical memory where this is not known."""
    found = [_physical_memory()]
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        found.append(1024.0 * int(fields["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        pass  # not Linux
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            found.append(float(file.read()))
    except (OSError, ValueError):
        pass  # no limit, or not by this kind of group
    return min(found)


def readable_bytes(size: float) -> str:
    """Return a number of bytes with three digits and a unit."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"
