"""Jets: the value and the gradient of a function together, which a link needs along a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpattr._core.array import Array, namespace, product, solve_upper, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.gradient_sums import gradient_sums
from gpattr.closed_forms.resolution import basis_formulas_for
from gpattr.closed_forms.verbs import apply_to_mean, weighted_images
from gpattr.operators import Gradient

if TYPE_CHECKING:
    from gpattr.posteriors.function_space import FunctionSpacePosterior


def slopes(posterior: FunctionSpacePosterior, X: Array) -> tuple[np.ndarray, ...]:
    """Return at rows X, (n, d): E[f] and Var[f], (n,), E[∂ᵢf] and Cov[f, ∂ᵢf], (n, d).

    The gradients of mean and variance are sums of the kernel's, weighted with α and with

        A⁻¹k(Z, x) + WC R(x)     (W and C of an uncertain trend, if there is one)

    and so two solves and one matrix product serve all rows.
    """
    X = posterior.rows("X", X)
    posterior.check_range(X)
    (n, d), m, xp = X.shape, len(posterior.inputs), namespace(X)
    mean, var, gradient, cov = xp.empty(n), xp.empty(n), xp.empty((n, d)), xp.empty((n, d))
    for rows in blocks(n, 96.0 * m, X):
        x = X[rows]
        k = posterior.kernel(x, posterior.inputs)
        mean[rows] = posterior.mean(x) + product(k, posterior.alpha)
        trend = _trend_slopes(posterior, x, k)
        T = posterior.solve(k)
        explained = posterior.explained(T[:, None, :])[:, 0, 0]
        var[rows] = posterior.kernel.diagonal(x) - explained
        if posterior.root is not None:
            T = T - product(product(T, posterior.root), posterior.root.T)
        weights = xp.empty((2, *T.shape))
        weights[0], weights[1] = posterior.alpha, solve_upper(posterior.factor, T.T).T
        if posterior.column_scale is not None:
            weights[1] *= posterior.column_scale
        cov[rows] = differentiate(posterior.kernel, x, x).left
        if trend is not None:
            var[rows] += trend.variance
            cov[rows] += trend.slope
            weights[1] += trend.weights
        sums = gradient_sums(posterior.kernel, x, posterior.inputs, weights)
        gradient[rows] = apply_to_mean(Gradient(), posterior.mean, x).value + sums[0]
        cov[rows] -= sums[1]
    return to_numpy(mean), to_numpy(xp.maximum(var, 0.0)), to_numpy(gradient), to_numpy(cov)


class _TrendSlopes(NamedTuple):
    """What an uncertain trend adds to the variance and its slope, and to the weights of ∂k."""

    variance: Array
    slope: Array
    weights: Array


def _trend_slopes(posterior: FunctionSpacePosterior, x: Array, k: Array) -> _TrendSlopes | None:
    """Return R C Rᵀ, (n,), ∂φ C Rᵀ, (n, d), and R C Wᵀ, (n, m), for R = φ(x) − kW."""
    trend = posterior.trend
    if trend is None:
        return None
    residual = trend.residual(trend.basis(x), k)
    shares = product(residual, trend.root.T)
    formulas = basis_formulas_for(Gradient(), trend.basis)
    images = weighted_images(formulas, Gradient(), x, len(trend.basis))  # (n, d, p)
    slope = (images @ shares[:, :, None])[:, :, 0]
    return _TrendSlopes((residual**2).sum(axis=1), slope, product(shares, trend.weights.T))


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
