"""Random kernels of GPyTorch and scikit-learn: how many are explained exactly, refused, or wrong.

From the root of the repository: ``python -m benchmarks.kernel_sweep gpytorch 500``. Every model has
60 training rows; attributions and their covariances are compared with the library's own joint
predictions (`tests/reference/random_kernels.py`).
"""

from __future__ import annotations

import re
import sys
from collections import Counter

from tests.reference.random_kernels import gpytorch_verdict, sklearn_verdict


def sweep(library: str, number: int, first: int = 0) -> None:
    """Print every kernel that is wrong or slow, then counts by outcome and by reason."""
    verdict = {"gpytorch": gpytorch_verdict, "sklearn": sklearn_verdict}[library]
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    seconds: list[tuple[float, int]] = []
    seed = first
    while sum(counts.values()) < number:
        kernel, found = verdict(seed)
        seed += 1
        if found is None:
            continue
        counts[found.kind] += 1
        seconds.append((found.seconds, seed - 1))
        if found.kind == "refused":
            reasons[_reason(found.reason)] += 1
        if found.kind == "wrong" or found.seconds > 30.0:
            print(f"seed {seed - 1}: {found.kind}, {found.seconds:.1f} s: {found.reason}\n{kernel}")
        if sum(counts.values()) % 25 == 0:
            print(f"{library}: {dict(counts)}", flush=True)
    print("longest:", ", ".join(f"{t:.1f} s (seed {k})" for t, k in sorted(seconds)[:-6:-1]))
    for reason, count in reasons.most_common():
        print(f"{count:5d}  {reason}")


def _reason(message: str) -> str:
    """Return a message without its numbers."""
    return re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "N", message)[:110]


if __name__ == "__main__":
    sweep(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
