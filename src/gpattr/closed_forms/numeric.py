"""The same verbs by quadrature: integrated gradients of any kernel whose gradients are in the table (Theorem 1).

𝒜ᵢk(·, z)(x)  = (xᵢ − bᵢ) ∫₀¹ ∂ᵢk(b + t(x − b), z) dt
(𝒜k𝒜'ᵀ)ᵢⱼ    = (xᵢ − bᵢ)(x'ⱼ − b'ⱼ) ∫₀¹∫₀¹ ∂ᵢ∂'ⱼ k(b + s(x − b), b' + t(x' − b')) ds dt
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from gpattr._array import EPS, Array, namespace
from gpattr._memory import blocks
from gpattr.closed_forms.table import Rule
from gpattr.kernels import Kernel
from gpattr.operators import Paths, Points
from gpattr.special.quadrature import gauss_legendre

# One panel of 16 nodes for every two length-scales reaches 2e-14; 12 nodes on the same panels serve as the second rule.
ORDER, CHECK_ORDER, SPAN_PER_PANEL = 16, 12, 2.0


def quadrature(kernel: Kernel, gradient: Rule) -> Rule:
    """Return the rule that integrates ``gradient``, the table's entry for gradients of ``kernel``, along paths."""

    def panels(*batches: Paths) -> Array:
        xp = namespace(batches[0].stop)
        counts = [xp.ceil(kernel.span(paths.step) / SPAN_PER_PANEL) for paths in batches]
        return xp.maximum(reduce(xp.maximum, counts), 1.0)

    def along(paths: Paths, order: int, at_points: Callable[[Points], Array], cost: float, size: int) -> Array:
        """Σ_t w_t g(b + t(x − b)) ∘ (x − b), (n, d, size), where g(points) is (n, d, size)."""
        xp = namespace(paths.stop)
        n, d = paths.shape
        result = xp.empty((n, d, size))
        for rows, (t, w) in _groups(panels(paths), order, cost):
            part = paths[rows]
            values = at_points(Points(part.at(t).reshape(-1, d))).reshape(len(t), -1, d, size)
            result[rows] = xp.tensordot(w, values, axes=1) * part.step[:, :, None]
        return result

    def cross(paths: Paths, Z: Array) -> Array:
        d, m = paths.shape[1], len(Z)
        return along(paths, ORDER, lambda points: gradient.cross(points, Z), 32.0 * d * m, m)

    def contracted(paths: Paths, Z: Array, w: Array, order: int) -> Array:
        d, m = paths.shape[1], len(Z)
        return along(paths, order, lambda points: gradient.cross_dot(points, Z, w), 32.0 * d * m, w.shape[1])

    def cross_dot(paths: Paths, Z: Array, w: Array) -> Array:
        return contracted(paths, Z, w, ORDER)

    def error(paths: Paths, Z: Array, w: Array) -> Array:
        """The difference of the two rules, plus the rounding of the sums and of the positions on the path."""
        xp = namespace(paths.stop)
        value = cross_dot(paths, Z, w)
        difference = xp.max(xp.abs(value - contracted(paths, Z, w, CHECK_ORDER)), axis=(1, 2))
        size = along(
            paths,
            ORDER,
            lambda points: xp.abs(gradient.cross(points, Z)) @ xp.abs(w),
            32.0 * paths.shape[1] * len(Z),
            w.shape[1],
        )
        position = kernel.span(xp.abs(paths.stop) + xp.abs(paths.start))
        return difference + EPS * (32.0 + position) * xp.max(xp.abs(size), axis=(1, 2))

    def between(paths: Paths, other: Paths) -> Array:
        xp = namespace(paths.stop)
        n, d = paths.shape
        result = xp.empty((n, d, d))
        for rows, (t, w) in _groups(panels(paths, other), ORDER, 32.0 * d * d, squared=True):
            one, two, T = paths[rows], other[rows], len(t)
            s_points, t_points, integral = one.at(t), two.at(t), xp.zeros((len(rows), d, d))
            for some in blocks(T, 32.0 * d * d * T * len(rows)):
                shape = (len(t[some]), T, *one.shape)
                s_part = xp.broadcast_to(s_points[some][:, None], shape).reshape(-1, d)
                t_part = xp.broadcast_to(t_points[None, :], shape).reshape(-1, d)
                values = gradient.between(Points(s_part), Points(t_part)).reshape(-1, len(rows), d, d)
                integral += xp.tensordot((w[some, None] * w).ravel(), values, axes=1)
            result[rows] = one.step[:, :, None] * two.step[:, None, :] * integral
        return result

    return Rule(
        cross=cross,  # pyright: ignore[reportArgumentType]  (these rules act on paths)
        cross_dot=cross_dot,  # pyright: ignore[reportArgumentType]
        auto=lambda paths: between(paths, paths),  # pyright: ignore[reportArgumentType]
        between=between,
        error=error,  # pyright: ignore[reportArgumentType]
        methods=frozenset({"quadrature"}),
    )


def _groups(
    panels: Array, order: int, bytes_per_node: float, *, squared: bool = False
) -> Iterator[tuple[Array, tuple[Array, Array]]]:
    """Yield rows with the same number of panels, in blocks within the working budget, and their rule."""
    xp = namespace(panels)
    for count in sorted(map(int, set(panels.tolist()))):
        rows = xp.nonzero(panels == count)[0]
        nodes = order * count
        for block in blocks(len(rows), bytes_per_node * (nodes * nodes if squared else nodes)):
            t, w = map(xp.asarray, gauss_legendre(order, count))
            yield rows[block], (t, w)
