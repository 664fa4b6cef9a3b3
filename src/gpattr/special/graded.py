"""Integrals over [0, 1] whose integrand is smooth but near some points: panels that halve towards them.

A function of √(ρ² + a(t − t*)²) has branch points at distance ρ/√a from t*. On a panel [δ, 2δ] seen from t*, with δ at least that
distance, a Gauss–Legendre rule of n nodes converges like 5.8^(−2n), wherever the branch points lie.
"""

from __future__ import annotations

from collections.abc import Callable

from gpattr._array import Array, namespace
from gpattr._memory import blocks
from gpattr.special.quadrature import gauss_legendre

ORDER, CHECK_ORDER = 12, 8  # nodes a panel, and those of the second rule
DEEPEST = 40  # halvings: 2⁻⁴⁰ = 1e-12 of the path

Evaluate = Callable[[Array, Array, Array], Array]


def integrate_graded(
    evaluate: Evaluate, edges: Array, centres: Array, deltas: Array, bytes_per_node: float, *, order: int = ORDER
) -> Array:
    """Return ∫₀¹ fₖ(t) dt for N functions, (N, ...).

    ``edges`` (N, E), ascending from 0 to 1, are panels on which f is smooth but for the points ``centres`` (N, K), towards which
    panels halve down to ``deltas`` (N, K), all in units of t; δ = 0 asks for an edge there and no more, δ = ∞ for nothing.
    ``evaluate(rows, t, w)`` returns Σ_T w f(t), (len(rows), ...), for nodes and weights (len(rows), T).
    """
    xp = namespace(edges)
    width = xp.max(edges[:, 1:] - edges[:, :-1], axis=1)[:, None]
    finest = xp.where(deltas > 0, deltas, xp.inf)
    levels = xp.ceil(xp.log2(xp.maximum(xp.max(width / finest, axis=1), 1.0))) if centres.shape[1] else xp.zeros(len(edges))
    levels = xp.minimum(levels, float(DEEPEST))
    x, w = map(xp.asarray, gauss_legendre(order))
    result = None
    for depth in sorted(map(int, set(levels.tolist()))):
        rows = xp.nonzero(levels == depth)[0]
        panels = edges.shape[1] - 1 + centres.shape[1] * (1 + 2 * depth)
        for block in blocks(len(rows), bytes_per_node * panels * order, edges):
            chosen = rows[block]
            lower, upper = _panels(edges[chosen], centres[chosen], deltas[chosen], depth)
            t = (lower[:, :, None] + (upper - lower)[:, :, None] * x).reshape(len(chosen), -1)
            weights = ((upper - lower)[:, :, None] * w).reshape(len(chosen), -1)
            part = evaluate(chosen, t, weights)
            if result is None:
                result = xp.zeros((len(edges), *part.shape[1:]))
            result[chosen] = part
    assert result is not None
    return result


def _panels(edges: Array, centres: Array, deltas: Array, depth: int) -> tuple[Array, Array]:
    """Return lower and upper ends (n, P) of all panels; some are empty."""
    xp = namespace(edges)
    parts = [edges, centres]
    for level in range(depth):
        reach = xp.minimum(deltas, 2.0) * 2.0**level
        parts += [centres - reach, centres + reach]
    cuts = xp.sort(xp.clip(xp.concatenate(parts, axis=1), 0.0, 1.0))
    lower, upper = cuts[:, :-1], cuts[:, 1:]
    empty = upper <= lower
    if not empty.any():
        return lower, upper
    most = lower.shape[1] - int(empty.sum(axis=1).min())
    order = xp.argsort(empty * 2.0 + lower)[:, :most]  # the empty ones last
    rows = xp.arange(len(lower))[:, None]
    return lower[rows, order], upper[rows, order]


def approach(p: Array, e: Array, floor: float) -> tuple[Array, Array]:
    """Return where on the paths e + t p, t ∈ [0, 1], the origin is nearest, and how near, in units of t: (...), (...).

    ``floor`` bounds the distance from below, in the units of e and p; one-dimensional paths hit the origin or never come near:
    there the distance is 0. A path that does not move has no nearest point: its distance is infinite.
    """
    xp = namespace(p, e)
    a = (p * p).sum(axis=-1)
    moving = a > 0
    safe = xp.where(moving, a, 1.0)
    beta = (p * e).sum(axis=-1) / safe
    nearest = xp.clip(-beta, 0.0, 1.0)
    if p.shape[-1] == 1:
        return nearest, xp.where(moving, 0.0, xp.inf)
    here = e + nearest[..., None] * p
    distance = xp.sqrt((here * here).sum(axis=-1) / safe)  # to the branch points, as seen from the nearest point of the path
    return nearest, xp.where(moving, xp.maximum(distance, floor / xp.sqrt(safe)), xp.inf)
