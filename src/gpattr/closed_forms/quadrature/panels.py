"""Panels of a path, on each of which a kernel varies slowly enough for a fixed rule.

The rules are Gauss–Legendre rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpattr._core.array import EPS, Array, namespace
from gpattr._core.memory import blocks
from gpattr.closed_forms.derivatives import differentiate
from gpattr.exceptions import ToleranceError
from gpattr.kernels import Kernel, Matern, SquaredExponential
from gpattr.operators import Paths
from gpattr.special.graded import POWER
from gpattr.special.quadrature import gauss_legendre

ORDER, CHECK_ORDER = 16, 12
AGREEMENT = 1e-11  # of the two rules, relative to ∫|f|; the finer rule is then far better
# narrower panels enclose a jump of a gradient; they are halved further, to place it exactly
JUMP = 1e-4
CHANGE = 1e-4  # of a gradient, relative, from end to end of such a panel: more, and it is halved
MOST = 128  # panels of one path that may need halving at a time
LONGEST = 4096  # panels of a path
# squares of panels of two paths × entries of a covariance; fewer of singular kernels
MOST_ENTRIES = {False: 2**17, True: 2**13}
COMPOSITE = 4  # a kernel that is made of others takes this many times as long
DEEPEST = 44  # halvings: 6e-14 of the path

Groups = list[tuple[Array, Array]]


def panel_groups(
    kernel: Kernel, paths: Paths, per_span: float = 2.0, targets: Array | None = None
) -> Groups:
    """Return rows and the edges of their panels, (r, P + 1), grouped by the number P of panels.

    One panel for every ``per_span`` length-scales. For a stationary kernel that is all; one that
    may change in other ways along the path (warped, rescaled, a user's own) is integrated by two
    rules against points on the path (and ``targets``), and panels where they differ are halved.
    """
    xp = namespace(paths.stop)
    n = paths.shape[0]
    if kernel.polynomial_degree is not None:
        return [(xp.arange(n), xp.zeros((n, 2)) + xp.asarray([0.0, 1.0]))]
    counts = xp.maximum(xp.ceil(kernel.n_lengthscales(paths.step) / per_span), 1.0)
    if not (counts <= LONGEST).all():
        raise ToleranceError(
            f"tolerance: a path covers {float(counts.max()) * per_span:.0e} length-scales, and this"
            f" kernel has no closed form; quadrature goes to {LONGEST * per_span:.0f}. Choose a"
            " baseline nearer to the rows, or a kernel with longer length-scales"
        )
    uniform = []
    for count in sorted(map(int, set(counts.tolist()))):
        rows = xp.nonzero(counts == count)[0]
        uniform.append(
            (rows, xp.zeros((len(rows), 1)) + xp.asarray([i / count for i in range(count + 1)]))
        )
    if kernel.stationary:
        return uniform
    if not kernel.singular:
        return _halved(kernel, paths, uniform, targets)
    cut = _halved(_stand_in(kernel), paths, uniform, None)
    return cut if targets is None else _halved(kernel, paths, cut, targets, own=False)


def _stand_in(kernel: Kernel) -> Kernel:
    """Return the kernel with a smooth part for every singular one.

    Towards the kinks of those, panels would be halved without end.
    """
    if isinstance(kernel, Matern):
        return SquaredExponential(kernel.lengthscale, kernel.variance)
    return kernel.map_parts(_stand_in)


def paired_groups(one: Groups, two: Groups) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows with their edges in two groupings of the same rows."""
    for rows, edges in one:
        place = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        for others, other_edges in two:
            mine = [(place[row], k) for k, row in enumerate(others.tolist()) if row in place]
            if mine:
                here, there = (list(index) for index in zip(*mine, strict=True))
                yield rows[here], edges[here], other_edges[there]


def require_few_squares(kernel: Kernel, s_edges: Array, t_edges: Array, d: int) -> None:
    """Raise `ToleranceError` for more squares of panels than take a reasonable time."""
    squares = (s_edges.shape[1] - 1) * (t_edges.shape[1] - 1)
    most = MOST_ENTRIES[kernel.singular] // (
        d**2 * (COMPOSITE if kernel.parts() and not kernel.singular else 1)
    )
    if squares > most:
        raise ToleranceError(
            f"tolerance: the covariance of attributions would take {squares} squares of panels,"
            f" more than {most}: the path covers many length-scales or the kernel is rough;"
            ' uncertainty="none" explains without it'
        )


def nodes_on(edges: Array, order: int, *, singular: bool = False) -> tuple[Array, Array]:
    """Return nodes and weights, (n, P · order), on panels with these edges (n, P + 1).

    With ``singular``, what is integrated is not smooth at the first edge: on the first panel u = v⁵
    (`special.graded`).
    """
    xp = namespace(edges)
    x, w = map(xp.asarray, gauss_legendre(order))
    lower, width = edges[:, :-1, None], (edges[:, 1:] - edges[:, :-1])[:, :, None]
    nodes, weights = lower + width * x, width * w
    if singular:
        nodes[:, 0], weights[:, 0] = (
            lower[:, 0] + width[:, 0] * x**POWER,
            width[:, 0] * (w * POWER * x ** (POWER - 1)),
        )
    return nodes.reshape(len(edges), -1), weights.reshape(len(edges), -1)


def _halved(
    kernel: Kernel, paths: Paths, uniform: Groups, targets: Array | None, *, own: bool = True
) -> Groups:
    """Return panels halved until two rules agree on each, with an edge where a gradient jumps.

    They are tried against ``targets`` and, with ``own``, against points of the path and beside it.
    """
    xp = namespace(paths.stop)
    panels = (
        xp.concatenate([xp.repeat(rows, edges.shape[1] - 1) for rows, edges in uniform]),
        xp.concatenate([edges[:, :-1].reshape(-1) for _, edges in uniform]),
        xp.concatenate([edges[:, 1:].reshape(-1) for _, edges in uniform]),
    )
    owner, lower, upper = _refine(kernel, paths, panels, targets, own)
    width = upper - lower
    if (width < JUMP).any():
        # The narrowest of a run of narrow panels holds the jump: with an edge there, the others are
        # not needed.
        left, right = (
            xp.concatenate(parts)
            for parts in ((width[:1] + 1.0, width[:-1]), (width[1:], width[:1] + 1.0))
        )
        jump = (width < JUMP) & (width <= left) & (width < right)
        owner, lower = (
            xp.concatenate([panels[0], owner[jump]]),
            xp.concatenate([panels[1], lower[jump]]),
        )
        order = xp.argsort(owner * 2.0 + lower)
        owner, lower = owner[order], lower[order]
        last = xp.concatenate([owner[1:] != owner[:-1], xp.arange(1) == 0])
        upper = xp.where(last, 1.0, xp.concatenate([lower[1:], lower[:1]]))
        owner, lower, _ = _refine(
            kernel, paths, (owner, lower, upper), targets, own, jumps_known=True
        )
    counts = xp.bincount(owner, minlength=paths.shape[0])
    groups = []
    for count in sorted(set(counts.tolist())):
        rows = xp.nonzero(counts == count)[0]
        starts = lower[counts[owner] == count].reshape(len(rows), count)
        groups.append((rows, xp.concatenate([starts, xp.zeros((len(rows), 1)) + 1.0], axis=1)))
    return groups


def _refine(
    kernel: Kernel,
    paths: Paths,
    panels: tuple[Array, Array, Array],
    targets: Array | None,
    own: bool,
    *,
    jumps_known: bool = False,
) -> tuple[Array, Array, Array]:
    """Return owners, lower and upper ends of the panels after halving, in order."""
    xp = namespace(paths.stop)
    owner, lower, upper = panels
    size, done = None, []
    for _ in range(DEEPEST):
        narrow = (upper - lower < JUMP) & (not jumps_known)
        difference, absolute = xp.zeros(len(owner)), xp.zeros(len(owner))
        wide = xp.nonzero(~narrow)[0]
        if len(wide):
            parts = _disagreement(
                kernel, paths, owner[wide], lower[wide], upper[wide], targets, own
            )
            difference[wide], absolute[wide] = parts
        if size is None:
            size = xp.zeros(paths.shape[0])
            for i, share in zip(owner.tolist(), absolute.tolist(), strict=True):
                size[i] += share
        rough = difference > AGREEMENT * size[owner]
        slim = xp.nonzero(narrow)[0]
        if len(slim):
            rough[slim] = _changes(kernel, paths[owner[slim]], lower[slim], upper[slim]) > CHANGE
        # Derivatives that disagree with the values, or a function rough everywhere, would be
        # halved without end: what is left then shows in the error.
        rough = rough & (xp.bincount(owner[rough], minlength=paths.shape[0]) <= MOST)[owner]
        done.append((owner[~rough], lower[~rough], upper[~rough]))
        middle = 0.5 * (lower + upper)[rough]
        owner, lower, upper = owner[rough], lower[rough], upper[rough]
        if not len(owner):
            break
        owner = xp.concatenate([owner, owner])
        lower, upper = xp.concatenate([lower, middle]), xp.concatenate([middle, upper])
    done.append((owner, lower, upper))
    owner, lower, upper = (xp.concatenate([part[k] for part in done]) for k in (0, 1, 2))
    order = xp.argsort(owner * 2.0 + lower)  # lower < 1, so the panels of a path stay together
    return owner[order], lower[order], upper[order]


def _disagreement(
    kernel: Kernel,
    paths: Paths,
    owner: Array,
    lower: Array,
    upper: Array,
    targets: Array | None,
    own: bool,
) -> tuple[Array, Array]:
    """Return by how much two rules differ on each panel, and ∫|f| there, (panels,) each."""
    xp = namespace(paths.stop)
    difference, absolute = xp.zeros(len(owner)), xp.zeros(len(owner))
    probes = (7 if kernel.smooth else 6) + (0 if targets is None else len(targets))
    for some in blocks(len(owner), 80.0 * (ORDER + CHECK_ORDER) * probes * paths.shape[1], lower):
        mine, low, high = paths[owner[some]], lower[some], upper[some]
        Y = _probes(kernel, mine, low, high, targets, own)
        difference[some], absolute[some] = _by_two_rules(kernel, mine, low, high, Y)
    return difference, absolute


def _probes(
    kernel: Kernel, paths: Paths, low: Array, high: Array, targets: Array | None, own: bool
) -> Array:
    """Return the points z for which k(·, z) is integrated on each panel, (panels, K, d).

    They are ``targets`` and, with ``own``, points of the path and beside it: the ends of the panel,
    where the kernel sees it best, the ends of the path, and the middle of the panel unless that
    puts a kink there.
    """
    xp = namespace(paths.stop)
    others = None if targets is None else xp.broadcast_to(targets, (len(low), *targets.shape))
    if others is not None and not own:
        return others
    places = [low, high, 0.0 * low, 0.0 * low + 1.0]
    if kernel.smooth:
        places.append(0.5 * (low + high))
    Y = paths.along(xp.stack(places, axis=1))
    # A kernel may be constant along the path though its partial derivatives are not.
    d = paths.shape[1]
    if _exists_everywhere(kernel):
        share = xp.asarray([[0.5 - (i % 2) for i in range(d)]])
    else:  # points beside the path stay inside the box that it spans
        inward = xp.stack([xp.where(end > 0.5, -0.5, 0.5) for end in (low, high)], axis=1)
        share = inward[:, :, None] * xp.asarray([1.0 * (i % 2) for i in range(d)])
    Y = xp.concatenate([Y, Y[:, :2] + share * paths.step[:, None, :]], axis=1)
    return Y if others is None else xp.concatenate([Y, others], axis=1)


def _exists_everywhere(kernel: Kernel) -> bool:
    """Return whether a kernel is defined at any point, and not, for example, of logarithms."""
    return not any(
        part.differentiated or getattr(getattr(part, "map", None), "exact", False)
        for _, part in kernel.walk()
    )


def _by_two_rules(
    kernel: Kernel, paths: Paths, low: Array, high: Array, Y: Array
) -> tuple[Array, Array]:
    """Return by how much the rules differ on each panel for some z, and ∫|f|, (panels,) each."""
    xp = namespace(Y)

    def weights_and_slopes(order: int) -> tuple[Array, Array]:
        t, w = nodes_on(xp.stack([low, high], axis=1), order)
        left = differentiate(kernel, paths.along(t)[:, :, None, :], Y[:, None]).left
        return w, left * paths.step[:, None, None, :]  # (panels, T), (panels, T, K, d)

    first, second = weights_and_slopes(ORDER), weights_and_slopes(CHECK_ORDER)
    value, check = (xp.einsum("pt,ptkd->pkd", w, slopes) for w, slopes in (first, second))
    absolute = xp.max(xp.einsum("pt,ptkd->pkd", first[0], xp.abs(first[1])), axis=(1, 2))
    # Both rules are blind to a jump beyond their outermost nodes; the values at the ends of the
    # panel are not.
    start, end = (differentiate(kernel, paths.along(t)[:, None, :], Y).value for t in (low, high))
    rounding = 64.0 * EPS * (xp.abs(start) + xp.abs(end))
    gap = xp.abs(value.sum(axis=2) - (end - start)) - rounding
    difference = xp.max(xp.abs(value - check), axis=(1, 2))
    return xp.maximum(difference, xp.max(gap, axis=1)), absolute


def _changes(kernel: Kernel, paths: Paths, lower: Array, upper: Array) -> Array:
    """Return the relative change of the gradient from end to end of each panel, (panels,).

    A jump inside makes it large.
    """
    xp = namespace(lower)
    # Seen from the ends of the path and from a point beside the panel, where the gradient is not
    # zero for lack of distance.
    aside = xp.clip(lower - 0.1, 0.0, 1.0)
    Y = paths.along(xp.stack([0.0 * lower, aside, 0.0 * lower + 1.0], axis=1))
    start, end = (differentiate(kernel, paths.along(t)[:, None, :], Y).left for t in (lower, upper))
    largest = xp.maximum(xp.max(xp.abs(start), axis=(1, 2)), xp.max(xp.abs(end), axis=(1, 2)))
    return xp.max(xp.abs(end - start), axis=(1, 2)) / xp.maximum(largest, 1e-300)
