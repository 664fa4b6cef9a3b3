"""Kernels of rescaled inputs: k(a∘x, a∘x') and k(Ax, Ax')."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    Kernel,
    Linear,
    Periodic,
    Polynomial,
    Radial,
    Select,
    Warped,
)


def rescaled(kernel: Kernel, factors: Any, d: int) -> Kernel:
    """Return k(a∘x, a∘x') for factors a, one number or (d,), by changing the length-scales of k."""
    signed = np.broadcast_to(np.asarray(factors, dtype=np.float64), (d,))
    a = np.abs(signed)
    if not (a > 0).all():
        raise UnsupportedModelError(
            "kernel: inputs scaled by 0 are not supported; drop them (Subspace)"
        )
    if isinstance(kernel, Radial):
        return kernel.with_params(lengthscale=np.asarray(kernel.lengthscale) / a)
    if isinstance(kernel, (Linear, Polynomial)):
        return kernel.with_params(variance=np.asarray(kernel.variance) * a**2)
    if isinstance(kernel, (Periodic, Cosine)):
        return kernel.with_params(period=np.asarray(kernel.period) / a)
    if isinstance(kernel, Constant):
        return kernel
    if isinstance(kernel, Select):
        return kernel.map_parts(
            lambda part: rescaled(part, kernel.columns(signed), len(kernel.features))
        )
    if kernel.pointwise:
        return kernel.map_parts(lambda part: rescaled(part, signed, d))
    return mapped(kernel, np.diag(signed))


def mapped(kernel: Kernel, matrix: np.ndarray) -> Kernel:
    """Return k(Ax, Ax') for a matrix A, (D, d)."""
    return Warped(
        kernel,
        lambda X: X @ matrix.T,
        lambda X: np.broadcast_to(matrix, (*X.shape[:-1], *matrix.shape)),
    )
