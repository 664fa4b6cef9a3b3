"""Approximations of an exact GP: time and error, and sparse regression compared with GPyTorch."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from timing import once

from gpattr import Explainer, GPRegressor, RandomFeatureGPRegressor, SparseGPRegressor
from gpattr.kernels import SquaredExponential
from gpattr.means import Constant
from gpattr.posteriors import SparsePosterior

ADAM, LBFGS = 300, 1000  # iterations
STARTS = (1.0, 0.3, 3.0)  # length-scales, as multiples of the first start's


def approximations(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Every model learns its own hyperparameters; the noise is bounded from below, because wines
    are repeated.
    """
    options = {"mean": "zero", "bounds": {"noise_variance": (0.05, 10.0)}}
    rows = X[:: 16 if quick else 8]
    exact = GPRegressor(**options, hyperparameters="optimal")
    lines = [line("exact", exact, X, y, rows, None)]
    reference = Explainer(exact)(rows, uncertainty="std")
    for M in (100, 400):
        waves = RandomFeatureGPRegressor.from_exact(exact, M, random_state=0)
        lines.append(
            line(f"{M} random frequencies, hyperparameters given", waves, X, y, rows, reference)
        )
    for m in (50, 100, 200):
        sparse = SparseGPRegressor(m, random_state=0, **options)
        lines.append(line(f"{m} inducing inputs", sparse, X, y, rows, reference))
    size = np.sqrt((reference.values**2).mean())
    return (
        (
            f"Red wine, {len(X)} × {X.shape[1]}: rms distance from the exact GP for {len(rows)}"
            f" rows; attributions are {size:.3f}"
        ),
        lines,
    )


def line(
    name: str, model, X: np.ndarray, y: np.ndarray, rows: np.ndarray, reference
) -> dict[str, str]:
    training, _ = once(lambda: model.fit(X, y))
    explaining, ex = once(lambda: Explainer(model)(rows, uncertainty="std"))
    evidence = getattr(model, "bound_", getattr(model, "log_marginal_likelihood_", np.nan))
    errors = ["", ""]
    if reference is not None:
        errors = [
            f"{np.sqrt(((getattr(ex, w) - getattr(reference, w)) ** 2).mean()):.4f}"
            for w in ("values", "std")
        ]
    times = {"training": f"{training:.3g} s", "explaining": f"{1e3 * explaining:.0f} ms"}
    return {
        "what": name,
        **times,
        "means": errors[0],
        "sd": errors[1],
        "log evidence": f"{evidence:.1f}",
    }


def sparse_peers(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """The same data, inducing inputs and start for both; GPyTorch by Adam, as its users do, and by
    L-BFGS until it stops.
    """
    rng = np.random.default_rng(0)
    n, m = (500, 30) if quick else (2000, 100)
    X = rng.uniform(-2, 2, size=(n, 8))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.5 * X[:, 3] + 0.2 * rng.normal(size=n)
    Z = X[:m]
    single, model = once(lambda: SparseGPRegressor(inducing=Z).fit(X, y))
    lines = [timed("gpattr", single, single, model.bound_)]
    several, model = once(
        lambda: SparseGPRegressor(inducing=Z, n_restarts=len(STARTS) - 1, random_state=0).fit(X, y)
    )
    lines.append(timed(f"gpattr, best of {len(STARTS)} starts", several, single, model.bound_))
    with suppress(ImportError):
        theirs, bound = once(lambda: gpytorch_bound(X, y, Z, by_adam))
        lines.append(timed(f"GPyTorch, Adam, {ADAM} iterations", theirs, single, bound))
        theirs, bounds = once(
            lambda: [gpytorch_bound(X, y, Z, by_lbfgs, factor) for factor in STARTS]
        )
        lines.append(
            timed(
                f"GPyTorch, L-BFGS until it stops, best of {len(STARTS)} starts",
                theirs,
                single,
                max(bounds),
            )
        )
    if not quick:
        X = rng.uniform(-2, 2, size=(20_000, 8))
        y = (
            np.sin(2 * X[:, 0]) * X[:, 1]
            + X[:, 2] ** 2
            + 0.5 * X[:, 3]
            + 0.2 * rng.normal(size=20_000)
        )
        large, model = once(lambda: SparseGPRegressor(200, random_state=0).fit(X, y))
        lines.append(timed("gpattr, 20000 × 8, 200 inducing inputs", large, None, model.bound_))
        explaining, _ = once(lambda: Explainer(model)(X[:10_000], uncertainty="std"))
        lines.append(timed("explaining 10000 rows with it, with sd", explaining, None, None))
    return f"Sparse regression, {n} × 8, {m} inducing inputs", lines


def timed(what: str, seconds: float, against: float | None, bound: float | None) -> dict[str, str]:
    ratio = "" if against is None else f"{seconds / against:.1f}"
    return {
        "what": what,
        "time": f"{seconds:.3g} s",
        "ratio": ratio,
        "bound": "" if bound is None else f"{bound:.1f}",
    }


def by_adam(model, loss) -> None:
    import torch

    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(ADAM):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


def by_lbfgs(model, loss) -> None:
    """SciPy's L-BFGS, with the tolerances of our own training."""
    import torch
    from scipy.optimize import minimize
    from torch.nn.utils import parameters_to_vector, vector_to_parameters

    parameters = list(model.parameters())
    n = len(model.train_targets)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        vector_to_parameters(torch.tensor(theta), parameters)
        model.zero_grad()
        value = n * loss()
        value.backward()
        return value.item(), parameters_to_vector([part.grad for part in parameters]).numpy()

    start = parameters_to_vector(parameters).detach().numpy()
    options = {"maxiter": LBFGS, "maxfun": 2 * LBFGS, "maxcor": 20, "ftol": 1e-8, "gtol": 1e-3}
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    vector_to_parameters(torch.tensor(best.x), parameters)


def gpytorch_bound(
    X: np.ndarray, y: np.ndarray, Z: np.ndarray, train, factor: float = 1.0
) -> float:
    """Train GPyTorch's sparse model from our start; return its bound as our formula gives it."""
    import gpytorch
    import torch

    inputs, targets = torch.tensor(X), torch.tensor(y)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = 0.2 * float(y.var())

    class Sparse(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(inputs, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            prior = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            ).double()
            prior.base_kernel.lengthscale = factor * 0.6 * X.shape[1] ** 0.5 * float(X.std())
            prior.outputscale = float(y.var())
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                prior, torch.tensor(Z), likelihood
            )

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    model = Sparse().double()
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    train(model, lambda: -loss(model(inputs), targets))
    prior = model.covar_module.base_kernel
    kernel = SquaredExponential(
        prior.base_kernel.lengthscale.detach().numpy()[0], prior.outputscale.item()
    )
    points = model.covar_module.inducing_points.detach().numpy()
    mean = Constant(model.mean_module.constant.item())
    return SparsePosterior.fit(
        kernel, points, X, y, noise=likelihood.noise.item(), mean=mean, jitter=1e-6
    ).bound  # pyright: ignore
