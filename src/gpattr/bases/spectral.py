"""Spectral densities of radial kernels, and frequencies drawn from them (Bochner's theorem).

Squared exponential: v = ε/ℓ with standard normal ε. Matérn-ν and rational-quadratic kernels are
scale mixtures of it: ε is divided by √s, s ~ Gamma(ν)/ν (so a Student t with 2ν degrees of
freedom), or multiplied by √s, s ~ Gamma(α)/α.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincinv, gammaln, kve, ndtri

from gpattr._core.array import Array
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Radial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.kernels.matern import ROUGH

SPECTRAL = (SquaredExponential, Matern, Matern32, Matern52, RationalQuadratic)
SAMPLINGS = ("orthogonal", "plain", "quasi-random")


def check_spectral(kernel: object) -> None:
    """Raise `UnsupportedModelError` unless a kernel, or a class of them, has a spectral density."""
    kind = kernel if isinstance(kernel, type) else type(kernel)
    if kind is Matern12:
        raise UnsupportedModelError(f"kernel: {ROUGH}")
    if kind not in SPECTRAL:
        names = ", ".join(known.__name__ for known in SPECTRAL)
        raise UnsupportedModelError(
            f"kernel: expected one with a spectral density ({names}), got {kind.__name__}"
        )


def standard_frequencies(
    kernel: Radial, d: int, M: int, sampling: str, generator: np.random.Generator
) -> np.ndarray:
    """Return M frequencies (M, d) of the kernel with unit length-scales.

    ``"plain"`` draws are independent. ``"orthogonal"`` ones come in blocks of d at right angles,
    lengths as before (Yu et al. 2016). ``"quasi-random"`` ones are Sobol points, shifted at random,
    through the quantiles.
    """
    check_spectral(kernel)
    if sampling == "quasi-random":
        from scipy.stats.qmc import Sobol

        points = Sobol(d + 1, scramble=False).random_base2(math.ceil(math.log2(M)))[:M]
        points = ((points + generator.random(d + 1)) % 1.0).clip(1e-12, 1.0 - 1e-12)
        return ndtri(points[:, :d]) * mixing(kernel, points[:, d])[:, None]
    normal = generator.standard_normal((M, d))
    factors = mixing(kernel, generator.random(M))[:, None]
    if sampling == "orthogonal":
        directions = np.linalg.qr(generator.standard_normal((-(-M // d), d, d)))[0].reshape(-1, d)
        lengths = np.sqrt((normal * normal).sum(axis=1, keepdims=True))
        normal = directions[:M] * lengths
    return normal * factors


def smoothness(kernel: Radial) -> float:
    """Return ν of a Matérn kernel."""
    assert isinstance(kernel, (Matern, Matern12, Matern32, Matern52))
    return float(kernel.nu)


def mixing(kernel: Radial, u: np.ndarray) -> np.ndarray:
    """Return the factors of standard normal vectors, (M,), from uniform numbers u."""
    if isinstance(kernel, SquaredExponential):
        return np.ones_like(u)
    shape = kernel.alpha if isinstance(kernel, RationalQuadratic) else smoothness(kernel)
    s = gammaincinv(shape, u) / shape
    return np.sqrt(s) if isinstance(kernel, RationalQuadratic) else 1.0 / np.sqrt(s)


def log_spectral_density(kernel: Radial, omega: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return log S(ω), (p,), at frequencies (p, d), and ∂ log S/∂ log ℓ, (p, d).

    With q = Σᵢ (ℓᵢωᵢ)² and m = α − d/2 it is σ² Πᵢ ℓᵢ times

        squared exponential    (2π)^(d/2) e^(−q/2)
        Matérn                 2^d π^(d/2) Γ(ν + d/2) (2ν)^ν / Γ(ν) · (2ν + q)^(−ν−d/2)
        rational quadratic     (2π)^(d/2) 2 α^α / Γ(α) · (q/2α)^(m/2) K_m(√(2αq))
    """
    check_spectral(kernel)
    d = omega.shape[1]
    scale = np.broadcast_to(np.asarray(kernel.lengthscale, dtype=np.float64), (d,))
    terms = (scale * omega) ** 2
    q = terms.sum(axis=1)
    if isinstance(kernel, SquaredExponential):
        value, slope = 0.5 * d * math.log(2.0 * math.pi) - 0.5 * q, np.full_like(q, -0.5)
    elif isinstance(kernel, RationalQuadratic):
        a = kernel.alpha
        m, z = a - 0.5 * d, np.sqrt(2.0 * a * q)
        bessel = kve(m, z)
        value = 0.5 * d * math.log(2.0 * math.pi) + math.log(2.0) + a * math.log(a) - gammaln(a)
        value = value + 0.5 * m * np.log(q / (2.0 * a)) + np.log(bessel) - z
        slope = -(a / z) * kve(m - 1.0, z) / bessel
    else:
        nu = smoothness(kernel)
        value = (
            d * math.log(2.0)
            + 0.5 * d * math.log(math.pi)
            + gammaln(nu + 0.5 * d)
            - gammaln(nu)
            + nu * math.log(2.0 * nu)
        )
        value = value - (nu + 0.5 * d) * np.log(2.0 * nu + q)
        slope = -(nu + 0.5 * d) / (2.0 * nu + q)
    return value + math.log(kernel.variance) + np.log(scale).sum(), 1.0 + 2.0 * slope[
        :, None
    ] * terms
