"""Integrals of the squared exponential along a straight path.

On the path e + t p, t ∈ [0, 1], the squared exponential is exp(−(a t² + 2β t + c)/2) with a = p·p,
β = p·e, c = e·e. Its moments in t carry every attribution of a squared-exponential GP.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpattr._core.array import Array, erf, erfcx, namespace, product
from gpattr.special import moment_series
from gpattr.special.quadrature import gauss_legendre

SQRT_PI_OVER_2 = 1.2533141373155002512  # √(π/2)
SQRT_2PI = 2.5066282746310005024  # √(2π)

# (largest a, nodes): the fewest Gauss–Legendre nodes whose error, over every position of the peak,
# is below 4e-16. The integrand is entire, so a fixed rule reaches the last digit; past the last
# entry erfcx takes over.
SHORT_PATHS = ((0.01, 5), (0.25, 7), (1.0, 9), (4.0, 11))
LONGEST_SHORT = SHORT_PATHS[-1][0]


def rows_by_length(a: Array, chunk: int) -> Iterator[tuple[Array, bool]]:
    """Yield row numbers in the order of a, in chunks, and whether these are short (a ≤ 4).

    Rows of like length share a rule; a chunk fits the cache.
    """
    xp = namespace(a)
    order = xp.argsort(a)
    short = int((a <= LONGEST_SHORT).sum())
    for rows, is_short in ((order[:short], True), (order[short:], False)):
        for start in range(0, len(rows), chunk):
            yield rows[start : start + chunk], is_short


def path_moments(a: Array, beta: Array, c0: Array, c1: Array | None) -> tuple[Array, Array]:
    """Return J₀ and J₁, each (n, m), with Jₖ = ∫₀¹ tᵏ exp(−(a t² + 2β t + c)/2) dt.

    ``a`` (n,) is the squared length of the path, ``beta`` (n, m) the product p·e, ``c0`` (m,) or
    (n, m) and ``c1`` (n, m) the squared distances at t = 0 and t = 1 (``c1`` = a + 2β + c is passed
    in because it can be had without cancellation).

    Range: a ≥ 0, any β with β² ≤ a·c; all rows short or all long (`rows_by_length`). Branches:

    * a ≤ 4, asked for by ``c1`` None: Gauss–Legendre with the nodes of ``SHORT_PATHS``, or a power
      series in β (`moment_series`); nothing is divided by a, so a = 0 is no special case.
    * a > 4: with k₀ = exp(−c₀/2), k₁ = exp(−c₁/2), l = β/√(2a), u = (a + β)/√(2a), ρ² = c₀ − β²/a,

          J₀ = √(π/2a) [s(l) k₀ erfcx|l| − s(u) k₁ erfcx|u| + (2 exp(−ρ²/2) if l < 0 ≤ u)],
          J₁ = (k₀ − k₁ − βJ₀)/a

      where s(v) is −1 for v < 0 and +1 otherwise, for zero of either sign. No factor can overflow.

    Absolute error: a few ε, plus ε·a from the cancellation in ρ² when the peak lies on the path.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.special import path_moments
    >>> a, beta, c0 = np.array([1.0]), np.array([[-0.5]]), np.array([[1.0]])
    >>> j0, j1 = path_moments(a, beta, c0, None)
    >>> j0.round(4), j1.round(4)
    (array([[0.6597]]), array([[0.3298]]))
    """
    xp = namespace(a, beta)
    a = a[:, None]
    if c1 is None:
        return tuple(moment + 0.0 for moment in _short_moments(a, beta, c0))
    k0, k1 = xp.exp(-0.5 * c0), xp.exp(-0.5 * c1)
    J0 = _zeroth_moment(a, beta, k0, k1, xp.maximum(c0 - beta * (beta / a), 0.0))
    return J0, (k0 - k1 - beta * J0) / a


def path_products(
    a: Array, beta: Array, c0: Array, c1: Array | None, right: Array
) -> tuple[Array, Array]:
    """Return J₀ @ right and J₁ @ right, (n, q): moments of `path_moments` times right (m, q).

    On a GPU the moments of short paths are never formed: the product is taken node by node, an
    exponential and a matrix product each.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.special import path_products
    >>> a, beta, c0 = np.array([1.0]), np.array([[-0.5, 0.5]]), np.array([[1.0, 2.0]])
    >>> j0, j1 = path_products(a, beta, c0, a + 2 * beta + c0, np.eye(2))
    >>> j0.shape, j1.shape
    ((1, 2), (1, 2))
    """
    xp = namespace(a, beta)
    if c1 is not None or xp is np:
        J0, J1 = (
            _short_moments(a[:, None], beta, c0) if c1 is None else path_moments(a, beta, c0, c1)
        )
        return product(J0, right), product(J1, right)
    first = xp.zeros((beta.shape[0], right.shape[1]))
    second = xp.zeros_like(first)
    for value, weight, t in _along_short_paths(a[:, None], beta, c0):
        part = product(value, right)
        part *= weight
        first += part
        part *= t
        second += part
    return first, second


def _short_moments(a: Array, beta: Array, c0: Array) -> tuple[Array, Array]:
    """Return J₀ and J₁, each (n, m), for a (n, 1) ≤ 4: by series where most |β| are small.

    They may be overwritten by the next call of the same thread.
    """
    xp = namespace(a, beta)
    found = moment_series.reach(beta) if xp is np and beta.size else None
    if found is not None:
        bound, terms, (i, j) = found
        J0, J1 = moment_series.series(a[:, 0], beta, c0, bound, terms)
        if len(i):
            c = c0[j] if c0.ndim == 1 else c0[i, j]
            beyond = _rule_moments(a[i], beta[i, j][:, None], c[:, None])
            J0[i, j], J1[i, j] = (moment[:, 0] for moment in beyond)
        return J0, J1
    return _rule_moments(a, beta, c0)


def _rule_moments(a: Array, beta: Array, c0: Array) -> tuple[Array, Array]:
    xp = namespace(a, beta)
    J0, J1 = xp.zeros_like(beta), xp.zeros_like(beta)
    for value, weight, t in _along_short_paths(a, beta, c0):
        value *= weight
        J0 += value
        value *= t
        J1 += value
    return J0, J1


def _along_short_paths(a: Array, beta: Array, c0: Array) -> Iterator[tuple[Array, Array, float]]:
    """Yield, node by node, exp(−βt − c/2), the weight w exp(−a t²/2) of each row, and t.

    The first, (n, m), is in one buffer that is reused; the second is (n, 1). The first factor is at
    most exp(a t²/2) ≤ e², so nothing overflows.
    """
    xp = namespace(a, beta)
    largest = float(a.max())
    order = next(order for upper, order in SHORT_PATHS if largest <= upper)
    half, buffer = -0.5 * c0, xp.empty_like(beta)
    for t, w in zip(*(rule.tolist() for rule in gauss_legendre(order)), strict=True):
        xp.multiply(beta, -t, out=buffer)
        buffer += half
        xp.exp(buffer, out=buffer)
        yield buffer, w * xp.exp((-0.5 * t * t) * a), t


def _zeroth_moment(a: Array, beta: Array, k0: Array, k1: Array, rho2: Array) -> Array:
    xp = namespace(a, beta)
    root = xp.sqrt(2.0 * a)
    lower, upper = beta / root, (a + beta) / root
    J0 = xp.where(lower < 0, -k0, k0) * erfcx(xp.abs(lower))
    J0 -= xp.where(upper < 0, -k1, k1) * erfcx(xp.abs(upper))
    J0 += xp.where((lower < 0) & (upper >= 0), 2.0 * xp.exp(-0.5 * rho2), 0.0)
    return SQRT_PI_OVER_2 / xp.sqrt(a) * J0


def centred_moments(a: Array, beta: Array, rho2: Array) -> tuple[Array, Array, Array]:
    """Return moments about the closest approach, Mₖ = ∫₀¹ τᵏ exp(−(a τ² + ρ²)/2) dt.

    τ = t + β/a, k = 0, 1, 2. Range: a ≥ 1 or so (everything is divided by a), ρ² ≥ 0. The squared
    distances at the ends are sums of squares here, ρ² + β²/a and ρ² + (a + β)²/a, so nothing
    cancels however long the path:

        M₀ = J₀,   M₁ = (k₀ − k₁)/a,   M₂ = (M₀ − (1 + β/a) k₁ + (β/a) k₀)/a.

    Moments about t = 0 would lose ε·a where these keep all digits. All arguments broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.special import centred_moments
    >>> m0, m1, m2 = centred_moments(np.array([4.0]), np.array([-2.0]), np.array([0.0]))
    >>> m0.round(4)  # the peak is in the middle of the path
    array([0.8556])
    """
    xp = namespace(a, beta)
    t0 = beta / a
    k0 = xp.exp(-0.5 * (rho2 + t0 * beta))
    k1 = xp.exp(-0.5 * (rho2 + (1.0 + t0) * (a + beta)))
    M0 = _zeroth_moment(a, beta, k0, k1, rho2)
    return M0, (k0 - k1) / a, (M0 - (1.0 + t0) * k1 + t0 * k0) / a


def g0(a: Array) -> Array:
    """Return G₀(a) = 2∫₀¹ (1 − u) exp(−a u²/2) du for a ≥ 0.

    In closed form √(2π/a) erf √(a/2) − (2/a)(1 − exp(−a/2)). See `g2` for the branches; relative
    error a few ε everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.special import g0
    >>> g0(np.array([0.0, 1e8])).round(6)
    array([1.00e+00, 2.51e-04])
    """
    return _g(a, 0)


def g2(a: Array) -> Array:
    """Return G₂(a) = 2∫₀¹ (1 − u) u² exp(−a u²/2) du for a ≥ 0.

    In closed form √(2π) a^(−3/2) erf √(a/2) − (4/a²)(1 − exp(−a/2)). Branches: for a ≤ 16 the
    integral itself by 20 Gauss–Legendre nodes, whose terms are all positive, so nothing cancels
    (the closed form has no digit left at a = 1e-8); above, the closed form, whose two terms differ
    by a factor of two or more. Relative error a few ε everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.special import g2
    >>> g2(np.array([0.0])).round(6)
    array([0.166667])
    """
    return _g(a, 2)


def _g(a: Array, power: int) -> Array:
    xp = namespace(a)
    t, w = map(xp.asarray, gauss_legendre(20))
    near = xp.minimum(a, 16.0)
    integral = product(xp.exp(-0.5 * near[..., None] * (t * t)), 2.0 * w * (1.0 - t) * t**power)
    far = xp.maximum(a, 16.0)
    peak = SQRT_2PI / xp.sqrt(far) * erf(xp.sqrt(0.5 * far))
    drop = -xp.expm1(-0.5 * far) * (2.0 / far)
    closed = peak - drop if power == 0 else (peak - 2.0 * drop) / far
    return xp.where(a <= 16.0, integral, closed)
