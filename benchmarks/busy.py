"""Cost of training and explaining on a busy machine: alone, and beside two busy processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import once

BUSY = 2  # processes that never rest
CASES = {
    "training 600 × 11": ("train", 600, 11),
    "training 800 × 10": ("train", 800, 10),
    "training 1600 × 11": ("train", 1600, 11),
    "training 600 × 60": ("train", 600, 60),
    "sparse training 5000 × 8, 200 inducing inputs": ("sparse", 5000, 8),
    "classifier 400 × 8": ("classify", 400, 8),
    "explaining 500 rows with covariance, 1600 × 11": ("explain", 1600, 11),
}
QUICK = (
    "training 600 × 11",
    "classifier 400 × 8",
    "explaining 500 rows with covariance, 1600 × 11",
)


def busy(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Every measurement in a process of its own, alone and beside others in turn; the best of each
    counts.
    """
    table = []
    for what in QUICK if quick else CASES:
        alone, beside = [], []
        for _ in range(2 if quick else 3):
            alone.append(_measured(what))
            others = [
                subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)
            ]
            try:
                beside.append(_measured(what))
            finally:
                for other in others:
                    other.kill()
                    other.wait()
        (quiet, work), (loaded, more) = min(alone), min(beside)
        table.append(
            {
                "what": what,
                "alone": f"{quiet:.3g} s",
                "processor time": f"{work:.3g} s",
                "beside others": f"{loaded:.3g} s",
                "their processor time": f"{more:.3g} s",
                "ratio": f"{loaded / quiet:.1f}",
            }
        )
    return f"Alone, and beside {BUSY} processes that never rest ({os.cpu_count()} cores)", table


def _measured(what: str) -> tuple[float, float]:
    code = f"import busy; busy.measure({what!r})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    output = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=os.path.dirname(__file__)
    )
    seconds, work = output.stdout.split()[-2:]
    return float(seconds), float(work)


def measure(what: str) -> None:
    """Print the seconds that a case takes, and the processor time of all threads."""
    kind, n, d = CASES[what]
    action = _action(kind, n, d)
    _action(kind, 60, d)()  # imports do not count
    before = time.process_time()
    seconds, _ = once(action)
    print(seconds, time.process_time() - before)


def _action(kind: str, n: int, d: int) -> Callable[[], Any]:
    import gpattr

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * X[:, 3] + 0.3 * rng.normal(size=n)
    if kind == "train":
        return lambda: gpattr.GPRegressor(hyperparameters="optimal").fit(X, y)
    if kind == "sparse":
        return lambda: gpattr.SparseGPRegressor(n_inducing=min(n, 200), random_state=0).fit(X, y)
    if kind == "classify":
        return lambda: gpattr.GPClassifier(hyperparameters="optimal").fit(X, y > 0)
    kernel = gpattr.kernels.SquaredExponential(np.full(d, d**0.5))
    explainer = gpattr.Explainer(gpattr.posteriors.ExactPosterior(kernel, X, y, noise=0.1), "mean")
    rows = rng.normal(size=(500, d))
    return lambda: explainer(rows)
