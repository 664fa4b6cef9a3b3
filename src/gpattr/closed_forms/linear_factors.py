"""Integrated gradients of a radial kernel times factors that are linear in each argument.

    k(x, z) = σ² g(r) ∏_c L_c(x, z)

Kernels of categories are such factors: ρ + (1 − ρ) e·e' of one-hot columns e. Along a path all L_c
are linear in t, so that a few scalar integrals serve all features. With p = (x − b)/ℓ,
e = (b − z)/ℓ, h(r) = g'(r)/r, P = ∏_c L_c and P₋c the product without L_c,

    𝒜ᵢk(·, z)(x) = σ² pᵢ (pᵢ H₁ + eᵢ H₀) + σ² Σ_c (xᵢ − bᵢ) ∂ᵢL_c(·, z) J_c,
    Hₖ = ∫₀¹ tᵏ h(r) P dt,      J_c = ∫₀¹ g(r) P₋c dt.

Prior covariances are moments of the same kind over two paths (`_covariance`). All are taken by
Gauss–Legendre panels, which end where a Matérn kernel is not smooth: where a path is closest to a
point, or to another path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from gpattr._core.array import EPS, Array, chunk_rows, namespace, product, squared_distances
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.geometry import closest_approach
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import (
    Constant,
    Kernel,
    Matern52,
    Product,
    Radial,
    Scale,
    Select,
    SquaredExponential,
)
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_legendre

# The longest panel, in length-scales, for a number of nodes; each two factors need one more.
# Rougher kernels need finer panels than these.
RULES = {
    SquaredExponential: ((0.5, 8), (1.0, 10), (2.0, 12), (4.0, 16)),
    Matern52: ((0.5, 16), (1.0, 20), (2.0, 24)),
}
SQUARES = ((1.0, 8), (2.0, 12))  # of two paths that may nearly touch
# Relative to the largest integrand: more than the largest error of 400 random kernels.
ERRORS = {SquaredExponential: 1e-13, Matern52: 5e-14}
VARIANCES = {SquaredExponential: 1e-13, Matern52: 1e-10}
NEARLY_TOUCHING = {SquaredExponential: 1e-13, Matern52: 1e-8}
PAIR_COSTS = {SquaredExponential: 1.5e4, Matern52: 3e4}
LONGEST = 256  # length-scales of a path; the general quadrature halves panels of longer ones

Rule = tuple[int, int]  # nodes of a panel, and panels


@dataclass(frozen=True)
class Factorised:
    """σ² times a ``radial`` kernel of some ``features`` times ``factors``, linear kernels."""

    variance: float
    radial: Radial
    features: list[int] | None
    factors: tuple[Kernel, ...]

    @property
    def more(self) -> int:
        """The number of nodes that the factors need in addition."""
        return (len(self.factors) + 1) // 2

    def seen(self, X: Array) -> Array:
        """Return the columns of the radial kernel, in length-scales."""
        columns = X if self.features is None else X[:, self.features]
        return columns / namespace(X).asarray(self.radial.lengthscale)

    def places(self, d: int) -> list[int]:
        return list(range(d)) if self.features is None else self.features

    def products(self, L: list[Array], one: Array) -> tuple[Array, list[Array]]:
        """Return P and each P₋c, by products of the factors before and after."""
        before, after = [one], [one]
        for factor in L[:-1]:
            before.append(before[-1] * factor)
        for factor in L[:0:-1]:
            after.append(factor * after[-1])
        if not L:
            return one, []
        return before[-1] * L[-1], [x * y for x, y in zip(before, reversed(after), strict=True)]


def factorised(kernel: Kernel) -> Factorised | None:
    """Return a product as one radial kernel and linear factors; None for any other kernel."""
    leaves, variance = _leaves(kernel)
    inner = [leaf.kernel if isinstance(leaf, Select) else leaf for leaf in leaves]
    radial = [k for k, leaf in enumerate(inner) if isinstance(leaf, Radial)]
    factors = tuple(leaf for k, leaf in enumerate(leaves) if k not in radial)
    if len(radial) != 1 or not factors or any(leaf.polynomial_degree != 1 for leaf in factors):
        return None
    chosen, leaf = inner[radial[0]], leaves[radial[0]]
    if type(chosen) not in RULES or not isinstance(chosen, Radial):
        return None
    features = list(leaf.features) if isinstance(leaf, Select) else None
    return Factorised(variance * chosen.variance, chosen, features, factors)


def _leaves(kernel: Kernel) -> tuple[list[Kernel], float]:
    """Return the factors of a product and its constant multiplier."""
    if isinstance(kernel, Constant):
        return [], kernel.variance
    if isinstance(kernel, Scale):
        leaves, variance = _leaves(kernel.kernel)
        return leaves, variance * kernel.variance
    if isinstance(kernel, Product):
        parts = [_leaves(part) for part in kernel.kernels]
        return [leaf for leaves, _ in parts for leaf in leaves], prod(v for _, v in parts)
    return [kernel], 1.0


def linear_factor_formulas(kernel: Factorised, general: Formulas) -> Formulas:
    """Return the formulas of integrated gradients for such a kernel; ``general`` for long paths."""

    def short(*paths: Paths) -> bool:
        return all(_longest(kernel, each) <= LONGEST for each in paths)

    return Formulas(
        cross=lambda paths, Z: (
            _cross(kernel, paths, Z) if short(paths) else general.cross(paths, Z)
        ),
        contract=lambda paths, Z, w: (
            _contract(kernel, paths, Z, w) if short(paths) else general.contract(paths, Z, w)
        ),
        prior_cov=lambda paths: (
            _pairs(kernel, paths, paths, same=True) if short(paths) else general.prior_cov(paths)
        ),
        between=lambda paths, other: (
            _pairs(kernel, paths, other, same=False)
            if short(paths, other)
            else general.between(paths, other)
        ),
        methods=frozenset({"quadrature"}),
        bound=lambda paths, Z, w: (
            _bound(kernel, paths, Z, w) if short(paths) else general.contract(paths, Z, w).error
        ),
        pair_cost=PAIR_COSTS[type(kernel.radial)],
    )


class FactorMoments(NamedTuple):
    """H₀, H₁ and each J_c of some ``rows`` and all points, (r, m)."""

    rows: Array
    H0: Array
    H1: Array
    J: list[Array]


def _moments(kernel: Factorised, paths: Paths, Z: Array) -> Iterator[FactorMoments]:
    """Yield the moments of paths by blocks, paths of about one length together."""
    slopes = [_slope(factor, Z) for factor in kernel.factors]
    size = chunk_rows(Z, len(Z))
    for rule, group in _by_panels(kernel, paths.step, RULES[type(kernel.radial)]):
        for start in range(0, len(group), size):
            yield _block(kernel, paths, Z, slopes, rule, group[start : start + size])


def _block(
    kernel: Factorised, paths: Paths, Z: Array, slopes: list[Array], rule: Rule, rows: Array
) -> FactorMoments:
    xp, paths = namespace(Z), paths[rows]
    p, E = kernel.seen(paths.step), kernel.seen(paths.start[:1] - Z)
    a, beta = (p * p).sum(axis=1)[:, None], product(p, E.T)
    scale = xp.asarray(kernel.radial.lengthscale)
    columns = kernel.places(Z.shape[1])
    c = squared_distances(paths.start[:, columns], Z[:, columns], scale)
    if not paths.shared_start:
        beta = beta + (p * kernel.seen(paths.start - paths.start[:1])).sum(axis=1)[:, None]
    first = [factor(paths.start, Z) for factor in kernel.factors]
    change = [product(paths.step, slope.T) for slope in slopes]
    zero = xp.zeros(beta.shape)
    H0, H1, J = zero, zero, [zero for _ in slopes]
    for t, w in _nodes_along(kernel, a, beta, rule):
        r2 = xp.maximum(c + t * (2.0 * beta + t * a), 0.0)
        g, h, _ = kernel.radial.profiles(r2, False)
        P, others = kernel.products(
            [x + t * y for x, y in zip(first, change, strict=True)], zero + 1.0
        )
        weighted = w * h * P
        H0, H1, g = H0 + weighted, H1 + t * weighted, w * g
        J = [x + g * y for x, y in zip(J, others, strict=True)]
    return FactorMoments(rows, H0, H1, J)


def _nodes_along(
    kernel: Factorised, a: Array, beta: Array, rule: Rule
) -> Iterator[tuple[Array | float, Array | float]]:
    """Yield nodes and weights; nodes of a Matérn kernel end at the point that is closest.

    There it is nearly singular, and with t = u² its nodes crowd.
    """
    xp = namespace(beta)
    nodes, weights = gauss_legendre(*rule)
    if kernel.radial.even:
        yield from zip(nodes.tolist(), weights.tolist(), strict=True)
        return
    nearest = xp.clip(-beta / xp.maximum(a, 1e-300), 0.0, 1.0)
    for u, w in zip(nodes.tolist(), weights.tolist(), strict=True):
        t, weight = u * u, 2.0 * u * w
        yield nearest * (1.0 - t), nearest * weight
        yield nearest + (1.0 - nearest) * t, (1.0 - nearest) * weight


def _slope(factor: Kernel, Z: Array) -> Array:
    """Return ∂L/∂x(·, z), (m, d), which does not depend on x."""
    return differentiate(factor, Z, Z).left


def _lengths(kernel: Factorised, step: Array) -> Array:
    """Return how many length-scales each path covers, (n,)."""
    p = kernel.seen(step)
    return namespace(step).sqrt((p * p).sum(axis=1))


def _longest(kernel: Factorised, paths: Paths) -> float:
    step = paths.step
    return float(namespace(step).max(_lengths(kernel, step), axis=0)) if len(step) else 0.0


def _by_panels(
    kernel: Factorised, step: Array, rules: tuple[tuple[float, int], ...]
) -> Iterator[tuple[Rule, Array]]:
    """Yield rules, nodes of a panel and panels, with the rows whose paths need them."""
    xp = namespace(step)
    length, (widest, most) = _lengths(kernel, step), rules[-1]
    panels = xp.exp2(xp.ceil(xp.log2(xp.maximum(length / widest, 1.0))))
    nodes = panels * 0.0 + most
    for width, count in rules[-2::-1]:
        nodes = xp.where(length <= width, 0.0 * nodes + count, nodes)
    for rule in sorted(set(zip(nodes.tolist(), panels.tolist(), strict=True))):
        rows = xp.nonzero((nodes == rule[0]) & (panels == rule[1]))[0]
        yield (int(rule[0]) + kernel.more, int(rule[1])), rows


def _cross(kernel: Factorised, paths: Paths, Z: Array) -> Bounded:
    """Return 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m)."""
    xp = namespace(Z)
    (n, d), places = paths.shape, kernel.places(Z.shape[1])
    slopes = [_slope(factor, Z) for factor in kernel.factors]
    result = xp.zeros((n, d, len(Z)))
    moved = [xp.nonzero(xp.max(xp.abs(slope), axis=0) > 0)[0].tolist() for slope in slopes]
    for rows, H0, H1, J in _moments(kernel, paths, Z):
        part, step = paths[rows], kernel.variance * paths[rows].step
        block = xp.zeros((len(rows), d, len(Z)))
        for slope, integral, columns in zip(slopes, J, moved, strict=True):
            for i in columns:
                block[:, i] += step[:, i, None] * integral * slope[:, i]
        p, seen = kernel.seen(part.step), kernel.seen(Z)
        start = xp.broadcast_to(kernel.seen(part.start), p.shape)
        for k, i in enumerate(places):
            e = start[:, k, None] - seen[:, k]
            block[:, i] += (kernel.variance * p[:, k, None]) * (p[:, k, None] * H1 + e * H0)
        result[rows] = block
    return Bounded(result, len(Z) ** 0.5 * _errors(kernel, paths, Z))


def _contract(kernel: Factorised, paths: Paths, Z: Array, w: Array) -> Bounded:
    """Return Σₘ 𝒜ᵢk(·, zₘ)(xₙ) wₘ, (n, d, q), by matrix products with the moments."""
    xp = namespace(Z)
    (n, d), (m, q) = paths.shape, w.shape
    places, slopes = kernel.places(d), [_slope(factor, Z) for factor in kernel.factors]
    result = xp.zeros((n, d, q))
    E = kernel.seen(paths.start[:1] - Z)
    right = (E[:, :, None] * w[:, None, :]).reshape(m, -1)  # (m, features · q)
    for rows, H0, H1, J in _moments(kernel, paths, Z):
        part, step = paths[rows], paths[rows].step
        for slope, integral in zip(slopes, J, strict=True):
            weighted = (slope[:, :, None] * w[:, None, :]).reshape(m, -1)
            result[rows] += step[:, :, None] * product(integral, weighted).reshape(-1, d, q)
        p = kernel.seen(step)[:, :, None]
        whole = product(H0, w)[:, None, :]
        radial = product(H0, right).reshape(len(rows), -1, q) + p * product(H1, w)[:, None, :]
        if not paths.shared_start:
            radial = radial + kernel.seen(part.start - paths.start[:1])[:, :, None] * whole
        result[rows[:, None], xp.asarray(places)[None]] += p * radial
    return Bounded(kernel.variance * result, _bound(kernel, paths, Z, w))


def _bound(kernel: Factorised, paths: Paths, Z: Array, w: Array) -> Array:
    """Return a bound on the error of `_contract`, (n,)."""
    xp = namespace(Z)
    return float(xp.max(xp.abs(w).sum(axis=0), axis=0)) * _errors(kernel, paths, Z)


def _errors(kernel: Factorised, paths: Paths, Z: Array) -> Array:
    """Return a bound on the error of each entry with one point, (n,).

    |L_c| is largest at an end of a path.
    """
    xp, step = namespace(Z), paths.step
    p, slopes = kernel.seen(step), [_slope(factor, Z) for factor in kernel.factors]
    largest = [xp.zeros(len(step)) for _ in slopes]
    for rows in blocks(len(step), 24.0 * len(Z), Z):
        some = paths[rows]
        for factor, high in zip(kernel.factors, largest, strict=True):
            ends = (xp.abs(factor(end, Z)) for end in (some.start, some.stop))
            high[rows] = xp.max(xp.maximum(*ends), axis=1)
    P, others = kernel.products(largest, xp.zeros(len(step)) + 1.0)
    size = P * xp.minimum(xp.max(xp.abs(p), axis=1), 1.0)
    for slope, rest in zip(slopes, others, strict=True):
        size = size + rest * xp.max(xp.abs(step) * xp.max(xp.abs(slope), axis=0), axis=1)
    relative = ERRORS[type(kernel.radial)] + EPS * (32.0 + 4.0 * (p * p).sum(axis=1))
    return kernel.variance * relative * size


def _pairs(kernel: Factorised, paths: Paths, other: Paths, *, same: bool) -> Bounded:
    """Return the prior covariance of the attributions along the k-th path of each, (n, d, d).

    That of one path with itself is an integral over a triangle, and its transpose.
    """
    xp = namespace(paths.stop)
    n, d = paths.shape
    result, error = xp.zeros((n, d, d)), xp.zeros(n)
    start, start_other = (xp.broadcast_to(each.start, (n, d)) for each in (paths, other))
    paths, other = Paths(start, paths.stop), Paths(start_other, other.stop)
    rules = RULES[type(kernel.radial)] if same or kernel.radial.even else SQUARES
    for one, group in _by_panels(kernel, paths.step, rules):
        for two, some in _by_panels(kernel, other.step[group], rules):
            rows, rule = group[some], max(one, two, key=lambda rule: rule[::-1])
            cuts = 1 if kernel.radial.even else 16  # triangles, each with the nodes of a square
            nodes = rule[0] * rule[1] * (len(kernel.factors) + 1 if same else rule[0] * cuts)
            size = chunk_rows(result, nodes)
            for part in (slice(first, first + size) for first in range(0, len(rows), size)):
                at = rows[part]
                value, wrong = _covariance(kernel, paths[at], other[at], rule, same)
                result[at], error[at] = value, wrong
    return Bounded(result, error)


def _covariance(
    kernel: Factorised, paths: Paths, other: Paths, rule: Rule, same: bool
) -> tuple[Array, Array]:
    """Return ∫∫ of the mixed derivatives of g ∏ L_c over two paths, (r, d, d), and its error.

    With u = e + s p − t q and φ = (1, s, −t), uᵢ = Σₐ Vᵢₐ φₐ (along one path u = (s − t) p, where
    nothing cancels), and every L_c is

        L + s λ·Δ + t μ·Δ' + s t Δ·MΔ',      ∂ᵢL_c = λᵢ + t (MΔ')ᵢ,      ∂'ⱼL_c = μⱼ + s (MᵀΔ)ⱼ,

    for steps Δ and Δ', with value L, derivatives λ and μ and mixed derivatives M at both starts.
    """
    xp = namespace(paths.stop)
    step, step_other = paths.step, other.step
    p, q, e = kernel.seen(step), kernel.seen(step_other), kernel.seen(paths.start - other.start)
    if same:
        s, t, w = _triangle(kernel, rule, p)
        phi, V = (s - t)[:, :, None], p[:, :, None]
    else:
        s, t, w = _square(kernel, p, q, e, rule)
        phi = xp.stack([s * 0.0 + 1.0, s, -t], axis=-1)  # (1 or r, Q, 3)
        V = xp.stack([e, p, q], axis=2)  # (r, features, 3)
    gram = xp.swapaxes(V, 1, 2) @ V
    r2 = xp.maximum(((phi @ gram) * phi).sum(axis=-1), 0.0)  # (r, Q)
    g, h, b = (w * each for each in kernel.radial.profiles(r2, True))
    jets = [differentiate(factor, paths.start, other.start, True) for factor in kernel.factors]
    left = [(jet.left, (jet.mixed @ step_other[:, :, None])[:, :, 0]) for jet in jets]
    right = [(jet.right, (step[:, None, :] @ jet.mixed)[:, 0]) for jet in jets]
    L = []
    for jet, (slope, turn), (slope_other, _) in zip(jets, left, right, strict=True):
        along, along_other, both = (
            (x * y).sum(axis=1)[:, None]
            for x, y in ((slope, step), (slope_other, step_other), (turn, step))
        )
        L.append(jet.value[:, None] + s * along + t * along_other + s * t * both)
    P, others = kernel.products(L, r2 * 0.0 + 1.0)
    places, d = kernel.places(step.shape[1]), step.shape[1]
    # ∂ᵢ∂'ⱼ of the radial kernel, times all factors.
    S = xp.swapaxes(phi, 1, 2) @ ((b * P)[:, :, None] * phi)
    radial = -(V @ S @ xp.swapaxes(V, 1, 2)) - (h * P).sum(axis=1)[:, None, None] * xp.eye(
        len(places)
    )
    result = xp.zeros((len(step), d, d))
    result[:, [[i] for i in places], places] = radial * p[:, :, None] * q[:, None, :]
    ones = xp.stack([s * 0.0 + 1.0, t], axis=-1), xp.stack([s * 0.0 + 1.0, s], axis=-1)
    for c, rest in enumerate(others):
        lefts, rights = xp.stack(left[c], axis=2), xp.stack(right[c], axis=2)  # (r, d, 2)
        lefts, rights = lefts * step[:, :, None], rights * step_other[:, :, None]
        slopes = xp.swapaxes(phi, 1, 2) @ ((h * rest)[:, :, None] * ones[1])  # (r, 3 or 1, 2)
        result[:, places] += p[:, :, None] * (V @ slopes @ xp.swapaxes(rights, 1, 2))
        slopes = xp.swapaxes(ones[0], 1, 2) @ ((h * rest)[:, :, None] * phi)  # (r, 2, 3 or 1)
        result[:, :, places] -= (lefts @ slopes @ xp.swapaxes(V, 1, 2)) * q[:, None, :]
        mixed = jets[c].mixed * step[:, :, None] * step_other[:, None, :]
        result += (g * rest).sum(axis=1)[:, None, None] * mixed
        for k in range(len(others)):
            if k != c:
                apart: Any = prod((L[i] for i in range(len(L)) if i not in (c, k)), start=g)
                both = xp.swapaxes(ones[0], 1, 2) @ (apart[:, :, None] * ones[1])  # (r, 2, 2)
                far = xp.stack(right[k], axis=2) * step_other[:, :, None]
                result += lefts @ both @ xp.swapaxes(far, 1, 2)
    if same:
        result = result + xp.swapaxes(result, 1, 2)
    result = kernel.variance * result
    # Each L_c is largest in a corner. Of long paths, terms of the size of a cancel.
    largest = xp.max(xp.abs(result), axis=(1, 2))
    size = kernel.variance * prod(xp.max(xp.abs(each), axis=1) for each in L)
    steps = xp.max(xp.abs(p), axis=1) * xp.max(xp.abs(q), axis=1)
    a = xp.maximum((p * p).sum(axis=1), (q * q).sum(axis=1))
    relative = (VARIANCES if same else NEARLY_TOUCHING)[type(kernel.radial)]
    rule = relative * (largest + size * xp.minimum(steps, 1.0))
    return result, rule + EPS * (64.0 + 4.0 * a) * (largest + size * steps)


def _triangle(kernel: Factorised, rule: Rule, like: Array) -> tuple[Array, Array, Array]:
    """Return nodes with s ≥ t, (1, Q): s − t by panels, t exactly, for it enters by the factors."""
    xp = namespace(like)
    x, wx = gauss_legendre(*rule)
    y, wy = gauss_legendre(len(kernel.factors) + 1)
    apart, t = x[:, None] + 0.0 * y, (1.0 - x[:, None]) * y
    w = (wx * (1.0 - x))[:, None] * wy
    return tuple(xp.asarray(each.reshape(1, -1)) for each in (t + apart, t, w))


def _square(
    kernel: Factorised, p: Array, q: Array, e: Array, rule: Rule
) -> tuple[Array, Array, Array]:
    """Return nodes and weights on the square of two paths, (1 or r, Q).

    For Matérn kernels the square is cut at its point (s, t) where the paths are closest, and each
    of the rectangles into two triangles, s + λ ds and t + λμ dt or the other way round; these are
    cut again at the μ where paths that touch would stay together.
    """
    xp = namespace(p)
    x, w = (xp.asarray(each) for each in gauss_legendre(*rule))
    m = len(x)
    first, second = xp.repeat(x, m)[None], xp.tile(x, m)[None]
    weights = (w[:, None] * w).reshape(1, -1)
    if kernel.radial.even:
        return first, second, weights
    s, t = (each[:, None] for each in closest_approach(p, q, e))
    nodes = []
    for ds in (-s, 1.0 - s):
        for dt in (-t, 1.0 - t):
            if not (ds * dt != 0).any():
                continue
            A, B = ds * p, -dt * q
            for one, two, swap in ((A, B, False), (B, A, True)):
                turn = -(one * two).sum(axis=1) / xp.maximum((two * two).sum(axis=1), 1e-300)
                turn = xp.clip(turn, 0.0, 1.0)[:, None]
                for low, width in ((0.0 * turn, turn), (turn, 1.0 - turn)):
                    mu = low + width * second
                    ahead, aside = (dt, ds) if swap else (ds, dt)
                    pair = ahead * first, aside * first * mu
                    area = xp.abs(ds * dt) * width * first * weights
                    nodes.append((s + pair[swap], t + pair[not swap], area))
    return tuple(xp.concatenate([node[k] for node in nodes], axis=1) for k in range(3))
