"""Quadrature of kernels with kinks, such as products with a Matérn, on panels graded towards them.

A kink sits where a distance, in some features, is zero. Along a path to a point z that is one place
for every (path, z); between two paths it is a point of the (s, t) square, or a line where the
distance is of one feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.quadrature.panels import (
    nodes_on,
    paired_groups,
    panel_groups,
    require_few_squares,
)
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special.graded import ORDER, approach, integrate_graded
from gpattr.special.quadrature import gauss_legendre

# length-scales to a panel, of 12 nodes or, for a singular kernel, 20
PER_SPAN = {False: 1.0, True: 2.0}
QUARTER_ORDERS = (10, 7)  # nodes along a side of a quarter, of the rule and of the second rule
QUARTER_GAP = 1e-11  # of the prior variance: quarters as accurate as this are not cut further
QUARTER_DEPTH = 16  # levels, of which the first has 4 × 4 quarters
MOST_QUARTERS = {False: 20_000, True: 8_000}  # of a singular kernel, which is the slowest, fewer
# length-scales: the radius of a kink that is integrated twice within which it does not matter
FLOOR = 1e-4


def pairwise(
    kernel: Kernel, paths: Paths, Z: Array, orders: tuple[int, int], halvings: int = 0
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows and (xᵢ − bᵢ) ∫∂ᵢk(b + t(x − b), z) dt, (r, m, d), by two rules.

    Every path and point z have panels of their own.
    """
    xp = namespace(paths.stop)
    d, m = paths.shape[1], len(Z)
    for group, edges in panel_groups(
        kernel,
        paths,
        PER_SPAN[kernel.singular] * 0.5**halvings,
        Z if _hides_kinks(kernel) else None,
    ):
        for some in blocks(len(group), 64.0 * m * d, Z):
            rows = group[some]
            part = paths[rows]
            path, point = (index.ravel() for index in xp.indices((len(rows), m)))
            own, targets = part[path], Z[point]

            def evaluate(
                pairs: Array, t: Array, w: Array, own: Paths = own, targets: Array = targets
            ) -> Array:
                points = own[pairs].along(t)
                left = differentiate(kernel, points, targets[pairs][:, None, :]).left
                return (w[:, None, :] @ left)[:, 0, :]  # (pairs, T) by (pairs, T, d)

            panels = (edges[some][path], *_passes(kernel, own.step, own.start - targets))
            first, second = (
                integrate_graded(evaluate, *panels, 80.0 * d, order=order, singular=kernel.singular)
                for order in orders
            )
            shape = (len(rows), m, d)
            yield (
                rows,
                first.reshape(shape) * part.step[:, None, :],
                second.reshape(shape) * part.step[:, None, :],
            )


def between_with_kinks(
    kernel: Kernel,
    one: Paths,
    two: Paths,
    order: int = ORDER,
    halvings: int = 0,
    apart: Callable[[Paths, Paths], Array] | None = None,
) -> Array:
    """Return ∫∫ ∂∂'k for the k-th path of each, (n, d, d).

    ``apart`` treats paths without a common end, for kernels with other kinks at unknown positions.
    """
    per_span = PER_SPAN[kernel.singular] * 0.5**halvings
    xp = namespace(one.stop)
    result = xp.empty((*one.shape, one.shape[1]))
    s0, t0 = _common_end(one, two)
    touching = (s0 >= 0) & _evenly_cut(kernel, one) & _evenly_cut(kernel, two)
    near, far = xp.nonzero(touching)[0], xp.nonzero(~touching)[0]
    if len(near):
        result[near] = _from_corner(
            kernel, one[near], two[near], s0[near], t0[near], order, per_span
        )
    if len(far):
        result[far] = (
            apart(one[far], two[far])
            if apart
            else _crossing(kernel, one[far], two[far], order, per_span)
        )
    return result


def _hides_kinks(kernel: Kernel) -> bool:
    """Return whether some part has kinks at unknown positions, which are found by trial."""
    return any(not part.smooth and not part.kinks() for _, part in kernel.walk())


def _evenly_cut(kernel: Kernel, paths: Paths) -> Array:
    """Return which paths have panels of one width, (n,): the kernel changes by distance only."""
    xp = namespace(paths.stop)
    even = xp.zeros(paths.shape[0])
    for rows, edges in panel_groups(kernel, paths, PER_SPAN[kernel.singular]):
        width = edges[:, 1:] - edges[:, :-1]
        even[rows] = xp.asarray(xp.max(width, axis=1) <= xp.min(width, axis=1) * (1.0 + 1e-9))
    return even > 0


def quartered(kernel: Kernel, one: Paths, two: Paths) -> tuple[Array, Array]:
    """Return the covariance between attributions, (n, d, d), for kinks at unknown positions.

    Its error, (n,), comes with it. The (s, t) square is quartered until two rules agree on each
    part, and it adds up.
    """
    xp = namespace(one.stop)
    n, d = one.shape
    peak = xp.sqrt(kernel.diagonal(one.stop) * kernel.diagonal(two.stop)) + xp.sqrt(
        kernel.diagonal(one.stop - one.step)
    )
    todo = _Quarters.first(one)
    result, error = xp.zeros((n, d, d)), xp.zeros(n)
    for depth in range(QUARTER_DEPTH):
        unfinished = []
        last = depth == QUARTER_DEPTH - 1 or len(todo.row) > MOST_QUARTERS[kernel.singular]
        for some in blocks(len(todo.row), 800.0 * d * d * 10, todo.row):
            part = todo[some]
            value, gap = _on_quarters(kernel, one[part.row], two[part.row], part)
            good = (gap <= QUARTER_GAP * peak[part.row]) | last
            # The finished quarters of each path, as a 0/1 matrix that adds them up, (N, n).
            own = xp.asarray(part.row[:, None] == xp.arange(n)) * xp.asarray(good)[:, None]
            result += (1.0 * own.T @ value.reshape(len(part.row), -1)).reshape(n, d, d)
            # The difference of two rules is no bound where neither has converged.
            error += 2.0 * own.T @ gap
            unfinished.append(part[~good])
        todo = _Quarters.halved(unfinished)
        if not len(todo.row):
            break
    return result, error


@dataclass(frozen=True)
class _Quarters:
    """Squares [s, s + width] × [t, t + width] of the k-th paths, k = ``row``, (N,) each."""

    row: Array
    s: Array
    t: Array
    width: float

    @classmethod
    def first(cls, paths: Paths) -> _Quarters:
        """Return 4 × 4 squares for every path."""
        xp, n = namespace(paths.stop), paths.shape[0]
        corners = xp.asarray([i / 4 for i in range(4)])
        s, t = xp.repeat(corners, 4), xp.tile(corners, 4)
        return cls(xp.repeat(xp.arange(n), 16), xp.tile(s, n), xp.tile(t, n), 0.25)

    @classmethod
    def halved(cls, pieces: list[_Quarters]) -> _Quarters:
        """Return the four quarters of every square of ``pieces``."""
        xp = namespace(pieces[0].s)
        width = pieces[0].width * 0.5
        s, t = (
            xp.concatenate(each)
            for each in ([piece.s for piece in pieces], [piece.t for piece in pieces])
        )
        return cls(
            xp.tile(xp.concatenate([piece.row for piece in pieces]), 4),
            xp.concatenate([s, s + width, s, s + width]),
            xp.concatenate([t, t, t + width, t + width]),
            width,
        )

    def __getitem__(self, some: Array | slice) -> _Quarters:
        return _Quarters(self.row[some], self.s[some], self.t[some], self.width)


def _on_quarters(kernel: Kernel, one: Paths, two: Paths, squares: _Quarters) -> tuple[Array, Array]:
    """Return (xᵢ − bᵢ)(x'ⱼ − b'ⱼ) ∫∫ ∂ᵢ∂'ⱼk over squares, (N, d, d), and its gap, (N,).

    The gap is the larger of the difference to a second rule and that to the change of k from corner
    to corner, k(s₁, t₁) − k(s₁, t₀) − k(s₀, t₁) + k(s₀, t₀), to which the entries must add up.
    """
    xp = namespace(one.stop)
    s, t, width = squares.s[:, None], squares.t[:, None], squares.width
    rules = (tuple(map(xp.asarray, gauss_legendre(order))) for order in QUARTER_ORDERS)
    steps = width * width * one.step[:, :, None] * two.step[:, None, :]
    value, second = (
        _on_square(kernel, one, two, s + width * x, t + width * x, w) * steps for x, w in rules
    )
    a, b = (
        batch.along(xp.concatenate([low, low + width], axis=1))
        for batch, low in ((one, s), (two, t))
    )
    k = differentiate(kernel, a[:, :, None, :], b[:, None, :, :]).value  # (N, 2, 2)
    gain = k[:, 1, 1] - k[:, 1, 0] - k[:, 0, 1] + k[:, 0, 0]
    gap = xp.maximum(
        xp.abs(value.sum(axis=(1, 2)) - gain), xp.max(xp.abs(value - second), axis=(1, 2))
    )
    return value, gap


def _on_square(kernel: Kernel, one: Paths, two: Paths, s: Array, t: Array, w: Array) -> Array:
    """Return Σ w w ∂∂'k, (n, d, d), at the nodes s and t, (n, S) each."""
    mixed = differentiate(
        kernel, one.along(s)[:, :, None, :], two.along(t)[:, None, :, :], True
    ).mixed
    return namespace(s).einsum("s,t,nstij->nij", w, w, mixed)


def _passes(kernel: Kernel, p: Array, e: Array, floor: float | None = None) -> tuple[Array, Array]:
    """Return centres and deltas, (n, K), of the kinks that paths e + t p pass.

    p and e, (n, d), are in the user's units.
    """
    xp = namespace(p, e)
    p, e = p + 0.0 * e, e + 0.0 * p
    if not kernel.kinks():
        return xp.zeros((len(p), 0)), xp.zeros((len(p), 0))
    passes = []
    for kink in kernel.kinks():
        columns = slice(None) if kink.features is None else list(kink.features)
        scale = xp.asarray(kink.lengthscale)
        centre, delta = approach(p[:, columns] / scale, e[:, columns] / scale, floor or kink.floor)
        # The distance in one feature is linear in t: smooth, but where it changes its sign.
        if kink.one_sided and p[:, columns].shape[1] == 1:
            delta = xp.where(delta > 0, xp.inf, 0.0)
        passes.append((centre, delta))
    centres, deltas = (xp.stack([each[k] for each in passes], axis=1) for k in (0, 1))
    return centres, deltas


def _common_end(one: Paths, two: Paths) -> tuple[Array, Array]:
    """Return the ends s, t ∈ {0, 1}, (n,) each, that two paths have in common; −1 without any."""
    xp = namespace(one.stop)
    ends = [[xp.broadcast_to(paths.start, paths.shape), paths.stop] for paths in (one, two)]
    s, t = (xp.zeros(one.shape[0]) - 1.0 for _ in range(2))
    for i in (1, 0):
        for j in (1, 0):
            same = (ends[0][i] == ends[1][j]).all(axis=1)
            s, t = xp.where(same, float(i), s), xp.where(same, float(j), t)
    return s, t


def _from_corner(
    kernel: Kernel, one: Paths, two: Paths, s0: Array, t0: Array, order: int, per_span: float
) -> Array:
    """Return ∫∫ ∂∂'k, (n, d, d), for paths with a common end.

    The square is cut into two triangles, in which (s, t) is λ(1, μ) or λ(μ, 1) from that corner.
    All kinks start from the corner, each in a direction μ of its own, so that only μ needs graded
    panels.
    """
    xp = namespace(one.stop)
    n, d = one.shape
    turn_s, turn_t = 1.0 - 2.0 * s0, 1.0 - 2.0 * t0  # the direction in which s and t go
    p, q = one.step * turn_s[:, None], two.step * turn_t[:, None]
    result = xp.zeros((n, d, d))
    groups = (panel_groups(kernel, batch, per_span) for batch in (one, two))
    for rows, s_edges, t_edges in paired_groups(*groups):
        require_few_squares(kernel, s_edges, t_edges, one.shape[1])
        P = max(s_edges.shape[1], t_edges.shape[1]) - 1  # at λ = 1 μ runs along a whole path too
        even = xp.asarray([[i / P for i in range(P + 1)]])
        lam, w = (part[0] for part in nodes_on(even, order + 4, singular=kernel.singular))
        for A, B, s_leads in ((p[rows], -q[rows], True), (-q[rows], p[rows], False)):

            def evaluate(
                some: Array,
                mu: Array,
                v: Array,
                rows: Array = rows,
                s_leads: bool = s_leads,
                lam: Array = lam,
                w: Array = w,
            ) -> Array:
                at = rows[some]
                trailing = lam[:, None] * mu[:, None, :]  # (n, Λ, M)
                leading = lam[:, None] + 0.0 * trailing
                s, t = (leading, trailing) if s_leads else (trailing, leading)
                s = s0[at, None, None] + turn_s[at, None, None] * s
                t = t0[at, None, None] + turn_t[at, None, None] * t
                mixed = differentiate(kernel, one[at].along(s), two[at].along(t), True).mixed
                return xp.einsum("nlm,nlmij->nij", (w * lam)[:, None] * v[:, None, :], mixed)

            edges = xp.zeros((len(rows), 1)) + even
            centres, deltas = _passes(kernel, B, A)
            options = {"order": order, "singular": kernel.singular}
            result[rows] += integrate_graded(
                evaluate, edges, centres, deltas, 80.0 * d * d * len(lam), **options
            )
    return result


def _crossing(kernel: Kernel, one: Paths, two: Paths, order: int, per_span: float) -> Array:
    """Return ∫∫ ∂∂'k, (n, d, d), for paths anywhere: graded in s, and for every s in t."""
    xp = namespace(one.stop)
    n, d = one.shape
    result, inner_options = xp.empty((n, d, d)), {"order": order, "singular": kernel.singular}
    groups = (panel_groups(kernel, batch, per_span) for batch in (one, two))
    for rows, s_edges, t_edges in paired_groups(*groups):
        require_few_squares(kernel, s_edges, t_edges, one.shape[1])
        first, second = one[rows], two[rows]
        p, q, e = first.step, second.step, first.start - second.start + 0.0 * first.step

        def outer(
            pairs: Array,
            s: Array,
            w: Array,
            first: Paths = first,
            second: Paths = second,
            offsets: tuple[Array, Array, Array] = (p, q, e),
            t_edges: Array = t_edges,
        ) -> Array:
            S = s.shape[1]
            flat, at = xp.repeat(pairs, S), s.reshape(-1)
            own, across = first[flat].along(at), second[flat]
            p, q, e = (part[flat] for part in offsets)

            def inner(some: Array, t: Array, v: Array) -> Array:
                mixed = differentiate(
                    kernel, own[some][:, None, :], across[some].along(t), True
                ).mixed
                return (v[:, None, :] @ mixed.reshape(*t.shape, d * d))[:, 0, :]

            centres, deltas = _passes(kernel, -q, e + at[:, None] * p)
            values = integrate_graded(
                inner, t_edges[flat], centres, deltas, 80.0 * d * d, **inner_options
            )
            return (w[:, None, :] @ values.reshape(len(pairs), S, d * d))[:, 0, :]

        centres, deltas = _outer_kinks(kernel, p, q, e)
        # Where the paths touch, even r integrated along one of them is s² log s along the other.
        options = {"order": order + 4, "singular": True}
        result[rows] = integrate_graded(
            outer, s_edges, centres, deltas, 400.0 + 8.0 * d * d, **options
        ).reshape(-1, d, d)
    return result


def _outer_kinks(kernel: Kernel, p: Array, q: Array, e: Array) -> tuple[Array, Array]:
    """Return centres and deltas in s, (n, K'), of paths e + s p − t q.

    The inner integral is not smooth where the first path passes an end of the second, where it
    comes closest to the second, and where the kinks of two single features cross.
    """
    xp = namespace(p)
    found, lines = [_passes(kernel, p, e, FLOOR), _passes(kernel, p, e - q, FLOOR)], []
    for kink in kernel.kinks():
        columns = list(range(p.shape[1])) if kink.features is None else list(kink.features)
        scale = xp.asarray(kink.lengthscale)
        pk, qk, ek = (part[:, columns] / scale for part in (p, q, e))
        if len(columns) == 1:
            lines.append((pk[:, 0], qk[:, 0], ek[:, 0]))
            continue
        # The closest approach of two lines: remove from p and e what lies along q.
        qq = xp.maximum((qk * qk).sum(axis=1), 1e-300)[:, None]
        across, offset = (part - (part * qk).sum(axis=1)[:, None] / qq * qk for part in (pk, ek))
        centre, delta = approach(across, offset, FLOOR)
        found.append((centre[:, None], delta[:, None]))
    for i, (p1, q1, e1) in enumerate(lines):
        for p2, q2, e2 in lines[:i]:
            determinant = q1 * p2 - p1 * q2
            s = (e1 * q2 - e2 * q1) / xp.where(determinant != 0, determinant, xp.inf)
            found.append((xp.clip(s, 0.0, 1.0)[:, None], xp.zeros_like(s)[:, None]))
    centres, deltas = (xp.concatenate([pair[k] for pair in found], axis=1) for k in (0, 1))
    return centres, deltas
