"""Posterior attributions by dense quadrature and many digits: slow, simple, and blind to how the
library cuts its panels.

Integrals are tanh–sinh rules between the points where some part of a kernel has distance zero,
whose nodes crowd towards both ends; linear algebra has 40 digits. Only values and derivatives of
kernels come from the library."""

from __future__ import annotations

from functools import lru_cache

import mpmath as mp
import numpy as np

from gpattr.closed_forms.derivatives import differentiate
from gpattr.operators import IntegratedGradients
from gpattr.special.quadrature import gauss_legendre


@lru_cache
def tanh_sinh(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1]; nodes near 0 keep their relative precision."""
    h = 7.4 / n
    y = h * np.arange(-(n // 2), n // 2 + 1)
    s = np.pi * np.sinh(y)
    return 1.0 / (1.0 + np.exp(-s)), h * np.pi * np.cosh(y) / (2.0 + np.exp(s) + np.exp(-s))


def passing_places(kernel, p, e):
    """The t at which the path e + t p comes nearest to a kink."""
    places = []
    for kink in kernel.kinks():
        columns = list(range(len(p))) if kink.features is None else list(kink.features)
        u, v = p[columns] / kink.lengthscale, e[columns] / kink.lengthscale
        if u @ u > 0:
            places.append(float(np.clip(-(u @ v) / (u @ u), 0.0, 1.0)))
    return places


def settled(function, *args):
    """The value of ``function(*args, panels)`` once twice as many panels change nothing."""
    panels, coarse = 4, function(*args, 4)
    while panels < 64:
        panels *= 2
        fine = function(*args, panels)
        if np.abs(fine - coarse).max() <= 1e-12 * np.abs(fine).max() + 1e-300:
            return fine
        coarse = fine
    return coarse * np.nan


def cross(kernel, b, x, z, panels, n=160):
    """(xᵢ − bᵢ) ∫∂ᵢk(b + t(x − b), z) dt, (d,)."""
    edges = np.unique(
        np.concatenate([np.linspace(0.0, 1.0, panels + 1), passing_places(kernel, x - b, b - z)])
    )
    t, w = tanh_sinh(n)
    total = np.zeros(len(x))
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        at = low + (high - low) * t
        total += (high - low) * (w @ differentiate(kernel, b + at[:, None] * (x - b), z[None]).left)
    return total * (x - b)


def auto(kernel, b, x, panels, n=140):
    """∫∫ ∂∂'k along one path, (d, d): M + Mᵀ, M over s > t in u = s − t and τ = t/(1 − u)."""
    (u, wu), (tau, w) = tanh_sinh(n), gauss_legendre(20, panels)
    grid = np.linspace(0.0, 1.0, panels + 1)
    total = np.zeros((len(x), len(x)))
    for low, high in zip(grid[:-1], grid[1:], strict=True):
        s = low + (high - low) * u
        t = (1.0 - s)[:, None] * tau
        X, Y = b + (t + s[:, None])[..., None] * (x - b), b + t[..., None] * (x - b)
        mixed = differentiate(kernel, X, Y, True).mixed
        total += np.einsum("ut,utij->ij", (high - low) * (wu * (1.0 - s))[:, None] * w, mixed)
    return (total + total.T) * np.outer(x - b, x - b)


def posterior(model, operator: IntegratedGradients, X):
    """Mean (n, d) and covariance (n, d, d) of the attributions of an exact posterior from one
    baseline each.
    """
    kernel, Z, n = model.kernel, model.inputs, len(X)
    A = mp.matrix((kernel(Z, Z) + np.diag(model.noise)).tolist())
    weights = mp.inverse(A)
    alpha = weights * mp.matrix((model.y - model.mean(Z)).tolist())
    means, covs = [], []
    for k in range(n):
        b = operator.points[k if operator.per_row else 0]
        C = mp.matrix(np.array([settled(cross, kernel, b, X[k], z) for z in Z]).T.tolist())
        means.append([float(v) for v in C * alpha])
        explained = C * weights * C.T
        covs.append(settled(auto, kernel, b, X[k]) - np.array(explained.tolist(), dtype=float))
    return np.array(means), np.array(covs)
