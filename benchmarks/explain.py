"""Cost of explaining many rows, relative to a triangular solve and to a kernel matrix times α."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy.linalg.blas import dtrsm
from timing import best_time, once, peak_memory, row

from gpattr.kernels import SquaredExponential
from gpattr.means import Constant
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior
from gpattr.posteriors.bound import Evaluation


def wine_posterior(X: np.ndarray, y: np.ndarray) -> ExactPosterior:
    """Length-scales as training finds them: a few standard deviations, so that most rows lie within
    one of the baseline.
    """
    kernel = SquaredExponential(lengthscale=3.0 * X.std(axis=0), variance=0.6)
    return ExactPosterior(kernel, X, y, noise=0.3, mean=Constant(float(y.mean())))


def explain_wine(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    if quick:
        X, y = X[:600], y[:600]
    (n, d), posterior = X.shape, wine_posterior(X, y)
    op = IntegratedGradients(X.mean(axis=0))
    right = np.asfortranarray(np.random.default_rng(0).normal(size=(n, n * d)))
    bare = best_time(lambda: dtrsm(1.0, posterior.factor, right, lower=1, overwrite_b=1))
    both = best_time(lambda: posterior.apply(op, X))
    kernel_product = best_time(lambda: posterior.kernel(X, X) @ posterior.alpha)
    means = best_time(lambda: posterior.apply(op, X, uncertainty="none"))
    smooth = ExactPosterior(
        SquaredExponential(lengthscale=8.0 * X.std(axis=0)), X, y, noise=0.35, mean=posterior.mean
    )
    rows = []
    for name, each in (("", posterior), (", length-scales of 8 std", smooth)):
        for tolerance in (1e-6, 1e-8):
            bound = each.bind(op, Evaluation(covariance_tolerance=tolerance))
            found, exact = bound.apply(X), each.apply(op, X)
            error = np.abs(found.cov - exact.cov).max(axis=(1, 2))
            assert (error <= found.cov_error + exact.cov_error).all()
            what = f"covariance_tolerance={tolerance:.0e}{name} ({found.method.split(', ', 1)[1]})"
            seconds = best_time(lambda bound=bound: bound.apply(X))
            rows.append(row(what, seconds, "bare triangular solve (in place)", bare))
    return f"Red wine, {n} rows × {d} features explained against {n} training points", [
        row("mean and covariance", both, "bare triangular solve (in place)", bare),
        row("mean", means, "kernel matrix · α", kernel_product),
        *rows,
    ]


def explain_many_rows(
    X: np.ndarray, y: np.ndarray, quick: bool
) -> tuple[str, list[dict[str, str]]]:
    """In a process of its own, so that its peak memory is its own."""
    n = 10_000 if quick else 100_000
    code = f"import explain, run; explain.report_memory({n}, *run.wine())"
    results = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=sys.path[0]
    ).stdout.split()
    seconds, mean_peak, cov_seconds, cov_peak = map(float, results)
    return "Memory", [
        {
            "what": f"means of {n} rows",
            "time": f"{seconds:.3g} s",
            "rows a second": f"{n / seconds:.0f}",
            "peak memory": f"{mean_peak:.2f} GB",
        },
        {
            "what": f"mean and covariance of {len(X)} rows",
            "time": f"{cov_seconds:.3g} s",
            "rows a second": f"{len(X) / cov_seconds:.0f}",
            "peak memory": f"{cov_peak:.2f} GB",
        },
    ]


def report_memory(n: int, X: np.ndarray, y: np.ndarray) -> None:
    posterior, op = wine_posterior(X, y), IntegratedGradients(X.mean(axis=0))
    rows = X[np.arange(n) % len(X)]
    seconds, _ = once(lambda: posterior.apply(op, rows, uncertainty="none"))
    peak = peak_memory()
    cov_seconds, _ = once(lambda: posterior.apply(op, X))
    print(seconds, peak, cov_seconds, peak_memory())
