"""Attributions of a class probability: integrated gradients of σ(f), with f a Gaussian process.

    Aᵢ = (xᵢ − bᵢ) ∫₀¹ σ'(f(γ(t))) ∂ᵢf(γ(t)) dt,   Σᵢ Aᵢ = σ(f(x)) − σ(f(b)),   γ(t) = b + t(x − b)

is not Gaussian. Its mean is one integral, because f and ∂ᵢf are jointly Gaussian at every point
(Stein's lemma):

    E[Aᵢ] = (xᵢ − bᵢ) ∫₀¹ E[σ'(f)] E[∂ᵢf] + E[σ''(f)] Cov[f, ∂ᵢf] dt

It is the integrated gradient of the predicted probability E[σ(f)] itself. The distribution of A is
known from draws of f and its gradient along the path, each of which satisfies completeness.

σ bends far more than f does: the paths of real classifiers are mostly shorter than a length-scale,
while their log odds change by many units. So f and its gradient are drawn at a few Chebyshev nodes,
as many as f needs, and interpolated to the nodes of the integral, as many as σ needs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from gpattr._core.array import EPS, Array, product, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import jittered_root
from gpattr._core.randomness import RandomLike, random_generator
from gpattr.exceptions import ToleranceError, UnsupportedModelError
from gpattr.operators import IntegratedGradients, Paths
from gpattr.posteriors import Posterior
from gpattr.special.logistic import expected_probability, expected_slopes
from gpattr.special.quadrature import gauss_legendre

ORDER = 16  # nodes of a panel
# Pieces between Chebyshev nodes: initially for each length-scale, so that nothing is missed, and at
# most.
PIECES, MOST_PIECES = 4, 4096
# The largest change of the log odds within a panel, whose rule is then off by 1e-5, and the most
# panels.
UNITS, MOST_FINE = 8.0, 256
TARGET = 1e-9  # of a probability: where nodes stop doubling
# of the draws' standard deviation: an error of their integrals that adds 1e-5 to their variance
NEGLIGIBLE = 0.003
ACCEPTABLE = 0.1  # and one that adds 1e-2, beyond which draws are refused
CHUNK, FEW = 1000, 10  # draws at a time, and draws too few to have a standard deviation
LARGEST = 4000  # values and gradients along a path that are drawn together


def require_link(posterior: Posterior, output: str = "") -> None:
    """Raise `UnsupportedModelError` for a posterior that predicts no probability."""
    if posterior.link is None:
        raise UnsupportedModelError(
            f'output: "probability" needs a classifier, such as GPClassifier; '
            f"the {type(posterior).__name__} {f'of {output!r} ' if output else ''}has no link"
        )
    for _, part in posterior.in_columns.components:
        part.require_jets()


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
            value, off = _means(part, paths)
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


def drawn_attributions(
    posterior: Posterior,
    operator: IntegratedGradients,
    X: Array,
    n_draws: int,
    random_state: RandomLike,
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of A, (n_draws, n, d), and their root mean square completeness gaps, (n,).

    Features are joint within a row. The same standard draws serve every row, so a row's draws do
    not depend on the others.
    """
    X = to_numpy(X)
    n, d = X.shape
    check_memory("The draws", (n_draws, n, d), "use fewer draws or rows")
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
    draws, total, first = np.empty((n_draws, n, d)), np.zeros(n), 0
    for count, (_, part) in zip(counts.tolist(), parts, strict=True):
        if count:
            gaps = _fill(draws[first : first + count], part, terms, [seed, first])
            total += count * gaps**2
        first += count
    gaps = np.sqrt(total / n_draws)
    _require_good_draws(gaps, draws, _length(posterior, terms))
    return draws[order], gaps


def _fill(
    draws: np.ndarray, part: Posterior, terms: list[tuple[float, Any]], seed: list[int]
) -> np.ndarray:
    """Fill in ``draws``, (count, n, d); return their root mean square completeness gaps, (n,).

    Nodes of a row are doubled until its gap is negligible. A row whose path would take too many to
    begin with keeps an infinite gap.
    """
    count, n, d = draws.shape
    most = int(LARGEST / ((1 + d) * len(terms)) - 1)
    gaps, pieces = np.full(n, np.inf), first_pieces(part, terms)
    open_rows = np.flatnonzero(pieces <= max(most, PIECES))
    while len(open_rows):
        for size in np.unique(pieces[open_rows]):
            rows = open_rows[pieces[open_rows] == size]
            some = [(weight, paths[rows]) for weight, paths in terms]
            draws[:, rows], gaps[rows] = _draws(part, some, int(size), count, seed)
        pieces[open_rows] *= 2
        coarse = gaps[open_rows] > NEGLIGIBLE * _size(draws[:, open_rows])
        open_rows = open_rows[coarse & (pieces[open_rows] <= most)]
    return gaps


def _size(draws: np.ndarray) -> np.ndarray:
    """Return the largest standard deviation of the attributions of each row, (n,).

    Of a few draws it is the largest value.
    """
    size = draws.std(axis=0) if len(draws) > FEW else np.abs(draws).max(axis=0)
    return size.max(axis=1)


def _require_good_draws(gaps: np.ndarray, draws: np.ndarray, length: np.ndarray) -> None:
    excess = gaps - ACCEPTABLE * _size(draws)
    if (excess > 0).any():
        row = int(excess.argmax())
        raise ToleranceError(
            f"output: draws of the probability of row {row} would be accurate only to"
            f" {gaps[row]:.0e}. Its path is {length[row]:.3g} length-scales long, or the"
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


def _means(part: Posterior, paths: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return E[A] along each path, (n, d), and an estimate of its error, (n,).

    Chebyshev nodes are nested: where they are doubled, f is needed only between the old ones.
    """
    n, d = paths.shape
    values, error = np.empty((n, d)), np.full(n, np.inf)
    pieces = first_pieces(part, [(1.0, paths)])
    for size in np.unique(pieces[pieces < MOST_PIECES]):
        rows = np.flatnonzero(pieces == size)
        for some in blocks(len(rows), 64.0 * (size + 1) * (d + 1)):
            _refine(part, paths, int(size), rows[some], values, error)
    return values, error


def _refine(
    part: Posterior,
    paths: Any,
    pieces: int,
    rows: np.ndarray,
    values: np.ndarray,
    error: np.ndarray,
) -> None:
    """Fill in ``values`` and ``error`` of some rows; double the nodes until the error is small."""
    known, before = _slopes_at(part, paths[rows], nodes(pieces)), None
    change = np.ptp(known[0], axis=1).max(initial=0.0)
    finer = int(2 ** np.ceil(np.log2(np.clip(change / UNITS, 1.0, MOST_FINE))))
    while True:
        gain = _gain(known)
        now = _contracted(known, finer * max(1, pieces // PIECES)) * paths[rows].step
        if before is not None:
            values[rows] = now
            changed, gap = np.abs(now - before).max(axis=1), np.abs(now.sum(axis=1) - gain)
            # Rounding: of probabilities, which are at most 1, and of the sum of attributions.
            error[rows] = changed + gap + 4 * EPS * (1.0 + np.abs(now).sum(axis=1))
            still = error[rows] > TARGET
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
    P, w = _interpolation(mean.shape[1] - 1, panels)
    result = np.empty((len(mean), gradient.shape[2]))
    # The link's own integrals take 400 nodes a point.
    for rows in blocks(len(mean), 20000.0 * len(w)):
        centre, spread = mean[rows] @ P.T, np.sqrt(np.maximum(var[rows] @ P.T, 0.0))
        first, second = (
            w * each.reshape(centre.shape) @ P
            for each in expected_slopes(centre.ravel(), spread.ravel())
        )
        result[rows] = np.einsum("nt,nti->ni", first, gradient[rows]) + np.einsum(
            "nt,nti->ni", second, cov[rows]
        )
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


@lru_cache(maxsize=64)
def _interpolation(pieces: int, panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix from values at the Chebyshev nodes to those at the nodes of a rule, (Q, T).

    The rule's weights, (Q,), come with it. By the barycentric formula; no node of an even rule is a
    Chebyshev node.
    """
    t, w = gauss_legendre(ORDER, panels)
    signs = (-1.0) ** np.arange(pieces + 1)
    signs[[0, -1]] *= 0.5
    ratios = signs / (t[:, None] - nodes(pieces))
    return ratios / ratios.sum(axis=1, keepdims=True), w


def path_draws(
    jet: np.ndarray, share: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return A, (S, d), and its completeness gaps, (S,), for draws of f and its gradient.

    ``jet`` has these at the Chebyshev nodes of K paths to one row, (K, T, 1 + d, S); the paths have
    weights ``share`` (K,) and ``steps`` (K, d).
    """
    f, pieces = jet[:, :, 0], jet.shape[1] - 1
    change = float((f.max(axis=1) - f.min(axis=1)).max(initial=0.0))
    wanted = np.clip(max(change / UNITS, pieces * 4 / ORDER), 1.0, MOST_FINE)
    P, w = _interpolation(pieces, int(2 ** np.ceil(np.log2(wanted))))
    e = np.exp(-np.abs(np.matmul(P, f)))
    rate = np.matmul(P.T, e / (1.0 + e) ** 2 * w[:, None])  # σ' times the weights, (K, T, S)
    A = np.einsum("k,kts,ktis,ki->si", share, rate, jet[:, :, 1:], steps, optimize=True)
    return A, A.sum(axis=1) - share @ (expit(f[:, -1]) - expit(f[:, 0]))


def _draws(
    part: Posterior, terms: list[tuple[float, Paths]], pieces: int, count: int, seed: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of A, (count, n, d), and their root mean square completeness gaps, (n,)."""
    t, (n, d), K = nodes(pieces), terms[0][1].shape, len(terms)
    along = [paths.at(t) for _, paths in terms]
    points = np.swapaxes(np.concatenate(along), 0, 1)  # (n, KT, d)
    size = points.shape[1] * (1 + d)
    share = np.array([weight for weight, _ in terms])
    steps = np.stack([paths.step for _, paths in terms], axis=1)  # (n, K, d)
    draws, gap = np.empty((count, n, d)), np.zeros(n)
    chunks = [slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    normals = _normals(seed, size, chunks[0]) if len(chunks) == 1 else None
    for rows in blocks(n, 8.0 * size * (4 * size + 2 * part.size)):
        mean, cov = part.jets(points[rows])
        for row, m, C in zip(range(rows.start, rows.stop), mean, cov, strict=True):
            root, squares = jittered_root(C), 0.0
            for chunk in chunks:
                normal = _normals(seed, size, chunk) if normals is None else normals
                jet = (m.ravel()[:, None] + product(root, normal)).reshape(K, len(t), 1 + d, -1)
                draws[chunk, row], off = path_draws(jet, share, steps[row])
                squares += float((off**2).sum())
            size_of_f = np.sqrt(C.diagonal().reshape(-1, 1 + d)[:, 0].max(initial=0.0))
            floor = 1e-5 * (1.0 + size_of_f)  # what the jitter of the root explains is no gap
            gap[row] = max(0.0, np.sqrt(squares / count) - floor)
    return draws, gap


def _normals(seed: list[int], size: int, chunk: slice) -> np.ndarray:
    """Return the standard draws of these positions, (size, count): the same for every row."""
    return np.random.default_rng([*seed, chunk.start]).standard_normal(
        (size, chunk.stop - chunk.start)
    )
