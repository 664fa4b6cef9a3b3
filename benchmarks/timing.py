"""Timing: the best of a few repetitions, after a warm-up."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
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
