"""On a GPU: 40 000 training points × 20 features, 1000 rows with covariance, against the bare
triangular solve there.

    python benchmarks/gpu.py [--points 40000] [--features 20] [--rows 1000] [--device cuda]

Prints ratios measured in one run, and the largest difference to the same numbers computed by NumPy
on a smaller problem."""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import gpattr
from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import ExactPosterior


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, gpattr {gpattr.__version__}")

    agreement(device)
    speed(device, options.points, options.features, options.rows)
    stream(device)


def problem(
    m: int, d: int, n: int
) -> tuple[SquaredExponential, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(m, d)), rng.normal(size=(n, d))
    y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.1 * rng.normal(size=m)
    return SquaredExponential(lengthscale=2.0 * np.linspace(1, 4, d)), Z, y, X


def agreement(device: torch.device) -> None:
    """Mean, covariance and joint on the device and by NumPy, on a problem both can do quickly."""
    kernel, Z, y, X = problem(1500, 20, 60)
    X = X * np.logspace(-4, 1, 60)[:, None]
    here = ExactPosterior(kernel, Z, y, noise=0.01)
    there = ExactPosterior(
        kernel, torch.as_tensor(Z, device=device), torch.as_tensor(y, device=device), noise=0.01
    )
    op = IntegratedGradients(Z.mean(axis=0))
    a, b = here.apply(op, X), there.apply(op, torch.as_tensor(X, device=device))
    scale = kernel.variance * np.abs(here.alpha).sum()
    differences = {
        "mean, of σ²Σ|α|": np.abs(a.mean - b.mean.cpu().numpy()).max() / scale,
        "mean, absolute": np.abs(a.mean - b.mean.cpu().numpy()).max(),
        "covariance": np.abs(a.cov - b.cov.cpu().numpy()).max(),
        "joint": (
            np.abs(
                here.joint(op, X[:20])
                - there.joint(op, torch.as_tensor(X[:20], device=device)).cpu().numpy()
            ).max()
        ),
    }
    for what, difference in differences.items():
        print(f"difference to NumPy, {what}: {difference:.1e}")


def timed(device: torch.device, action, repeat: int = 3) -> float:
    best = float("inf")
    for _ in range(repeat):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        action()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - start)
    return best


def speed(device: torch.device, m: int, d: int, n: int) -> None:
    kernel, Z, y, X = problem(m, d, n)
    inputs, targets, rows = (torch.as_tensor(part, device=device) for part in (Z, y, X))
    start = time.perf_counter()
    posterior = ExactPosterior(kernel, inputs, targets, noise=0.01)
    fitted = time.perf_counter() - start
    op = IntegratedGradients(Z.mean(axis=0))
    explained = timed(device, lambda: posterior.apply(op, rows))
    means = timed(device, lambda: posterior.apply(op, rows, uncertainty="none"))
    predicted = timed(device, lambda: posterior.predict(rows))
    right = torch.randn((n * d, m), dtype=torch.float64, device=device)
    factor = posterior.factor
    bare = timed(
        device, lambda: torch.linalg.solve_triangular(factor.mT, right, upper=True, left=False)
    )
    bare_left = timed(device, lambda: torch.linalg.solve_triangular(factor, right.mT, upper=False))
    print(
        f"{m} points × {d} features, {n} rows; posterior {fitted:.2f} s (kernel matrix, Cholesky)"
    )
    print(
        f"bare triangular solve of {n * d} right-hand sides: {bare:.2f} s (solving from the left"
        f" {bare_left:.2f} s)"
    )
    print(
        f"mean and covariance: {explained:.2f} s = {explained / min(bare, bare_left):.2f} × the"
        " bare triangular solve"
    )
    print(
        f"means alone: {means:.3f} s = {means / predicted:.1f} × a prediction ({predicted:.3f} s)"
    )


def stream(device: torch.device, n: int = 4_000_000, d: int = 10, frequencies: int = 500) -> None:
    """A random-feature model from a stream on the device, against the bare product and against
    NumPy.
    """
    kernel = SquaredExponential(lengthscale=np.full(d, 2.0))
    options = {"kernel": kernel, "noise_variance": 0.01, "optimize": False, "random_state": 0}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, d))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    there = [torch.as_tensor(part, device=device) for part in (X, y)]
    one, two = (
        gpattr.RandomFeatureGPRegressor(frequencies, **options).fit(*data)
        for data in ((X, y), there)
    )
    a, b = (gpattr.Explainer(model)(X[:200]) for model in (one, two))
    off = np.abs(a.values - b.values).max(), np.abs(a.cov - b.cov).max()
    print(f"random features, difference to NumPy: mean {off[0]:.1e}, covariance {off[1]:.1e}")
    big = [
        torch.as_tensor(part, device=device).repeat(*([50] + [1] * (part.ndim - 1)))
        for part in (X, y)
    ]
    model = gpattr.RandomFeatureGPRegressor(frequencies, **options)

    def learn() -> None:
        model.fit_chunks(tuple(big) for _ in range(n // len(big[0])))

    F = torch.randn(65536, 2 * frequencies, dtype=torch.float64, device=device)
    learned, bare = timed(device, learn, 1), timed(device, lambda: [F.mT @ F for _ in range(10)])
    rate, limit = n / learned, 10 * len(F) / bare
    print(
        f"stream of {n} rows: {rate:.3g} rows a second, {rate / limit:.2f} of the bare product's"
        f" {limit:.3g}"
    )
    rows = big[0][:100_000]
    op = IntegratedGradients(X.mean(axis=0))
    explained = timed(device, lambda: model.posterior_.apply(op, rows, uncertainty="std"))
    print(f"explaining {len(rows)} rows with std: {len(rows) / explained:.3g} rows a second")


if __name__ == "__main__":
    main()
