"""How everything here is timed: the best of a few repetitions, after one that warms up."""

from __future__ import annotations

import time
from collections.abc import Callable
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


def row(what: str, seconds: float, comparison: str, other: float, **more: str) -> dict[str, str]:
    return {
        "what": what,
        "time": f"{seconds:.3g} s",
        "comparison": comparison,
        "its time": f"{other:.3g} s",
        "ratio": f"{seconds / other:.2f}",
        **more,
    }
