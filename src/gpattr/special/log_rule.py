"""Gauss rules for the weight −ln s on [0, 1], which integrated Hessians carry."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gpattr._core.array import Array
from gpattr.special.quadrature import gauss_legendre, unit_rule

ORDER = 16  # nodes of a panel
OCTAVES = 70  # −ln s below 2⁻⁷⁰ has no weight in extended precision


@lru_cache(maxsize=64)
def log_rule(order: int) -> tuple[Array, Array]:
    """Return nodes and weights, (order,) each, of the Gauss rule for ∫₀¹ (−ln s) f(s) ds.

    Exact for polynomials of degree 2·order − 1. The arrays are shared and read-only.
    """
    x, w = _gauss(order)
    return _read_only(x.astype(np.float64), w.astype(np.float64))


@lru_cache(maxsize=256)
def log_panels(panels: int) -> tuple[Array, Array]:
    """Return a composite rule for ∫₀¹ (−ln s) f(s) ds, with ``panels`` panels of 16 nodes.

    On the first panel, [0, 1/n], −ln s = −ln(ns) + ln n: the Gauss rule for the logarithm, and ln n
    times Gauss–Legendre; elsewhere the logarithm is smooth.
    """
    first, weight = log_rule(ORDER)
    nodes, weights = gauss_legendre(ORDER, panels)
    own = np.where(nodes < 1.0 / panels, np.log(panels), -np.log(nodes)) * weights
    keep = own != 0.0  # a single panel has no second rule
    return _read_only(
        np.concatenate([first / panels, nodes[keep]]),
        np.concatenate([weight / panels, own[keep]]),
    )


@lru_cache(maxsize=8)
def interpolatory_weights(order: int) -> Array:
    """Return weights of ∫₀¹ (−ln s) f(s) ds at the Gauss–Legendre nodes of this order.

    Exact for polynomials of degree order − 1: those of Lagrange, in terms of Legendre polynomials.
    """
    x, w = unit_rule(order)
    s, v = _gauss(order)
    legendre, moments = (
        np.stack([_legendre(k, 2 * at - 1) for k in range(order)]) for at in (x, s)
    )
    weights = w * (((2 * np.arange(order) + 1)[:, None] * legendre).T @ (moments @ v))
    weights = weights.astype(np.float64)
    weights.flags.writeable = False
    return weights


def _gauss(order: int) -> tuple[Array, Array]:
    """Return the rule in extended precision, by the procedure of Stieltjes.

    Its inner products are taken on octaves [2⁻ᵏ⁻¹, 2⁻ᵏ], on which the logarithm is smooth.
    """
    unit, weight = unit_rule(40)
    size = np.longdouble(2.0) ** -np.arange(1, OCTAVES + 1)[:, None]
    s, w = (size * (1 + unit)).ravel(), (size * weight).ravel()
    w = -w * np.log(s)
    alpha, beta = np.zeros(order, np.longdouble), np.zeros(order, np.longdouble)
    previous, value = np.zeros_like(s), np.ones_like(s)
    norm = np.longdouble(1.0)
    for k in range(order):
        square = (w * value * value).sum()
        beta[k] = square / norm
        alpha[k] = (w * s * value * value).sum() / square
        shift = (s - alpha[k]) * value - (beta[k] if k else 0.0) * previous
        previous, value, norm = value, shift, square
    root = np.sqrt(beta[1:]).astype(np.float64)
    jacobi = np.diag(alpha.astype(np.float64)) + np.diag(root, 1) + np.diag(root, -1)
    x = np.linalg.eigvalsh(jacobi).astype(np.longdouble)
    for _ in range(3):  # Newton's method, from eigenvalues in double precision
        last, slope, _ = _orthogonal(alpha, beta, x)
        x = x - last / slope
    return x, 1 / _orthogonal(alpha, beta, x)[2]


def _orthogonal(alpha: Array, beta: Array, x: Array) -> tuple[Array, Array, Array]:
    """Return the polynomial of the last degree, its slope, and Σₖ pₖ²/‖pₖ‖² of the lower ones."""
    before, value = np.zeros_like(x), np.ones_like(x)
    slope_before, slope = np.zeros_like(x), np.zeros_like(x)
    total, norm = np.zeros_like(x), np.longdouble(1.0)
    for k in range(len(alpha)):
        norm = norm * beta[k]
        total += value * value / norm
        lower = beta[k] if k else np.longdouble(0.0)
        before, value, slope_before, slope = (
            value,
            (x - alpha[k]) * value - lower * before,
            slope,
            value + (x - alpha[k]) * slope - lower * slope_before,
        )
    return value, slope, total


def _legendre(degree: int, x: Array) -> Array:
    previous, value = np.ones_like(x), x
    if degree == 0:
        return previous
    for k in range(2, degree + 1):
        previous, value = value, ((2 * k - 1) * x * value - (k - 1) * previous) / k
    return value


def _read_only(nodes: Array, weights: Array) -> tuple[Array, Array]:
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
