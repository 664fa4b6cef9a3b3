"""Integrals of radial kernels along paths, with the weights A₁ = −ln s and A₂ = −s ln s.

From the point c of the path that is closest, u = u_c + vp with v = s − c, and r² = ‖u‖². With
ψₖ the derivatives of the kernel by r²/2, six integrals a path and point carry integrated Hessians:

    Bₖ = ∫A₂ψ₂vᵏ (k = 0, 1, 2),   C = ∫A₂ψ₁,   Dₖ = ∫A₁ψ₁vᵏ (k = 0, 1)

Double integrals along two paths: from the points s*, t* where the paths are closest, u = f + σp −
τq, σ = s − s*, τ = t − t*. With q = κp + q⊥ it is f + (σ − κτ)p − τq⊥, in which nothing cancels on
long parallel paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

from gpattr._core.array import EPS, Array, chunk_rows, namespace, squared_distances
from gpattr._core.memory import blocks
from gpattr.closed_forms.geometry import closest_approach
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Radial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.kernels.matern import ROOT5
from gpattr.operators import Paths
from gpattr.special.log_paths import INNER, OUTER, SHORT_PATHS, graded_nodes, shared_rule

TINY = 1e-60  # where r⁻³ diverges, and is multiplied by r⁴
INSTEAD = 'attribution="shapley" has interactions for every kernel'
SHARED = 32.0  # length-scales: the longest path whose nodes all points share
NEAR = 2.0  # length-scales: shorter paths are seen from their start, which needs no division
NOTHING = 1e-30  # kernels smaller than this do not count
# Length-scales times length-scales that a pair of paths may cover: nodes take 0.1 GB.
LARGEST = {True: 1e5, False: 1e4}
NODES = 2**16  # nodes of a pair of paths at a time


@singledispatch
def derivatives(kernel: Radial, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    """Return ψₖ, the k-th derivatives of the kernel of variance 1 by r²/2, at r²."""
    raise UnsupportedModelError(
        f"IntegratedHessians of {type(kernel).__name__}: there is no formula; {INSTEAD}"
    )


@derivatives.register
def _gaussian(kernel: SquaredExponential, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    value = kernel.profile(r2)
    return [value if order % 2 == 0 else -value for order in orders]


@derivatives.register
def _rational(kernel: RationalQuadratic, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    """ψₖ = (−1)ᵏ Πⱼ (1 + j/α) (1 + r²/2α)^(−α−k), j < k."""
    value, alpha = kernel.profile(r2), kernel.alpha
    ratio = 1.0 / (1.0 + r2 / (2.0 * alpha))
    result = {0: value}
    for order in range(1, max(orders) + 1):
        value = value * ratio * -(1.0 + (order - 1) / alpha)
        result[order] = value
    return [result[order] for order in orders]


@derivatives.register
def _matern52(kernel: Matern52, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    xp = namespace(r2)
    s = xp.maximum(ROOT5 * xp.sqrt(r2), TINY)
    decay = xp.exp(-s)
    formulas = {
        1: lambda: (-5.0 / 3.0) * (1.0 + s) * decay,
        2: lambda: (25.0 / 3.0) * decay,
        3: lambda: (-125.0 / 3.0) * decay / s,
        4: lambda: (625.0 / 3.0) * (1.0 + s) * decay / (s * s * s),
    }
    return [formulas[order]() for order in orders]


@derivatives.register
def _matern(kernel: Matern, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    return [kernel.derivative(r2, order) for order in orders]


def require_second_derivatives(kernel: Radial) -> None:
    """Raise `UnsupportedModelError` for functions that are not twice differentiable."""
    rough = isinstance(kernel, (Matern12, Matern32))
    if rough or (isinstance(kernel, Matern) and kernel.nu <= 2.0):
        name = f"Matern(nu={kernel.nu:g})" if isinstance(kernel, Matern) else type(kernel).__name__
        raise UnsupportedModelError(
            f"IntegratedHessians of {name}: its functions are not twice differentiable, and the"
            " variance of their integrated Hessians does not exist (it diverges); use a Matérn"
            f" kernel with nu > 2, such as Matern52, or {INSTEAD}"
        )


@dataclass(frozen=True, eq=False)
class PathMoments:
    """Moments of n pairs of paths; u has k parts, and "cc" stands for the k² products of two.

    The first two letters of a name are the weights along both paths, the number is ψ's.
    """

    vectors: Array  # V, (n, d, k)
    a22_4: Array  # ∫∫A₂A₂ψ₄ cc cc, (n, k², k²)
    a22_3: Array  # ∫∫A₂A₂ψ₃ cc, (n, k, k)
    a22_2: Array  # ∫∫A₂A₂ψ₂, (n,)
    a21_3: Array  # ∫∫A₂A₁ψ₃ cc c, (n, k², k)
    a21_2: Array  # ∫∫A₂A₁ψ₂ c, (n, k)
    a12_3: Array  # ∫∫A₁A₂ψ₃ cc c, (n, k², k)
    a12_2: Array  # ∫∫A₁A₂ψ₂ c, (n, k)
    a11_2: Array  # ∫∫A₁A₁ψ₂ cc, (n, k, k)
    a11_1: Array  # ∫∫A₁A₁ψ₁, (n,)


@dataclass(frozen=True, eq=False)
class PathIntegrals:
    """The integrals of some ``rows``, (r, m) each, with p (r, d) and u_c (r, d, m)."""

    rows: Array
    p: Array
    nearest: Array
    B: tuple[Array, Array, Array]
    C: Array
    D: tuple[Array, Array]


def path_integrals(kernel: Radial, paths: Paths, Z: Array) -> Iterator[PathIntegrals]:
    """Yield the integrals of all rows, in chunks of rows of like length that fit the cache."""
    xp, scale = namespace(Z), namespace(Z).asarray(kernel.lengthscale)
    p = paths.step / scale
    lengths = kernel.n_lengthscales(paths.step)
    order = xp.argsort(lengths)
    # u_c takes d times as much as an integral.
    size = max(1, chunk_rows(Z, len(Z)) * 16 // (16 + Z.shape[1]))
    kinds = (lengths[order] <= NEAR, lengths[order] <= SHARED if kernel.smooth else None)
    near = int(kinds[0].sum()) if kernel.smooth else 0
    shared = 0 if kinds[1] is None else int(kinds[1].sum())
    bounds = ((0, near), (near, shared), (shared, len(order)))
    for kind, (first, last) in enumerate(bounds):
        for start in range(first, last, size):
            rows = order[start : min(start + size, last)]
            part = paths[rows]
            e = (xp.broadcast_to(part.start, part.shape)[:, :, None] - Z.T) / scale[..., None]
            yield _integrals(kernel, rows, p[rows], e, lengths[rows], kind, part, Z)


def _integrals(
    kernel: Radial,
    rows: Array,
    p: Array,
    e: Array,
    lengths: Array,
    kind: int,
    paths: Paths,
    Z: Array,
) -> PathIntegrals:
    xp = namespace(p)
    a, beta = (p * p).sum(axis=1)[:, None], (p[:, None, :] @ e)[:, 0]
    if kind == 0:
        centre, nearest = xp.zeros(beta.shape), e
        b0 = squared_distances(paths.start, Z, kernel.lengthscale) + 0.0 * beta
        b1 = 2.0 * beta
    else:
        centre = xp.minimum(xp.maximum(-beta / xp.maximum(a, 1e-300), 0.0), 1.0)
        nearest = e + p[:, :, None] * centre[:, None, :]
        # Within the path u_c and p are orthogonal; at an end r² grows along it.
        b1 = 2.0 * (p[:, None, :] @ nearest)[:, 0]
        b1 = xp.where(centre <= 0.0, xp.maximum(b1, 0.0), xp.where(centre >= 1.0, b1, 0.0))
        b0 = (nearest * nearest).sum(axis=1)
    if kind < 2:
        B, C, D = _shared(kernel, a, b0, b1, centre, float(lengths.max()))
    else:
        shape = beta.shape
        flat = [(xp.zeros(shape) + part).ravel() for part in (a, b0, b1, centre, lengths[:, None])]
        B0, B1, B2, C, D0, D1 = (part.reshape(shape) for part in _graded(kernel, *flat))
        B, D = (B0, B1, B2), (D0, D1)
    return PathIntegrals(rows, p, nearest, B, C, D)


def _shared(
    kernel: Radial, a: Array, b0: Array, b1: Array, centre: Array, length: float
) -> tuple[tuple[Array, Array, Array], Array, tuple[Array, Array]]:
    """Integrate with nodes that all rows and points share."""
    xp, gaussian = namespace(b0), isinstance(kernel, SquaredExponential)
    B0, B1, B2, C, D0, D1 = (xp.zeros(b0.shape) for _ in range(6))
    rule = shared_rule(length, gaussian=gaussian)
    for s, weight in zip(*(part.tolist() for part in rule), strict=True):
        v = s - centre
        r2 = a * v
        r2 += b1
        r2 *= v
        r2 += b0
        if not gaussian:
            first, second = derivatives(kernel, xp.maximum(r2, 0.0), (1, 2))
            first, second = weight * first, (s * weight) * second
            C += s * first
        else:
            r2 *= -0.5
            xp.exp(r2, out=r2)
            r2 *= -weight
            first = r2
            second = -s * first
        D0 += first
        B0 += second
        second *= v
        B1 += second
        second *= v
        B2 += second
        first *= v
        D1 += first
    return (B0, B1, B2), -B0 if gaussian else C, (D0, D1)


def _graded(
    kernel: Radial, a: Array, b0: Array, b1: Array, centre: Array, length: Array
) -> list[Array]:
    """Integrate along P paths, (P,) each, with panels of their own."""
    xp = namespace(a)
    results = [xp.empty(len(a)) for _ in range(6)]
    for some in blocks(len(a), 64.0 * 1200, a):
        own_a, own_0, own_1 = a[some], b0[some], b1[some]
        count = len(own_a)
        # In units of the kernel's shortest scale.
        distance = xp.sqrt(own_0) * length[some] / xp.sqrt(xp.maximum(own_a, 1e-300))
        nodes = graded_nodes(centre[some], length[some], distance)
        r2 = own_a[nodes.owner][:, None] * nodes.v
        r2 = (r2 + own_1[nodes.owner][:, None]) * nodes.v + own_0[nodes.owner][:, None]
        r2 = xp.maximum(r2, 0.0)
        counts = kernel.profile(xp.min(r2, axis=1)) > NOTHING
        nodes = type(nodes)(*(part[counts] for part in nodes))
        first, second = derivatives(kernel, r2[counts], (1, 2))
        first, second = nodes.weights * first, nodes.weights * nodes.s * second
        v = nodes.v
        values = (second, second * v, second * v * v, nodes.s * first, first, first * v)
        for result, value in zip(results, values, strict=True):
            result[some] = nodes.sums(value, count)
    return results


Part = tuple[Array, PathMoments, Array]


def moments_between(kernel: Radial, p: Array, q: Array, e: Array, rows: Array) -> Iterator[Part]:
    """Yield rows, their moments, and bounds (r,) on errors of covariances, by pairs of paths.

    ``p`` and ``q`` are the steps and ``e`` the difference of the starts, (n, d) each.
    """
    xp = namespace(p)
    units = xp.asarray(kernel.lengthscale)
    lengths = [kernel.n_lengthscales(step * units) for step in (p, q)]
    area = xp.maximum(lengths[0], 1.0) * xp.maximum(lengths[1], 1.0)
    if not (area[rows] <= LARGEST[kernel.smooth]).all():
        raise InvalidInputError(
            "X: the covariance between rows is known where the lengths of two paths, in"
            f" length-scales, multiply to at most {LARGEST[kernel.smooth]:.0e}, got"
            f" {float(area[rows].max()):.0e}; leave out rows that far away"
        )
    if kernel.smooth:
        yield from _smooth(kernel, p, q, e, lengths, rows)
        return
    for row in rows.tolist():  # each pair has nodes of its own
        chosen = rows[rows == row]
        yield _kinked(kernel, p[chosen], q[chosen], e[chosen], chosen)


def _smooth(
    kernel: Radial, p: Array, q: Array, e: Array, lengths: list[Array], rows: Array
) -> Iterator[Part]:
    """Integrate with a product of the rules for the longest paths of a group."""
    gaussian = isinstance(kernel, SquaredExponential)
    classes = [_length_class(length, gaussian) for length in lengths]
    groups = sorted(
        {(float(a), float(b)) for a, b in zip(*(c[rows] for c in classes), strict=True)}
    )
    for first, second in groups:
        group = rows[(classes[0][rows] == first) & (classes[1][rows] == second)]
        left, right = (shared_rule(length, gaussian=gaussian) for length in (first, second))
        nodes = min(len(left[0]) * len(right[0]), NODES)
        for some in blocks(len(group), 8.0 * 40 * nodes, p):
            chosen = group[some]
            frame = _Frame(p[chosen], q[chosen], e[chosen])
            total = None
            step = max(1, NODES // len(right[0]))
            for start in range(0, len(left[0]), step):
                part = tuple(rule[start : start + step] for rule in left)
                more = frame.moments(kernel, part, right)
                total = more if total is None else _added(total, more)
            assert total is not None
            yield chosen, frame.as_moments(total), frame.bound(kernel, total)


def _length_class(length: Array, gaussian: bool) -> Array:
    """Return the longest path that shares a rule: an entry of the table, or a power of two."""
    xp = namespace(length)
    result = xp.exp2(xp.ceil(xp.log2(xp.maximum(length, 2.0))))
    if gaussian:
        for longest, _ in reversed(SHORT_PATHS):
            result = xp.where(length <= longest, longest, result)
    return result


class _Frame:
    """Pairs of paths seen from their closest approach."""

    def __init__(self, p: Array, q: Array, e: Array) -> None:
        xp = namespace(p)
        self.p, self.q = p, q
        self.s, self.t = closest_approach(p, q, e)
        a = (p * p).sum(axis=1)
        self.ratio = xp.where(a > 1e-300, (p * q).sum(axis=1) / xp.maximum(a, 1e-300), 0.0)
        f = e + self.s[:, None] * p - self.t[:, None] * q
        self.vectors = xp.stack([f, p, q - self.ratio[:, None] * p], axis=2)  # (n, d, 3)
        self.gram = xp.swapaxes(self.vectors, 1, 2) @ self.vectors

    def moments(
        self, kernel: Radial, left: tuple[Array, Array], right: tuple[Array, Array]
    ) -> list[Array]:
        """Return the sums over the product of two rules."""
        xp, n = namespace(self.p), len(self.p)
        (s, ws), (t, wt) = (tuple(map(xp.asarray, rule)) for rule in (left, right))
        tau = t[None, None, :] - self.t[:, None, None]
        sigma = s[None, :, None] - self.s[:, None, None]
        along = (sigma - self.ratio[:, None, None] * tau).reshape(n, -1)
        tau = (tau + 0.0 * sigma).reshape(n, -1)
        c = xp.stack([xp.ones_like(tau), along, -tau], axis=2)  # (n, N, 3)
        grid = tuple(
            (x[:, None] * y[None, :]).ravel()
            for x, y in ((ws * s, wt * t), (ws * s, wt), (ws, wt * t), (ws, wt))
        )
        return weighted_moments(kernel, self.gram, c, grid)

    def as_moments(self, sums: list[Array]) -> PathMoments:
        return PathMoments(self.vectors, *sums)

    def bound(self, kernel: Radial, sums: list[Array]) -> Array:
        """Return the rounding of covariances, from the size of their terms."""
        return rounding(self.p, self.q, self.vectors, sums)


def weighted_moments(
    kernel: Radial, gram: Array, c: Array, weights: tuple[Array, ...]
) -> list[Array]:
    """Return the fields of `PathMoments` but the first, for parts c (n, N, 3) and weights (N,).

    ``weights`` belong to A₂A₂, A₂A₁, A₁A₂ and A₁A₁.
    """
    xp = namespace(c)
    r2 = xp.maximum(((c @ gram) * c).sum(axis=2), 0.0)
    psi1, psi2, psi3, psi4 = derivatives(kernel, r2, (1, 2, 3, 4))
    n, N, k = c.shape
    cc = (c[:, :, :, None] * c[:, :, None, :]).reshape(n, N, k * k)
    ct, cct = xp.swapaxes(c, 1, 2), xp.swapaxes(cc, 1, 2)
    w22, w21, w12, w11 = weights

    def once(values: Array) -> Array:
        return (ct @ values[:, :, None])[:, :, 0]

    return [
        cct @ ((w22 * psi4)[:, :, None] * cc),
        ct @ ((w22 * psi3)[:, :, None] * c),
        (w22 * psi2).sum(axis=1),
        cct @ ((w21 * psi3)[:, :, None] * c),
        once(w21 * psi2),
        cct @ ((w12 * psi3)[:, :, None] * c),
        once(w12 * psi2),
        ct @ ((w11 * psi2)[:, :, None] * c),
        (w11 * psi1).sum(axis=1),
    ]


def _added(total: list[Array], more: list[Array]) -> list[Array]:
    return [a + b for a, b in zip(total, more, strict=True)]


def rounding(p: Array, q: Array, V: Array, sums: list[Array]) -> Array:
    """Return a bound, (n,), on the rounding of covariances assembled from these moments."""
    xp = namespace(p)
    P, Q = (xp.max(abs(step), axis=1) for step in (p, q))
    size = xp.max(abs(V), axis=1)  # (n, 3)
    pair = (size[:, :, None] * size[:, None, :]).reshape(len(p), -1)
    A4, A3, A2, B3, B2, C3, C2, D2, D1 = map(abs, sums)

    def form(x: Array, A: Array, y: Array) -> Array:
        return ((x[:, None, :] @ A) @ y[:, :, None])[:, 0, 0]

    fourth = form(pair, A4, pair) + 6.0 * form(size, A3, size) + 3.0 * A2
    left = form(pair, B3, size) + 3.0 * (size * B2).sum(axis=1)
    right = form(pair, C3, size) + 3.0 * (size * C2).sum(axis=1)
    last = form(size, D2, size) + D1
    return 64.0 * EPS * P * Q * (P * Q * fourth + P * left + Q * right + last)


def _kinked(kernel: Radial, p: Array, q: Array, e: Array, row: Array) -> Part:
    """Integrate along one pair of paths, with panels along the second for each node of the first.

    With p = λq + p⊥, u = f + σp⊥ + ηq, where η = σλ − τ is known from the point of the second path
    that is closest to the first path's: paths may be as close to each other as they like. The error
    is the gap to the covariance of f(x) − f(b) and f(x') − f(b'), to which all of them add up, and
    rounding.
    """
    xp = namespace(p)
    s_near, t_near = closest_approach(p, q, e)
    f = e + s_near[:, None] * p - t_near[:, None] * q
    b = xp.maximum((q * q).sum(axis=1), 1e-300)
    ratio = (p * q).sum(axis=1) / b
    vectors = xp.stack([f, p - ratio[:, None] * q, q], axis=2)
    s, ws, sigma = _outer_nodes(p, q, e, s_near, f)
    point = e + s[:, None] * p  # (S, d)
    centre = xp.clip((point * q).sum(axis=1) / b, 0.0, 1.0)
    inside = (centre > 0.0) & (centre < 1.0)  # where u has no part along q
    level = xp.where(inside, -(f * q).sum(axis=1) / b, sigma * ratio - (centre - t_near))
    apart = f + sigma[:, None] * vectors[:, :, 1] + level[:, None] * q
    distance = xp.sqrt((apart * apart).sum(axis=1))
    inner = graded_nodes(centre, xp.sqrt(b) + 0.0 * s, distance, (), INNER)
    eta = (level[inner.owner][:, None] - inner.v).ravel()
    at = xp.repeat(inner.owner, inner.v.shape[1])
    t, wt = inner.s.ravel(), inner.weights.ravel()
    c = xp.stack([xp.ones_like(eta), sigma[at], eta], axis=1)[None]
    s, ws = s[at], ws[at]
    weights = (ws * s * wt * t, ws * s * wt, ws * wt * t, ws * wt)
    total, gram = None, xp.swapaxes(vectors, 1, 2) @ vectors
    for some in blocks(len(t), 8.0 * 60, p):
        part = tuple(weight[some] for weight in weights)
        more = weighted_moments(kernel, gram, c[:, some], part)
        total = more if total is None else _added(total, more)
    assert total is not None
    gap = abs(whole(p, q, vectors, total) - _corners(kernel, p, q, e))
    return row, PathMoments(vectors, *total), 2.0 * gap + rounding(p, q, vectors, total)


def _outer_nodes(p: Array, q: Array, e: Array, near: Array, f: Array) -> tuple[Array, ...]:
    """Return s, weights of −ln s and σ = s − s*, (S,) each, along the first path.

    Panels are graded towards s* and the points closest to the ends of the second path.
    """
    xp = namespace(p)
    a = (p * p).sum(axis=1)
    ends = tuple(
        xp.clip(-((e - end) * p).sum(axis=1) / xp.maximum(a, 1e-300), 0.0, 1.0)
        for end in (0.0 * q, q)
    )
    distance = xp.sqrt((f * f).sum(axis=1))
    nodes = graded_nodes(near, xp.sqrt(a), distance, ends, OUTER)
    return nodes.s.ravel(), nodes.weights.ravel(), nodes.v.ravel()


def whole(p: Array, q: Array, V: Array, sums: list[Array]) -> Array:
    """Return the sum of the covariances of all pairs of features, (n,), counted as in a matrix."""
    x, y = ((step[:, None, :] @ V)[:, 0] for step in (p, q))  # p·V and q·V, (n, 3)
    n, k = x.shape
    a, b, ab = ((s * t).sum(axis=1) for s, t in ((p, p), (q, q), (p, q)))
    xx, yy = ((z[:, :, None] * z[:, None, :]).reshape(n, k * k) for z in (x, y))
    A4, A3, A2, B3, B2, C3, C2, D2, D1 = sums

    def form(left: Array, A: Array, right: Array) -> Array:
        return ((left[:, None, :] @ A) @ right[:, :, None])[:, 0, 0]

    total = form(xx, A4, yy) + A2 * (a * b + 2.0 * ab * ab)
    total = total + a * form(y, A3, y) + b * form(x, A3, x) + 4.0 * ab * form(x, A3, y)
    total = total - form(xx, B3, y) - a * (y * B2).sum(axis=1) - 2.0 * ab * (x * B2).sum(axis=1)
    total = total + form(yy, C3, x) + b * (x * C2).sum(axis=1) + 2.0 * ab * (y * C2).sum(axis=1)
    return total - form(x, D2, y) - ab * D1


def _corners(kernel: Radial, p: Array, q: Array, e: Array) -> Array:
    """Return Cov[f(x) − f(b), f(x') − f(b')], (n,), of the kernel of variance 1."""
    ends = ((e + p - q, 1.0), (e + p, -1.0), (e - q, -1.0), (e, 1.0))
    total = 0.0
    for u, sign in ends:
        total = total + sign * kernel.profile((u * u).sum(axis=1))
    return total
