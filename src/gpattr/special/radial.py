"""Integrals of radial kernels along a straight path: Hₖ = ∫₀¹ tᵏ h(r(t)) dt.

Here r² = a t² + 2β t + c. h(r) = g'(r)/r is analytic except at branch points where r² = −core, with
core = 0 for Matérn and 2α for the rational quadratic. Seen from the path they lie √(c₀ + core) and
√(c₁ + core) from its two ends, so on the Bernstein ellipse through them

    A = (√(c₀ + core) + √(c₁ + core))/√a,

n Gauss–Legendre nodes have an error of (A + √(A² − 1))^(−2n). A short rule serves every pair that
keeps its distance; the few that come near get panels graded towards the nearest point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.special import graded
from gpattr.special.graded import integrate_graded
from gpattr.special.quadrature import gauss_legendre

# (largest a, fewest nodes): exp(−√5 r) varies by e^(√5 √a) along the path, which these nodes
# integrate to 1e-14. A steep kernel may be nearly a squared exponential, which varies faster.
TIERS = {
    False: ((0.25, 6), (1.0, 8), (4.0, 10), (16.0, 16), (64.0, 24)),
    True: ((0.25, 8), (1.0, 10), (4.0, 16), (16.0, 24)),
}
ORDERS = (6, 8, 10, 12, 16, 24)
SINGLE = 40.0  # the cost of a pair that is treated by itself, in nodes
BYTES_PER_NODE = 48.0
# Up to this a both moments are integrated; beyond, completeness gives the second without dividing
# by a small number.
SHORT = 4.0


def nearest_allowed(kernel: Any, order: int) -> float:
    """Return the smallest A for which this many nodes reach the accuracy."""
    rho = 10.0 ** (kernel.digits / (2 * order))
    return 0.5 * (rho + 1.0 / rho)


def finest_panel(kernel: Any) -> float:
    """Return the length below which no panel is needed.

    A kink is too small there to matter, or g is singular at that distance.
    """
    return min(kernel.core**0.5, 1.0) if kernel.core else kernel.kink_floor


def radial_moments(
    kernel: Any, a: Array, beta: Array, c0: Array, c1: Array | None
) -> tuple[Array, Array]:
    """Return H₀ and H₁, (n, m), for a (n,), β (n, m), c₀ (m,) or (n, m), and c₁ (n, m).

    Only long paths (a > 4) need c₁. Absolute error below 5e-13 for every position of the path,
    those through a point included.
    """
    xp = namespace(a, beta)
    a = a[:, None]
    ends = c0 + 2.0 * beta + a if c1 is None else c1
    root = xp.sqrt(a)
    reach = xp.sqrt(c0 + kernel.core) + xp.sqrt(xp.maximum(ends, 0.0) + kernel.core)
    # Whatever the reach, the quotient does not overflow.
    relative = reach / xp.maximum(root, 1e-150)
    order = _order(kernel, float(a.max()), relative)
    H0, H1 = xp.zeros_like(beta), xp.zeros_like(beta)
    if order:
        for value, t in _along(kernel, a, beta, c0, order):
            H0 += value
            if c1 is None:
                value *= t
                H1 += value
    for rows, columns, single in _near(kernel, relative, order):
        pairs = (
            a[rows, 0],
            beta[rows, columns],
            c0[columns] if c0.ndim == 1 else c0[rows, columns],
        )
        moments = single(kernel, *pairs)
        H0[rows, columns] = moments[:, 0]
        H1[rows, columns] = moments[:, 1]
    if c1 is not None:
        H1 = (kernel.profile(c1) - kernel.profile(c0) - beta * H0) / a
    return H0, H1


def _order(kernel: Any, largest: float, relative: Array) -> int:
    """Return the cheapest number of nodes for all pairs of a chunk; 0 if every pair is graded."""
    fewest = next((order for upper, order in TIERS[kernel.steep] if largest <= upper), 0)
    if not fewest:
        return 0
    sample = relative[:: max(1, len(relative) // 4)]
    pairs = sample.shape[0] * sample.shape[1]
    costs = [
        (order + SINGLE * float((sample < nearest_allowed(kernel, order)).sum()) / pairs, order)
        for order in ORDERS
        if order >= fewest
    ]
    return min(costs)[1]


def _near(kernel: Any, relative: Array, order: int) -> Iterator[tuple[Array, Array, Any]]:
    """Yield rows and columns of pairs too near for the rule, A < allowed, with their own rule."""
    xp = namespace(relative)
    near = relative < nearest_allowed(kernel, order) if order else relative >= 0.0
    rows, columns = xp.nonzero(near)
    if not len(rows):
        return
    nearest = relative[rows, columns] < nearest_allowed(kernel, ORDERS[-1])
    if order == 0 or bool(nearest.all()):
        yield rows, columns, _graded
        return
    yield rows[~nearest], columns[~nearest], _fixed
    if nearest.any():
        yield rows[nearest], columns[nearest], _graded


def _along(
    kernel: Any, a: Array, beta: Array, c0: Array, order: int
) -> Iterator[tuple[Array, float]]:
    """Yield w h(r(t)), (n, m), and t, node by node."""
    xp = namespace(a, beta)
    r2 = xp.empty_like(beta)
    for t, w in zip(*(rule.tolist() for rule in gauss_legendre(order)), strict=True):
        xp.multiply(beta, 2.0 * t, out=r2)
        r2 += c0
        r2 += (t * t) * a
        # R² < 0 by rounding: a path through the point, which is treated singly.
        with np.errstate(invalid="ignore"):
            value = kernel.slope(r2)
        value *= w
        yield value, t


def _fixed(kernel: Any, a: Array, beta: Array, c0: Array) -> Array:
    """Return H₀ and H₁, (N, 2), of single pairs, by the longest of the fixed rules."""
    xp = namespace(a)
    t, w = map(xp.asarray, gauss_legendre(ORDERS[-1]))
    result = xp.empty((len(a), 2))
    for some in blocks(len(a), BYTES_PER_NODE * len(t), a):
        r2 = c0[some, None] + t * (2.0 * beta[some, None] + t * a[some, None])
        value = kernel.slope(xp.maximum(r2, 0.0))
        result[some, 0], result[some, 1] = product(value, w), product(value, w * t)
    return result


def _graded(kernel: Any, a: Array, beta: Array, c0: Array) -> Array:
    """Return H₀ and H₁, (N, 2), of single pairs, on panels that halve towards the nearest."""
    xp = namespace(a)
    a = xp.maximum(a, 1e-300)  # a path that does not move
    centre = -beta / a
    rho2 = xp.maximum(c0 + beta * centre, 0.0)
    nearest = xp.clip(centre, 0.0, 1.0)
    here = rho2 + a * (nearest - centre) ** 2

    def evaluate(rows: Array, t: Array, w: Array) -> Array:
        value = w * kernel.slope(rho2[rows, None] + a[rows, None] * (t - centre[rows, None]) ** 2)
        return xp.stack([value.sum(axis=1), (value * t).sum(axis=1)], axis=1)

    return integrate_from(kernel, evaluate, nearest, xp.sqrt(here), a, BYTES_PER_NODE)


def integrate_from(
    kernel: Any,
    evaluate: graded.Evaluate,
    nearest: Array,
    distance: Array,
    a: Array,
    bytes_per_node: float,
) -> Array:
    """Return ∫₀¹ of functions of r(t), (N, ...), on panels that double from the ``nearest`` point.

    That point is ``distance`` from r = 0. The first panel is as wide as that distance, or two
    length-scales where there is none to speak of (r² = a(t − t*)²).
    """
    xp = namespace(a)
    finest = finest_panel(kernel)
    near = xp.maximum(xp.minimum(distance, 2.0), finest)
    touching = distance <= finest if not kernel.core else distance < 0.0
    delta = xp.where(touching, 2.0, near) / xp.sqrt(a)
    edges = xp.zeros((len(a), 1)) + xp.asarray([0.0, 1.0])
    centres, deltas = (
        xp.stack([nearest, nearest], axis=1),
        xp.stack([delta, xp.where(touching, 0.0, xp.inf)], axis=1),
    )
    singular = not kernel.one_sided
    order = graded.SINGULAR_ORDER if singular else 16
    return integrate_graded(
        evaluate, edges, centres, deltas, bytes_per_node, order=order, singular=singular
    )


def corner_moments(kernel: Any, c2: Array) -> tuple[Array, Array]:
    """Return ∫₀¹ λ h(λc) dλ and ∫₀¹ λ³ b(λc) dλ, b = h'/r, for c² (...).

    They are (g(c) − 1)/c² and (h(c) − 2(g(c) − 1)/c²)/c². Up to c = 1, where the differences would
    cancel, they are integrated (up to √core, beyond which g is not smooth enough).
    """
    xp = namespace(c2)
    least = min(kernel.core, 1.0) if kernel.core else 1.0
    far = xp.maximum(c2, least)
    Lh = (kernel.profile(far) - 1.0) / far
    Lb = (kernel.slope(far) - 2.0 * Lh) / far
    near = c2 < least
    if near.any():
        order = 16 if kernel.one_sided else graded.SINGULAR_ORDER
        x, w = gauss_legendre(order)
        if not kernel.one_sided:
            x, w = x**graded.POWER, w * graded.POWER * x ** (graded.POWER - 1)
        some = c2[near]
        h, b = xp.zeros_like(some), xp.zeros_like(some)
        for t, v in zip(x.tolist(), w.tolist(), strict=True):
            r2 = t * t * some
            h += (v * t) * kernel.slope(r2)
            b += (v * t**3) * kernel.curvature(r2)
        Lh[near], Lb[near] = h, b
    return Lh, Lb


def prior_moments(kernel: Any, a: Array) -> tuple[Array, Array]:
    """Return F = 2(1 − g(√a))/a and B = 2∫₀¹ (1 − u) u² b(u√a) du, b = h'(r)/r, (n,) each.

    They give the prior covariance along one path. Panels have edges at u√a = 2, 4, 8, …, for b
    falls off like a length-scale. F is an integral too where 1 − g would cancel.
    """
    xp = namespace(a)
    edges = xp.zeros((len(a), 1)) + xp.asarray([0.0, 1.0])
    delta = (min(2.0, kernel.core**0.5) if kernel.core else 2.0) / xp.sqrt(xp.maximum(a, 1e-300))
    # And an edge at u = 0, where some kernels are singular.
    deltas = xp.stack([delta, xp.zeros_like(delta)], axis=1)

    def evaluate(rows: Array, u: Array, w: Array) -> Array:
        r2, weight = a[rows, None] * u * u, 2.0 * w * (1.0 - u)
        curvature = kernel.curvature(r2) * u * u
        return xp.stack(
            [
                (weight * curvature).sum(axis=1),
                (weight * (kernel.slope(r2) + a[rows, None] * curvature)).sum(axis=1),
            ],
            axis=1,
        )

    options = {"order": 20, "singular": not kernel.one_sided}
    moments = integrate_graded(
        evaluate, edges, xp.zeros_like(deltas), deltas, BYTES_PER_NODE, **options
    )
    fall = 2.0 * (1.0 - kernel.profile(a)) / xp.maximum(a, 1.0)
    return xp.where(a > 1.0, fall, -moments[:, 1]), moments[:, 0]
