"""A kernel of inputs that are multiplied first: k(a∘x, a∘x') and k(Ax, Ax')."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
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
    Product,
    Radial,
    Scale,
    Select,
    Sum,
    Warped,
)


def rescaled(kernel: Kernel, factors: Any, d: int) -> Kernel:
    """Return k(a∘x, a∘x') for factors a, one number or (d,): the same kernel with other
    length-scales, so closed forms stay.
    """
    a = np.broadcast_to(np.abs(np.asarray(factors, dtype=np.float64)), (d,))
    if not (a > 0).all():
        raise UnsupportedModelError(
            "kernel: inputs that are multiplied by 0 are not known; leave them out (Subspace)"
        )
    if isinstance(kernel, Radial):
        return kernel.with_params(lengthscale=np.asarray(kernel.lengthscale) / a)
    if isinstance(kernel, (Linear, Polynomial)):
        return kernel.with_params(variance=np.asarray(kernel.variance) * a**2)
    if isinstance(kernel, (Periodic, Cosine)):
        return kernel.with_params(period=np.asarray(kernel.period) / a)
    if isinstance(kernel, Constant):
        return kernel
    if isinstance(kernel, Scale):
        return kernel.variance * rescaled(kernel.kernel, a, d)
    if isinstance(kernel, Select):
        features = list(kernel.features)
        return Select(rescaled(kernel.kernel, a[features], len(features)), features)
    if isinstance(kernel, (Sum, Product)):
        parts: list[Any] = [rescaled(part, a, d) for part in kernel.kernels]
        return reduce(add if isinstance(kernel, Sum) else mul, parts)
    raise UnsupportedModelError(f"kernel: {type(kernel).__name__} of scaled inputs is not known")


def mapped(kernel: Kernel, matrix: np.ndarray) -> Kernel:
    """Return k(Ax, Ax') for a matrix A, (D, d)."""
    return Warped(
        kernel,
        lambda X: X @ matrix.T,
        lambda X: np.broadcast_to(matrix, (*X.shape[:-1], *matrix.shape)),
    )
