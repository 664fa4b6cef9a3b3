"""Attributions of a class probability: integrated gradients of σ(f), with f a Gaussian process.

    Aᵢ = (xᵢ − bᵢ) ∫₀¹ σ'(f(γ(t))) ∂ᵢf(γ(t)) dt,   Σᵢ Aᵢ = σ(f(x)) − σ(f(b)),   γ(t) = b + t(x − b)

is not Gaussian. Its mean is one integral, because f and ∂ᵢf are jointly Gaussian at every point
(Stein's lemma):

    E[Aᵢ] = (xᵢ − bᵢ) ∫₀¹ E[σ'(f)] E[∂ᵢf] + E[σ''(f)] Cov[f, ∂ᵢf] dt

It is the integrated gradient of the predicted probability E[σ(f)] itself. σ bends far more than f
does: the paths of real classifiers are mostly shorter than a length-scale, while their log odds
change by many units. So the moments of f are evaluated at a few Chebyshev nodes, as many as f
needs, and interpolated to the nodes of the integral, as many as σ needs.

The distribution of A is known from draws. The change of f by a feature on a panel of the path, hₖᵢ,
is Gaussian, jointly for panels, features and f(b). The sums gₖ = f(b) + Σⱼ≤ₖ Σᵢ hⱼᵢ follow f, and

    Aᵢ ≈ Σₖ hₖᵢ (σ(gₖ) − σ(gₖ₋₁)) / (gₖ − gₖ₋₁)

is complete for each draw, however steep σ is: the panels need be no shorter than f bends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from gpattr._core.array import EPS, Array, product, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import jittered_root
from gpattr._core.randomness import RandomLike, random_generator
from gpattr.distributions import Draws, Gaussian
from gpattr.exceptions import ToleranceError, UnsupportedModelError
from gpattr.explainer.results import ExplainedRows, gap, noted, owned
from gpattr.explanation.explanation import Explanation
from gpattr.operators import IntegratedGradients, Operator, Paths
from gpattr.posteriors import Evaluation, Posterior
from gpattr.posteriors.bound import check_covariance_memory
from gpattr.special.logistic import expected_probability, expected_slopes
from gpattr.special.quadrature import gauss_legendre

if TYPE_CHECKING:
    from gpattr.explainer.task import Task

ORDER = 16  # nodes of a panel
# Pieces between Chebyshev nodes: initially for each length-scale, so that nothing is missed, and at
# most.
PIECES, MOST_PIECES = 4, 4096
# The largest change of the log odds within a panel, whose rule is then off by 1e-5, and the most
# panels.
UNITS, MOST_FINE = 8.0, 256
# Entries of the matrix from Chebyshev nodes to a rule's nodes: of a part, of which the latest are
# kept, and at most, which takes seconds.
ENTRIES, MOST_ENTRIES = 2.0**20, 2.0**27
# Where nodes stop doubling: completeness to so much of a probability, and a change by less than
# this share of the tolerance. What is left is about the square of the change.
TARGET, SETTLED = 1e-9, 0.1
# Panels of drawn increments: for each length-scale, and at least.
PANELS, LEAST_PANELS = 2.0, 4
# of the draws' standard deviation: an error of their sums over panels that adds 1e-3 to their
# variance
NEGLIGIBLE = 0.03
ACCEPTABLE = 0.1  # and one that adds 1e-2, beyond which draws are refused
CHUNK, FEW = 1000, 10  # draws at a time, and draws too few to have a standard deviation
ROUNDING = 1e-7  # of a probability, which standard deviations near zero are known to
STEEPEST = 0.25  # slope of the link
LARGEST = 4000  # increments that are drawn together


def require_link(posterior: Posterior, output: str = "") -> None:
    """Raise `UnsupportedModelError` for a posterior that predicts no probability."""
    if posterior.link is None:
        raise UnsupportedModelError(
            f'output: "probability" needs a classifier, such as GPClassifier; '
            f"the {type(posterior).__name__} {f'of {output!r} ' if output else ''}has no link"
        )
    for _, part in posterior.in_columns.components:
        part.require_jets()


def of_probability(
    posterior: Posterior,
    asked: ExplainedRows,
    quantity: str,
    evaluation: Evaluation,
    *,
    n_draws: int,
    random_state: RandomLike,
) -> Explanation:
    """Return the explanation of E[σ(f)]: means by quadrature, with an uncertainty also draws."""
    operator, rows, uncertainty = asked.operator, asked.rows, evaluation.uncertainty
    assert isinstance(operator, IntegratedGradients)
    if uncertainty == "cov":
        check_covariance_memory(len(rows), posterior.n_features)
    columns, G = posterior.in_columns, asked.gathering
    values, error = mean_attributions(columns, operator, rows, evaluation.tolerance)
    draws = draw_error = None
    if uncertainty != "none":
        draws, draw_error = drawn_attributions(columns, operator, rows, G, n_draws, random_state)
    if G is not None:
        values, error = values @ G, error * G.sum(axis=0).max()
    distribution = Gaussian(values)
    if draws is not None:
        distribution = _distribution_of(draws, values, uncertainty)
    predictions = probability(columns, rows)
    base_values = asked.base_values(lambda points: probability(columns, points), posterior)
    return Explanation(
        distribution=owned(distribution),
        predictions=predictions,
        base_values=base_values,
        method=f"quadrature through the {posterior.link} link{noted(posterior)}",
        error=error,
        draw_error=draw_error,
        delta=gap(values, predictions, base_values),
        quantity=quantity,
        **asked.shared,
    )


def _distribution_of(draws: np.ndarray, values: np.ndarray, uncertainty: str) -> Draws:
    if uncertainty == "std":
        return Draws(draws, mean=values, var=draws.var(axis=0, ddof=1))
    deviation = (draws - draws.mean(axis=0)).transpose(1, 2, 0)
    cov = deviation @ deviation.transpose(0, 2, 1) / (len(draws) - 1)
    return Draws(draws, mean=values, cov=cov, var=np.diagonal(cov, axis1=1, axis2=2))


def probability(posterior: Posterior, X: Array) -> np.ndarray:
    """Return E[σ(f)] at the rows of X, (n,)."""
    total = np.zeros(len(X))
    for weight, part in posterior.components:
        mean, std = (to_numpy(each) for each in part.predict(X, return_std=True))
        total += weight * expected_probability(mean, std)
    return total


def mean_attributions(
    posterior: Posterior, operator: IntegratedGradients, X: Array, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return E[A], (n, d), and an estimate of its error, (n,).

    The error is the change when nodes are doubled, plus the completeness gap.
    """
    X = to_numpy(X)
    terms: list[Any] = operator.terms(X)
    values, error = np.zeros(X.shape), np.zeros(len(X))
    for weight, part in posterior.components:
        for share, paths in terms:
            value, off = _means(part, paths, max(SETTLED * tolerance, 100.0 * EPS))
            values += weight * share * value
            error += abs(weight * share) * off
    if not (error <= tolerance).all():
        row = int(error.argmax())
        length = float(_length(posterior, terms)[row])
        raise ToleranceError(
            f"tolerance: attributions of the probability of row {row} are accurate only to"
            f" {error[row]:.0e}; the tolerance is {tolerance:.0e}. Its path is {length:.3g}"
            " length-scales long, or the probability changes too fast on it; choose a baseline"
            " nearer to the row, or pass a larger tolerance="
        )
    return values, error


def mean_probability(
    posterior: Posterior, operator: Operator, X: Array, tolerance: float
) -> np.ndarray:
    """E[A] by feature, (n, features), for a posterior of features."""
    assert isinstance(operator, IntegratedGradients)
    values, _ = mean_attributions(posterior.in_columns, operator, X, tolerance)
    return values if posterior.encoder is None else values @ posterior.encoder.gathering


def drawn_attributions(
    posterior: Posterior,
    operator: IntegratedGradients,
    X: Array,
    gathering: np.ndarray | None,
    n_draws: int,
    random_state: RandomLike,
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of A, (n_draws, n, features), and their root mean square errors, (n,).

    ``gathering`` adds columns up to features, which are joint within a row. The same standard draws
    serve every row, so a row's draws do not depend on the others.
    """
    X = to_numpy(X)
    n, features = len(X), X.shape[1] if gathering is None else gathering.shape[1]
    check_memory("The draws", (n_draws, n, features), "use fewer draws or rows")
    generator = random_generator(random_state)
    parts = posterior.components
    counts = (
        generator.multinomial(n_draws, [weight for weight, _ in parts])
        if len(parts) > 1
        else np.array([n_draws])
    )
    seed, order = int(generator.integers(2**62)), generator.permutation(n_draws)
    terms: list[Any] = operator.terms(X)
    check_memory(
        "The covariance along a path",
        (LARGEST, LARGEST),
        "use fewer baselines or features",
        copies=4,
    )
    draws, total, first = np.empty((n_draws, n, features)), np.zeros(n), 0
    for count, (_, part) in zip(counts.tolist(), parts, strict=True):
        if count:
            off = _fill(draws[first : first + count], part, terms, gathering, [seed, first])
            total += count * off**2
        first += count
    off = np.sqrt(total / n_draws)
    _require_good_draws(off, draws, _length(posterior, terms))
    return draws[order], off


def _fill(
    draws: np.ndarray,
    part: Posterior,
    terms: list[tuple[float, Any]],
    gathering: np.ndarray | None,
    seed: list[int],
) -> np.ndarray:
    """Fill in ``draws``, (count, n, features); return their root mean square errors, (n,).

    Panels of a row are doubled until its error is negligible, or more would be too many. A path
    that is too long for half of the panels that it wants has an error of inf.
    """
    count, n, features = draws.shape
    most = 2 ** max(
        1, int(LARGEST / (len(terms) * max(features, terms[0][1].shape[1]))).bit_length() - 1
    )
    off, wanted = np.full(n, np.inf), first_panels(part, terms)
    panels, open_rows = np.minimum(wanted, most), np.flatnonzero(wanted <= 2 * most)
    draws[:, wanted > 2 * most] = 0.0
    while len(open_rows):
        for size in np.unique(panels[open_rows]):
            rows = open_rows[panels[open_rows] == size]
            some = [(weight, paths[rows]) for weight, paths in terms]
            draws[:, rows], off[rows] = _draws(part, some, gathering, int(size), count, seed)
        panels[open_rows] *= 2
        coarse = off[open_rows] > np.maximum(NEGLIGIBLE * _size(draws[:, open_rows]), ROUNDING)
        open_rows = open_rows[coarse & (panels[open_rows] <= most)]
    return off


def _size(draws: np.ndarray) -> np.ndarray:
    """Return the largest standard deviation of the attributions of each row, (n,).

    Of a few draws it is the largest value.
    """
    size = draws.std(axis=0) if len(draws) > FEW else np.abs(draws).max(axis=0)
    return size.max(axis=1)


def _require_good_draws(off: np.ndarray, draws: np.ndarray, length: np.ndarray) -> None:
    excess = off - np.maximum(ACCEPTABLE * _size(draws), ROUNDING)
    if (excess > 0).any():
        row = int(excess.argmax())
        raise ToleranceError(
            f"output: draws of the probability of row {row} would be accurate only to"
            f" {off[row]:.0e}. Its path is {length[row]:.3g} length-scales long, or the"
            " probability changes too fast on it; choose a baseline nearer to the row, or"
            ' ask for means alone, uncertainty="none"'
        )


def _length(posterior: Posterior, terms: list[tuple[float, Any]]) -> np.ndarray:
    """Return how many length-scales the longest path of each row covers, (n,)."""
    return np.max(
        [
            to_numpy(part.path_lengths(np.broadcast_to(paths.start, paths.shape), paths.stop))
            for _, part in posterior.components
            for _, paths in terms
        ],
        axis=0,
    )


def _means(part: Posterior, paths: Any, settled: float) -> tuple[np.ndarray, np.ndarray]:
    """Return E[A] along each path, (n, d), and an estimate of its error, (n,).

    Chebyshev nodes are nested: where they are doubled, f is needed only between the old ones. They
    are doubled until the result changes by less than ``settled``.
    """
    n, d = paths.shape
    values, error = np.zeros((n, d)), np.full(n, np.inf)
    pieces = first_pieces(part, [(1.0, paths)])
    for size in np.unique(pieces[pieces < MOST_PIECES]):
        rows = np.flatnonzero(pieces == size)
        for some in blocks(len(rows), 64.0 * (size + 1) * (d + 1)):
            known = _slopes_at(part, paths[rows[some]], nodes(int(size)))
            change = np.clip(np.ptp(known[0], axis=1) / UNITS, 1.0, MOST_FINE)
            finer = 2 ** np.ceil(np.log2(change)).astype(int)
            for times in np.unique(finer):
                chosen = finer == times
                some_known = tuple(each[chosen] for each in known)
                where = rows[some][chosen]
                counts = int(size), int(times)
                _refine(part, paths, counts, settled, where, some_known, values, error)
    return values, error


def _refine(
    part: Posterior,
    paths: Any,
    counts: tuple[int, int],
    settled: float,
    rows: np.ndarray,
    known: tuple[np.ndarray, ...],
    values: np.ndarray,
    error: np.ndarray,
) -> None:
    """Fill in ``values`` and ``error`` of some rows; double the nodes until the error is small.

    ``counts`` are the pieces between nodes at first, and how much finer the rule of the integral
    is, as the link needs it.
    """
    before, (pieces, finer) = None, counts
    while ORDER * finer * pieces / PIECES * (pieces + 1) <= MOST_ENTRIES:
        gain = _gain(known)
        now = _contracted(known, finer * max(1, pieces // PIECES)) * paths[rows].step
        if before is not None:
            values[rows] = now
            changed, gap = np.abs(now - before).max(axis=1), np.abs(now.sum(axis=1) - gain)
            # Rounding: of probabilities, which are at most 1, and of the sum of attributions.
            error[rows] = changed + gap + 4 * EPS * (1.0 + np.abs(now).sum(axis=1))
            still = (changed > settled) | (gap > TARGET)
            rows, now, known = rows[still], now[still], tuple(each[still] for each in known)
        pieces *= 2
        if not len(rows) or pieces > MOST_PIECES:
            return
        before, between = now, _slopes_at(part, paths[rows], nodes(pieces)[1::2])
        merged = []
        for old, new in zip(known, between, strict=True):
            both = np.empty((len(rows), pieces + 1, *old.shape[2:]))
            both[:, ::2], both[:, 1::2] = old, new
            merged.append(both)
        known = tuple(merged)


def _slopes_at(part: Posterior, paths: Any, t: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return E[f] and Var[f], (n, T), E[∂ᵢf] and Cov[f, ∂ᵢf], (n, T, d), at points of each path."""
    points = np.swapaxes(paths.at(t), 0, 1)
    n, T, d = points.shape
    return tuple(
        each.reshape(n, T, *each.shape[1:]) for each in part.slopes(points.reshape(n * T, d))
    )


def _gain(known: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return how much more E[σ(f)] is at the end of each path than at its start, (n,)."""
    start, stop = (
        expected_probability(known[0][:, end], np.sqrt(known[1][:, end])) for end in (0, -1)
    )
    return stop - start


def _contracted(known: tuple[np.ndarray, ...], panels: int) -> np.ndarray:
    """Return ∫₀¹ E[σ'(f)] E[∂ᵢf] + E[σ''(f)] Cov[f, ∂ᵢf] dt, (n, d).

    ``known`` are the moments of f at Chebyshev nodes.
    """
    mean, var, gradient, cov = known
    result = np.zeros((len(mean), gradient.shape[2]))
    for P, w in _interpolations(mean.shape[1] - 1, panels):
        # The link's own integrals take 200 nodes a point.
        for rows in blocks(len(mean), 10000.0 * len(w)):
            centre, spread = mean[rows] @ P.T, np.sqrt(np.maximum(var[rows] @ P.T, 0.0))
            first, second = (
                w * each.reshape(centre.shape) @ P
                for each in expected_slopes(centre.ravel(), spread.ravel())
            )
            result[rows] += np.einsum("nt,nti->ni", first, gradient[rows])
            result[rows] += np.einsum("nt,nti->ni", second, cov[rows])
    return result


def first_pieces(posterior: Posterior, terms: list[tuple[float, Any]]) -> np.ndarray:
    """Return the initial number of pieces between the Chebyshev nodes of each path, (n,).

    It is a power of two, by the path's length in length-scales.
    """
    wanted = np.clip(_length(posterior, terms), 1.0, 4.0 * MOST_PIECES)
    return PIECES * 2 ** np.ceil(np.log2(wanted)).astype(int)


def nodes(pieces: int) -> np.ndarray:
    """Return the Chebyshev nodes on [0, 1], (pieces + 1,), both ends among them."""
    return 0.5 - 0.5 * np.cos(np.pi * np.arange(pieces + 1) / pieces)


def _interpolations(pieces: int, panels: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield matrices from values at the Chebyshev nodes to values at nodes of a rule, (Q, T).

    The rule's weights, (Q,), come with each part of it.
    """
    size = max(1, int(ENTRIES) // (pieces + 1))
    for first in range(0, ORDER * panels, size):
        yield _interpolation(pieces, panels, first, size)


@lru_cache(maxsize=16)
def _interpolation(
    pieces: int, panels: int, first: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a part of the matrix, for ``size`` nodes of the rule, with their weights.

    By the barycentric formula; no node of an even rule is a Chebyshev node.
    """
    t, w = (each[first : first + size] for each in gauss_legendre(ORDER, panels))
    signs = (-1.0) ** np.arange(pieces + 1)
    signs[[0, -1]] *= 0.5
    ratios = signs / (t[:, None] - nodes(pieces))
    return ratios / ratios.sum(axis=1, keepdims=True), w


def first_panels(posterior: Posterior, terms: list[tuple[float, Any]]) -> np.ndarray:
    """Return the initial number of panels of each path, (n,), by its length: 2ᵏ or 3 · 2ᵏ."""
    wanted = np.clip(PANELS * _length(posterior, terms), LEAST_PANELS, 2.0**20)
    power = 2 ** np.ceil(np.log2(wanted)).astype(int)
    fewer = power // 16 * 12  # of which panels share rules of four nodes
    return np.where(fewer >= wanted, fewer, power)


def draw_work(task: Task, X: Any) -> np.ndarray:
    """About how many multiplications the draws of each row of X take, (n,).

    They count the covariance of the features' terms on panels, given the training rows, its root,
    and the draws.
    """
    rows, features = to_numpy(task.reader.matrix("X", X)), len(task.names(X))
    terms: list[Any] = task.operator_for(rows, None).terms(rows)
    work = np.zeros(len(rows))
    for weight, part in task.single.in_columns.components:
        size = np.minimum(len(terms) * (1.0 + features * first_panels(part, terms)), LARGEST)
        work += size**2 * (part.size + weight * task.n_draws + size / 3.0)
    return work


@lru_cache(maxsize=64)
def panel_rule(panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes, (K,), and weights for the integrals over K panels of [0, 1], (s, s).

    Each s = 4 panels share the four nodes of a Gauss-Legendre rule: their weights are integrals of
    the polynomials that interpolate there.
    """
    size = min(panels, 4)
    t, _ = gauss_legendre(size)
    powers = np.arange(1, size + 1)
    ends = np.linspace(0.0, 1.0, size + 1)[:, None] ** powers / powers
    own = np.linalg.solve((t[:, None] ** (powers - 1)).T, np.diff(ends, axis=0).T).T
    pieces = panels // size
    return (np.arange(pieces)[:, None] + t).ravel() / pieces, own / pieces


def path_draws(drawn: np.ndarray, share: np.ndarray, features: int) -> tuple[np.ndarray, ...]:
    """Return A, (S, features), and estimates of its errors, (S,), from drawn increments.

    ``drawn`` (J, 1 + K · features, S) are those along J paths to one row, of weights ``share``. The
    sum over K panels is off by a multiple of 1/K²: that over pairs of panels tells its error, and
    takes it away. Each sum is complete, and so is the result.
    """
    J, _, S = drawn.shape
    start, added = drawn[:, :1], drawn[:, 1:].reshape(J, -1, features, S)
    pairs = added[:, ::2] + added[:, 1::2]
    fine, coarse = (_panel_sum(start, each, share) for each in (added, pairs))
    off = (fine - coarse) / 3.0
    return (fine + off).T, np.abs(off).max(axis=0)


def _panel_sum(start: np.ndarray, added: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return Σₖ hₖᵢ σ[gₖ₋₁, gₖ], (features, S): the secant of the link on each panel."""
    change = added.sum(axis=2)  # (J, K, S)
    g = np.concatenate([start, start + np.cumsum(change, axis=1)], axis=1)
    p, small = expit(g), np.abs(change) < 1e-4
    middle = expit(0.5 * (g[:, 1:] + g[:, :-1]))
    secant = np.where(
        small, middle * (1.0 - middle), np.diff(p, axis=1) / np.where(small, 1.0, change)
    )
    return np.einsum("jks,jkis->is", share[:, None, None] * secant, added)


def ends_of(terms: list[tuple[float, Paths]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and the ends of the J paths to each row, both (n, J, d)."""
    starts = [np.broadcast_to(paths.start, paths.shape) for _, paths in terms]
    return np.stack(starts, axis=1), np.stack([paths.stop for _, paths in terms], axis=1)


def _draws(
    part: Posterior,
    terms: list[tuple[float, Paths]],
    gathering: np.ndarray | None,
    panels: int,
    count: int,
    seed: list[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of A, (count, n, features), and their root mean square errors, (n,).

    To the errors of the sums belongs what is wrong with the drawn end of a path, whose mean and
    standard deviation are known: panels may be too wide for a rough function.
    """
    (n, d), J = terms[0][1].shape, len(terms)
    features = d if gathering is None else gathering.shape[1]
    start, stop = ends_of(terms)
    share = np.array([weight for weight, _ in terms])
    size, T = J * (1 + panels * features), J * (1 + panels)
    draws, off = np.empty((count, n, features)), np.empty(n)
    chunks = [slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    normals = _normals(seed, size, chunks[0]) if len(chunks) == 1 else None
    known = part.predict(stop.reshape(-1, d), return_std=True)
    ends = [to_numpy(each).reshape(n, J) for each in known]
    for rows in blocks(n, 8.0 * (3 * (T * d) ** 2 + 3 * T * d * part.size + 4 * size**2)):
        mean, cov = part.increments(start[rows], stop[rows], gathering, *panel_rule(panels))
        for row, m, C in zip(range(rows.start, rows.stop), mean, cov, strict=True):
            root, squares = jittered_root(C), 0.0
            for chunk in chunks:
                normal = _normals(seed, size, chunk) if normals is None else normals
                drawn = (m.ravel()[:, None] + product(root, normal)).reshape(*m.shape, -1)
                draws[chunk, row], errors = path_draws(drawn, share, features)
                squares += float((errors**2).sum())
            spread = np.sqrt(np.maximum(np.einsum("jkjl->j", C.reshape(*m.shape, *m.shape)), 0.0))
            wrong = np.hypot(m.sum(axis=1) - ends[0][row], spread - ends[1][row]).max()
            off[row] = np.hypot(np.sqrt(squares / count), STEEPEST * wrong)
    return draws, off


def _normals(seed: list[int], size: int, chunk: slice) -> np.ndarray:
    """Return the standard draws of these positions, (size, count): the same for every row."""
    return np.random.default_rng([*seed, chunk.start]).standard_normal(
        (size, chunk.stop - chunk.start)
    )
