"""Scale mixtures of squared exponentials: Matérn and rational quadratic kernels as finite sums.

With λ ~ Gamma(ν, rate ν), a Matérn kernel is E exp(−r²/2λ), and a rational quadratic kernel with
ν = α is E exp(−λr²/2). The trapezoidal rule in y = log λ converges exponentially in 1/h, because
the integrand is analytic in a strip around the real line, and its error has a bound that holds for
every r.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import atan, ceil, cos, e, exp, expm1, floor, lgamma, log, pi

import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.validation import positive_scalar
from gpattr.exceptions import InvalidInputError

SHORTEST = -300.0  # log of the smallest λ of a Matérn mixture: beyond, λ⁻² would overflow
# Σⱼ |cⱼ|(2j/e)ʲ for the Hermite polynomial Σⱼ cⱼ v²ʲ of degree 2k, and its largest value times
# exp(−v²/2): the sizes of 2k derivatives of exp(−v²/2) for a complex and for a real scale.
COMPLEX = (1.0, 1.0 + 2.0 / e, 3.0 + 12.0 / e + 16.0 / e**2)
REAL = (1.0, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class ScaleMixture:
    """k(r) ≈ constant + Σⱼ weightsⱼ exp(−r²/(2 scalesⱼ)), where k(0) = 1.

    ``scales`` (J,) multiply the squared length-scale. ``bound`` bounds the error of k and of all
    its derivatives up to order 2 · ``derivatives`` in the inputs, in units of the length-scale.
    """

    scales: Array
    weights: Array
    constant: float
    bound: float
    derivatives: int = 0

    def __call__(self, r2: Array) -> Array:
        """Return the sum at squared distances r²."""
        xp = namespace(r2)
        scales, weights = xp.asarray(self.scales), xp.asarray(self.weights)
        return self.constant + (weights * xp.exp(-0.5 * r2[..., None] / scales)).sum(axis=-1)


@lru_cache(maxsize=64)
def matern_mixture(nu: float, tolerance: float, derivatives: int = 0) -> ScaleMixture:
    """Return the mixture of a Matérn-ν kernel, k(r) = E exp(−r²/2λ), to a tolerance.

    Derivatives of order 2k weigh λ with λ⁻ᵏ, so they need ν > k: Eλ⁻ᵏ = νᵏΓ(ν − k)/Γ(ν). For ν
    close to k short scales never end, and the bound exceeds the tolerance.
    """
    nu, tolerance, k = _checked("nu", nu, tolerance, derivatives)
    if nu <= k:
        raise InvalidInputError(
            f"nu: expected more than {k} for {2 * k} derivatives of the kernel, got {nu:g}"
        )
    moment = exp(k * log(nu) + lgamma(nu - k) - lgamma(nu))  # Eλ⁻ᵏ
    step, error = _step(nu, COMPLEX[k] * moment, 0.3 * tolerance)
    share = 0.3 * tolerance / (REAL[k] * moment)
    low = max(_lower_end(nu - k, nu, share), SHORTEST)
    high = log(gammainccinv(nu, 0.3 * tolerance / REAL[k]) / nu)
    # Beyond its maximum at log(1 − k/ν) the integrand falls, so that a sum over further nodes is
    # less than the integral from the last node on.
    low, high = min(low, log(1.0 - k / nu)), max(high, 0.0)
    y, weights = _nodes(nu, step, low, high)
    below = REAL[k] * moment * float(_lower(nu - k, nu, y[0]))
    above = REAL[k] * float(gammaincc(nu, nu * exp(y[-1])))
    bound = error + below + above + 16 * EPS * REAL[k] * moment
    return _mixture(np.exp(y), weights, 0.0, bound, k)


@lru_cache(maxsize=64)
def rational_quadratic_mixture(
    alpha: float, tolerance: float, derivatives: int = 0, radius: float = 1e3
) -> ScaleMixture:
    """Return the mixture of a rational quadratic kernel, k(r) = E exp(−λr²/2), to a tolerance.

    The longest scales are nearly constant for r ≤ ``radius``: their weight is the ``constant``,
    and 1 − exp(−λr²/2) ≤ λr²/2 bounds what that changes. Derivatives of order 2k weigh λ with λᵏ.
    """
    alpha, tolerance, k = _checked("alpha", alpha, tolerance, derivatives)
    square = max(positive_scalar("radius", radius) ** 2 / 2.0, REAL[k])
    moment = exp(lgamma(alpha + k) - lgamma(alpha) - k * log(alpha))  # Eλᵏ
    # The constant absorbs an error of the rule a second time.
    step, error = _step(alpha + 2 * k, 2.0 * COMPLEX[k] * moment, 0.3 * tolerance)
    low = _lower_end(alpha + 1.0, alpha, 0.3 * tolerance / square)  # Eλ = 1
    high = log(gammainccinv(alpha + k, 0.15 * tolerance / (REAL[k] * moment)) / alpha)
    low, high = min(low, 0.0), max(high, log(1.0 + k / alpha))
    y, weights = _nodes(alpha, step, low, high)
    below = square * float(_lower(alpha + 1.0, alpha, y[0]))
    above = 2.0 * REAL[k] * moment * float(gammaincc(alpha + k, alpha * exp(y[-1])))
    bound = error + below + above + 16 * EPS * REAL[k] * moment
    return _mixture(np.exp(-y), weights, 1.0 - float(weights.sum()), bound, k)


def _checked(
    name: str, shape: float, tolerance: float, derivatives: int
) -> tuple[float, float, int]:
    if derivatives not in range(len(REAL)):
        raise InvalidInputError(f"derivatives: expected 0, 1 or 2, got {derivatives!r}")
    tolerance = positive_scalar("tolerance", tolerance)
    if not 1e-14 <= tolerance <= 0.1:
        raise InvalidInputError(f"tolerance: expected 1e-14 to 0.1, got {tolerance:g}")
    return positive_scalar(name, shape), tolerance, int(derivatives)


def _step(power: float, size: float, tolerance: float) -> tuple[float, float]:
    """Return the step h of the rule, and the bound on its error before nodes are left out.

    In the strip |Im y| ≤ θ the integral of the integrand's size is at most size · (cos θ)^−power,
    whatever r, so the error is at most 2 size (cos θ)^−power/(exp(2πθ/h) − 1), for any θ; this one
    is the best.
    """

    def bound(h: float) -> float:
        theta = atan(2.0 * pi / (h * power))
        return 2.0 * size * exp(-power * log(cos(theta))) / expm1(min(2.0 * pi * theta / h, 700.0))

    low, high = min(1e-2, 0.1 / power**0.5), 4.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bound(middle) <= tolerance else (low, middle)
    return low, bound(low)


def _nodes(shape: float, step: float, low: float, high: float) -> tuple[Array, Array]:
    """Return y = jh from below ``low`` to above ``high``, and the weights of exp(y)."""
    y = step * np.arange(floor(low / step), ceil(high / step) + 1)
    return y, step * np.exp(_log_peak(shape) - shape * _excess(y))


def _log_peak(shape: float) -> float:
    """Return log(νᵛe⁻ᵛ/Γ(ν)), by Stirling's series where its terms would cancel."""
    if shape < 50.0:
        return shape * (log(shape) - 1.0) - lgamma(shape)
    square = shape * shape
    series = (1.0 - (1.0 - 2.0 / (7.0 * square)) / (30.0 * square)) / (12.0 * shape)
    return 0.5 * log(shape / (2.0 * pi)) - series


def _excess(y: Array) -> Array:
    """Return eʸ − 1 − y without cancellation."""
    small = np.where(abs(y) < 0.1, y, 0.0)
    series = np.full_like(small, 1.0)
    for k in range(14, 2, -1):
        series = 1.0 + small * series / k
    return np.where(abs(y) < 0.1, 0.5 * small * small * series, np.expm1(y) - y)


def _lower_end(shape: float, rate: float, probability: float) -> float:
    """Return log λ below which Gamma(shape, rate) has at most this probability."""
    x = float(gammaincinv(shape, probability))
    if x > 1e-290:
        return log(x / rate)
    return (log(probability) + lgamma(shape + 1.0)) / shape - log(rate)  # P(a, x) ≤ xᵃ/Γ(a + 1)


def _lower(shape: float, rate: float, y: float) -> float:
    """Return the probability of λ < exp(y)."""
    return float(gammainc(shape, rate * exp(y)))


def _mixture(scales: Array, weights: Array, constant: float, bound: float, k: int) -> ScaleMixture:
    scales.flags.writeable = weights.flags.writeable = False
    return ScaleMixture(scales, weights, constant, bound, k)
