"""Prior covariances of attributions by quadrature, checked against their exact sums.

    Σᵢⱼ (𝒜k𝒜'ᵀ)ᵢⱼ = k(x, x') − k(x, b') − k(b, x') + k(b, b')

Two rules integrate every entry. Where they differ, or the entries do not add up, panels are halved;
a kernel with kinks gets a second try by squares that are quartered around them (`kinks.py`). The
sides of the unit square run along two paths, or along one path twice,

    ∫₀¹∫₀¹ ∂ᵢ∂'ⱼ k(b + s(x − b), b' + t(x' − b')) ds dt.

Along one path a kernel may have a kink on the diagonal s = t, which no rule must straddle: a
stationary kernel is integrated over s − t alone, the others over triangles to either side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.quadrature.kinks import between_with_kinks, quartered
from gpattr.closed_forms.quadrature.panels import (
    nodes_on,
    paired_groups,
    panel_groups,
    require_few_squares,
)
from gpattr.closed_forms.table import Bounded
from gpattr.exceptions import ToleranceError
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_legendre

GOOD = 1e-10  # of the prior variance: an error for which panels are halved
QUARTERED = 1e-9  # and one for which a second method is tried
UNRESOLVED = 1e-6  # and one that is not accepted
MOST_HALVINGS = 3
ROUNDED = {False: 16, True: 128}  # ε of a value of the kernel; Bessel functions are good to 1e-14

# (one, two, order, halvings) -> ∫∫ ∂∂'k for the k-th path of each, (n, d, d)
Integrate = Callable[[Paths, Paths, int, int], Array]


def completed(
    kernel: Kernel,
    paths: Paths,
    other: Paths,
    orders: tuple[int, int],
    integrate: Integrate,
    most_halvings: int = MOST_HALVINGS,
) -> Bounded:
    """Return the covariance between the k-th path of each, (n, d, d), with its error, (n,).

    The error is the largest difference to a second rule, plus the gap to the sum that the entries
    must have, plus rounding. `ToleranceError` where it exceeds ``UNRESOLVED``.
    """
    xp = namespace(paths.stop)
    pairs = _PathPairs.of(kernel, paths, other)
    result, error = _halved(pairs, orders, integrate, most_halvings)
    if not kernel.smooth:
        _retry_by_quarters(pairs, result, error)
    error = error + pairs.rounding * xp.sqrt(
        uncancelled(kernel, paths) * uncancelled(kernel, other)
    )
    excess = error / pairs.size(result, xp.arange(len(error)))
    if not (excess <= UNRESOLVED).all():
        raise ToleranceError(
            "tolerance: the prior covariance of the attributions is accurate only to"
            f" {float(excess.max()):.1e} of the prior variance; the kernel changes too fast along"
            ' the path. uncertainty="none" explains without it; gpattr.testing.check_kernel checks'
            " the kernel"
        )
    return Bounded(result, error)


@dataclass(frozen=True)
class _PathPairs:
    """The k-th path of two batches, and what is known about the covariance of their attributions.

    Entries add up to ``gain``, the covariance of f(x) − f(b) and f(x') − f(b'). Errors are relative
    to ``variance``, the largest prior variance at the four ends, and ``rounding`` is one that
    cannot be avoided. All are (n,).
    """

    kernel: Kernel
    paths: Paths
    other: Paths
    gain: Array
    variance: Array
    rounding: Array

    @classmethod
    def of(cls, kernel: Kernel, paths: Paths, other: Paths) -> _PathPairs:
        xp = namespace(paths.stop)
        (b, x), (b2, x2) = (
            (xp.broadcast_to(batch.start, batch.shape), batch.stop) for batch in (paths, other)
        )
        ends = ((1.0, x, x2), (-1.0, x, b2), (-1.0, b, x2), (1.0, b, b2))
        gain = reduce(
            add, (sign * differentiate(kernel, one, two).value for sign, one, two in ends)
        )
        variance = reduce(xp.maximum, (kernel.diagonal(end) for end in (b, x, b2, x2)))
        rounding = EPS * (32.0 + position(kernel, paths) + position(kernel, other))
        return cls(kernel, paths, other, gain, xp.maximum(variance, 1e-300), rounding)

    @property
    def hides_kinks(self) -> bool:
        """Whether kinks are at unknown positions (a warped Matérn), which no halving finds."""
        return not self.kernel.smooth and not self.kernel.kinks()

    def size(self, result: Array, rows: Array) -> Array:
        """Return the scale of errors of some rows: σ², or a larger entry."""
        xp = namespace(result)
        return xp.maximum(self.variance[rows], xp.max(xp.abs(result[rows]), axis=(1, 2)))

    def error(self, first: Array, second: Array, rows: Array) -> Array:
        """Return by how much two rules differ at some rows, plus the gap to ``gain``."""
        xp = namespace(first)
        # The values that `gain` is made of are rounded themselves.
        gap = (
            xp.abs(first.sum(axis=(1, 2)) - self.gain[rows])
            - ROUNDED[self.kernel.singular] * EPS * self.variance[rows]
        )
        return xp.max(xp.abs(first - second), axis=(1, 2)) + xp.maximum(gap, 0.0)


def _halved(
    pairs: _PathPairs, orders: tuple[int, int], integrate: Integrate, most_halvings: int
) -> tuple[Array, Array]:
    """Return covariances, (n, d, d), and errors, (n,), with panels halved where it helps."""
    xp = namespace(pairs.paths.stop)
    n, d = pairs.paths.shape
    steps = pairs.paths.step[:, :, None] * pairs.other.step[:, None, :]
    result, error = xp.zeros((n, d, d)), xp.zeros(n)
    most = min(most_halvings, 1) if pairs.hides_kinks else most_halvings
    todo, halvings = xp.arange(n), 0
    while len(todo):
        one, two = pairs.paths[todo], pairs.other[todo]
        try:
            first, second = (integrate(one, two, order, halvings) * steps[todo] for order in orders)
        except ToleranceError:  # too many panels
            if not halvings:
                raise
            break
        result[todo] = first
        error[todo] = pairs.error(first, second, todo)
        if halvings == most:
            break
        good = (GOOD + pairs.rounding[todo]) * pairs.size(result, todo)
        todo, halvings = todo[error[todo] > good], halvings + 1
    return result, error


def _retry_by_quarters(pairs: _PathPairs, result: Array, error: Array) -> None:
    """Replace, in place, covariances that quartered squares give with a smaller error."""
    everything = namespace(result).arange(len(result))
    limit = QUARTERED if pairs.hides_kinks else UNRESOLVED
    again = everything[error > limit * pairs.size(result, everything)]
    if len(again):
        second, bound = quartered(pairs.kernel, pairs.paths[again], pairs.other[again])
        better = bound < error[again]
        result[again[better]], error[again[better]] = second[better], bound[better]


def position(kernel: Kernel, paths: Paths) -> Array:
    """Return how many length-scales from the origin paths lie, (n,): points round by ε of that."""
    xp = namespace(paths.stop)
    return kernel.n_lengthscales(xp.abs(paths.stop) + xp.abs(paths.start))


def uncancelled(kernel: Kernel, paths: Paths) -> Array:
    """Return the largest (xᵢ − bᵢ)² ∂ᵢ∂'ᵢk(x, x) along each path, (n,).

    Whatever cancels, no integrand exceeds it. Rounding is ε of it, and vanishes with the path as
    the attributions do.
    """
    xp = namespace(paths.stop)
    t = xp.zeros((paths.shape[0], 1)) + xp.asarray([0.0, 0.25, 0.5, 0.75, 1.0])
    points = paths.along(t)
    mixed = differentiate(kernel, points, points, True).mixed
    slopes = xp.diagonal(mixed, axis1=2, axis2=3)  # (n, 5, d)
    return xp.max(xp.max(xp.abs(slopes), axis=1) * paths.step**2, axis=1)


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
