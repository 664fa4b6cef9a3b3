"""On a GPU: 40 000 training points × 20 features, 1000 rows with covariance, against the bare
triangular solve there; 100 000 training points; predictions; a GPyTorch model; a stream of rows.

    python benchmarks/gpu.py [--points 40000] [--largest 100000] [--features 20] [--rows 1000]
        [--device cuda]

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
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}, gpattr {gpattr.__version__}")

    agreement(device)
    speed(device, options.points, options.features, options.rows)
    torch.cuda.empty_cache()
    library(device, options.points // 5, options.features, options.rows)
    predictions(device, 25 * options.points, options.points // 4, options.features)
    stream(device)
    torch.cuda.empty_cache()
    largest(device, options.largest, options.features)


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


def library(device: torch.device, m: int, d: int, n: int) -> None:
    """A GPyTorch model on the device, against our own posterior with the same numbers."""
    kernel, Z, y, X = problem(m, d, n)
    inputs, targets, rows = (torch.as_tensor(part, device=device) for part in (Z, y, X))
    model = gpytorch_model(inputs, targets, kernel).to(device)
    start = time.perf_counter()
    adapted = gpattr.Explainer(model, Z.mean(axis=0))
    read = time.perf_counter() - start
    own = gpattr.Explainer(ExactPosterior(kernel, inputs, targets, noise=0.01), Z.mean(axis=0))
    one, two = (timed(device, lambda e=e: e(rows)) for e in (adapted, own))
    means = timed(device, lambda: adapted(inputs, uncertainty="none"))
    off = np.abs(adapted(rows[:50]).values - own(rows[:50]).values).max()
    print(f"GPyTorch, {m} points × {d} features on the device: read and compared in {read:.2f} s")
    print(
        f"{n} rows with covariance {one:.3f} s = {one / two:.2f} × our own posterior's; means of"
        f" all {m} rows {means:.3f} s; difference {off:.1e}"
    )


def gpytorch_model(X: torch.Tensor, y: torch.Tensor, kernel: SquaredExponential):
    import gpytorch

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])

        def forward(self, x):
            mean = self.mean_module(x)
            return gpytorch.distributions.MultivariateNormal(mean, self.covar_module(x))

    model = Model().double()
    model.likelihood.noise = 0.01
    model.covar_module.lengthscale = torch.tensor(np.asarray(kernel.lengthscale))
    return model.eval()


def predictions(device: torch.device, n: int, m: int, d: int) -> None:
    kernel, Z, y, _ = problem(m, d, 1)
    inputs, targets = (torch.as_tensor(part, device=device) for part in (Z, y))
    posterior = ExactPosterior(kernel, inputs, targets, noise=0.01)
    rows = torch.randn((n, d), dtype=torch.float64, device=device)
    op = IntegratedGradients(Z.mean(axis=0))
    predicted = timed(device, lambda: posterior.predict(rows))
    means = timed(device, lambda: posterior.apply(op, rows, uncertainty="none"))
    here = ExactPosterior(kernel, Z[:2000], y[:2000], noise=0.01).predict(Z[-500:])
    there = ExactPosterior(kernel, inputs[:2000], targets[:2000], noise=0.01).predict(inputs[-500:])
    off = np.abs(here - there.cpu().numpy()).max()
    print(
        f"{n} rows against {m} points: predictions {predicted:.2f} s, mean attributions"
        f" {means:.2f} s; predictions differ from NumPy's by {off:.1e}"
    )


def largest(device: torch.device, m: int, d: int, n: int = 200) -> None:
    kernel, Z, y, X = problem(m, d, n)
    inputs, targets, rows = (torch.as_tensor(part, device=device) for part in (Z, y, X))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    posterior = ExactPosterior(kernel, inputs, targets, noise=0.01)
    torch.cuda.synchronize()
    fitted, start = time.perf_counter() - start, time.perf_counter()
    found = posterior.apply(IntegratedGradients(Z.mean(axis=0)), rows)
    explained = time.perf_counter() - start
    left = posterior.predict(inputs[:2000]) + 0.01 * posterior.alpha[:2000] - targets[:2000]
    print(
        f"{m} points × {d} features: posterior {fitted:.1f} s, {n} rows with covariance"
        f" {explained:.1f} s, peak {torch.cuda.max_memory_allocated() / 2**30:.0f} GiB;"
        f" residual of (K + noise)α = y {float(left.abs().max()):.1e}; largest cov_error"
        f" {float(found.cov_error.max()):.1e}"
    )


def stream(device: torch.device, n: int = 16_000_000, d: int = 10, frequencies: int = 500) -> None:
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
