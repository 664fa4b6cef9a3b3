"""Training by marginal likelihood: the same model, start and bounds in every library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from timing import once, peak_memory

from gpattr import GPRegressor


def simulated(n: int, d: int = 11) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * np.tanh(X[:, 3]) + 0.2 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def log_likelihood(
    X: np.ndarray,
    y: np.ndarray,
    lengthscale: np.ndarray,
    variance: float,
    noise: float,
    mean: float,
) -> float:
    """log p(y) of any library's hyperparameters, by one formula for all."""
    from gpattr.kernels import SquaredExponential
    from gpattr.means import Constant
    from gpattr.posteriors import ExactPosterior

    kernel = SquaredExponential(lengthscale=lengthscale, variance=variance)
    return ExactPosterior(kernel, X, y, noise=noise, mean=Constant(mean)).log_marginal_likelihood


def with_gpattr(X: np.ndarray, y: np.ndarray) -> float:
    return GPRegressor(hyperparameters="optimal").fit(X, y).log_marginal_likelihood_


def with_sklearn(X: np.ndarray, y: np.ndarray) -> float:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    start = 0.6 * X.shape[1] ** 0.5
    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(
        np.full(X.shape[1], start), (1e-2 * start, 1e4 * start)
    ) + WhiteKernel(0.2, (1e-6, 10.0))
    return (
        GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y).log_marginal_likelihood_value_
    )


def with_botorch(X: np.ndarray, y: np.ndarray) -> float:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.mlls import ExactMarginalLogLikelihood

    kernel = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))
    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(y)[:, None],
        covar_module=kernel,
        likelihood=GaussianLikelihood(),
        outcome_transform=None,
    )
    kernel.base_kernel.lengthscale = 0.6 * X.shape[1] ** 0.5
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return _gpytorch_likelihood(X, y, model)


def with_gpytorch(X: np.ndarray, y: np.ndarray) -> float:
    """As its tutorials do it: Adam, with exact factorisations."""
    import gpytorch
    import torch
    from gpytorch.kernels import RBFKernel, ScaleKernel

    class Model(gpytorch.models.ExactGP):
        def __init__(self, rows, targets, likelihood):
            super().__init__(rows, targets, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=rows.shape[1]))

        def forward(self, rows):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(rows), self.covar_module(rows)
            )

    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    rows, targets = torch.tensor(X), torch.tensor(y)
    model = Model(rows, targets, likelihood).double()
    model.covar_module.base_kernel.lengthscale = 0.6 * X.shape[1] ** 0.5
    model.train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    with gpytorch.settings.fast_computations(False, False, False):
        for _ in range(100):
            optimizer.zero_grad()
            loss = -mll(model(rows), targets)
            loss.backward()
            optimizer.step()
    return _gpytorch_likelihood(X, y, model)


def _gpytorch_likelihood(X, y, model) -> float:
    kernel = model.covar_module
    lengthscale = kernel.base_kernel.lengthscale.detach().numpy().ravel()
    mean = float(model.mean_module.constant)
    return log_likelihood(
        X, y, lengthscale, float(kernel.outputscale), float(model.likelihood.noise), mean
    )


def with_tinygp(X: np.ndarray, y: np.ndarray) -> float:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from scipy.optimize import minimize
    from tinygp import GaussianProcess, kernels, transforms

    d = X.shape[1]

    def negative(theta):
        kernel = jnp.exp(theta[d]) * transforms.Linear(jnp.exp(-theta[:d]), kernels.ExpSquared())
        return -GaussianProcess(
            kernel, X, diag=jnp.exp(theta[d + 1]), mean=theta[d + 2]
        ).log_probability(y)

    value_and_gradient = jax.jit(jax.value_and_grad(negative))
    start = np.concatenate([np.full(d, np.log(0.6 * d**0.5)), [0.0, np.log(0.2), 0.0]])
    result = minimize(
        lambda t: tuple(np.asarray(v, float) for v in value_and_gradient(t)),
        start,
        jac=True,
        method="L-BFGS-B",
    )
    theta = result.x
    return log_likelihood(
        X,
        y,
        np.exp(theta[:d]),
        float(np.exp(theta[d])),
        float(np.exp(theta[d + 1])),
        float(theta[d + 2]),
    )


LIBRARIES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float]]] = {
    "gpattr": ("gpattr", with_gpattr),
    "scikit-learn": ("sklearn", with_sklearn),
    "BoTorch fit_gpytorch_mll": ("botorch", with_botorch),
    "GPyTorch, 100 Adam steps": ("gpytorch", with_gpytorch),
    "tinygp + L-BFGS": ("tinygp", with_tinygp),
}


def training(X: np.ndarray, y: np.ndarray, quick: bool) -> tuple[str, list[dict[str, str]]]:
    """Every library in a process of its own: their thread pools and settings must not meet."""
    rows = []
    for n in (300,) if quick else (600, 1600):
        reference = None
        for name, (module, _) in LIBRARIES.items():
            if find_spec(module) is None:
                continue
            seconds, value, peak = _alone(f"training.measure({name!r}, {n})")
            reference = reference or seconds
            rows.append(
                {
                    "what": f"{n} × 11, {name}",
                    "time": f"{seconds:.3g} s",
                    "comparison": f"{seconds / reference:.1f} × gpattr",
                    "log p(y)": f"{value:.2f}",
                    "peak memory": f"{peak:.2f} GB",
                }
            )
    if not quick:
        seconds, value, peak = _alone("training.measure('gpattr', 5000)")
        rows.append(
            {
                "what": "5000 × 11, gpattr",
                "time": f"{seconds:.3g} s",
                "comparison": "",
                "log p(y)": f"{value:.2f}",
                "peak memory": f"{peak:.2f} GB",
            }
        )
    return "Training an ARD squared exponential by marginal likelihood, simulated data", rows


def _alone(call: str) -> list[float]:
    code = f"import training; {call}"
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=sys.path[0],
    )
    return [float(part) for part in output.stdout.split()[-3:]]


def measure(name: str, n: int) -> None:
    X, y = simulated(n)
    LIBRARIES[name][1](X[:60], y[:60])  # imports and compilation do not count
    seconds, value = once(lambda: LIBRARIES[name][1](X, y))
    print(seconds, value, peak_memory())
