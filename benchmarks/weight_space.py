"""Weight-space models: streams, explaining compared with the exact GP, and convergence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.linalg.blas import dsyrk
from timing import once, peak_memory

from gpattr import Explainer, GPRegressor, RandomFeatureGPRegressor
from gpattr.bases.spectral import SAMPLINGS
from gpattr.kernels import SquaredExponential

D, M = 10, 500
KERNEL = SquaredExponential(lengthscale=np.full(D, 2.0), variance=1.0)


def simulated(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    w = rng.normal(size=D)
    for _ in range(0, n, 50_000):
        X = rng.normal(size=(min(n, 50_000), D))
        yield X, np.sin(0.5 * X @ w) + 0.1 * rng.normal(size=len(X))


def alone(call: str) -> list[float]:
    """What a call prints in a process of its own, so that its peak memory is its own."""
    code = f"import weight_space; weight_space.{call}"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=sys.path[0]
    ).stdout
    return [float(number) for number in printed.split()]


def stream(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    n = 100_000 if quick else 1_000_000
    seconds, peak, bare, off = alone(f"report_stream({n})")
    return f"A stream of {n} rows × {D} features, {M} frequencies", [
        {
            "what": "fit_chunks, amplitude and noise learned",
            "rows a second": f"{n / seconds:.0f}",
            "peak memory": f"{peak:.2f} GB",
        },
        {"what": "bare product ΦᵀΦ (dsyrk)", "rows a second": f"{bare:.0f}", "peak memory": ""},
        {
            "what": "share of the bare product's speed",
            "rows a second": f"{n / seconds / bare:.2f}",
            "peak memory": "",
        },
        {
            "what": "largest difference from the fit in memory",
            "rows a second": f"{off:.0e}",
            "peak memory": "",
        },
    ]


def report_stream(n: int) -> None:
    """The bare product is timed before and after the stream, over as many blocks as fill a second
    or two.
    """
    part = list(simulated(min(n, 200_000)))
    chunks = part * (n // sum(len(y) for _, y in part))
    F, G = np.random.default_rng(0).normal(size=(4096, 2 * M)), np.zeros((2 * M, 2 * M), order="F")

    def bare() -> float:
        return (
            once(
                lambda: [dsyrk(1.0, F.T, beta=1.0, c=G, lower=1, overwrite_c=1) for _ in range(40)]
            )[0]
            / 40
        )

    model = RandomFeatureGPRegressor(M, kernel=KERNEL, random_state=0)
    bare()
    before = bare()
    seconds, _ = once(lambda: model.fit_chunks(chunks))
    peak = peak_memory()
    speed = 4096 / (0.5 * (before + bare()))
    X, y = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    whole = RandomFeatureGPRegressor(M, kernel=KERNEL, optimize="amplitude", random_state=0).fit(
        X, y
    )
    off = np.abs(whole.predict(X[:1000]) - model.predict(X[:1000])).max()
    print(seconds, peak, speed, off)


def explain_rows(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    n = 10_000 if quick else 100_000
    seconds, peak, means, exact_seconds, exact_rows = alone(f"report_explain({n})")
    ours, theirs = n / seconds, exact_rows / exact_seconds
    return f"Explaining rows × {D} features", [
        {
            "what": f"{M} frequencies, {n} rows, std",
            "rows a second": f"{ours:.0f}",
            "peak memory": f"{peak:.2f} GB",
            "ratio": "",
        },
        {
            "what": f"{M} frequencies, {n} rows, means",
            "rows a second": f"{n / means:.0f}",
            "peak memory": "",
            "ratio": "",
        },
        {
            "what": "exact GP of 2000 points, std",
            "rows a second": f"{theirs:.0f}",
            "peak memory": "",
            "ratio": f"{ours / theirs:.1f}",
        },
    ]


def report_explain(n: int) -> None:
    data = np.concatenate([X for X, _ in simulated(n)])
    X, y = next(simulated(2000))
    model = RandomFeatureGPRegressor(
        M, kernel=KERNEL, noise_variance=0.01, optimize=False, random_state=0
    ).fit(X, y)
    explainer = Explainer(model)
    seconds, _ = once(lambda: explainer(data, uncertainty="std"))
    peak = peak_memory()
    means, _ = once(lambda: explainer(data, uncertainty="none"))
    exact = Explainer(GPRegressor(KERNEL, noise_variance=0.01, optimize=False).fit(X, y))
    rows = data[: n // 50]
    exact_seconds, _ = once(lambda: exact(rows, uncertainty="std"))
    print(seconds, peak, means, exact_seconds, len(rows))


def convergence(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Root-mean-square distance of attributions from those of the exact GP, averaged over ten draws
    of the frequencies.
    """
    exact = GPRegressor(
        mean="zero", bounds={"noise_variance": (0.05, 10.0)}, hyperparameters="optimal"
    ).fit(X, y)
    rows = X[::16]
    reference = Explainer(exact)(rows, uncertainty="none").values
    table = []
    for sampling in SAMPLINGS:
        distances = []
        for number in (25, 100, 400) if quick else (25, 100, 400, 1600):
            models = (
                RandomFeatureGPRegressor.from_exact(
                    exact, number, sampling=sampling, random_state=s
                )
                for s in range(10)
            )
            values = (
                Explainer(model.fit(X, y))(rows, uncertainty="none").values for model in models
            )
            distances.append(
                float(np.mean([np.sqrt(((value - reference) ** 2).mean()) for value in values]))
            )
        columns = {f"M = {25 * 4**i}": f"{distance:.4f}" for i, distance in enumerate(distances)}
        ratios = ", ".join(f"{b / a:.2f}" for a, b in pairwise(distances))
        table.append({"what": sampling, **columns, "ratios": ratios})
    size = np.sqrt((reference**2).mean())
    return (
        (
            f"Random features against the exact GP, red wine, {len(rows)} rows; attributions are"
            f" {size:.3f} in size"
        ),
        table,
    )
