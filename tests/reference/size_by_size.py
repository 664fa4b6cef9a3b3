"""Shapley values of product kernels with 50 digits, coalitions grouped by their size.

Of f = ∏ⱼ fⱼ the coalitions of one size add up to a coefficient of ∏ⱼ (vⱼ + uⱼ y), so the definition
is

    φᵢ = (uᵢ − vᵢ) Σₖ k!(d − 1 − k)!/d! [yᵏ] ∏_{j≠i} (vⱼ + uⱼ y),

and the covariance of two values, with four corners for each factor, has a coefficient of yᵏ y'ˡ.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

mp.mp.dps = 50


def exactly(x):
    """Return an array of floats as one of numbers with 50 digits."""
    return np.vectorize(lambda v: mp.mpf(float(v)), otypes=[object])(np.asarray(x, dtype=float))


def squared_exponential(x, z, lengthscale):
    """Return the factors exp(−½((x − z)/ℓ)²) of each feature."""
    scaled = (exactly(x) - exactly(z)) / exactly(lengthscale)
    return np.vectorize(lambda v: mp.exp(-v * v / 2), otypes=[object])(scaled)


def shares(d):
    """k!(d − 1 − k)!/d! for k = 0 … d − 1."""
    return np.array([1 / (mp.mpf(d) * mp.binomial(d - 1, k)) for k in range(d)], dtype=object)


def values(u, v):
    """Return φ (d,) of a product with the factors u at the row and v at the baseline.

    The product of all factors before i, coefficient by coefficient, meets the sum over sizes with
    all factors after i taken in: O(d²) for all i, and nothing is subtracted.
    """
    d, nothing = len(u), np.array([mp.mpf(0)], dtype=object)
    before, after = [np.array([mp.mpf(1)] + [mp.mpf(0)] * (d - 1), dtype=object)], [shares(d)]
    for i in range(d - 1):
        shifted = np.concatenate([nothing, before[-1][:-1]])
        before.append(v[i] * before[-1] + u[i] * shifted)
        last = d - 1 - i
        after.append(v[last] * after[-1] + u[last] * np.concatenate([after[-1][1:], nothing]))
    sums = [mp.fsum(before[i] * after[d - 1 - i]) for i in range(d)]
    return (u - v) * np.array(sums, dtype=object)


def covariance(xx, xb, bx, bb, i, j):
    """Return Cov[φᵢ, φⱼ'] from the factors k(x, x'), k(x, b'), k(b, x') and k(b, b'), (d,) each."""
    d = len(xx)
    table = np.full((d, d), mp.mpf(0), dtype=object)
    table[0, 0] = mp.mpf(1)

    def times(table, both, left, right, none):
        """Multiply by none + left y + right y' + both y y'."""
        result = none * table
        result[1:] = result[1:] + left * table[:-1]
        result[:, 1:] = result[:, 1:] + right * table[:, :-1]
        result[1:, 1:] = result[1:, 1:] + both * table[:-1, :-1]
        return result

    zero = mp.mpf(0)
    for k in range(d):
        if k not in (i, j):
            table = times(table, xx[k], xb[k], bx[k], bb[k])
    if i == j:
        table = (xx[i] - xb[i] - bx[i] + bb[i]) * table
    else:  # player i joins the first coalition, and may be in the second; j the other way round
        table = times(table, zero, zero, xx[i] - bx[i], xb[i] - bb[i])
        table = times(table, zero, xx[j] - xb[j], zero, bx[j] - bb[j])
    return mp.fsum((np.outer(shares(d), shares(d)) * table).ravel())
