"""Random models: kernels, data and rows, from the ordinary to the hostile."""

from __future__ import annotations

import numpy as np

from gpattr import Baselines
from gpattr import kernels as k
from gpattr.posteriors import ExactPosterior


def bump(X):
    return np.exp(-(X[:, 0] ** 2) / 8)


def bump_gradient(X):
    return np.column_stack([-X[:, 0] / 4 * bump(X), *[np.zeros(len(X))] * (X.shape[1] - 1)])


def waves(frequency):
    """φ(x) = (sin(w x₀) − sin(w x₋₁), Σx): constant along paths on which both columns are equal."""

    def phi(X):
        return np.column_stack(
            [np.sin(frequency * X[:, 0]) - np.sin(frequency * X[:, -1]), X.sum(axis=1)]
        )

    def jacobian(X):
        J = np.zeros((len(X), 2, X.shape[1]))
        J[:, 0, 0] += frequency * np.cos(frequency * X[:, 0])
        J[:, 0, -1] -= frequency * np.cos(frequency * X[:, -1])
        J[:, 1] = 1.0
        return J

    return phi, jacobian


def leaf(rng, d):
    scale = 10.0 ** rng.uniform(-0.7, 1.3, size=d if rng.random() < 0.5 else None)
    variance = float(10.0 ** rng.uniform(-2, 2))
    match rng.integers(9):
        case 0:
            return k.SquaredExponential(scale, variance)
        case 1:
            return k.Matern32(scale, variance)
        case 2:
            return k.Matern52(scale, variance)
        case 3 | 4:
            return k.Matern(
                scale,
                variance,
                nu=float(rng.choice([1.05, 1.2, 1.4, 1.7, 2.0, 2.2, 3.0, 3.5, 7.3, 20.0])),
            )
        case 5:
            return k.RationalQuadratic(scale, variance, alpha=float(10.0 ** rng.uniform(-1, 4)))
        case 6:
            return k.Periodic(scale, period=float(10.0 ** rng.uniform(0, 1)), variance=variance)
        case 7:
            return k.Linear(variance)
        case _:
            return k.Polynomial(
                variance, degree=int(rng.integers(2, 4)), offset=float(rng.uniform(0, 2))
            )


def kernel(rng, d, depth=2):
    if depth == 0 or rng.random() < 0.25:
        if d > 1 and rng.random() < 0.4:
            some = sorted(rng.choice(d, size=rng.integers(1, d), replace=False).tolist())
            return k.Select(leaf(rng, len(some)), some)
        return leaf(rng, d)
    match rng.integers(8):
        case 0 | 1:
            return k.Sum(kernel(rng, d, depth - 1), kernel(rng, d, depth - 1))
        case 2 | 3 | 4:
            return k.Product(kernel(rng, d, depth - 1), kernel(rng, d, depth - 1))
        case 5:
            return k.Rescaled(kernel(rng, d, depth - 1), bump, bump_gradient)
        case 6:
            return k.Warped(leaf(rng, 2), *waves(float(rng.choice([0.7, 3.0, 12.0, 60.0]))))
        case _:
            orders = rng.uniform(0.1, 2.0, size=min(d, 2))
            return k.FullAdditive([leaf(rng, 1) for _ in range(d)], orders)


def data(rng, d):
    """Training inputs and rows to explain: spread, clustered, repeated, on a grid, beside columns
    that are equal.
    """
    m = int(rng.integers(2, 14))
    X = rng.normal(size=(m, d))
    match rng.integers(5):
        case 0:
            X = np.round(X)
        case 1:
            X[:, -1] = X[:, 0]
        case 2:
            X[m // 2 :] = X[: m - m // 2]
        case 3:
            X = X * 0.01 + 5.0
    rows = np.concatenate(
        [rng.normal(size=(1, d)) * 2.0, X[:1], X.mean(axis=0) + 1e-7 * rng.normal(size=(1, d))]
    )
    if rng.random() < 0.3:
        rows[:, -1] = rows[:, 0]
    return X, rows[rng.permutation(3)[: rng.integers(1, 4)]]


def exact_model(seed):
    """A posterior, rows, and a baseline."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 1, 2, 2, 3, 4]))
    X, rows = data(rng, d)
    y = np.sin(X[:, 0]) + rng.normal(size=len(X))
    prior = kernel(rng, d)
    noise = float(10.0 ** rng.uniform(-6, 0)) * float(prior.diagonal(X).mean() + 1e-12)
    baseline = ("mean", "zeros", X[0], rng.normal(size=d))[rng.integers(4)]
    return ExactPosterior(prior, X, y, noise=noise), rows, baseline, rng


def background(rng, d):
    return Baselines(rng.normal(size=(3, d)), [0.5, 0.3, 0.2])
