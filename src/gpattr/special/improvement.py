"""Improvement of a standard normal beyond a threshold, without underflow.

With u the number of standard deviations by which a mean exceeds the threshold,

    E[max(u + z, 0)] = Φ(u) γ(u),      γ = ρ + u,      ρ = φ(u)/Φ(u)

γ is the mean improvement where there is one. For u far below 0 both ρ and −u are large and nearly
equal: there γ is the continued fraction 1/(x + 2/(x + 3/(x + …))) of x = −u.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, log_ndtr

FAR = -5.0  # below, the continued fraction
TERMS = 60
ROOT_2 = 1.4142135623730951
ROOT_2_OVER_PI = 0.7978845608028654


def hazard(u: np.ndarray) -> np.ndarray:
    """Return ρ = φ(u)/Φ(u)."""
    with np.errstate(over="ignore"):
        return ROOT_2_OVER_PI / erfcx(-u / ROOT_2)


def mean_improvement(u: np.ndarray) -> np.ndarray:
    """Return γ = φ(u)/Φ(u) + u, which is positive for every u."""
    u = np.asarray(u, dtype=np.float64)
    x = np.maximum(-u, -FAR)
    tail = x
    for term in range(TERMS, 1, -1):
        tail = x + term / tail
    return np.where(u < FAR, 1.0 / tail, hazard(np.maximum(u, FAR)) + u)


def log_expected_improvement(u: np.ndarray) -> np.ndarray:
    """Return log E[max(u + z, 0)], z standard normal: log Φ(u) + log γ(u)."""
    return log_ndtr(u) + np.log(mean_improvement(u))
