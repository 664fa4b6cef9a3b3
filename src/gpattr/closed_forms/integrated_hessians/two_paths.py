"""Double integrals of radial kernels along two paths, for covariances between them.

From the points s*, t* where the paths are closest, u = f + σp − τq, σ = s − s*, τ = t − t*. With
q = κp + q⊥ it is f + (σ − κτ)p − τq⊥, in which nothing cancels on long parallel paths.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.geometry import closest_approach
from gpattr.closed_forms.integrated_hessians.assembly import Moments
from gpattr.closed_forms.integrated_hessians.profiles import derivatives
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Radial, SquaredExponential
from gpattr.special.log_paths import INNER, OUTER, SHORT_PATHS, graded_nodes, shared_rule

# Length-scales times length-scales that a pair of paths may cover: nodes take 0.1 GB.
LARGEST = {True: 1e5, False: 1e4}
NODES = 2**16  # nodes of a pair of paths at a time

Part = tuple[Array, Moments, Array]


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
    """Integrate with a product of rules, those of the longest paths of a group."""
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

    def as_moments(self, sums: list[Array]) -> Moments:
        return Moments(self.vectors, *sums)

    def bound(self, kernel: Radial, sums: list[Array]) -> Array:
        """Return the rounding of covariances, from the size of what they are assembled of."""
        return rounding(self.p, self.q, self.vectors, sums)


def weighted_moments(
    kernel: Radial, gram: Array, c: Array, weights: tuple[Array, ...]
) -> list[Array]:
    """Return the fields of `Moments` but the first, for parts c (n, N, 3) and weights (N,).

    ``weights`` are those of A₂A₂, A₂A₁, A₁A₂ and A₁A₁.
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
    that is closest to that of the first: paths may be as close to each other as they like. The
    error is the gap to the covariance of f(x) − f(b) and f(x') − f(b'), to which all of them add
    up, and rounding.
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
    return row, Moments(vectors, *total), 2.0 * gap + rounding(p, q, vectors, total)


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
