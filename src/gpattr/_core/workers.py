"""Threads that share the pieces of one call: the caller's, and one for each further core.

Waiting threads sleep, so a machine whose cores are busy with something else slows a call by their
share and no more.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # users' limits on threads of linear algebra
QUOTAS = ("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")  # of containers


def usable_cores(groups: Path = Path("/sys/fs/cgroup"), environment: Any = os.environ) -> int:
    """The number of cores that this process may use: by affinity, container quota and `LIMITS`."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = float(len(affinity(0)) if affinity else os.cpu_count() or 1)
    for files in QUOTAS:
        try:
            text = " ".join((groups / name).read_text() for name in files)
            quota, period = (int(word) for word in text.split())
        except (OSError, ValueError):  # there is none
            continue
        if quota > 0 and period > 0:
            cores = min(cores, quota / period)
    for name in LIMITS:
        value = environment.get(name, "").split(",")[0].strip()
        if value.isdecimal() and int(value) > 0:
            cores = min(cores, int(value))
    return max(1, int(cores))


class Pool:
    """Threads that help their callers, started when they are first needed."""

    def __init__(self, helpers: int) -> None:
        self.helpers = helpers
        self.executor = ThreadPoolExecutor(max(1, helpers), thread_name_prefix="gpattr")

    def share(self, work: Callable[[Any], None], pieces: Sequence[Any]) -> None:
        """Run the work for every piece, in this thread and the pool's; raise what a piece raised.

        The caller's context (memory budgets, NumPy's handling of errors) holds in all of them.
        The caller takes pieces like the others and waits only for those that are under way, so
        calls inside a piece, and any number of callers at once, cannot block each other.
        """
        left = deque(pieces)

        def take() -> None:
            while True:
                try:
                    piece = left.popleft()
                except IndexError:
                    return
                try:
                    work(piece)
                except BaseException:
                    left.clear()  # the rest is not started
                    raise

        helpers = range(min(self.helpers, len(pieces) - 1))
        helping = [self.executor.submit(copy_context().run, take) for _ in helpers]
        try:
            take()
        # Also if this thread is interrupted: nothing may write into arrays of an ended call.
        finally:
            started = [helper for helper in helping if not helper.cancel()]
            wait(started)
        for helper in started:
            helper.result()


_lock = threading.Lock()
_pool: Pool | None = None
_NO_HELPERS = Pool(0)
_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep the work of a ``with`` block in its own thread: the other cores have tasks of theirs."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def pool() -> Pool:
    """The threads of this process, started on first use; none in `one_thread`."""
    global _pool
    if _alone.get():
        return _NO_HELPERS
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = Pool(usable_cores() - 1)
    return _pool


def _forget() -> None:
    """Reset the pool in a forked child, which has no threads and may inherit held locks."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
