"""Rules along the diagonal of multilinear extensions: how many nodes, and where.

The integrand of a Shapley value is a product of d − 1 factors that are linear in t, so ⌈d/2⌉ nodes
of Gauss–Legendre are exact. Fewer are enough where the factors vary little: on the Bernstein
ellipse with parameter ρ and half axis A = (ρ + 1/ρ)/2 a factor (1 + sc)/(1 + |c|), s in [−1, 1], is
at most exp((A − 1)|c|/(1 + |c|)), so that with Λ = Σ |c|/(1 + |c|)

    error of q nodes ≤ (64/15) exp((A − 1)Λ) ρ^(−2q)/(1 − ρ⁻²).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from gpattr._core.array import Array
from gpattr.special.quadrature import gauss_legendre

ACCURACY = 1e-16
_RHO = 1.0 + np.geomspace(0.02, 400.0, 200)
_AXIS = 0.5 * (_RHO + 1.0 / _RHO)


def nodes_needed(spread: float, players: int, excess: float = 0.0) -> int:
    """Return how many nodes integrate the product of factors with this Λ to 1e-16.

    It is never more than ⌈players/2⌉, which is exact. ``excess`` is the logarithm of what the bound
    is relative to, over what 1e-16 shall be relative to.
    """
    most = max(1, (players + 1) // 2)
    if not math.isfinite(spread + excess):
        return most
    exponent = math.log(64.0 / 15.0 / ACCURACY) + excess + (_AXIS - 1.0) * spread
    exponent = exponent - np.log1p(-(_RHO**-2.0))
    needed = math.ceil(float((exponent / (2.0 * np.log(_RHO))).min()))
    return max(1, min(most, needed))


@lru_cache(maxsize=256)
def symmetric_rule(q: int) -> tuple[float, tuple[tuple[float, float], ...]]:
    """Return Gauss–Legendre with q nodes on [−1, 1]: the weight at 0, and (s, weight) for s > 0."""
    t, w = gauss_legendre(q)
    half = [(2.0 * float(a) - 1.0, 2.0 * float(b)) for a, b in zip(t, w, strict=True)][-(q // 2) :]
    centre = 2.0 * float(w[q // 2]) if q % 2 else 0.0
    return centre, tuple(half) if q > 1 else ()


@lru_cache(maxsize=256)
def product_rule(q: int) -> tuple[Array, Array]:
    """Return the Gauss rule, (q,) each, for the product of two uniform variables on [−1, 1].

    Its density is −½ ln|w|. Polynomials of degree 2q − 1 in w = st are integrated exactly by a
    tensor rule, from which the three-term recurrence is found by Stieltjes' procedure in extended
    precision; nodes are the eigenvalues of its Jacobi matrix.
    """
    t, weight = (part.astype(np.longdouble) for part in gauss_legendre(q + 1))
    s = 2 * t - 1
    points, mass = np.multiply.outer(s, s).ravel(), np.multiply.outer(weight, weight).ravel()
    before, now, rises = np.zeros_like(points), np.ones_like(points), []
    norm = (mass * now * now).sum()
    now = now / np.sqrt(norm)
    rise = np.longdouble(0.0)
    for _ in range(q - 1):  # the measure is symmetric: the diagonal is zero
        before, now = now, points * now - rise * before
        rise = np.sqrt((mass * now * now).sum())
        now = now / rise
        rises.append(rise)
    if q == 1:
        return _frozen(np.zeros(1)), _frozen(np.ones(1))
    nodes = np.linalg.eigvalsh(np.diag(np.array(rises, dtype=np.float64), -1))
    nodes = 0.5 * (nodes - nodes[::-1])  # exactly symmetric
    # Weights are 1/Σ pₖ(w)² (Christoffel), in extended precision at the rounded nodes.
    x = nodes.astype(np.longdouble)
    before, now, total = np.zeros_like(x), np.ones_like(x), np.ones_like(x)
    previous = np.longdouble(0.0)
    for rise in rises:
        before, now = now, (x * now - previous * before) / rise
        total = total + now * now
        previous = rise
    return _frozen(nodes), _frozen((1 / total / (1 / total).sum()).astype(np.float64))


def _frozen(x: np.ndarray) -> Array:
    x.flags.writeable = False
    return x
