"""How a path is cut into panels on which a kernel varies slowly enough for a fixed Gauss–Legendre rule."""

from __future__ import annotations

from collections.abc import Iterator

from gpattr._array import EPS, Array, namespace
from gpattr._memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.kernels import Kernel
from gpattr.operators import Paths
from gpattr.special.quadrature import gauss_legendre

ORDER, CHECK_ORDER = 16, 12
AGREEMENT = 1e-11  # of the two rules, relative to ∫|f|; the finer rule is then far better
DEEPEST = 40  # halvings: a jump in a gradient is boxed in to 1e-12 of the path

Groups = list[tuple[Array, Array]]


def panel_groups(kernel: Kernel, paths: Paths, per_span: float = 2.0) -> Groups:
    """Return rows and the edges of their panels, (r, P + 1), grouped by the number P of panels.

    One panel for every ``per_span`` length-scales. For a stationary kernel that is all; one that may change in other ways along
    the path (warped, rescaled, a user's own) is integrated by two rules against a few points on the path, and panels where they
    differ are halved.
    """
    xp = namespace(paths.stop)
    n = paths.shape[0]
    if kernel.polynomial_degree is not None:
        return [(xp.arange(n), xp.zeros((n, 2)) + xp.asarray([0.0, 1.0]))]
    counts = xp.maximum(xp.ceil(kernel.span(paths.step) / per_span), 1.0)
    uniform = []
    for count in sorted(map(int, set(counts.tolist()))):
        rows = xp.nonzero(counts == count)[0]
        uniform.append((rows, xp.zeros((len(rows), 1)) + xp.asarray([i / count for i in range(count + 1)])))
    return uniform if kernel.stationary else _halved(kernel, paths, uniform)


def paired_groups(one: Groups, two: Groups) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows with their edges in two groupings of the same rows."""
    for rows, edges in one:
        place = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        for others, other_edges in two:
            mine = [(place[row], k) for k, row in enumerate(others.tolist()) if row in place]
            if mine:
                here, there = (list(index) for index in zip(*mine, strict=True))
                yield rows[here], edges[here], other_edges[there]


def nodes_on(edges: Array, order: int) -> tuple[Array, Array]:
    """Return nodes and weights, (n, P · order), on panels with these edges (n, P + 1)."""
    xp = namespace(edges)
    x, w = map(xp.asarray, gauss_legendre(order))
    lower, width = edges[:, :-1, None], (edges[:, 1:] - edges[:, :-1])[:, :, None]
    return (lower + width * x).reshape(len(edges), -1), (width * w).reshape(len(edges), -1)


def _halved(kernel: Kernel, paths: Paths, uniform: Groups) -> Groups:
    xp = namespace(paths.stop)
    n, d = paths.shape
    # A kernel with kinks is not probed in the middle of the path: that would box in the kinks of the probes.
    probes = paths.at([0.0, 1.0] if kernel.kinks() else [0.0, 0.25, 0.5, 0.75, 1.0])  # (K, n, d)
    owner = xp.concatenate([xp.repeat(rows, edges.shape[1] - 1) for rows, edges in uniform])
    lower = xp.concatenate([edges[:, :-1].reshape(-1) for _, edges in uniform])
    upper = xp.concatenate([edges[:, 1:].reshape(-1) for _, edges in uniform])
    size, done = xp.zeros(n), []
    for depth in range(DEEPEST + 1):
        difference, absolute = xp.zeros(len(owner)), xp.zeros(len(owner))
        for some in blocks(len(owner), 80.0 * (ORDER + CHECK_ORDER) * len(probes) * d):
            edges = xp.stack([lower[some], upper[some]], axis=1)
            mine, values = paths[owner[some]], []
            Y = xp.swapaxes(probes[:, owner[some]], 0, 1)[:, None]  # (panels, 1, K, d)
            for order in (ORDER, CHECK_ORDER):
                t, w = nodes_on(edges, order)
                left = (
                    differentiate(kernel, mine.along(t)[:, :, None, :], Y).left * mine.step[:, None, None, :]
                )  # (panels, T, K, d)
                values.append(xp.einsum("pt,ptkd->pkd", w, left))
                if order == ORDER:
                    absolute[some] = xp.max(xp.einsum("pt,ptkd->pkd", w, xp.abs(left)), axis=(1, 2))
            # Both rules are blind to a jump beyond their outermost nodes; the values at the ends of the panel are not.
            start, end = (differentiate(kernel, mine.along(t)[:, None, :], Y[:, 0]).value for t in (lower[some], upper[some]))
            gap = xp.abs(values[0].sum(axis=2) - (end - start)) - 64.0 * EPS * (xp.abs(start) + xp.abs(end))
            rules = xp.max(xp.abs(values[0] - values[1]), axis=(1, 2))
            difference[some] = xp.maximum(rules, xp.max(gap, axis=1))
        if depth == 0:
            for i, share in zip(owner.tolist(), absolute.tolist(), strict=True):
                size[i] += share
        rough = difference > AGREEMENT * size[owner]
        if depth == DEEPEST:
            rough = rough & False
        done.append((owner[~rough], lower[~rough], upper[~rough]))
        if not rough.any():
            break
        middle = 0.5 * (lower + upper)
        owner = xp.concatenate([owner[rough], owner[rough]])
        lower, upper = xp.concatenate([lower[rough], middle[rough]]), xp.concatenate([middle[rough], upper[rough]])
    owner, lower = (xp.concatenate([part[k] for part in done]) for k in (0, 1))
    order = xp.argsort(lower)
    owner, lower = owner[order], lower[order]
    counts = xp.zeros(n)
    for i in owner.tolist():
        counts[i] += 1
    groups = []
    for count in sorted(map(int, set(counts.tolist()))):
        rows = xp.nonzero(counts == count)[0]
        chosen = counts[owner] == count
        by_owner = xp.argsort(owner[chosen] * 2.0 + lower[chosen])  # lower < 1, so owners stay together
        starts = lower[chosen][by_owner].reshape(len(rows), count)
        groups.append((rows, xp.concatenate([starts, xp.zeros((len(rows), 1)) + 1.0], axis=1)))
    return groups
