"""Integrals of ∂∂'k over the unit square, whose sides run along two paths or along one path twice.

    ∫₀¹∫₀¹ ∂ᵢ∂'ⱼ k(b + s(x − b), b' + t(x' − b')) ds dt

Along one path a kernel may have a kink on the diagonal s = t, which no rule must straddle: a
stationary kernel is integrated over s − t alone, the others over triangles to either side.
"""

from __future__ import annotations

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.quadrature.kinks import between_with_kinks
from gpattr.closed_forms.quadrature.panels import (
    nodes_on,
    paired_groups,
    panel_groups,
    require_few_squares,
)
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_legendre


def between_paths(kernel: Kernel, paths: Paths, other: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ∂∂'k for the k-th path of each, (n, d, d)."""
    per_span = 2.0 * 0.5**halvings

    def apart(one: Paths, two: Paths) -> Array:
        integral = namespace(one.stop).empty((*one.shape, one.shape[1]))
        for rows, s_edges, t_edges in paired_groups(
            panel_groups(kernel, one, per_span), panel_groups(kernel, two, per_span)
        ):
            require_few_squares(kernel, s_edges, t_edges, one.shape[1])
            nodes = nodes_on(s_edges, order), nodes_on(t_edges, order)
            integral[rows] = _square(kernel, one[rows], two[rows], *nodes)
        return integral

    if kernel.smooth:
        return apart(paths, other)
    result = between_with_kinks(
        kernel, paths, other, order, halvings, None if kernel.kinks() else apart
    )
    same = ((paths.start == other.start) & (paths.stop == other.stop)).all(axis=1)
    if same.any():
        result[same] = along_one(kernel, paths[same], order + 4, halvings)
    return result


def along_one(kernel: Kernel, paths: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ∂∂'k along each path, (n, d, d)."""
    if kernel.stationary:
        return _stationary(kernel, paths, order, halvings)
    if kernel.singular:
        return _beside_the_diagonal(kernel, paths, order, halvings)
    return _twice_half_square(kernel, paths, order, halvings)


def _stationary(kernel: Kernel, paths: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ψ(s − t) = 2∫(1 − u) ψ(u) du, (n, d, d), with ψ = ∂∂'k.

    On u ≥ 0 even most kernels with kinks are smooth.
    """
    xp = namespace(paths.stop)
    (n, d), step = paths.shape, paths.step
    result = xp.empty((n, d, d))
    for group, edges in panel_groups(kernel, paths, 2.0 * 0.5**halvings):
        for some in blocks(len(group), 64.0 * d * d * order * edges.shape[1], step):
            u, w = nodes_on(edges[some], order, singular=kernel.singular)
            X = u[:, :, None] * step[group[some]][:, None, :]
            mixed = differentiate(kernel, X, xp.zeros_like(X), True).mixed
            result[group[some]] = xp.einsum("ru,ruij->rij", 2.0 * w * (1.0 - u), mixed)
    return result


def _twice_half_square(kernel: Kernel, paths: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ∂∂'k along one path, (n, d, d): M + Mᵀ, with M over s > t.

    M is integrated over squares of panels and, on the diagonal, triangles: a kink at s = t is never
    inside a rule.
    """
    xp = namespace(paths.stop)
    d, result = paths.shape[1], xp.zeros((*paths.shape, paths.shape[1]))
    x, w = map(xp.asarray, gauss_legendre(order))
    a, b = xp.repeat(x, order), xp.tile(x, order)
    weight = xp.repeat(w, order) * xp.tile(w, order)
    for group, edges in panel_groups(kernel, paths, 2.0 * 0.5**halvings):
        require_few_squares(kernel, edges, edges, d)
        lower, width = edges[:, :-1, None], (edges[:, 1:] - edges[:, :-1])[:, :, None]  # (r, P, 1)
        u = width * a
        t = lower + (width - u) * b
        parts = [(t + u, t, width * (width - u) * weight)]
        for i in range(1, edges.shape[1] - 1):  # all squares with s in panel i and t in one below
            s = xp.broadcast_to(lower[:, i, None] + width[:, i, None] * a, (len(group), i, len(a)))
            parts.append(
                (s, lower[:, :i] + width[:, :i] * b, width[:, i, None] * width[:, :i] * weight)
            )
        for s, t, v in parts:
            for some in blocks(len(group), 64.0 * d * d * s.shape[1] * s.shape[2], edges):
                part = paths[group[some]]
                flat = [x.reshape(len(x), -1) for x in (s[some], t[some], v[some])]
                mixed = differentiate(kernel, part.along(flat[0]), part.along(flat[1]), True).mixed
                result[group[some]] += xp.einsum("rv,rvij->rij", flat[2], mixed)
    return result + xp.swapaxes(result, 1, 2)


def _beside_the_diagonal(kernel: Kernel, paths: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ∂∂'k along one path, (n, d, d), for a kernel not smooth to either side of s = t.

    M over s > t is ∫∫ (1 − u) ∂∂'k(t + u, t) du dτ with t = (1 − u)τ: the integrand is smooth
    except at u = 0.
    """
    xp = namespace(paths.stop)
    d, result = paths.shape[1], xp.zeros((*paths.shape, paths.shape[1]))
    for group, edges in panel_groups(kernel, paths, 2.0 * 0.5**halvings):
        require_few_squares(kernel, edges, edges, d)
        (u, wu), (tau, w) = nodes_on(edges, order, singular=True), nodes_on(edges, order)
        for some in blocks(len(group), 64.0 * d * d * tau.shape[1], edges):
            part, inner = paths[group[some]], tau[some][:, None, :]
            for at in blocks(u.shape[1], 64.0 * d * d * tau.shape[1] * len(inner), edges):
                outer = u[some][:, at, None]
                t = (1.0 - outer) * inner
                mixed = differentiate(kernel, part.along(t + outer), part.along(t), True).mixed
                weight = (wu[some][:, at, None] * (1.0 - outer)) * w[some][:, None, :]
                result[group[some]] += xp.einsum("rut,rutij->rij", weight, mixed)
    return result + xp.swapaxes(result, 1, 2)


def _square(
    kernel: Kernel, one: Paths, two: Paths, outer: tuple[Array, Array], inner: tuple[Array, Array]
) -> Array:
    """Return ∫∫ ∂∂'k, (n, d, d), by a product of two rules: nodes and weights (n, S) and (n, T)."""
    xp = namespace(one.stop)
    (n, d), (s, ws), (t, wt) = one.shape, outer, inner
    result = xp.zeros((n, d, d))
    for rows in blocks(n, 64.0 * d * d * t.shape[1], t):
        Y = two[rows].along(t[rows])[:, None, :, :]  # (r, 1, T, d)
        for some in blocks(s.shape[1], 64.0 * d * d * t.shape[1] * len(Y), t):
            X = one[rows].along(s[rows][:, some])[:, :, None, :]  # (r, S, 1, d)
            mixed = differentiate(kernel, X, Y, True).mixed
            result[rows] += xp.einsum(
                "rst,rstij->rij", ws[rows][:, some, None] * wt[rows][:, None, :], mixed
            )
    return result
