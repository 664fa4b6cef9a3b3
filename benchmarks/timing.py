"""Timing: the best of a few repetitions after a warm-up, or the mean of many calls."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def best_time(action: Callable[[], Any], repeat: int = 5) -> float:
    action()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def once(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def seconds_of(
    action: Callable[[], Any],
    at_least: float = 0.03,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The mean time of a call, over as many as fill 30 ms."""
    calls, start = 0, clock()
    while (elapsed := clock() - start) < at_least or not calls:
        action()
        calls += 1
    return elapsed / calls


def processor_seconds_of(action: Callable[[], Any]) -> float:
    """The same in processor time, which the load of the machine disturbs less, over 50 ms."""
    return seconds_of(action, 0.05, time.process_time)


def one_thread() -> None:
    """So that ratios compare work, and not how threads wait for each other."""
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = "1"  # gpattr's threads, which start at its first call
    threadpool_limits(limits=1)
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


def peak_memory() -> float:
    """The peak memory of this process in GB. (Linux hands ru_maxrss down from parent to child, so
    /proc is asked first.)
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(
            float(line.split()[1]) / 1e6
            for line in status.read_text().splitlines()
            if line.startswith("VmHWM")
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def row(what: str, seconds: float, comparison: str, other: float, **more: str) -> dict[str, str]:
    return {
        "what": what,
        "time": f"{seconds:.3g} s",
        "comparison": comparison,
        "its time": f"{other:.3g} s",
        "ratio": f"{seconds / other:.2f}",
        **more,
    }


def processor(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return seconds of processor time, which other processes do not disturb, and the result."""
    start = time.process_time()
    result = action()
    return time.process_time() - start, result
