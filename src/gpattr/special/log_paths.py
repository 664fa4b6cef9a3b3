"""Nodes along paths for integrals with the weights −ln s and −s ln s.

A smooth kernel shares its nodes among all points. Where it has a kink, or changes over a small part
of a long path only, panels are graded: towards s = 0, where the logarithm is singular, and towards
the closest approach, where the kernel changes fastest.

Gauss rules for the weight −ln s on [0, 1], which integrated Hessians carry.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr.special.quadrature import gauss_legendre, unit_rule

# (largest length in length-scales, nodes): the fewest nodes of the logarithmic rule, and one more,
# whose error is below 1e-14 of a squared exponential, over every position of the peak.
SHORT_PATHS = ((0.01, 4), (0.1, 6), (0.5, 8), (1.0, 9), (2.0, 12), (3.0, 14), (4.0, 16))
PANEL = 2.0  # length-scales that 16 nodes resolve
# Distances from the closest approach, in length-scales: panels double up to 2, and from 16 on.
DISTANCES = (*(2.0**k for k in range(-22, 2)), 3.0, 4.0, 5.5, 7.0, 9.0, 12.0, 16.0, 24.0, 32.0)


def shared_rule(length: float, *, gaussian: bool) -> tuple[Array, Array]:
    """Return nodes and weights of −ln s for a smooth kernel on paths of up to this length.

    A squared exponential is entire, so that a single rule reaches further.
    """
    if gaussian:
        for longest, order in SHORT_PATHS:
            if length <= longest:
                return log_rule(order)
    return log_panels(max(1, math.ceil(length / PANEL)))


class GradedNodes(NamedTuple):
    """Nodes s = centre + v on graded panels, (F, k) each, of the paths ``owner`` (F,).

    ``weights`` belong to −ln s.
    """

    owner: Array
    v: Array
    s: Array
    weights: Array

    def sums(self, values: Array, count: int) -> Array:
        """Return the sums of values (F, k) over the nodes of each of ``count`` paths."""
        xp = namespace(values)
        return xp.bincount(self.owner, values.sum(axis=1), minlength=count)


class Grading(NamedTuple):
    """Grading of paths: nodes a panel, the first distance, and octaves towards s = 0."""

    order: int
    finest: float
    depth: int


# Kinks like r² and weaker do not matter within 2⁻¹⁴ length-scales. Double integrals have rougher
# integrands, down to a small power of r, along the inner path; along the outer one their kinks are
# smoothed.
FINE, OUTER, INNER = Grading(10, 2.0**-14, 24), Grading(7, 2.0**-12, 14), Grading(7, 2.0**-22, 14)


def graded_nodes(
    centre: Array,
    length: Array,
    distance: Array,
    more: tuple[Array, ...] = (),
    grading: Grading = FINE,
) -> GradedNodes:
    """Return panels of P paths graded towards s = 0 and ``centre`` (P,) in [0, 1].

    ``length`` (P,) is the path's length and ``distance`` (P,) its closest approach, in
    length-scales: the kernel is smooth at smaller scales. ``more`` are further positions in [0, 1]
    to which panels are graded.
    """
    xp = namespace(centre)
    centre, length, distance = (part[:, None] for part in (centre, length, distance))
    longest = float(length.max()) if len(length) else 1.0
    doublings = max(0, math.ceil(math.log2(max(longest, 1.0))))
    depth = grading.depth + doublings
    far = [DISTANCES[-1] * 2.0**k for k in range(1, doublings)]
    near = [distance for distance in DISTANCES if distance >= grading.finest]
    grid = xp.asarray([*near, *far])
    reach = xp.where(grid < 0.25 * distance, 0.0, grid) / xp.maximum(length, 1e-300)
    octaves = xp.asarray([0.0, *(2.0**-k for k in range(depth, -1, -1))])
    parts = [reach, -reach, octaves - centre, 0.0 * centre]
    full = grid / xp.maximum(length, 1e-300)
    for other in more:
        offset = other[:, None] - centre
        parts += [offset, offset + full, offset - full]
    edges = xp.minimum(xp.maximum(xp.concatenate(parts, axis=1), -centre), 1.0 - centre)
    edges = xp.where(edges + centre < 2.0**-depth, -centre, edges)
    edges = np.sort(edges, axis=1) if xp is np else xp.torch.sort(edges, dim=1).values
    owner, place = xp.nonzero(edges[:, 1:] - edges[:, :-1] > 1e-16 * 2.0**-doublings)
    return _on_panels(
        owner, edges[owner, place], edges[owner, place + 1], centre[:, 0][owner], grading.order
    )


def _on_panels(owner: Array, low: Array, high: Array, centre: Array, order: int) -> GradedNodes:
    xp = namespace(low)
    x, w = map(xp.asarray, gauss_legendre(order))
    width = (high - low)[:, None]
    v = low[:, None] + width * x
    first = (low + centre == 0.0)[:, None]
    s = xp.where(first, width * x, v + centre[:, None])
    s = xp.maximum(s, 1e-300)
    # −ln s = −ln(s/width) − ln(width): the first is singular on the first panel only.
    at_zero = xp.asarray(interpolatory_weights(order)) - xp.log(xp.maximum(width, 1e-300)) * w
    return GradedNodes(owner, v, s, width * xp.where(first, at_zero, -xp.log(s) * w))


@lru_cache(maxsize=1)
def path_correlations() -> tuple[Array, Array, Array]:
    """Return v in [0, 1] and weights of W₂ and W₁, which reduce double integrals along one path.

        Wₙ(v) = ∫ᵥ¹ (s(s − v))ⁿ⁻¹ ln s ln(s − v) ds

    Then ∫∫ (st)ⁿ⁻¹ ln s ln t f(|s − t|) ds dt = 2∫ Wₙ(v) f(v) dv. Panels are octaves of v, so that
    the rule resolves f of any width and the kink of W at 0, and octaves of 1 − v, where W is like
    (1 − v)² ln(1 − v).
    """
    x, w = gauss_legendre(16)
    octaves = 2.0 ** -np.arange(1.0, 62.0)[:, None]
    unit, weight = (octaves * (1.0 + x)).ravel(), (octaves * w).ravel()  # on [0, 1]
    low = unit < 0.5
    high = low & (unit > 2.0**-28)
    v, rest = (
        np.concatenate([unit[low], 1.0 - unit[high]]),
        np.concatenate([1.0 - unit[low], unit[high]])[:, None],  # 1 − v
    )
    y = unit * rest  # s = v + y
    log_s = np.where(v[:, None] < 0.5, np.log(v[:, None] + y), np.log1p(np.maximum(y - rest, -0.6)))
    values = np.log(y) * log_s * rest
    first = product(values, weight)
    second = product(values * (v[:, None] + y) * y, weight)
    outer = np.concatenate([weight[low], weight[high]])
    rules = v, outer * second, outer * first
    for rule in rules:
        rule.flags.writeable = False
    return rules


ORDER = 16  # nodes of a panel
OCTAVES = 70  # −ln s below 2⁻⁷⁰ has no weight in extended precision


@lru_cache(maxsize=64)
def log_rule(order: int) -> tuple[Array, Array]:
    """Return nodes and weights, (order,) each, of the Gauss rule for ∫₀¹ (−ln s) f(s) ds.

    Exact for polynomials of degree 2·order − 1. The arrays are shared and read-only.
    """
    x, w = _gauss(order)
    return _read_only(x.astype(np.float64), w.astype(np.float64))


@lru_cache(maxsize=256)
def log_panels(panels: int) -> tuple[Array, Array]:
    """Return a composite rule for ∫₀¹ (−ln s) f(s) ds, with ``panels`` panels of 16 nodes.

    On the first panel, [0, 1/n], −ln s = −ln(ns) + ln n: the Gauss rule for the logarithm, and ln n
    times Gauss–Legendre; elsewhere the logarithm is smooth.
    """
    first, weight = log_rule(ORDER)
    nodes, weights = gauss_legendre(ORDER, panels)
    own = np.where(nodes < 1.0 / panels, np.log(panels), -np.log(nodes)) * weights
    keep = own != 0.0  # a single panel has no second rule
    return _read_only(
        np.concatenate([first / panels, nodes[keep]]),
        np.concatenate([weight / panels, own[keep]]),
    )


@lru_cache(maxsize=8)
def interpolatory_weights(order: int) -> Array:
    """Return weights of ∫₀¹ (−ln s) f(s) ds at the Gauss–Legendre nodes of this order.

    Exact for polynomials of degree order − 1: Lagrange's weights, in terms of Legendre polynomials.
    """
    x, w = unit_rule(order)
    s, v = _gauss(order)
    legendre, moments = (
        np.stack([_legendre(k, 2 * at - 1) for k in range(order)]) for at in (x, s)
    )
    weights = w * (((2 * np.arange(order) + 1)[:, None] * legendre).T @ (moments @ v))
    weights = weights.astype(np.float64)
    weights.flags.writeable = False
    return weights


def _gauss(order: int) -> tuple[Array, Array]:
    """Return the rule in extended precision, by the procedure of Stieltjes.

    Its inner products are taken on octaves [2⁻ᵏ⁻¹, 2⁻ᵏ], on which the logarithm is smooth.
    """
    unit, weight = unit_rule(40)
    size = np.longdouble(2.0) ** -np.arange(1, OCTAVES + 1)[:, None]
    s, w = (size * (1 + unit)).ravel(), (size * weight).ravel()
    w = -w * np.log(s)
    alpha, beta = np.zeros(order, np.longdouble), np.zeros(order, np.longdouble)
    previous, value = np.zeros_like(s), np.ones_like(s)
    norm = np.longdouble(1.0)
    for k in range(order):
        square = (w * value * value).sum()
        beta[k] = square / norm
        alpha[k] = (w * s * value * value).sum() / square
        shift = (s - alpha[k]) * value - (beta[k] if k else 0.0) * previous
        previous, value, norm = value, shift, square
    root = np.sqrt(beta[1:]).astype(np.float64)
    jacobi = np.diag(alpha.astype(np.float64)) + np.diag(root, 1) + np.diag(root, -1)
    x = np.linalg.eigvalsh(jacobi).astype(np.longdouble)
    for _ in range(3):  # Newton's method, from eigenvalues in double precision
        last, slope, _ = _orthogonal(alpha, beta, x)
        x = x - last / slope
    return x, 1 / _orthogonal(alpha, beta, x)[2]


def _orthogonal(alpha: Array, beta: Array, x: Array) -> tuple[Array, Array, Array]:
    """Return the polynomial of the last degree, its slope, and Σₖ pₖ²/‖pₖ‖² of the lower ones."""
    before, value = np.zeros_like(x), np.ones_like(x)
    slope_before, slope = np.zeros_like(x), np.zeros_like(x)
    total, norm = np.zeros_like(x), np.longdouble(1.0)
    for k in range(len(alpha)):
        norm = norm * beta[k]
        total += value * value / norm
        lower = beta[k] if k else np.longdouble(0.0)
        before, value, slope_before, slope = (
            value,
            (x - alpha[k]) * value - lower * before,
            slope,
            value + (x - alpha[k]) * slope - lower * slope_before,
        )
    return value, slope, total


def _legendre(degree: int, x: Array) -> Array:
    previous, value = np.ones_like(x), x
    if degree == 0:
        return previous
    for k in range(2, degree + 1):
        previous, value = value, ((2 * k - 1) * x * value - (k - 1) * previous) / k
    return value


def _read_only(nodes: Array, weights: Array) -> tuple[Array, Array]:
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
