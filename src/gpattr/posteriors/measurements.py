"""Further measurements as a user gives them: rows, values and noise variances, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, is_tensor, namespace
from gpattr._core.validation import as_vector, is_frame, is_series, numbers, read_only
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError

if TYPE_CHECKING:
    from gpattr.posteriors.base import Posterior


def measured_rows(posterior: Posterior, x: Any) -> Array:
    """Return where was measured, one row or several, as rows (k, columns) of a posterior."""
    if is_series(x):
        x = x.to_frame().T
    elif not is_frame(x):
        x = numbers("x", x)
        x = x[None, :] if x.ndim == 1 else x
    return posterior.rows("x", x)


def measured_values(y: Any, rows: Array) -> Array:
    """Return what was measured, one number for each row, (k,)."""
    y = numbers("y", y)
    y = y.reshape(1) if y.ndim == 0 else y
    return as_vector("y", y, length=len(rows), unit="values (one per row of x)", like=rows)


def check_noise(noise: Any, Z: Array) -> Array:
    """Return noise variances, one per row, (m,)."""
    m = len(Z)
    noise = as_vector(
        "noise",
        np.atleast_1d(numbers("noise", noise)) if not is_tensor(noise) else noise.reshape(-1),
        like=Z,
    )
    if len(noise) not in (1, m):
        raise InvalidInputError(
            f"noise: expected one variance or one per row ({m}), got {len(noise)}"
        )
    if (noise < 0).any():
        raise InvalidInputError(f"noise: expected variances, 0 or larger, got {float(noise.min())}")
    return read_only(namespace(Z).broadcast_to(noise, (m,)))


def noise_at(posterior: Posterior, noise: Any, rows: Array) -> Array:
    """Return the noise variances of measurements at rows, (k,): the model's own unless given."""
    own = posterior.noise_variance if noise is None else noise
    if own is None:
        raise InvalidInputError(
            f"noise: {type(posterior).__name__} does not have one noise variance for all rows;"
            " give that of the measurement, in squared units of y"
        )
    return check_noise(own, rows)


def updated_root(root: Array, image: Array, noise: float, residual: float) -> tuple[Array, Array]:
    """Return R' and a shift, (p, r) and (p,), of w ~ N(μ, RRᵀ) given hᵀw = hᵀμ + residual + noise.

    With g = Rᵀh the ``image`` (r,) and s = gᵀg: R' = R(I − cggᵀ), c = (1 − √(τ²/(s + τ²)))/s, and
    the shift of μ is Rg residual/(s + τ²). It takes O(pr), and nothing is subtracted from
    variances.
    """
    total = float(image @ image) + noise
    if not total > 0:
        raise NotPositiveDefiniteError(
            "noise: the function is known without uncertainty where it was measured; give a noise"
            " variance larger than 0"
        )
    loads = root @ image
    shrink = 1.0 / (total * (1.0 + (noise / total) ** 0.5))
    return root - shrink * loads[:, None] * image, loads * (residual / total)
