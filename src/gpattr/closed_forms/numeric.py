"""The same verbs by quadrature: integrated gradients of any kernel whose derivatives are known (Theorem 1).

𝒜ᵢk(·, z)(x)  = (xᵢ − bᵢ) ∫₀¹ ∂ᵢk(b + t(x − b), z) dt
(𝒜k𝒜'ᵀ)ᵢⱼ    = (xᵢ − bᵢ)(x'ⱼ − b'ⱼ) ∫₀¹∫₀¹ ∂ᵢ∂'ⱼ k(b + s(x − b), b' + t(x' − b')) ds dt

Panels along a path are as many as its length in length-scales asks for, and halve where the kernel changes faster (`panels.py`).
A smooth kernel shares its nodes among all points z; one with kinks (Matérn) is the matter of `kinks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from gpattr._array import EPS, Array, namespace
from gpattr._memory import blocks
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.kinks import between_with_kinks, pairwise, quartered
from gpattr.closed_forms.panels import nodes_on, paired_groups, panel_groups, require_few_squares, towards_zero
from gpattr.closed_forms.table import Rule
from gpattr.exceptions import ToleranceError
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special import graded
from gpattr.special.quadrature import gauss_legendre

ORDER, CHECK_ORDER = 16, 12  # nodes a panel, and those of the second rule
UNRESOLVED = 1e-6  # of the prior variance: an error of the covariance that is not accepted
QUARTERED = 1e-9  # and one for which a second way is tried


def quadrature(kernel: Kernel) -> Rule:
    """Return the rule that integrates the derivatives of ``kernel`` along paths.

    A polynomial of known degree is integrated exactly, by as many nodes as it needs.
    """
    require_derivatives(kernel)
    degree = kernel.polynomial_degree
    order = ORDER if degree is None else degree // 2 + 1
    check_order = CHECK_ORDER if degree is None else order + 1
    along_one = _stationary if kernel.stationary else _twice_half_square
    orders = (graded.ORDER, graded.CHECK_ORDER) if kernel.kinks() else (order, check_order)

    def cross(paths: Paths, Z: Array) -> Array:
        xp = namespace(paths.stop)
        result = xp.empty((*paths.shape, len(Z)))
        for rows, values in _along(kernel, paths, Z, orders[0], lambda left: left):
            result[rows] = xp.swapaxes(values, 1, 2)
        return result

    def auto(paths: Paths) -> Array:
        if degree is not None:
            return between(paths, paths)
        return _completed(kernel, paths, paths, along_one(kernel, paths) * paths.step[:, :, None] * paths.step[:, None, :])

    def between(paths: Paths, other: Paths) -> Array:
        def apart(one: Paths, two: Paths) -> Array:
            integral = namespace(one.stop).empty((*one.shape, one.shape[1]))
            for rows, s_edges, t_edges in paired_groups(panel_groups(kernel, one), panel_groups(kernel, two)):
                require_few_squares(s_edges, t_edges)
                nodes = nodes_on(s_edges, order), nodes_on(t_edges, order)
                integral[rows] = _square(kernel, one[rows], two[rows], *nodes)
            return integral

        if kernel.smooth:
            result = apart(paths, other)
        else:
            result = between_with_kinks(kernel, paths, other, None if kernel.kinks() else apart)
            same = ((paths.start == other.start) & (paths.stop == other.stop)).all(axis=1)
            if same.any():
                result[same] = along_one(kernel, paths[same])
        return _completed(kernel, paths, other, result * paths.step[:, :, None] * other.step[:, None, :])

    return Rule(
        cross=cross,  # pyright: ignore[reportArgumentType]  (these rules act on paths)
        estimate=lambda paths, Z, w: _estimate(kernel, paths, Z, w, orders),  # pyright: ignore[reportArgumentType]
        auto=auto,  # pyright: ignore[reportArgumentType]
        between=between,
        methods=frozenset({"quadrature" if degree is None else "closed form"}),
    )


def _along(kernel: Kernel, paths: Paths, Z: Array, order: int, reduce: Callable[[Array], Array]) -> Iterator[tuple[Array, Array]]:
    """Yield rows and reduce((xᵢ − bᵢ) ∫∂ᵢk(·, z)), (r, k, d), for a linear ``reduce`` that takes (..., m, d) to (..., k, d)."""
    if kernel.kinks():
        yield from ((rows, reduce(values)) for rows, values in pairwise(kernel, paths, Z, order))
        return
    xp = namespace(paths.stop)
    width = 40.0 * len(Z) * paths.shape[1]
    hidden = Z if not kernel.smooth else None  # kinks that the kernel cannot place are found by trying
    for group, edges in panel_groups(kernel, paths, targets=hidden):
        for some in blocks(len(group), width * order * (edges.shape[1] - 1), Z):
            rows, total = group[some], 0.0
            part = paths[rows]
            t, w = nodes_on(edges[some], order)
            for at in blocks(t.shape[1], width * len(rows), Z):
                left = differentiate(kernel, part.along(t[:, at])[:, :, None, :], Z).left  # (r, T, m, d)
                total = total + xp.einsum("rt,rtkd->rkd", w[:, at], reduce(left))
            yield rows, total * part.step[:, None, :]


def _estimate(kernel: Kernel, paths: Paths, Z: Array, w: Array, orders: tuple[int, int]) -> tuple[Array, Array]:
    """Return cross @ w, (n, d, q), and the difference to a second rule plus what completeness and rounding add, (n,)."""
    xp = namespace(paths.stop)
    (n, d), q = paths.shape, w.shape[1]

    def contracted(left: Array) -> Array:
        """(..., m, d) → (..., 2q, d): the sum over m, and a bound on it by absolute values."""
        turned = xp.swapaxes(left, -1, -2)
        return xp.swapaxes(xp.concatenate([turned @ w, xp.abs(turned) @ xp.abs(w)], axis=-1), -1, -2)

    first, second = (xp.empty((n, 2 * q, d)) for _ in orders)
    for result, order in zip((first, second), orders, strict=True):
        for rows, values in _along(kernel, paths, Z, order, contracted):
            result[rows] = values
    value, size = first[:, :q], first[:, q:]
    difference = xp.max(xp.abs(value - second[:, :q]), axis=(1, 2))
    # What both rules have missed shows here: the attributions must add up to Σ w (k(x, z) − k(b, z)).
    total = kernel(paths.stop, Z) @ w - kernel(xp.broadcast_to(paths.start, paths.shape), Z) @ w
    gap = xp.max(xp.abs(value.sum(axis=2) - total), axis=1)
    position = kernel.span(xp.abs(paths.stop) + xp.abs(paths.start))  # in length-scales, each of which rounds by ε of it
    peak = xp.sqrt(xp.maximum(kernel.diagonal(paths.stop), kernel.diagonal(xp.broadcast_to(paths.start, paths.shape))))
    most = float(xp.max(xp.sqrt(kernel.diagonal(Z)) @ xp.abs(w), axis=0))
    rounding = EPS * ((32.0 + position) * xp.max(xp.abs(size), axis=(1, 2)) + 8.0 * most * peak)
    return xp.swapaxes(value, 1, 2), difference + gap + rounding


def _completed(kernel: Kernel, paths: Paths, other: Paths, covariance: Array) -> Array:
    """Return the covariance; raise `ToleranceError` unless it adds up to that of f(x) − f(b) and f(x') − f(b').

    A kernel whose kinks nobody can place (a warped Matérn) gets a second try by squares that are quartered around them.
    """
    gap = _gap(kernel, paths, other, covariance)
    if not kernel.smooth and (again := gap > QUARTERED).any():
        covariance[again] = quartered(kernel, paths[again], other[again])
        gap[again] = _gap(kernel, paths[again], other[again], covariance[again])
    if not (gap <= UNRESOLVED).all():
        raise ToleranceError(
            f"tolerance: the prior covariance of attributions is sure to {float(gap.max()):.1e} of the prior variance only; the "
            'kernel changes too fast along the path. uncertainty="none" explains without it; check it with check_kernel'
        )
    return covariance


def _gap(kernel: Kernel, paths: Paths, other: Paths, covariance: Array) -> Array:
    """Return by how much a covariance fails to add up, (n,), relative to the prior variance."""
    xp = namespace(paths.stop)
    (b, x), (b2, x2) = ((xp.broadcast_to(batch.start, batch.shape), batch.stop) for batch in (paths, other))
    ends = ((1.0, x, x2), (-1.0, x, b2), (-1.0, b, x2), (1.0, b, b2))
    gain = sum(sign * differentiate(kernel, one, two).value for sign, one, two in ends)
    largest = reduce(xp.maximum, (kernel.diagonal(end) for end in (b, x, b2, x2)))
    return xp.abs(covariance.sum(axis=(1, 2)) - gain) / xp.maximum(largest, 1e-300)


def _stationary(kernel: Kernel, paths: Paths) -> Array:
    """Return ∫∫ ψ(s − t) = 2∫(1 − u) ψ(u) du, (n, d, d), ψ being ∂∂'k; on u ≥ 0 even most kernels with kinks are smooth."""
    xp = namespace(paths.stop)
    (n, d), step = paths.shape, paths.step
    result = xp.empty((n, d, d))
    for group, even in panel_groups(kernel, paths):
        edges = towards_zero(kernel, even)
        for some in blocks(len(group), 64.0 * d * d * ORDER * edges.shape[1], step):
            u, w = nodes_on(edges[some], ORDER)
            X = u[:, :, None] * step[group[some]][:, None, :]
            mixed = differentiate(kernel, X, xp.zeros_like(X), True).mixed
            result[group[some]] = xp.einsum("ru,ruij->rij", 2.0 * w * (1.0 - u), mixed)
    return result


def _twice_half_square(kernel: Kernel, paths: Paths) -> Array:
    """Return ∫∫ ∂∂'k along one path, (n, d, d): M + Mᵀ, M over s > t, in squares of panels and, on the diagonal, triangles.

    So a kink at s = t is never inside a rule.
    """
    xp = namespace(paths.stop)
    d, result = paths.shape[1], xp.zeros((*paths.shape, paths.shape[1]))
    x, w = map(xp.asarray, gauss_legendre(ORDER))
    a, b = xp.repeat(x, ORDER), xp.tile(x, ORDER)
    weight = xp.repeat(w, ORDER) * xp.tile(w, ORDER)
    fine, v = (part[0] for part in nodes_on(towards_zero(kernel, xp.asarray([[0.0, 1.0]])), ORDER))  # away from s = t
    a0, b0, weight0 = xp.repeat(fine, ORDER), xp.tile(x, len(fine)), xp.repeat(v, ORDER) * xp.tile(w, len(fine))
    for group, edges in panel_groups(kernel, paths):
        require_few_squares(edges, edges)
        lower, width = edges[:, :-1, None], (edges[:, 1:] - edges[:, :-1])[:, :, None]  # (r, P, 1)
        u = width * a0
        t = lower + (width - u) * b0
        parts = [(t + u, t, width * (width - u) * weight0)]
        for i in range(1, edges.shape[1] - 1):  # all squares with s in panel i and t in one below
            s = xp.broadcast_to(lower[:, i, None] + width[:, i, None] * a, (len(group), i, len(a)))
            parts.append((s, lower[:, :i] + width[:, :i] * b, width[:, i, None] * width[:, :i] * weight))
        for s, t, v in parts:
            for some in blocks(len(group), 64.0 * d * d * s.shape[1] * s.shape[2], edges):
                part = paths[group[some]]
                flat = [x.reshape(len(x), -1) for x in (s[some], t[some], v[some])]
                mixed = differentiate(kernel, part.along(flat[0]), part.along(flat[1]), True).mixed
                result[group[some]] += xp.einsum("rv,rvij->rij", flat[2], mixed)
    return result + xp.swapaxes(result, 1, 2)


def _square(kernel: Kernel, one: Paths, two: Paths, outer: tuple[Array, Array], inner: tuple[Array, Array]) -> Array:
    """Return ∫∫ ∂∂'k, (n, d, d), by the product of two rules, nodes and weights (n, S) and (n, T)."""
    xp = namespace(one.stop)
    (n, d), (s, ws), (t, wt) = one.shape, outer, inner
    result = xp.zeros((n, d, d))
    for rows in blocks(n, 64.0 * d * d * t.shape[1], t):
        Y = two[rows].along(t[rows])[:, None, :, :]  # (r, 1, T, d)
        for some in blocks(s.shape[1], 64.0 * d * d * t.shape[1] * len(Y), t):
            X = one[rows].along(s[rows][:, some])[:, :, None, :]  # (r, S, 1, d)
            mixed = differentiate(kernel, X, Y, True).mixed
            result[rows] += xp.einsum("rst,rstij->rij", ws[rows][:, some, None] * wt[rows][:, None, :], mixed)
    return result
