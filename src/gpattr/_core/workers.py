"""Threads that share the pieces of one call: the caller's, and one for each further core.

Waiting threads sleep, so a machine whose cores are busy with something else slows a call by their
share and no more. Pieces are cut by whoever calls `share`, never by the number of threads: who does
which piece changes nothing in the result.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")  # users' limits on threads of linear algebra


def usable_cores(groups: Path = Path("/sys/fs/cgroup"), environment: Any = os.environ) -> int:
    """Return how many cores this process may use: by affinity, container quota and `LIMITS`."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = float(len(affinity(0)) if affinity else os.cpu_count() or 1)
    for quota, period in (_quota_v2(groups), _quota_v1(groups)):
        if quota > 0 and period > 0:
            cores = min(cores, quota / period)
    for name in LIMITS:
        value = environment.get(name, "").split(",")[0].strip()
        if value.isdecimal() and int(value) > 0:
            cores = min(cores, int(value))
    return max(1, int(cores))


def _quota_v2(groups: Path) -> tuple[int, int]:
    return _numbers(groups / "cpu.max", 2)


def _quota_v1(groups: Path) -> tuple[int, int]:
    return _numbers(groups / "cpu/cpu.cfs_quota_us", 1)[0], _numbers(
        groups / "cpu/cpu.cfs_period_us", 1
    )[0]


def _numbers(path: Path, count: int) -> tuple[int, int]:
    """Return the first numbers of a file, 0 where there are none ("max" is no limit)."""
    try:
        words = path.read_text().split()[:count]
        first, second = int(words[0]), int(words[-1])
    except (OSError, ValueError, IndexError):
        return 0, 0
    return first, second


class Pool:
    """Threads that take pieces of jobs, one of each job in turn, so that callers share fairly."""

    def __init__(self, helpers: int) -> None:
        self.helpers = helpers
        self.changed = threading.Condition()
        self.jobs: deque[Job] = deque()
        for number in range(helpers):
            threading.Thread(target=self._serve, name=f"gpattr-{number}", daemon=True).start()

    def share(self, work: Callable[[Any], None], pieces: Sequence[Any]) -> None:
        """Run the work for every piece, in this thread and the pool's; raise what a piece raised.

        The caller's context (memory budgets, NumPy's handling of errors) holds in all of them.
        The caller takes pieces like the others and waits only for those that are under way, so
        calls inside a piece, and any number of callers at once, cannot block each other.
        """
        job = Job(work, pieces)
        with self.changed:
            self.jobs.append(job)
            self.changed.notify(min(self.helpers, len(pieces) - 1))
        try:
            while (piece := self._piece_of(job)) is not None:
                work(pieces[piece])
        # Also if this thread is interrupted: nothing may write into arrays of an ended call.
        finally:
            with self.changed:
                job.taken = len(pieces)
                if job in self.jobs:
                    self.jobs.remove(job)
            job.idle.wait()
        if job.error is not None:
            raise job.error

    def _piece_of(self, job: Job) -> int | None:
        with self.changed:
            return job.take()

    def _serve(self) -> None:
        while True:
            with self.changed:
                while not self.jobs:
                    self.changed.wait()
                job = self.jobs.popleft()
                piece = job.take()
                if piece is not None:
                    job.enter()
                if job.taken < len(job.pieces):
                    self.jobs.append(job)
            if piece is not None:
                self._help(job, piece)
            del job  # an idle thread must not keep the arrays of the last call

    def _help(self, job: Job, piece: int) -> None:
        try:
            job.context.copy().run(job.work, job.pieces[piece])
        except BaseException as error:
            with self.changed:
                job.error, job.taken = error, len(job.pieces)  # the rest is not started
        with self.changed:
            job.leave()


class Job:
    """Work and its pieces: how many are taken, how many helpers run; under the pool's lock."""

    def __init__(self, work: Callable[[Any], None], pieces: Sequence[Any]) -> None:
        self.work, self.pieces, self.context = work, pieces, copy_context()
        self.taken = self.helpers = 0
        self.error: BaseException | None = None
        self.idle = threading.Event()
        self.idle.set()

    def take(self) -> int | None:
        """Return the number of the next piece, or None where none is left."""
        if self.taken >= len(self.pieces):
            return None
        self.taken += 1
        return self.taken - 1

    def enter(self) -> None:
        """Record that a helper begins a piece."""
        self.helpers += 1
        self.idle.clear()

    def leave(self) -> None:
        """Record that a helper has done a piece."""
        self.helpers -= 1
        if not self.helpers:
            self.idle.set()


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
    """Return the threads of this process, started on first use; none in `one_thread`."""
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
