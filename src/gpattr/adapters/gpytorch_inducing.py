"""Sparse regression with GPyTorch's `InducingPointKernel` (SGPR).

In evaluation the library takes k(x, Z)K⁻¹k(Z, x') between rows, and adds what is missing of the
variances of the base kernel k: at training rows, which makes the noise σ² + k(xₙ, xₙ) − q(xₙ, xₙ)
(FITC), and at new rows. There it would be noise if rows were asked for together, and functions
without gradients; so covariances between new rows are those of k, as variances are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._core.array import Array, solve_lower_rows, to_numpy
from gpattr.adapters.botorch_inputs import Inputs
from gpattr.adapters.devices import beside
from gpattr.adapters.gpytorch_kernels import called, number
from gpattr.adapters.notes import with_note
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.posteriors import Posterior, SparsePosterior
from gpattr.posteriors.exact import factorise

NOTE = "covariances between rows are those of the base kernel of the inducing points"


def inducing(kernel: Any) -> bool:
    """Return whether a kernel is an `InducingPointKernel`; refuse one inside of another kernel."""
    if type(kernel).__name__ == "InducingPointKernel":
        if kernel.active_dims is not None:
            raise UnsupportedModelError(
                "covar_module: an InducingPointKernel of some columns is not supported; select them"
                " in its base kernel"
            )
        return True
    if any(type(part).__name__ == "InducingPointKernel" for part in kernel.modules()):
        raise UnsupportedModelError(
            "covar_module: an InducingPointKernel inside of another kernel is not supported: what"
            " the library adds to variances is then noise; put the other kernel inside"
        )
    return False


def sparse(
    kernel: Any,
    rows: Array,
    y: Array,
    noise: np.ndarray,
    mean: Mean,
    *,
    inputs: Inputs | None = None,
    batch: int | None = None,
) -> Posterior:
    """Return the posterior of a model with this kernel, given rows (n, d) as the kernel sees them.

    With ``inputs`` rows and functions are of the columns that it makes.
    """
    Z = number(kernel.inducing_points, 2, batch)
    base: Kernel = called(kernel.base_kernel, Z.shape[1], batch)
    if inputs is not None:
        base, Z = inputs.kernel(base), inputs.inside(Z)
    Z = beside(Z, kernel.inducing_points)
    L = factorise(base, Z, 0.0 * base.diagonal(Z))
    explained = (solve_lower_rows(L, base(rows, Z)) ** 2).sum(axis=1)
    missing = np.maximum(to_numpy(base.diagonal(rows) - explained), 0.0)
    result = SparsePosterior.fit(
        base, Z, rows, y, noise=beside(noise + missing, kernel.inducing_points), mean=mean
    )
    return with_note(result, NOTE)
