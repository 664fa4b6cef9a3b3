"""Integrals over [0, 1] of functions smooth except near some points, on graded panels.

A function of √(ρ² + a(t − t*)²) has branch points at distance ρ/√a from t*. On a panel [δ, 2δ] seen
from t*, with δ at least that distance, a Gauss–Legendre rule of n nodes converges like 5.8^(−2n),
wherever the branch points lie.

Where ρ = 0 there is one panel to each side of t*. A function that is not smooth even to one side,
such as |t − t*|^0.4, is integrated there in v, t = t* ± v⁵: its powers become ones that 20 nodes
integrate to 1e-13.
"""

from __future__ import annotations

from collections.abc import Callable

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.special.quadrature import gauss_legendre

ORDER, CHECK_ORDER = 12, 8  # nodes a panel, of the rule and of the second rule
SINGULAR_ORDER, SINGULAR_CHECK_ORDER = 20, 16  # where some function is not smooth to one side
POWER = 5
DEEPEST = 40  # halvings: 2⁻⁴⁰ = 1e-12 of the path

Evaluate = Callable[[Array, Array, Array], Array]


def integrate_graded(
    evaluate: Evaluate,
    edges: Array,
    centres: Array,
    deltas: Array,
    bytes_per_node: float,
    *,
    order: int = ORDER,
    singular: bool = False,
) -> Array:
    """Return ∫₀¹ fₖ(t) dt for N functions, (N, ...).

    ``edges`` (N, E), ascending from 0 to 1, are panels on which f is smooth except at the points
    ``centres`` (N, K), towards which panels halve down to ``deltas`` (N, K), all in units of t;
    δ = 0 means only an edge there, δ = ∞ nothing. With ``singular``, f is not smooth to
    one side of the centres with δ = 0. ``evaluate(rows, t, w)`` returns Σ_T w f(t), (len(rows),
    ...), for nodes and weights (len(rows), T).
    """
    xp = namespace(edges)
    width = xp.max(edges[:, 1:] - edges[:, :-1], axis=1)[:, None]
    finest = xp.where(deltas > 0, deltas, xp.inf)
    levels = (
        xp.ceil(xp.log2(xp.maximum(xp.max(width / finest, axis=1), 1.0)))
        if centres.shape[1]
        else xp.zeros(len(edges))
    )
    levels = xp.minimum(levels, float(DEEPEST))
    x, w = map(xp.asarray, gauss_legendre(order))
    result = None
    for depth in sorted(map(int, set(levels.tolist()))):
        rows = xp.nonzero(levels == depth)[0]
        panels = edges.shape[1] - 1 + centres.shape[1] * (1 + 2 * depth)
        for block in blocks(len(rows), bytes_per_node * panels * order, edges):
            chosen = rows[block]
            ends = _panels(edges[chosen], centres[chosen], deltas[chosen], depth, singular)
            points = xp.where(deltas[chosen] == 0, centres[chosen], -1.0) if singular else None
            part = evaluate(chosen, *_nodes(*ends, x, w, points))
            if result is None:
                result = xp.zeros((len(edges), *part.shape[1:]))
            result[chosen] = part
    assert result is not None
    return result


def _panels(
    edges: Array, centres: Array, deltas: Array, depth: int, singular: bool
) -> tuple[Array, Array]:
    """Return lower and upper ends (n, P) of all panels; some are empty."""
    xp = namespace(edges)
    parts = [edges, xp.where(deltas < xp.inf, centres, 0.0)]
    for level in range(depth):
        reach = xp.minimum(deltas, 2.0) * 2.0**level
        parts += [centres - reach, centres + reach]
    if singular and centres.shape[1] > 1:  # no panel ends at two such points
        ordered = xp.sort(centres)
        parts.append(0.5 * (ordered[:, 1:] + ordered[:, :-1]))
    cuts = xp.sort(xp.clip(xp.concatenate(parts, axis=1), 0.0, 1.0))
    lower, upper = cuts[:, :-1], cuts[:, 1:]
    empty = upper <= lower
    if not empty.any():
        return lower, upper
    most = lower.shape[1] - int(empty.sum(axis=1).min())
    order = xp.argsort(empty * 2.0 + lower)[:, :most]  # the empty ones last
    rows = xp.arange(len(lower))[:, None]
    return lower[rows, order], upper[rows, order]


def _nodes(
    lower: Array, upper: Array, x: Array, w: Array, points: Array | None
) -> tuple[Array, Array]:
    """Return nodes and weights, (n, T), on panels (n, P), graded towards the ``points``.

    Towards such an end they are taken to the fifth power.
    """
    xp = namespace(lower)
    width = (upper - lower)[:, :, None]
    if points is None:
        t, weights = lower[:, :, None] + width * x, width * w
    else:
        at_lower, at_upper = (
            (end[:, :, None] == points[:, None, :]).any(axis=2)[:, :, None]
            for end in (lower, upper)
        )
        near, slope = x**POWER, POWER * x ** (POWER - 1)
        mirrored, mirrored_slope = (1.0 - x) ** POWER, POWER * (1.0 - x) ** (POWER - 1)
        offset = xp.where(at_lower, near, x)
        t = xp.where(
            at_upper, upper[:, :, None] - width * mirrored, lower[:, :, None] + width * offset
        )
        weights = width * w * xp.where(at_upper, mirrored_slope, xp.where(at_lower, slope, 1.0))
    return t.reshape(len(lower), -1), weights.reshape(len(lower), -1)


def approach(p: Array, e: Array, floor: float) -> tuple[Array, Array]:
    """Return where paths e + t p, t ∈ [0, 1], are nearest the origin, and how near, in units of t.

    A distance below ``floor``, in the units of e and p, is 0. A path that does not move has no
    nearest point: its distance is infinite.
    """
    xp = namespace(p, e)
    a = (p * p).sum(axis=-1)
    moving = a > 0
    safe = xp.where(moving, a, 1.0)
    beta = (p * e).sum(axis=-1) / safe
    nearest = xp.clip(-beta, 0.0, 1.0)
    here = e + nearest[..., None] * p
    distance = xp.sqrt((here * here).sum(axis=-1))
    distance = xp.where(distance > floor, distance / xp.sqrt(safe), 0.0)
    return nearest, xp.where(moving, distance, xp.inf)
