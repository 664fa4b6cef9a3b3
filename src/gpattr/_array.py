"""The only file that knows array libraries: formulas elsewhere are written once, in terms of these names."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg import cholesky as _cholesky
from scipy.linalg import solve_triangular as _solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import erf, erfcx

Array = np.ndarray

EPS = float(np.finfo(np.float64).eps)

__all__ = [
    "EPS",
    "Array",
    "LinAlgError",
    "cholesky",
    "erf",
    "erfcx",
    "namespace",
    "solve_lower",
    "solve_lower_transposed",
    "squared_distances",
]


def namespace(*arrays: Array):
    """Return the module whose functions act on these arrays."""
    return np


def squared_distances(X: Array, Z: Array, lengthscale: Array) -> Array:
    """Return Σᵢ ((xᵢ − zᵢ)/ℓᵢ)² for every pair, (n, m), from differences.

    The expansion ‖x‖² + ‖z‖² − 2x·z is faster but loses as many digits as the data lie away from the origin.
    """
    inverse = np.broadcast_to(1.0 / np.asarray(lengthscale), X.shape[1:])
    if inverse.max() > 1e150 or inverse.min() < 1e-150:  # its square would over- or underflow
        return cdist((X - Z[0]) * inverse, (Z - Z[0]) * inverse, "sqeuclidean")
    return cdist(X, Z, "sqeuclidean", w=inverse * inverse)


def cholesky(A: Array) -> Array:
    """Return the lower Cholesky factor of A, (m, m); raise ``LinAlgError`` if A is not positive definite."""
    return _cholesky(A, lower=True, check_finite=False)


def solve_lower(L: Array, B: Array) -> Array:
    """Return L⁻¹B for lower triangular L."""
    return _solve_triangular(L, B, lower=True, check_finite=False)


def solve_lower_transposed(L: Array, B: Array) -> Array:
    """Return L⁻ᵀB for lower triangular L."""
    return _solve_triangular(L, B, lower=True, trans=1, check_finite=False)
