"""Shapley values of exact posteriors by enumeration in extended precision, for many rows at once.

Kernels, the Cholesky factor and all sums are in `numpy.longdouble` (64 bits of mantissa where the
machine has them), from the floats that the posterior was given.
"""

from __future__ import annotations

from math import comb

import numpy as np
from tests.reference import coalitions

from gpattr import kernels as k

LONG = np.longdouble
PI = LONG("3.14159265358979323846264338327950288")


def long(x):
    return np.asarray(x, dtype=LONG)


def value(kernel, x, z):
    """k(x, z) for x (n, 1, d) and z (1, m, d), (n, m), as the kernel's docstring defines it."""
    difference = x - z
    if isinstance(kernel, k.Product):
        parts = [value(part, x, z) for part in kernel.kernels]
        return np.prod(parts, axis=0)
    if isinstance(kernel, k.Select):
        columns = list(kernel.features)
        return value(kernel.kernel, x[..., columns], z[..., columns])
    if isinstance(kernel, k.Linear):
        return (long(kernel.variance) * x * z).sum(axis=-1)
    if isinstance(kernel, k.Polynomial):
        inner = (long(kernel.variance) * x * z).sum(axis=-1)
        return (inner + long(kernel.offset)) ** kernel.degree
    if isinstance(kernel, k.FullAdditive):  # orders of elementary symmetric polynomials
        orders = [LONG(1)] + [LONG(0)] * len(kernel.order_variances)
        for i, base in enumerate(kernel.bases):
            one = value(base, x[..., [i]], z[..., [i]])
            shifted = [one * order for order in orders[:-1]]
            orders = [orders[0]] + [a + b for a, b in zip(orders[1:], shifted)]
        return sum(long(v) * order for v, order in zip(kernel.order_variances, orders[1:]))
    variance = long(kernel.variance)
    if isinstance(kernel, k.Cosine):
        return variance * np.cos(2 * PI * (difference / long(kernel.period)).sum(axis=-1))
    if isinstance(kernel, k.Periodic):
        turns = np.sin(PI * difference / long(kernel.period)) / long(kernel.lengthscale)
        return variance * np.exp(-2 * (turns * turns).sum(axis=-1))
    scaled = difference / long(kernel.lengthscale)
    r2 = (scaled * scaled).sum(axis=-1)
    if isinstance(kernel, k.SquaredExponential):
        return variance * np.exp(-r2 / 2)
    if isinstance(kernel, k.RationalQuadratic):
        return variance * np.exp(-long(kernel.alpha) * np.log1p(r2 / (2 * long(kernel.alpha))))
    s = np.sqrt(2 * LONG(kernel.nu) * r2)
    profile = {0.5: 1 + 0 * s, 1.5: 1 + s, 2.5: 1 + s + s * s / 3}[kernel.nu]
    return variance * profile * np.exp(-s)


def sensitivity(kernel, x, z):
    """Return what multiplies rounding: the exponents of an exponential, the phases of a wave."""
    if isinstance(kernel, k.Periodic | k.Cosine):
        inner = 2 / long(kernel.lengthscale) ** 2 if isinstance(kernel, k.Periodic) else 1
        return (2 * PI * inner * abs(x - z) / long(kernel.period)).sum(axis=-1)
    return abs(np.log(np.maximum(abs(value(kernel, x, z)), LONG("1e-4900"))))


def solve(A, y):
    """A⁻¹y by a Cholesky factor, column by column."""
    n, L, a = len(A), np.zeros_like(A), np.array(y)
    for j in range(n):
        L[j, j] = np.sqrt(A[j, j] - L[j, :j] @ L[j, :j])
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    for i in range(n):
        a[i] = (a[i] - L[i, :i] @ a[:i]) / L[i, i]
    for i in reversed(range(n)):
        a[i] = (a[i] - L[i + 1 :, i] @ a[i + 1 :]) / L[i, i]
    return a


def means(kernel, Z, y, noise, X, baselines):
    """Return φ (n, d) of the posterior mean at rows X, each with a baseline of its own, (n, d).

    What enumeration itself may be off by, (n,), comes with it: differences of nearly equal values
    have the rounding of these.
    """
    Z, X, baselines = long(Z), long(X), long(baselines)
    A = value(kernel, Z[:, None], Z[None]) + long(noise) * np.eye(len(Z), dtype=LONG)
    alpha = solve(A, long(y))
    n, d = X.shape
    inside = coalitions.members(d)
    corners = np.where(inside, X[:, None], baselines[:, None]).reshape(-1, 1, d)
    terms = value(kernel, corners, Z[None]) * alpha
    f = terms.sum(axis=1).reshape(n, 2**d)
    sizes = abs(terms) * (8 + sensitivity(kernel, corners, Z[None]))
    rounding = np.finfo(LONG).eps * sizes.sum(axis=1).reshape(n, 2**d).max(axis=1)
    size = inside.sum(axis=1)
    result = np.zeros((n, d), dtype=LONG)
    for i in range(d):
        without = np.flatnonzero(~inside[:, i])
        for S in without:
            # |S|!(d − |S| − 1)!/d! = 1/(d C(d − 1, |S|)): divided by a whole number
            result[:, i] += (f[:, S | 1 << i] - f[:, S]) / LONG(d * comb(d - 1, int(size[S])))
    return result, rounding


def covariances(kernel, Z, noise, X, baselines):
    """Return the posterior covariances of φ at rows X with baselines of their own, (n, d, d)."""
    Z, X, baselines = long(Z), long(X), long(baselines)
    A = value(kernel, Z[:, None], Z[None]) + long(noise) * np.eye(len(Z), dtype=LONG)
    d = X.shape[1]
    inside, result = coalitions.members(d), []
    size = inside.sum(axis=1)
    joined = [LONG(1) / LONG(d * comb(d - 1, max(int(s) - 1, 0))) for s in size]
    left = [LONG(1) / LONG(d * comb(d - 1, min(int(s), d - 1))) for s in size]
    weights = np.where(inside.T, joined, -np.array(left))
    for x, b in zip(X, baselines):
        corners = np.where(inside, x, b)
        K, C = (value(kernel, corners[:, None], other[None]) for other in (corners, Z))
        result.append(weights @ (K - C @ solve(A, C.T)) @ weights.T)
    return np.array(result)
