"""Checked arguments of posteriors: matrices, a prior with its inputs, measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, is_tensor, namespace
from gpattr._core.validation import (
    Names,
    as_matrix,
    as_vector,
    column_names,
    is_frame,
    is_series,
    numbers,
    read_only,
)
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Kernel
from gpattr.kernels.categorical import in_polynomials
from gpattr.kernels.white import fold_white
from gpattr.means import Mean, Zero

if TYPE_CHECKING:
    from gpattr.posteriors.base import Posterior


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
    """Return R with RRᵀ = S; refuse other matrices than covariances."""
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


def smooth_prior(
    kernel: Any, mean: Any, name: str, inputs: Any
) -> tuple[Kernel, Mean, Array, Names | None]:
    """Return kernel, mean, the inputs ``name`` and their column names; refuse White parts."""
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"kernel: expected a gpattr kernel, got {type(kernel).__name__}")
    names = column_names(inputs)
    Z = read_only(as_matrix(name, inputs))
    kernel.check_features(Z.shape[1])
    mean = checked_mean(mean, Z.shape[1])
    kernel.check_derivatives(Z)
    smooth, white = fold_white(kernel, Z)
    if smooth is None or (white != 0).any():
        raise InvalidInputError("kernel: White is noise and no part of the function; leave it out")
    return in_polynomials(kernel), mean, Z, names


def checked_mean(mean: Any, d: int) -> Mean:
    """Return a mean that can act on d features; zero for None."""
    mean = Zero() if mean is None else mean
    if not isinstance(mean, Mean):
        raise InvalidInputError(
            f"mean: expected a gpattr mean or None, got {type(mean).__name__};"
            " gpattr.means.Constant(value) is a constant"
        )
    mean.check_features(d)
    return mean


def measured_rows(posterior: Posterior, x: Any) -> Array:
    """Return the measured rows, one or several, as rows (k, columns) of a posterior."""
    if is_series(x):
        x = x.to_frame().T
    elif not is_frame(x):
        x = numbers("x", x)
        x = x[None, :] if x.ndim == 1 else x
    return posterior.rows("x", x)


def measured_values(y: Any, rows: Array) -> Array:
    """Return the measurements, one number for each row, (k,)."""
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
