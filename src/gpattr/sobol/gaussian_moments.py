"""Moments of squared exponentials k(x, z) = exp(−(x − z)²/2ℓ²) against distributions.

m(z) = ∫k(x, z) dP(x). Products are squared exponentials again, so that with ν² = ℓ² + ℓ′²

    M(z, z′) = ∫k_ℓ(x, z) k_ℓ′(x, z′) dP(x) = exp(−(z − z′)²/2ν²) m_λ(ζ)
    λ = ℓℓ′/ν,    ζ = (zℓ′² + z′ℓ²)/ν²

| inputs | m(z) | c = ∬k dP dP |
|---|---|---|
| N(μ, s²) | ℓ/√(ℓ² + s²) exp(−(z − μ)²/2(ℓ² + s²)) | ℓ/√(ℓ² + 2s²) |
| uniform, width W | (ℓ/W)√(π/2) (erf b − erf a), a, b = (ends − z)/√2ℓ | G₀((W/ℓ)²) |
"""

from __future__ import annotations

import numpy as np
from scipy.special import erf, erfc

from gpattr._core.array import Array
from gpattr.sobol.inputs import Distribution, Normal, Uniform
from gpattr.special.gaussian import g0
from gpattr.special.quadrature import gauss_legendre

FLAT = 4.0  # logarithms between which exp(−t²) is integrated by a rule, without cancellation
NODES = 16


def known(distribution: Distribution) -> bool:
    """Return whether the moments have a closed form."""
    return isinstance(distribution, (Normal, Uniform))


def mean(distribution: Distribution, lengthscale: float, z: Array) -> Array:
    """Return m(z) for centres z of any shape."""
    if isinstance(distribution, Normal):
        total = np.hypot(lengthscale, distribution.std)
        u = (z - distribution.mean) / total
        return (lengthscale / total) * np.exp(-0.5 * u * u)
    assert isinstance(distribution, Uniform)
    root = np.sqrt(2.0) * lengthscale
    width = float((distribution.high - distribution.low) / root)
    return mean_gaussian((distribution.low - z) / root, (distribution.high - z) / root, width)


def products(
    distribution: Distribution, lengthscales: tuple[float, float], z: Array, other: Array
) -> Array:
    """Return M(z, z′) for centres that broadcast."""
    one, two = lengthscales
    total = np.hypot(one, two)
    share = (two / total) ** 2
    u = (z - other) / total
    centre = other + share * (z - other)
    return np.exp(-0.5 * u * u) * mean(distribution, one * (two / total), centre)


def double(distribution: Distribution, lengthscale: float) -> float:
    """Return c = ∬k dP dP."""
    if isinstance(distribution, Normal):
        return float(lengthscale / np.hypot(lengthscale, np.sqrt(2.0) * distribution.std))
    assert isinstance(distribution, Uniform)
    ratio = np.asarray((distribution.high - distribution.low) / lengthscale)
    return float(g0(ratio * ratio))


def mean_gaussian(low: Array, high: Array, width: float) -> Array:
    """Return the mean of exp(−t²) over intervals of one width, to a few ε relative to itself.

    Where the logarithm changes by less than ``FLAT``, differences of error functions would cancel:
    there, Gauss–Legendre, whose terms are positive. Elsewhere erf between the sides of 0, and erfc
    on one side.
    """
    # By symmetry the nearer end comes first; it is positive where 0 is outside.
    near, far = np.maximum(low, -high), np.maximum(high, -low)
    flat = width * far < FLAT
    if flat.all():
        return _by_rule(near, width)
    outside = near > 0
    inside = erf(far) - erf(near)
    tail = erfc(np.where(outside, near, 0.0)) - erfc(np.where(outside, far, 0.0))
    result = (0.5 * np.sqrt(np.pi) / max(width, 1e-300)) * np.where(outside, tail, inside)
    if flat.any():
        result[flat] = _by_rule(near[flat], width)
    return result


def _by_rule(low: Array, width: float) -> Array:
    t, w = gauss_legendre(NODES)
    total = np.zeros_like(low)
    for node, weight in zip(t.tolist(), w.tolist(), strict=True):
        x = low + width * node
        total += weight * np.exp(-x * x)
    return total
