"""Integrated gradients, by quadrature, of any kernel whose derivatives are known (Theorem 1).

    𝒜ᵢk(·, z)(x)  = (xᵢ − bᵢ) ∫₀¹ ∂ᵢk(b + t(x − b), z) dt
    (𝒜k𝒜'ᵀ)ᵢⱼ    = (xᵢ − bᵢ)(x'ⱼ − b'ⱼ) ∫₀¹∫₀¹ ∂ᵢ∂'ⱼ k(b + s(x − b), b' + t(x' − b')) ds dt

The number of panels along a path follows from its length in length-scales, and panels halve where
the kernel changes faster (`panels.py`). A smooth kernel shares its nodes among all points z; kinks
(Matérn) need panels for each of them (`kinks.py`). Double integrals come from `covariance.py`, with
its checks.

The gradients of a prior mean may jump, as a ReLU network's do: a panel is halved until its two
halves agree with the whole, and their sum over features with the values of the mean at its ends. So
panels gather around jumps, down to the resolution of float64, and nowhere else. The rules are
Gauss–Lobatto rules, which see both ends of a panel: a jump beyond the outermost nodes of another
rule would be seen by none of its gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gpattr._core.array import EPS, Array, namespace, to_numpy
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate, require_derivatives
from gpattr.closed_forms.quadrature.covariance import (
    MOST_HALVINGS,
    ROUNDED,
    along_one,
    between_paths,
    completed,
    position,
    uncancelled,
)
from gpattr.closed_forms.quadrature.kinks import pairwise
from gpattr.closed_forms.quadrature.panels import nodes_on, panel_groups
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Paths
from gpattr.special import graded
from gpattr.special.quadrature import gauss_lobatto

ORDERS = (16, 12)  # nodes a panel, of the rule and of the second rule
SINGULAR_ORDERS = (graded.SINGULAR_ORDER, graded.SINGULAR_CHECK_ORDER)
GOOD = 1e-11  # of σ(x)σ(z): an error for which panels are halved
ORDER, SLIM_ORDER = 10, 4  # nodes of a panel, and of one that is slim
SLIM = 2.0**-10  # of the path: a gradient between its jumps is nearly straight on such a panel
WANTED = 1e-13  # of the size of the attributions, where a panel is accepted
SHORTEST = 2.0**-48
MOST = 2048  # panels of a path that are halved at a time; a function rough everywhere has more


def quadrature(kernel: Kernel) -> Formulas:
    """Return formulas that integrate the derivatives of ``kernel`` along paths.

    A polynomial of known degree is integrated exactly, by as many nodes as it needs. Everything is
    integrated by two rules, and panels are halved where these differ, or where the result does not
    add up.
    """
    require_derivatives(kernel)
    exact, orders = kernel.polynomial_degree is not None, _orders(kernel)

    def cross(paths: Paths, Z: Array) -> Bounded:
        start, stop, Z = _near_origin(kernel, paths.start, paths.stop, Z)
        return _cross(kernel, Paths(start, stop), Z, orders)

    def contract(paths: Paths, Z: Array, w: Array) -> Bounded:
        start, stop, Z = _near_origin(kernel, paths.start, paths.stop, Z)
        return _contract(kernel, Paths(start, stop), Z, w, orders)

    def prior_cov(paths: Paths) -> Bounded:
        if exact:
            return between(paths, paths)
        paths = Paths(*_near_origin(kernel, paths.start, paths.stop))
        # One-sided integrals along one path do not meet its kinks.
        rules = SINGULAR_ORDERS if kernel.singular else ORDERS
        return completed(
            kernel, paths, paths, rules, lambda one, _, *how: along_one(kernel, one, *how)
        )

    def between(paths: Paths, other: Paths) -> Bounded:
        start, stop, other_start, other_stop = _near_origin(
            kernel, paths.start, paths.stop, other.start, other.stop
        )
        pairs = Paths(start, stop), Paths(other_start, other_stop)
        # With kinks a halving costs four times as much and gains little.
        most_halvings = MOST_HALVINGS if kernel.smooth else 0
        return completed(
            kernel, *pairs, orders, lambda *args: between_paths(kernel, *args), most_halvings
        )

    return Formulas(
        cross=cross,
        contract=contract,
        prior_cov=prior_cov,
        between=between,
        methods=frozenset({"closed form" if exact else _method(kernel)}),
    )


def _method(kernel: Kernel) -> str:
    """Return the name of the method, with the kernels whose derivatives are automatic."""
    names = sorted({leaf.differentiated for leaf in kernel.leaves() if leaf.differentiated})
    return (
        f"quadrature of {', '.join(names)} by automatic differentiation" if names else "quadrature"
    )


def _orders(kernel: Kernel) -> tuple[int, int]:
    """Return the numbers of nodes of the two rules for a panel."""
    if kernel.kinks():
        return SINGULAR_ORDERS if kernel.singular else (graded.ORDER, graded.CHECK_ORDER)
    degree = kernel.polynomial_degree
    return ORDERS if degree is None else (degree // 2 + 1, degree // 2 + 2)


def _cross(kernel: Kernel, paths: Paths, Z: Array, orders: tuple[int, int]) -> Bounded:
    """Return (xᵢ − bᵢ) ∫∂ᵢk(·, z), (n, d, m), with its error, (n,), as a length over z.

    For each z it is the difference to a second rule, plus the gap to k(x, z) − k(b, z), to which
    the attributions must add up, plus rounding.
    """
    xp = namespace(paths.stop)
    (n, d), start = paths.shape, xp.broadcast_to(paths.start, paths.shape)
    result, error = xp.empty((n, d, len(Z))), xp.empty(n)
    peak = xp.sqrt(xp.maximum(kernel.diagonal(paths.stop), kernel.diagonal(start)))
    spread = xp.sqrt(xp.max(kernel.diagonal(Z), axis=0))
    todo, halvings = xp.arange(n), 0
    while len(todo):
        for rows, first, second in _along(
            kernel, paths[todo], Z, orders, lambda left: left, halvings
        ):
            at = todo[rows]
            result[at] = xp.swapaxes(first, 1, 2)
            gap = first.sum(axis=2) - (kernel(paths.stop[at], Z) - kernel(start[at], Z))
            # What rounding leaves of the two values that are subtracted.
            known = ROUNDED[kernel.singular] * EPS * peak[at][:, None] * spread
            difference = xp.max(xp.abs(first - second), axis=2)
            error[at] = _length(difference + xp.maximum(xp.abs(gap) - known, 0.0))
        rough = error[todo] > GOOD * (
            peak[todo] * spread + xp.max(xp.abs(result[todo]), axis=(1, 2))
        )
        if halvings == MOST_HALVINGS:
            break
        todo, halvings = todo[rough], halvings + 1
    size = xp.sqrt(uncancelled(kernel, paths)) * spread
    return Bounded(result, error + EPS * (32.0 + position(kernel, paths)) * size * len(Z) ** 0.5)


def _length(wrong: Array) -> Array:
    """Return the Euclidean length of each row, (n,), without squares that overflow."""
    xp = namespace(wrong)
    largest = xp.maximum(xp.max(wrong, axis=1), 1e-300)
    return largest * xp.sqrt(((wrong / largest[:, None]) ** 2).sum(axis=1))


def _near_origin(kernel: Kernel, *points: Array) -> list[Array]:
    """Return points, (..., d) each, relative to the first if the kernel allows it and it is exact.

    A stationary kernel allows it. It is exact where points lie far out compared with the distances
    between them, and only there it matters.
    """
    moved = [point - points[0][:1] for point in points]
    exact = kernel.stationary and all(
        (new + points[0][:1] == old).all() for new, old in zip(moved, points, strict=True)
    )
    return moved if exact else list(points)


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
    hidden = None if kernel.smooth else Z  # kinks at unknown positions are found by trial
    for group, edges in panel_groups(kernel, paths, 2.0 * 0.5**halvings, targets=hidden):
        for some in blocks(len(group), width * orders[0] * (edges.shape[1] - 1), Z):
            rows, totals = group[some], []
            part = paths[rows]
            for order in orders:
                t, w = nodes_on(edges[some], order)
                total = 0.0
                for at in blocks(t.shape[1], width * len(rows), Z):
                    points = part.along(t[:, at])[:, :, None, :]
                    left = differentiate(kernel, points, Z).left  # (r, T, m, d)
                    total = total + xp.einsum("rt,rtkd->rkd", w[:, at], reduce(left))
                totals.append(total * part.step[:, None, :])
            yield rows, totals[0], totals[1]


def _contract(kernel: Kernel, paths: Paths, Z: Array, w: Array, orders: tuple[int, int]) -> Bounded:
    """Return cross @ w, (n, d, q), with its error, (n,).

    That is the difference to a second rule, plus the gap to Σ w (k(x, z) − k(b, z)), to which the
    attributions must add up, plus rounding.
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
    # What both rules have missed shows here.
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
        todo, halvings = todo[wrong[todo] > GOOD * most[todo]], halvings + 1
    size = xp.max(xp.abs(result[:, q:]), axis=(1, 2))
    rounding = EPS * ((32.0 + position(kernel, paths)) * size + 8.0 * most)
    return Bounded(xp.swapaxes(result[:, :q], 1, 2), wrong + rounding)


def integrated_mean(mean: Mean, paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    """Return (xᵢ − bᵢ)∫∂ᵢm dt along each path, (n, d), and estimates of its error, (n,)."""
    n, d = paths.shape
    total, error = np.zeros((n, d)), np.zeros(n)
    for rows in blocks(n, 8.0 * ORDER * 64 * (d + 4)):
        total[rows], error[rows] = _halved(mean, paths[rows])
    return total, error


def _halved(mean: Mean, paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    n, d = paths.shape
    total, error = np.zeros((n, d)), np.zeros(n)
    owner, low, high = np.arange(n), np.zeros(n), np.ones(n)
    coarse = _rule(mean, paths, owner, low, high, ORDER)
    size = np.abs(coarse).max(axis=1)
    width = 1.0  # of all panels that are left
    while len(owner):
        middle = 0.5 * (low + high)
        both = np.concatenate([owner, owner])
        ends = np.concatenate([low, middle]), np.concatenate([middle, high])
        order = ORDER if width > SLIM else SLIM_ORDER
        halves, k = _rule(mean, paths, both, *ends, order), len(owner)
        fine = halves[:k] + halves[k:]
        largest = np.abs(fine).max(axis=1)
        np.maximum.at(size, owner, largest)
        change = np.abs(fine - coarse).max(axis=1)
        start, stop = (_values(mean, paths, owner, t) for t in (low, high))
        gap = np.abs(fine.sum(axis=1) - (stop - start))
        rounding = EPS * (np.abs(start) + np.abs(stop))
        good = np.maximum(change, gap - 64.0 * rounding) <= WANTED * size[owner]
        good |= (width < SHORTEST) | (np.bincount(owner, minlength=n) > MOST)[owner]
        np.add.at(total, owner[good], fine[good])
        # What the rounding of two values explains is no error of the integral.
        missed = (
            change + np.maximum(gap - 4.0 * rounding, 0.0) + 8.0 * EPS * np.abs(fine).max(axis=1)
        )
        np.add.at(error, owner[good], missed[good])
        left = np.concatenate([~good, ~good])
        owner, coarse, width = both[left], halves[left], 0.5 * width
        low, high = (end[left] for end in ends)
    return total, error


def _rule(
    mean: Mean, paths: Paths, owner: np.ndarray, low: np.ndarray, high: np.ndarray, order: int
) -> np.ndarray:
    """Return the attributions of panels, (panels, d)."""
    t, w = gauss_lobatto(order)
    width, step, d = high - low, to_numpy(paths.step), paths.shape[1]
    result = np.empty((len(owner), d))
    for some in blocks(len(owner), 64.0 * order * (d + 64)):  # with room for a network's layers
        points = _points(paths, owner[some], low[some, None] + width[some, None] * t)
        gradient = to_numpy(mean.gradient(points.reshape(-1, d))).reshape(points.shape)
        slopes = np.einsum("ptd,t->pd", gradient, w)
        result[some] = slopes * width[some, None] * step[owner[some]]
    return result


def _values(mean: Mean, paths: Paths, owner: np.ndarray, t: np.ndarray) -> np.ndarray:
    return to_numpy(mean(_points(paths, owner, t[:, None])[:, 0]))


def _points(paths: Paths, owner: np.ndarray, t: np.ndarray) -> Array:
    """Return points of the paths ``owner``, (panels, T, d), at t, (panels, T)."""
    return paths[owner].along(namespace(paths.stop).asarray(t))
