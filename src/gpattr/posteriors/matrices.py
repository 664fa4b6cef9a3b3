"""Matrices a user gives: their shape, and a root of a covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.validation import numbers
from gpattr.exceptions import InvalidInputError


def matrix(name: str, value: Any, p: int, columns: int | None) -> Array:
    """Return ``value`` as a finite array (p, columns); with None any number of columns."""
    array = numbers(name, value)
    if (
        array.ndim != 2
        or array.shape[0] != p
        or (columns is not None and array.shape[1] != columns)
    ):
        expected = f"({p}, {'r' if columns is None else columns})"
        raise InvalidInputError(
            f"{name}: expected an array of shape {expected}, got {tuple(array.shape)}"
        )
    if not namespace(array).isfinite(array).all():
        raise InvalidInputError(f"{name}: expected finite numbers, got NaN or infinity")
    return array


def root_of(name: str, S: np.ndarray) -> np.ndarray:
    """Return R with RRᵀ = S; refuse what is no covariance."""
    scale = np.sqrt(np.maximum(S.diagonal(), 0.0))
    size = scale[:, None] * scale
    unit = np.divide(S, size, out=np.zeros_like(S), where=size > 0)
    if not np.allclose(unit, unit.T, rtol=0.0, atol=1e-10) or (np.abs(S) > 1.0000001 * size).any():
        raise InvalidInputError(f"{name}: expected a symmetric positive semi-definite matrix")
    values, vectors = np.linalg.eigh(0.5 * (unit + unit.T))
    if values[0] < -1e-10 * len(S):
        raise InvalidInputError(
            f"{name}: expected a positive semi-definite matrix, got correlations with the"
            f" eigenvalue {values[0]:.2g}"
        )
    return scale[:, None] * (vectors * np.sqrt(np.maximum(values, 0.0)))
