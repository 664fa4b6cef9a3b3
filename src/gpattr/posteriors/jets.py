"""Jets: the value and the gradient of a function together, which a link needs along a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.array import Array, namespace, product, solve_upper, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.verbs import apply_to_mean
from gpattr.operators import Gradient

if TYPE_CHECKING:
    from gpattr.posteriors.function_space import FunctionSpacePosterior


def slopes(posterior: FunctionSpacePosterior, X: Array) -> tuple[np.ndarray, ...]:
    """Return at rows X, (n, d): E[f] and Var[f], (n,), E[∂ᵢf] and Cov[f, ∂ᵢf], (n, d)."""
    X = posterior.rows("X", X)
    posterior.check_range(X)
    (n, d), m, xp = X.shape, len(posterior.inputs), namespace(X)
    mean, var, gradient, cov = xp.empty(n), xp.empty(n), xp.empty((n, d)), xp.empty((n, d))
    for rows in blocks(n, 40.0 * m * (d + 2), X):
        x = X[rows]
        cross = differentiate(posterior.kernel, x[:, None, :], posterior.inputs)
        T = posterior.solve(cross.value + 0.0)
        mean[rows] = posterior.mean(x) + product(cross.value, posterior.alpha)
        explained = posterior.explained(T[:, None, :])[:, 0, 0]
        var[rows] = posterior.kernel.diagonal(x) - explained
        gradient[rows] = apply_to_mean(Gradient(), posterior.mean, x).value
        gradient[rows] += product(xp.swapaxes(cross.left, 1, 2), posterior.alpha)
        if posterior.root is not None:
            T = T - product(product(T, posterior.root), posterior.root.T)
        weights = solve_upper(posterior.factor, T.T).T
        if posterior.column_scale is not None:
            weights = weights * posterior.column_scale
        prior = differentiate(posterior.kernel, x, x).left
        cov[rows] = prior - (cross.left * weights[:, :, None]).sum(axis=1)
    return to_numpy(mean), to_numpy(xp.maximum(var, 0.0)), to_numpy(gradient), to_numpy(cov)


def jets(posterior: FunctionSpacePosterior, X: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of (f, ∂₁f … ∂_df) at T points for each of r rows, X (r, T, d).

    They are (r, T, 1 + d) and (r, T(1 + d), T(1 + d)).
    """
    r, T, d = X.shape
    flat = posterior.rows("X", X.reshape(-1, d))
    posterior.check_range(flat)
    xp = namespace(flat)
    X = flat.reshape(r, T, d)
    left = differentiate(posterior.kernel, flat[:, None, :], posterior.inputs)
    # (rT, 1 + d, m)
    cross = xp.concatenate([left.value[:, None, :], xp.swapaxes(left.left, 1, 2)], axis=1)
    slope = apply_to_mean(Gradient(), posterior.mean, flat).value
    known = xp.concatenate([posterior.mean(flat)[:, None], slope], axis=1)
    mean = known + product(cross, posterior.alpha)
    prior = differentiate(posterior.kernel, X[:, :, None, :], X[:, None, :, :], True)
    cov = xp.empty((r, T, 1 + d, T, 1 + d))
    cov[:, :, 0, :, 0] = prior.value
    cov[:, :, 1:, :, 0] = xp.swapaxes(prior.left, 2, 3)
    cov[:, :, 0, :, 1:] = prior.right
    cov[:, :, 1:, :, 1:] = xp.swapaxes(prior.mixed, 2, 3)
    cov = cov.reshape(r, T * (1 + d), T * (1 + d))
    V = posterior.solve(cross.reshape(-1, cross.shape[2])).reshape(r, T * (1 + d), -1)
    return to_numpy(mean).reshape(r, T, 1 + d), to_numpy(cov - posterior.explained(V))
