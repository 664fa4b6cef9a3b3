"""The same verbs by quadrature: integrated gradients of any kernel whose derivatives are known
(Theorem 1).

𝒜ᵢk(·, z)(x)  = (xᵢ − bᵢ) ∫₀¹ ∂ᵢk(b + t(x − b), z) dt
(𝒜k𝒜'ᵀ)ᵢⱼ    = (xᵢ − bᵢ)(x'ⱼ − b'ⱼ) ∫₀¹∫₀¹ ∂ᵢ∂'ⱼ k(b + s(x − b), b' + t(x' − b')) ds dt

Panels along a path are as many as its length in length-scales asks for, and halve where the kernel
changes faster (`panels.py`). A smooth kernel shares its nodes among all points z; one with kinks
(Matérn) is the matter of `kinks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.quadrature.kinks import between_with_kinks, pairwise, quartered
from gpattr.closed_forms.quadrature.panels import (
    nodes_on,
    paired_groups,
    panel_groups,
    require_few_squares,
)
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.exceptions import ToleranceError
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special import graded
from gpattr.special.quadrature import gauss_legendre

ORDERS = (16, 12)  # nodes a panel, and those of the second rule
GOOD_CROSS = 1e-11  # of σ(x)σ(z): an error for which panels are halved
GOOD_PRIOR = 1e-10  # of the prior variance: the same
UNRESOLVED = 1e-6  # of the prior variance: an error of the covariance that is not accepted
QUARTERED = 1e-9  # and one for which a second method is tried
MOST_HALVINGS = 3
ROUNDED = {False: 16, True: 128}  # ε of a value of the kernel; Bessel functions are good to 1e-14


def quadrature(kernel: Kernel) -> Formulas:
    """Return the rule that integrates the derivatives of ``kernel`` along paths.

    A polynomial of known degree is integrated exactly, by as many nodes as it needs. Everything is
    integrated by two rules, and panels are halved where these differ, or where the result does not
    add up.
    """
    require_derivatives(kernel)
    degree = kernel.polynomial_degree
    orders = ORDERS if degree is None else (degree // 2 + 1, degree // 2 + 2)
    if kernel.kinks():
        orders = (
            (graded.SINGULAR_ORDER, graded.SINGULAR_CHECK_ORDER)
            if kernel.singular
            else (graded.ORDER, graded.CHECK_ORDER)
        )

    def cross(paths: Paths, Z: Array) -> Bounded:
        start, stop, Z = _near_origin(kernel, paths.start, paths.stop, Z)
        paths, xp = Paths(start, stop), namespace(stop)
        (n, d), start = paths.shape, xp.broadcast_to(paths.start, paths.shape)
        result, error = xp.empty((n, d, len(Z))), xp.empty(n)
        peak = xp.sqrt(xp.maximum(kernel.diagonal(paths.stop), kernel.diagonal(start)))
        spread = xp.sqrt(xp.max(kernel.diagonal(Z), axis=0))
        todo, halvings = xp.arange(n), 0
        while len(todo):
            part = paths[todo]
            for rows, first, second in _along(kernel, part, Z, orders, lambda left: left, halvings):
                at = todo[rows]
                result[at] = xp.swapaxes(first, 1, 2)
                gap = first.sum(axis=2) - (kernel(paths.stop[at], Z) - kernel(start[at], Z))
                known = (
                    ROUNDED[kernel.singular] * EPS * peak[at][:, None] * spread
                )  # what rounding leaves of the two values that are subtracted
                wrong = xp.max(xp.abs(first - second), axis=2) + xp.maximum(
                    xp.abs(gap) - known, 0.0
                )
                peak_error = xp.maximum(xp.max(wrong, axis=1), 1e-300)
                error[at] = peak_error * xp.sqrt(
                    ((wrong / peak_error[:, None]) ** 2).sum(axis=1)
                )  # squares would overflow
            rough = error[todo] > GOOD_CROSS * (
                peak[todo] * spread + xp.max(xp.abs(result[todo]), axis=(1, 2))
            )
            if halvings == MOST_HALVINGS:
                break
            todo, halvings = todo[rough], halvings + 1
        size = xp.sqrt(_uncancelled(kernel, paths)) * spread
        return Bounded(
            result, error + EPS * (32.0 + _position(kernel, paths)) * size * len(Z) ** 0.5
        )

    def contract(paths: Paths, Z: Array, w: Array) -> Bounded:
        start, stop, Z = _near_origin(kernel, paths.start, paths.stop, Z)
        return _contract(kernel, Paths(start, stop), Z, w, orders)

    def prior_cov(paths: Paths) -> Bounded:
        if degree is not None:
            return between(paths, paths)
        paths = Paths(*_near_origin(kernel, paths.start, paths.stop))
        rules = (graded.SINGULAR_ORDER, graded.SINGULAR_CHECK_ORDER) if kernel.singular else ORDERS
        return _completed(
            kernel, paths, paths, rules, lambda one, _, *how: _along_one(kernel, one, *how)
        )

    def between(paths: Paths, other: Paths) -> Bounded:
        start, stop, other_start, other_stop = _near_origin(
            kernel, paths.start, paths.stop, other.start, other.stop
        )
        pairs = Paths(start, stop), Paths(other_start, other_stop)
        # With kinks a halving costs four times as much and gains little.
        return _completed(
            kernel,
            *pairs,
            orders,
            lambda *args: _between(kernel, *args),
            MOST_HALVINGS if kernel.smooth else 0,
        )

    return Formulas(
        cross=cross,
        contract=contract,
        prior_cov=prior_cov,
        between=between,
        methods=frozenset({"quadrature" if degree is None else "closed form"}),
    )


def _near_origin(kernel: Kernel, *points: Array) -> list[Array]:
    """Return points, (..., d) each, as a stationary kernel may see them: from the first, where that
    is exact.

    It is where they lie far out compared with the distances between them, and only there it
    matters.
    """
    moved = [point - points[0][:1] for point in points]
    exact = kernel.stationary and all(
        (new + points[0][:1] == old).all() for new, old in zip(moved, points, strict=True)
    )
    return moved if exact else list(points)


def _position(kernel: Kernel, paths: Paths) -> Array:
    """Return how many length-scales from the origin the paths lie, (n,): each of their points
    rounds by ε of that.
    """
    xp = namespace(paths.stop)
    return kernel.n_lengthscales(xp.abs(paths.stop) + xp.abs(paths.start))


def _uncancelled(kernel: Kernel, paths: Paths) -> Array:
    """Return the largest (xᵢ − bᵢ)² ∂ᵢ∂'ᵢk(x, x) along each path, (n,): whatever cancels, no
    integrand exceeds it.

    Rounding is ε of it, and vanishes with the path as the attributions do.
    """
    xp = namespace(paths.stop)
    t = xp.zeros((paths.shape[0], 1)) + xp.asarray([0.0, 0.25, 0.5, 0.75, 1.0])
    points = paths.along(t)
    slopes = xp.diagonal(
        differentiate(kernel, points, points, True).mixed, axis1=2, axis2=3
    )  # (n, 5, d)
    return xp.max(xp.max(xp.abs(slopes), axis=1) * paths.step**2, axis=1)


def _along(
    kernel: Kernel,
    paths: Paths,
    Z: Array,
    orders: tuple[int, int],
    reduce: Callable[[Array], Array],
    halvings: int = 0,
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows and reduce((xᵢ − bᵢ) ∫∂ᵢk(·, z)), (r, k, d), by two rules.

    ``reduce`` is linear and takes (..., m, d) to (..., k, d).
    """
    if kernel.kinks():
        for rows, first, second in pairwise(kernel, paths, Z, orders, halvings):
            yield rows, reduce(first), reduce(second)
        return
    xp = namespace(paths.stop)
    width = 40.0 * len(Z) * paths.shape[1]
    hidden = (
        Z if not kernel.smooth else None
    )  # kinks that the kernel cannot place are found by trying
    for group, edges in panel_groups(kernel, paths, 2.0 * 0.5**halvings, targets=hidden):
        for some in blocks(len(group), width * orders[0] * (edges.shape[1] - 1), Z):
            rows, totals = group[some], []
            part = paths[rows]
            for order in orders:
                t, w = nodes_on(edges[some], order)
                total = 0.0
                for at in blocks(t.shape[1], width * len(rows), Z):
                    left = differentiate(
                        kernel, part.along(t[:, at])[:, :, None, :], Z
                    ).left  # (r, T, m, d)
                    total = total + xp.einsum("rt,rtkd->rkd", w[:, at], reduce(left))
                totals.append(total * part.step[:, None, :])
            yield rows, totals[0], totals[1]


def _contract(kernel: Kernel, paths: Paths, Z: Array, w: Array, orders: tuple[int, int]) -> Bounded:
    """Return cross @ w, (n, d, q), and the difference to a second rule plus what completeness and
    rounding add, (n,).
    """
    xp = namespace(paths.stop)
    (n, d), q = paths.shape, w.shape[1]
    start = xp.broadcast_to(paths.start, paths.shape)

    def contracted(left: Array) -> Array:
        """(..., m, d) → (..., 2q, d): the sum over m, and a bound on it by absolute values."""
        turned = xp.swapaxes(left, -1, -2)
        return xp.swapaxes(
            xp.concatenate([turned @ w, xp.abs(turned) @ xp.abs(w)], axis=-1), -1, -2
        )

    result, wrong = xp.empty((n, 2 * q, d)), xp.empty(n)
    # What both rules have missed shows here: the attributions must add up to Σ w (k(x, z) − k(b,
    # z)).
    total = kernel(paths.stop, Z) @ w - kernel(start, Z) @ w
    peak = xp.sqrt(xp.maximum(kernel.diagonal(paths.stop), kernel.diagonal(start)))
    most = peak * float(xp.max(xp.sqrt(kernel.diagonal(Z)) @ xp.abs(w), axis=0))
    todo, halvings = xp.arange(n), 0
    while len(todo):
        for rows, first, second in _along(kernel, paths[todo], Z, orders, contracted, halvings):
            at = todo[rows]
            result[at] = first
            value = first[:, :q]
            difference = xp.max(xp.abs(value - second[:, :q]), axis=(1, 2))
            wrong[at] = difference + xp.max(xp.abs(value.sum(axis=2) - total[at]), axis=1)
        if halvings == MOST_HALVINGS:
            break
        todo, halvings = todo[wrong[todo] > GOOD_CROSS * most[todo]], halvings + 1
    size = xp.max(xp.abs(result[:, q:]), axis=(1, 2))
    rounding = EPS * ((32.0 + _position(kernel, paths)) * size + 8.0 * most)
    return Bounded(xp.swapaxes(result[:, :q], 1, 2), wrong + rounding)


def _completed(
    kernel: Kernel,
    paths: Paths,
    other: Paths,
    orders: tuple[int, int],
    integrate: Callable[[Paths, Paths, int, int], Array],
    most_halvings: int = MOST_HALVINGS,
) -> Bounded:
    """Return the covariance between the k-th path of each, (n, d, d), with its error, (n,).

    ``integrate(one, two, order, halvings)`` returns ∫∫ ∂∂'k. The error is the largest difference to
    a second rule, and the gap to the covariance of f(x) − f(b) and f(x') − f(b'), to which the
    entries must add up. A kernel with kinks at unknown positions (a warped Matérn) gets a second
    try by squares that are quartered around them.
    """
    xp = namespace(paths.stop)
    n, d = paths.shape
    steps = paths.step[:, :, None] * other.step[:, None, :]
    (b, x), (b2, x2) = (
        (xp.broadcast_to(batch.start, batch.shape), batch.stop) for batch in (paths, other)
    )
    ends = ((1.0, x, x2), (-1.0, x, b2), (-1.0, b, x2), (1.0, b, b2))
    gain = reduce(add, (sign * differentiate(kernel, one, two).value for sign, one, two in ends))
    variance = reduce(xp.maximum, (kernel.diagonal(end) for end in (b, x, b2, x2)))
    variance = xp.maximum(variance, 1e-300)
    result, error = xp.zeros((n, d, d)), xp.zeros(n)
    rounding = EPS * (32.0 + _position(kernel, paths) + _position(kernel, other))

    def size(rows: Array) -> Array:
        return xp.maximum(variance[rows], xp.max(xp.abs(result[rows]), axis=(1, 2)))

    hidden = not kernel.smooth and not kernel.kinks()  # kinks that no halving places
    todo, halvings = xp.arange(n), 0
    while len(todo):
        one, two = paths[todo], other[todo]
        try:
            first, second = (integrate(one, two, order, halvings) * steps[todo] for order in orders)
        except ToleranceError:  # too many panels
            if not halvings:
                raise
            break
        result[todo] = first
        gap = (
            xp.abs(first.sum(axis=(1, 2)) - gain[todo])
            - ROUNDED[kernel.singular] * EPS * variance[todo]
        )  # whose own values are rounded
        error[todo] = xp.max(xp.abs(first - second), axis=(1, 2)) + xp.maximum(gap, 0.0)
        if halvings == (min(most_halvings, 1) if hidden else most_halvings):
            break
        todo, halvings = (
            todo[error[todo] > (GOOD_PRIOR + rounding[todo]) * size(todo)],
            halvings + 1,
        )
    everything = xp.arange(n)
    if not kernel.smooth:
        again = everything[error > (QUARTERED if hidden else UNRESOLVED) * size(everything)]
        if len(again):
            second, bound = quartered(kernel, paths[again], other[again])
            better = bound < error[again]
            result[again[better]], error[again[better]] = second[better], bound[better]
    error = error + rounding * xp.sqrt(_uncancelled(kernel, paths) * _uncancelled(kernel, other))
    excess = error / size(everything)
    if not (excess <= UNRESOLVED).all():
        raise ToleranceError(
            "tolerance: the prior covariance of the attributions is accurate only to"
            f" {float(excess.max()):.1e} of the prior variance; the kernel changes too fast along"
            ' the path. uncertainty="none" explains without it; gpattr.testing.check_kernel checks'
            " the kernel"
        )
    return Bounded(result, error)


def _between(kernel: Kernel, paths: Paths, other: Paths, order: int, halvings: int) -> Array:
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
        result[same] = _along_one(kernel, paths[same], order + 4, halvings)
    return result


def _along_one(kernel: Kernel, paths: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ∂∂'k along each path, (n, d, d)."""
    method = (
        _stationary
        if kernel.stationary
        else _beside_the_diagonal
        if kernel.singular
        else _twice_half_square
    )
    return method(kernel, paths, order, halvings)


def _stationary(kernel: Kernel, paths: Paths, order: int, halvings: int) -> Array:
    """Return ∫∫ ψ(s − t) = 2∫(1 − u) ψ(u) du, (n, d, d), ψ being ∂∂'k; on u ≥ 0 even most kernels
    with kinks are smooth.
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
    """Return ∫∫ ∂∂'k along one path, (n, d, d): M + Mᵀ, M over s > t, in squares of panels and, on
    the diagonal, triangles.

    So a kink at s = t is never inside a rule.
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
    """Return ∫∫ ∂∂'k along one path, (n, d, d), for a kernel that is not smooth to either side of s
    = t.

    M over s > t is ∫∫ (1 − u) ∂∂'k(t + u, t) du dτ with t = (1 − u)τ: what is not smooth is so at u
    = 0 only.
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
    """Return ∫∫ ∂∂'k, (n, d, d), by the product of two rules with nodes (n, S) and (n, T)."""
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
