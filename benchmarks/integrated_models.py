"""Do the intervals of other libraries' models hold, once their hyperparameters are integrated?

    python benchmarks/integrated_models.py [--sets 2] [--rows 25] [--workers 2]

trains models as the tutorials of their libraries do (scikit-learn, GPyTorch, BoTorch, and a kernel
of the user's own) on rows of the functions of interval_coverage.py, and compares 95 % intervals of
their integrated gradients with the functions: as they were fitted, and by `gpattr.integrate`. Then
classifiers: labels are drawn from known probabilities, and intervals of the probabilities at new
rows, and the log loss of new labels, are compared with them. It writes
benchmarks/integrated_models.json.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import warnings
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from interval_coverage import Problem, functions

import gpattr
from gpattr.distributions.marginals import Marginals

RESULTS = Path(__file__).with_suffix(".json")
LABELLED, NEW = 100, 25  # rows of a classifier, and new ones
STEEPNESS = 2.0  # standard deviation of the log odds


def own_kernel(X: np.ndarray, y: np.ndarray) -> Any:
    kernel = gpattr.kernels.Matern52(np.ones(X.shape[1]))
    return gpattr.GPRegressor(kernel, hyperparameters="optimal").fit(X, y)


def scikit_learn(X: np.ndarray, y: np.ndarray) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    kernel = 1.0 * RBF(np.ones(X.shape[1]), (1e-2, 1e3)) + WhiteKernel(1e-2, (1e-6, 1e1))
    return GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0
    ).fit(X, y)


def gpytorch(X: np.ndarray, y: np.ndarray) -> Any:
    """The regression of GPyTorch's first notebook: fifty steps of Adam at a rate of 0.1."""
    import torch
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.kernels import RBFKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ConstantMean
    from gpytorch.mlls import ExactMarginalLogLikelihood
    from gpytorch.models import ExactGP

    inputs, targets = torch.as_tensor(X), torch.as_tensor(y)

    class ExactGPModel(ExactGP):
        def __init__(self) -> None:
            super().__init__(inputs, targets, GaussianLikelihood())
            self.mean_module = ConstantMean()
            self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))

        def forward(self, x: Any) -> Any:
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = ExactGPModel().double().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    loss = ExactMarginalLogLikelihood(model.likelihood, model)
    for _ in range(50):
        optimizer.zero_grad()
        (-loss(model(inputs), targets)).backward()
        optimizer.step()
    return model.eval()


def botorch(X: np.ndarray, y: np.ndarray) -> Any:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(torch.as_tensor(X), torch.as_tensor(y)[:, None])
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


MODELS = {
    "a kernel of one's own": own_kernel,
    "scikit-learn": scikit_learn,
    "GPyTorch": gpytorch,
    "BoTorch": botorch,
}


def regression(name: str, n: int, seed: int) -> dict[str, Any]:
    """The share of true integrated gradients within 95 % intervals, by model."""
    problem = Problem(name, n, seed)
    truth = problem.integrated_gradients()
    # as tutorials have them: inputs between 0 and 1, standardised targets
    low, width = problem.X.min(axis=0), np.ptp(problem.X, axis=0)
    mean, std = problem.y.mean(), problem.y.std()
    X, T, baseline = ((Z - low) / width for Z in (problem.X, problem.T, problem.baseline))
    found: dict[str, Any] = {"function": name, "seed": seed}
    for kind, make in MODELS.items():
        fitted = make(X, (problem.y - mean) / std)
        for how, model in (("fitted", fitted), ("integrated", gpattr.integrate(fitted))):
            ends = gpattr.Explainer(model, baseline)(T, uncertainty="std").interval(0.95)
            lower, upper = (std * end for end in ends)
            found[f"{kind}, {how}"] = float(((lower <= truth) & (truth <= upper)).mean())
    return found


def classification(name: str, n: int, seed: int) -> dict[str, Any]:
    """The share of probabilities within 95 % intervals, and the log loss of new labels."""
    problem = Problem(name, n, seed)
    generator = np.random.default_rng([seed, 7, *name.encode()])
    places = generator.choice(problem.X.shape[0], LABELLED + NEW, replace=False)
    values = problem.f(problem.X)
    odds = STEEPNESS * (values - values.mean()) / values.std()
    chances = 1.0 / (1.0 + np.exp(-odds))
    labels = generator.random(n) < chances
    train, new = places[:LABELLED], places[LABELLED:]
    found: dict[str, Any] = {"function": name, "seed": seed}
    if labels[train].all() or not labels[train].any():
        return found
    for how in ("optimal", "integrated"):
        model = gpattr.GPClassifier(hyperparameters=how).fit(problem.X[train], labels[train])
        posterior: Any = model.posterior_
        parts = getattr(posterior, "components", [(1.0, posterior)])
        moments = [part.predict(problem.X[new], return_std=True) for _, part in parts]
        means, stds = (np.stack(each) for each in zip(*moments, strict=True))
        latent = Marginals(np.array([weight for weight, _ in parts]), means, stds**2)
        below = latent.cdf(odds[new])
        probability = model.predict_proba(problem.X[new])[:, 1]
        # the loss that is expected of new labels
        loss = -(chances[new] * np.log(probability) + (1 - chances[new]) * np.log1p(-probability))
        found |= {
            f"{how}, in 95 %": float((np.abs(below - 0.5) <= 0.475).mean()),
            f"{how}, log loss": float(loss.mean()),
        }
    return found


def one(job: tuple[str, str, int, int]) -> tuple[str, dict[str, Any]]:
    warnings.simplefilter("ignore")  # of optimisers
    kind, *arguments = job
    return kind, (regression if kind == "regression" else classification)(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=2)
    parser.add_argument("--rows", type=int, default=25)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    jobs = [
        (kind, name, n, seed)
        for kind, n in (("regression", options.rows), ("classification", LABELLED + NEW))
        for name in functions()
        for seed in range(options.sets)
    ]
    found: dict[str, list[dict[str, Any]]] = {"regression": [], "classification": []}
    with get_context("spawn").Pool(options.workers) as pool:
        for kind, result in pool.imap_unordered(one, jobs):
            found[kind].append(result)
    summary = {}
    for kind, results in found.items():
        keys = [key for key in max(results, key=len) if key not in ("function", "seed")]
        means = {key: float(np.mean([r[key] for r in results if key in r])) for key in keys}
        summary[kind] = {"sets": len(results)} | {k: round(v, 4) for k, v in means.items()}
    RESULTS.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(RESULTS.read_text("utf-8"))


if __name__ == "__main__":
    main()
