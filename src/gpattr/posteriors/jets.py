"""The value and the gradient of a function together, as its posterior has them: what a link needs
along a path.
"""

from __future__ import annotations

import numpy as np

from gpattr import closed_forms
from gpattr._core.array import Array, namespace, product, solve_upper, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms import differentiate
from gpattr.operators import Gradient
from gpattr.posteriors.affine import AffinePosterior
from gpattr.posteriors.function_space import FunctionSpacePosterior


def slopes(posterior: FunctionSpacePosterior | AffinePosterior, X: Array) -> tuple[np.ndarray, ...]:
    """Return at rows X, (n, d): E[f] and Var[f], (n,), E[∂ᵢf] and Cov[f, ∂ᵢf], (n, d)."""
    if isinstance(posterior, AffinePosterior):
        mean, var, gradient, cov = slopes(posterior.posterior, posterior.inside(X))  # pyright: ignore[reportArgumentType]
        G = posterior.gathering(gradient)
        return mean, var, gradient @ G, cov @ G
    X = posterior._rows(X)
    (n, d), m, xp = X.shape, len(posterior.inputs), namespace(X)
    mean, var, gradient, cov = xp.empty(n), xp.empty(n), xp.empty((n, d)), xp.empty((n, d))
    for rows in blocks(n, 40.0 * m * (d + 2), X):
        x = X[rows]
        cross = differentiate(posterior.kernel, x[:, None, :], posterior.inputs)
        T = posterior._solve(cross.value + 0.0)
        mean[rows] = posterior.mean(x) + product(cross.value, posterior.alpha)
        var[rows] = posterior.kernel.diagonal(x) - posterior._explained(T[:, None, :])[:, 0, 0]
        gradient[rows] = closed_forms.attribute_mean(Gradient(), posterior.mean, x)[0]
        gradient[rows] += product(xp.swapaxes(cross.left, 1, 2), posterior.alpha)
        if posterior.root is not None:
            T = T - product(product(T, posterior.root), posterior.root.T)
        weights = solve_upper(posterior.factor, T.T).T
        if posterior.column_scale is not None:
            weights = weights * posterior.column_scale
        prior = differentiate(posterior.kernel, x, x).left
        cov[rows] = prior - (cross.left * weights[:, :, None]).sum(axis=1)
    return to_numpy(mean), to_numpy(xp.maximum(var, 0.0)), to_numpy(gradient), to_numpy(cov)


def jets(
    posterior: FunctionSpacePosterior | AffinePosterior, X: Array
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (r, T, 1 + d) and covariance (r, T(1 + d), T(1 + d)) of (f, ∂₁f … ∂_df) at T
    points for each of r rows.
    """
    r, T, d = X.shape
    if isinstance(posterior, AffinePosterior):
        U = posterior.inside(X.reshape(-1, d))
        mean, cov = jets(posterior.posterior, U.reshape(r, T, -1))  # pyright: ignore[reportArgumentType]
        G = np.zeros((mean.shape[2], 1 + d))
        G[0, 0], G[1:, 1:] = 1.0, posterior.gathering(mean)
        blocks_of = np.kron(np.eye(T), G)
        return mean @ G, blocks_of.T @ cov @ blocks_of
    flat = posterior._rows(X.reshape(-1, d))
    xp = namespace(flat)
    X = flat.reshape(r, T, d)
    left = differentiate(posterior.kernel, flat[:, None, :], posterior.inputs)
    cross = xp.concatenate(
        [left.value[:, None, :], xp.swapaxes(left.left, 1, 2)], axis=1
    )  # (rT, 1 + d, m)
    known = [
        posterior.mean(flat)[:, None],
        closed_forms.attribute_mean(Gradient(), posterior.mean, flat)[0],
    ]
    mean = xp.concatenate(known, axis=1) + product(cross, posterior.alpha)
    prior = differentiate(posterior.kernel, X[:, :, None, :], X[:, None, :, :], True)
    cov = xp.empty((r, T, 1 + d, T, 1 + d))
    cov[:, :, 0, :, 0] = prior.value
    cov[:, :, 1:, :, 0] = xp.swapaxes(prior.left, 2, 3)
    cov[:, :, 0, :, 1:] = prior.right
    cov[:, :, 1:, :, 1:] = xp.swapaxes(prior.mixed, 2, 3)
    cov = cov.reshape(r, T * (1 + d), T * (1 + d))
    V = posterior._solve(cross.reshape(-1, cross.shape[2])).reshape(r, T * (1 + d), -1)
    return to_numpy(mean).reshape(r, T, 1 + d), to_numpy(cov - posterior._explained(V))
