"""Models with their exact plug-in Sobol indices, for `compare_dependence.py`.

Indices come from integrals over each feature by Gauss–Legendre rules of many nodes, in extended
precision, by no code of gpattr's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.stats import qmc

NODES = 60  # of a rule for one feature; twice as many do not change the indices
LONG = np.longdouble


@dataclass(frozen=True)
class Case:
    """A BoTorch model on a box, and the indices of its posterior mean: ``truth`` (d, 2).

    ``accuracy`` is what the reference is known to, ``words`` describes the model.
    """

    model: Any
    low: np.ndarray
    high: np.ndarray
    truth: np.ndarray
    accuracy: float
    words: str
    reference: str

    @property
    def d(self) -> int:
        return len(self.low)

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights α of the training points in the posterior mean."""
        Z, y = self.model.train_inputs[0].numpy(), self.model.train_targets.numpy()
        return refined_solve(*_system(self.model, Z, y)).astype(np.float64)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the posterior mean, without the covariances that GPyTorch computes with it."""
        lengths, variance, mean = _hyperparameters(self.model)
        Z = self.model.train_inputs[0].numpy()
        found = np.empty(len(X))
        for start in range(0, len(X), 1024):
            rows = slice(start, start + 1024)
            k = np.exp(-0.5 * cdist(X[rows] / lengths, Z / lengths, "sqeuclidean"))
            found[rows] = mean + variance * (k @ self.weights)
        return found


def _hyperparameters(model: Any) -> tuple[np.ndarray, float, float]:
    covariance = model.covar_module
    lengths = covariance.base_kernel.lengthscale.detach().numpy().ravel()
    return lengths, float(covariance.outputscale), float(model.mean_module.constant)


def _system(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of the targets and what they differ by from the prior mean."""
    lengths, variance, mean = _hyperparameters(model)
    noise = model.likelihood.noise.detach().numpy().ravel()
    K = variance * np.exp(-0.5 * (((X[:, None] - X[None]) / lengths) ** 2).sum(axis=2))
    return K + np.diag(noise), y - mean


def _predict(model: Any, X: np.ndarray) -> np.ndarray:
    import torch

    with torch.no_grad():
        means = [model.posterior(rows).mean[:, 0] for rows in torch.tensor(X).split(4096)]
    return torch.cat(means).numpy()


def ishigami(X: np.ndarray) -> np.ndarray:
    one, two, three = X.T
    return np.sin(one) + 7.0 * np.sin(two) ** 2 + 0.1 * three**4 * np.sin(one)


def _ishigami_indices() -> np.ndarray:
    """The known indices (3, 2) of the Ishigami function."""
    one, two = 0.5 * (1.0 + 0.1 * np.pi**4 / 5.0) ** 2, 49.0 / 8.0
    both = 0.01 * np.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)
    return np.array([[one, one + both], [two, two], [0.0, both]]) / (one + two + both)


ISHIGAMI = _ishigami_indices()


def ishigami_case() -> Case:
    low, high = np.full(3, -np.pi), np.full(3, np.pi)
    name = "A BoTorch `SingleTaskGP` of the Ishigami function, 200 points, 3 uniform features."
    return _case(ishigami, low, high, np.array([1.6, 1.2, 2.0]), name, grid=True)


def borehole_case() -> Case:
    low = np.array([0.05, 100.0, 63070.0, 990.0, 63.1, 700.0, 1120.0, 9855.0])
    high = np.array([0.15, 50000.0, 115600.0, 1110.0, 116.0, 820.0, 1680.0, 12045.0])

    def borehole(X: np.ndarray) -> np.ndarray:
        rw, r, Tu, Hu, Tl, Hl, length, Kw = X.T
        ratio = np.log(r / rw)
        below = ratio * (1.0 + 2.0 * length * Tu / (ratio * rw**2 * Kw) + Tu / Tl)
        return 2.0 * np.pi * Tu * (Hu - Hl) / below

    name = "A BoTorch `SingleTaskGP` of the borehole function, 200 points, 8 uniform features."
    return _case(borehole, low, high, (high - low) * 1.5, name, grid=False)


def _case(
    function: Any, low: np.ndarray, high: np.ndarray, scales: np.ndarray, name: str, grid: bool
) -> Case:
    import torch
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import RBFKernel, ScaleKernel

    d = len(low)
    X = low + (high - low) * qmc.Sobol(d, seed=0).random(256)[:200]
    y = function(X)
    y = (y - y.mean()) / y.std()
    kernel = ScaleKernel(RBFKernel(ard_num_dims=d)).double()
    kernel.base_kernel.lengthscale = torch.tensor(scales)
    kernel.outputscale = 4.0
    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(y)[:, None],
        torch.full((200, 1), 1e-4, dtype=torch.double),
        covar_module=kernel,
        outcome_transform=None,
    ).double()
    model.eval()
    words = f"{name[:-1]}, squared exponential, noise variance 1e-4, given hyperparameters."
    truth = indices_of_products(model, X, y, low, high)
    if not grid:
        said = "found from integrals over each feature by 60-point rules, in extended precision"
        apart = _convergence(model, X, y, low, high, truth)
        return Case(model, low, high, truth, apart, words, said)
    own = indices_on_grid(model, low, high)
    apart = float(np.abs(own - truth).max())
    said = (
        "found from integrals over each feature by 60-point rules, in extended precision; it agrees"
        f" with BoTorch's own predictions on a grid of 40³ Gauss–Legendre nodes to {apart:.0e}"
    )
    return Case(model, low, high, truth, _convergence(model, X, y, low, high, truth), words, said)


def _convergence(model: Any, X: Any, y: Any, low: Any, high: Any, truth: np.ndarray) -> float:
    """What twice the nodes change, and not less than the rounding of float64."""
    finer = indices_of_products(model, X, y, low, high, 2 * NODES)
    return max(float(np.abs(finer - truth).max()), 1e-15)


def rule(low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    t, w = np.polynomial.legendre.leggauss(n)
    return low + 0.5 * (high - low) * (t + 1.0), 0.5 * w


def indices_of_products(
    model: Any, X: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray, n: int = NODES
) -> np.ndarray:
    """Return first-order and total indices (d, 2) of a squared exponential's posterior mean."""
    lengths, variance, _ = _hyperparameters(model)
    alpha = refined_solve(*_system(model, X, y)) * LONG(variance)
    M, m = [], []  # of each feature: ∫k(x, z)k(x, z′) and ∫k(x, z)
    for j in range(X.shape[1]):
        t, w = (part.astype(LONG) for part in rule(low[j], high[j], n))
        w = w / w.sum()
        k = np.exp(-0.5 * ((t[:, None] - X[None, :, j]) / LONG(lengths[j])) ** 2)
        M.append((k * w[:, None]).T @ k)
        m.append(w @ k)

    def squared(free: set[int]) -> Any:
        Q = np.ones_like(M[0])
        for j in range(len(M)):
            Q = Q * (M[j] if j in free else np.outer(m[j], m[j]))
        return alpha @ Q @ alpha

    every = set(range(len(M)))
    least = squared(set())
    V = squared(every) - least
    first = [(squared({j}) - least) / V for j in every]
    total = [1 - (squared(every - {j}) - least) / V for j in every]
    return np.array([first, total], dtype=np.float64).T


def refined_solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A⁻¹b, refined with residuals in extended precision."""
    factor = cho_factor(A)
    x = cho_solve(factor, b).astype(LONG)
    for _ in range(5):
        residual = b - A.astype(LONG) @ x
        x = x + cho_solve(factor, residual.astype(np.float64))
    return x


def tensor_grid(low: np.ndarray, high: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the points (n³, 3) of a grid, and the weights (n,) of each side."""
    nodes = [rule(a, b, n)[0] for a, b in zip(low, high, strict=True)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*nodes, indexing="ij")], axis=1)
    return points, rule(0.0, 1.0, n)[1]


def indices_from_values(F: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return indices (3, 2) of a function with the values F (n, n, n) on a grid."""
    F = F - np.einsum("ijk,i,j,k->", F, w, w, w)
    V = np.einsum("ijk,i,j,k->", F**2, w, w, w)
    found = []
    for j in range(3):
        G = np.moveaxis(F, j, 0)
        alone = np.einsum("ijk,j,k->i", G, w, w)
        others = np.einsum("ijk,i->jk", G, w)
        rest = np.einsum("jk,j,k->", others**2, w, w)
        found.append([w @ alone**2 / V, 1.0 - rest / V])
    return np.array(found)


def indices_on_grid(model: Any, low: np.ndarray, high: np.ndarray, n: int = 40) -> np.ndarray:
    points, w = tensor_grid(low, high, n)
    return indices_from_values(_predict(model, points).reshape(n, n, n), w)


def posterior_truth(case: Case, n: int = 14, draws: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and standard deviations of indices, each (3, 2), from draws."""
    import torch

    points, w = tensor_grid(case.low, case.high, n)
    with torch.no_grad():
        joint = case.model.posterior(torch.tensor(points))
        mean = joint.mean[:, 0].numpy()
        cov = joint.distribution.covariance_matrix.numpy()
    values, vectors = np.linalg.eigh(cov)
    kept = values > 1e-12 * values.max()
    root = vectors[:, kept] * np.sqrt(values[kept])
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        f = mean + root @ rng.normal(size=root.shape[1])
        found.append(indices_from_values(f.reshape(n, n, n), w))
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
