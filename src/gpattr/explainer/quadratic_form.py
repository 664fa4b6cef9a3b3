"""Variance over rows of a Gaussian function, a quadratic form: moments from a sample of the rows.

For A ~ N(μ, C) over n rows and H = I − 11ᵀ/n, the variance over rows is Q = AᵀHA/n, with

    E Q = (1 − 1/n)(mean Cᵢᵢ − mean of Cᵢⱼ, i ≠ j) + variance of μ over rows
    Var Q = (2/n²) tr(C H (C + 2μμᵀ) H)

Both are means over pairs, triples and quadruples of different rows, and are estimated without bias
by the same means over the rows of a simple random sample; of all rows they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array

FEWEST = 4  # rows of a sample: the estimate has means over quadruples


@dataclass(frozen=True)
class Quadratic:
    """Moments of the variances over n rows of d functions, from their covariance between s rows.

    ``between`` (d,) is the mean covariance of two different rows, ``variance`` (d,) that of Q.
    ``between_shares`` and ``shares`` (s, d) belong to single rows; their means are ``between`` and,
    but for terms of order 1/s, ``variance``. Twice their deviations from the mean are what the
    estimates change by, to first order, with the rows that happen to be in the sample. To second
    order pairs of rows add ``between_pairs`` and ``pairs`` (d,) to the squared errors.
    """

    between: Array
    variance: Array
    between_shares: Array
    shares: Array
    between_pairs: Array
    pairs: Array

    @classmethod
    def of(cls, mean: Array, covariances: Array, n: int) -> Quadratic:
        """Return the moments for means (s, d) and covariances (d, s, s) of s of n rows."""
        s, d = mean.shape
        between_shares, shares, variance = np.empty((s, d)), np.empty((s, d)), np.empty(d)
        between_pairs, pairs = np.empty(d), np.empty(d)
        for i, C in enumerate(covariances):
            between_shares[:, i] = (C.sum(axis=1) - C.diagonal()) / max(s - 1, 1)
            left = centred(C)
            m = mean[:, i] - mean[:, i].mean()
            right = left + 2.0 * m[:, None] * m
            terms = 2.0 * left * right
            shares[:, i] = terms.mean(axis=1)
            variance[i] = 2.0 * _paired(left, right, n)
            between_pairs[i], pairs[i] = _second_order(left, n), _second_order(centred(terms), n)
        between = between_shares.mean(axis=0)
        return cls(between, variance, between_shares, shares, between_pairs, pairs)


def centred(C: Array) -> Array:
    """Return HCH: rows and columns of C (s, s), which is symmetric, then add up to zero."""
    means = C.mean(axis=1)
    return C - means[:, None] - means + means.mean()


def expected_variance(mean: Array, covariances: Array) -> Array:
    """Return E Q over the s rows themselves, (d,)."""
    traces = [C.trace() / len(C) - C.mean() for C in covariances]
    return mean.var(axis=0) + np.array(traces)


def _second_order(K: Array, n: int) -> float:
    """Return what pairs of rows add to the squared error of a mean over pairs, K `centred`."""
    s = len(K)
    pairs = max(s * (s - 1.0), 1.0)
    return 2.0 * float((K**2).sum() - (K.diagonal() ** 2).sum()) / pairs**2 * (1.0 - s / n)


def _paired(K: Array, L: Array, n: int) -> float:
    """Return the estimate of tr(KHLH)/n² over n rows, for `centred` matrices of s of them.

    With S = Σ KᵢⱼLᵢⱼ, R = Σᵢ (Σⱼ Kᵢⱼ)(Σⱼ Lᵢⱼ) and T = (Σ Kᵢⱼ)(Σ Lᵢⱼ) over all n rows it is
    (S − 2R/n + T/n²)/n². Each sum is one over different rows of products of K's and L's diagonals
    D and other entries, whose means over the sample stand for those over all rows. Since rows of K
    and L add up to zero, all follow from p = Σ KᵢⱼLᵢⱼ, q = Σ KᵢᵢLᵢᵢ and r = (Σ Kᵢᵢ)(Σ Lᵢᵢ).
    Centring by the sample changes none of it: nothing depends on what is added to all entries of
    a row and column.
    """
    s = len(K)
    p, q, r = (K * L).sum(), (K.diagonal() * L.diagonal()).sum(), K.trace() * L.trace()
    if s == n:
        return float(p) / n**2
    pairs, triples = s * (s - 1.0), s * (s - 1.0) * (s - 2.0)
    quadruples = triples * (s - 3.0)
    own = q / s  # DᵢDᵢ
    entries = (p - q) / pairs  # KᵢⱼLᵢⱼ
    mixed = -q / pairs  # DᵢLᵢⱼ, and KᵢⱼDᵢ
    apart = (r - q) / pairs  # DᵢDⱼ
    joined = (2.0 * q - p) / triples  # KᵢⱼLᵢₖ
    beside = (2.0 * q - r) / triples  # DₖLᵢⱼ, and KᵢⱼDₖ
    separate = (r - 6.0 * q + 2.0 * p) / quadruples  # KᵢⱼLₖₗ
    n2, n3 = n * (n - 1.0), n * (n - 1.0) * (n - 2.0)
    n4 = n3 * (n - 3.0)
    S = n * own + n2 * entries
    R = n * own + n2 * (2.0 * mixed + entries) + n3 * joined
    T = n * own + n2 * (apart + 4.0 * mixed + 2.0 * entries)
    T += n3 * (2.0 * beside + 4.0 * joined) + n4 * separate
    return float(S - 2.0 * R / n + T / n**2) / n**2
