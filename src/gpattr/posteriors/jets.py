"""Jets: the value and the gradient of a function together, which a link needs along a path.

A draw of a probability needs less than the gradient: the value at the start of each path, and what
each feature adds to the function on each panel of the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpattr._core.array import Array, namespace, product, solve_upper, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.gradient import gradient_sums
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
    """Terms of an uncertain trend in the variance and its slope, and in the weights of ∂k."""

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


def increments(
    posterior: FunctionSpacePosterior,
    start: Array,
    stop: Array,
    gathering: Array | None,
    nodes: np.ndarray,
    weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of f(b) and of each feature's increments on K panels of a path.

    The moments are of J straight paths together, for each of r rows, from ``start`` to ``stop``,
    both (r, J, d). There are as many ``nodes`` (K,) as panels; s of them in a row serve s panels,
    by their ``weights`` (s, s):

        hₖᵢ = Σₜ Pₖₜ (xᵢ − bᵢ) ∂ᵢf(γ(t)),

    added up by ``gathering`` (d, G) over the columns of each feature. The mean is
    (r, J, 1 + KG), the covariance (r, J(1 + KG), J(1 + KG)).
    """
    (r, J, d), K, xp = start.shape, len(nodes), namespace(posterior.inputs)
    start = posterior.rows("X", start.reshape(-1, d)).reshape(r, J, 1, d)
    stop = posterior.rows("X", stop.reshape(-1, d)).reshape(r, J, 1, d)
    t, step = xp.asarray(nodes)[:, None], stop - start
    points = xp.where(t < 0.5, start + t * step, stop - (1.0 - t) * step)
    flat, first = points.reshape(-1, d), start.reshape(-1, d)
    posterior.check_range(flat)
    posterior.check_range(first)
    # From s nodes' ∂ᵢf to s panels' hₖᵢ, (sG, sd): one small matrix serves all rows.
    S = xp.asarray(np.kron(weights, np.eye(d) if gathering is None else to_numpy(gathering).T))
    G = S.shape[0] // len(weights)
    inputs, m, q = posterior.inputs, len(posterior.inputs), 1 + K * G
    slopes = differentiate(posterior.kernel, flat[:, None, :], inputs).left.reshape(r, J, K, m, d)
    moved = xp.swapaxes(slopes * step[:, :, :, None], 3, 4).reshape(r, J, K * d, m)
    cross = xp.empty((r, J, q, m))
    cross[:, :, 0] = posterior.kernel(first, inputs).reshape(r, J, m)
    cross[:, :, 1:] = _summed(S, moved)
    slope = apply_to_mean(Gradient(), posterior.mean, flat).value.reshape(r, J, K, d) * step
    mean = product(cross.reshape(-1, m), posterior.alpha).reshape(r, J, q)
    mean[:, :, 0] += posterior.mean(first).reshape(r, J)
    mean[:, :, 1:] += _summed(S, slope.reshape(r, J, K * d, 1))[:, :, :, 0]
    V = posterior.solve(cross.reshape(-1, m)).reshape(r, J * q, m)
    prior = _prior_increments(posterior, start, points, step, S).reshape(r, J * q, J * q)
    return to_numpy(mean), to_numpy(prior - posterior.explained(V))


def _summed(S: Array, values: Array) -> Array:
    """Return the increments (…, KG, N) of values (…, Kd, N) at the nodes of all panels."""
    *shape, length, N = values.shape
    parts = S @ values.reshape(*shape, length // S.shape[1], S.shape[1], N)
    return parts.reshape(*shape, -1, N)


def _prior_increments(
    posterior: FunctionSpacePosterior, start: Array, points: Array, step: Array, S: Array
) -> Array:
    """Return the prior's covariance of `increments`, (r, J, 1 + KG, J, 1 + KG)."""
    (r, J, K, d), xp = points.shape, namespace(points)
    kernel, away = posterior.kernel, points[:, :, :, None, None]
    jet = differentiate(kernel, away, points[:, None, None], True)
    moves = step[:, :, :, :, None, None, None] * step[:, None, None, None]  # (r, J, 1, d, J, 1, d)
    mixed = (xp.moveaxis(jet.mixed, 5, 3) * moves).reshape(r, J, K * d, J * K * d)
    mixed = _summed(S, mixed)
    KG = mixed.shape[2]
    beside = differentiate(kernel, away[:, :, :, :, 0], start[:, None, None, :, 0]).left
    beside = xp.swapaxes(beside * step[:, :, :, None], 3, 4).reshape(r, J, K * d, J)
    block = xp.empty((r, J, 1 + KG, J, 1 + KG))
    block[:, :, 0, :, 0] = differentiate(kernel, start, start[:, None, :, 0]).value
    block[:, :, 1:, :, 1:] = (mixed.reshape(-1, S.shape[1]) @ S.T).reshape(r, J, KG, J, KG)
    block[:, :, 1:, :, 0] = _summed(S, beside)
    block[:, :, 0, :, 1:] = xp.moveaxis(block[:, :, 1:, :, 0], 3, 1)
    return block
