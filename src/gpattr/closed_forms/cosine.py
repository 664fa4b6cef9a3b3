"""Integrated gradients of the cosine kernel, in closed form.

Along a path the phase is linear, so with v = 2π/p, θ = v·(x − b), mid = v·((x + b)/2 − z) and sinc
θ/2 = sin(θ/2)/(θ/2)

    𝒜ᵢk(·, z)(x) = −σ² vᵢ(xᵢ − bᵢ) sinc(θ/2) sin(mid),

and between two paths the covariance is vᵢ(xᵢ − bᵢ) sinc(θ/2) · vⱼ(x'ⱼ − b'ⱼ) sinc(θ'/2) · σ²
cos(mid − mid').
"""

from __future__ import annotations

import math

from gpattr._core.array import EPS, Array, namespace, product
from gpattr.closed_forms.table import register
from gpattr.kernels import Cosine
from gpattr.operators import IntegratedGradients, Paths


def _amplitude(kernel: Cosine, paths: Paths) -> Array:
    """Return vᵢ(xᵢ − bᵢ) sinc(θ/2), (n, d)."""
    xp, step = namespace(paths.stop), paths.step
    theta = kernel.phase(step)
    return (
        (2.0 * math.pi)
        * step
        / xp.asarray(kernel.period)
        * xp.sinc(theta / (2.0 * math.pi))[:, None]
    )


def _sine(kernel: Cosine, paths: Paths, Z: Array) -> Array:
    """Return −σ² sin(mid), (n, m); both phases seen from the first row of Z."""
    middle = kernel.phase(0.5 * (paths.stop - Z[0]) + 0.5 * (paths.start - Z[0]))
    return -kernel.variance * namespace(Z).sin(middle[:, None] - kernel.phase(Z - Z[0]))


def cross(kernel: Cosine, paths: Paths, Z: Array) -> Array:
    """Return 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m)."""
    return _amplitude(kernel, paths)[:, :, None] * _sine(kernel, paths, Z)[:, None, :]


def cross_dot(kernel: Cosine, paths: Paths, Z: Array, w: Array) -> Array:
    """Return Σₘ 𝒜ᵢk(·, zₘ)(xₙ) wₘ, (n, d, q)."""
    return _amplitude(kernel, paths)[:, :, None] * product(_sine(kernel, paths, Z), w)[:, None, :]


def error(kernel: Cosine, paths: Paths, Z: Array, w: Array) -> Array:
    """Return a bound (n,) on the rounding of `cross_dot`: ε times the phases, plus the sum's."""
    xp = namespace(Z)
    far = xp.abs(kernel.phase(xp.abs(paths.stop - Z[0]) + xp.abs(paths.start - Z[0])))
    reach = far + float(xp.abs(kernel.phase(xp.abs(Z - Z[0]))).max())
    size = (
        kernel.variance
        * xp.abs(w).sum(axis=0).max()
        * xp.max(xp.abs(_amplitude(kernel, paths)), axis=1)
    )
    # sinc(θ/2) itself moves by ε where θ does by εθ, which a large step magnifies.
    slack = (
        xp.max(xp.abs(paths.step / xp.asarray(kernel.period)), axis=1)
        * kernel.variance
        * xp.abs(w).sum(axis=0).max()
    )
    return EPS * ((32.0 + len(Z) ** 0.5 + 4.0 * reach) * size + 32.0 * slack)


def prior_cov(kernel: Cosine, paths: Paths) -> Array:
    """Return the prior covariance of the attributions along each path, (n, d, d)."""
    amplitude = _amplitude(kernel, paths)
    return kernel.variance * amplitude[:, :, None] * amplitude[:, None, :]


def between(kernel: Cosine, paths: Paths, other: Paths) -> Array:
    """Return the prior covariance of the attributions along the k-th path of each, (n, d, d)."""
    one, two = _amplitude(kernel, paths), _amplitude(kernel, other)
    shift = kernel.phase(0.5 * (paths.stop - other.stop) + 0.5 * (paths.start - other.start))
    return (
        (kernel.variance * namespace(shift).cos(shift))[:, None, None]
        * one[:, :, None]
        * two[:, None, :]
    )


register(
    IntegratedGradients,
    Cosine,
    cross=cross,
    cross_dot=cross_dot,
    prior_cov=prior_cov,
    between=between,
    error=error,
)
