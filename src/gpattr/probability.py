"""Attributions of a class probability: integrated gradients of σ(f), with f a Gaussian process.

    Aᵢ = (xᵢ − bᵢ) ∫₀¹ σ'(f(γ(t))) ∂ᵢf(γ(t)) dt,      Σᵢ Aᵢ = σ(f(x)) − σ(f(b)),      γ(t) = b + t(x − b)

is not Gaussian. Its mean is one integral, because f and ∂ᵢf are jointly Gaussian at every point (Stein's lemma):

    E[Aᵢ] = (xᵢ − bᵢ) ∫₀¹ E[σ'(f)] E[∂ᵢf] + E[σ''(f)] Cov[f, ∂ᵢf] dt

It is the integrated gradient of the predicted probability E[σ(f)] itself. How A spreads is seen from draws of f and its gradient
along the path, each of which satisfies completeness of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from gpattr._array import EPS, Array, product, to_numpy
from gpattr._memory import blocks, require_room
from gpattr._normal import jittered_root, random_generator
from gpattr.closed_forms.derivatives import require_derivatives
from gpattr.exceptions import ToleranceError, UnsupportedModelError
from gpattr.operators import IntegratedGradients, Paths
from gpattr.posteriors import FunctionSpacePosterior, Posterior
from gpattr.posteriors.jets import jets, slopes
from gpattr.special.logistic import expected_probability, expected_slopes
from gpattr.special.quadrature import gauss_legendre

ORDER, MOST_PANELS = 16, 1024
PANEL = 4.0  # length-scales, at most, of a panel to begin with: what lies between its nodes cannot be missed
TARGET = 1e-9  # of a probability: where panels stop doubling
NEGLIGIBLE = 0.003  # of the draws' standard deviation: an error of their integrals that adds 1e-5 to their variance
ACCEPTABLE = 0.1  # and one that adds 1e-2, beyond which draws are refused
CHUNK, FEW = 1000, 10  # draws at a time, and draws too few to have a standard deviation
LARGEST = 4000  # values and gradients along a path that are drawn together


def require_link(posterior: Posterior, output: str = "") -> None:
    """Raise `UnsupportedModelError` for a posterior whose function makes no probability."""
    inner = [_inner(part) for _, part in posterior.components]
    if posterior.link is None or not all(isinstance(part, FunctionSpacePosterior) for part in inner):
        raise UnsupportedModelError(
            f'scale: "probability" needs a classifier, such as GPClassifier; '
            f"the {type(posterior).__name__} {f'of {output!r} ' if output else ''}has no link"
        )
    for part in inner:
        require_derivatives(part.kernel)


def probability(posterior: Posterior, X: Array) -> np.ndarray:
    """Return E[σ(f)] at the rows of X, (n,)."""
    parts = ((weight, part.predict(X, return_std=True)) for weight, part in posterior.components)
    return sum(weight * expected_probability(to_numpy(mean), to_numpy(std)) for weight, (mean, std) in parts)  # pyright: ignore[reportReturnType]


def mean_attributions(
    posterior: Posterior, operator: IntegratedGradients, X: Array, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return E[A], (n, d), and an estimate of its error, (n,): what doubling the panels changed, and the completeness gap."""
    X = to_numpy(X)
    terms: list[Any] = operator.terms(X)
    gain = probability(posterior, X) - sum(weight * probability(posterior, paths.start) for weight, paths in terms)
    values, error = np.empty(X.shape), np.full(len(X), np.inf)
    before, panels, first = np.empty(X.shape), _first_panels(posterior, terms), True
    open_rows = np.flatnonzero(2 * panels <= MOST_PANELS)
    while len(open_rows):
        now = np.empty((len(open_rows), X.shape[1]))
        for count in np.unique(panels[open_rows]):
            some = panels[open_rows] == count
            parts = [weight * _mean(posterior, paths[open_rows[some]], int(count)) for weight, paths in terms]
            now[some] = np.sum(parts, axis=0)
        if not first:
            values[open_rows] = now
            gap = np.abs(now.sum(axis=1) - gain[open_rows])
            error[open_rows] = np.abs(now - before[open_rows]).max(axis=1) + gap + EPS
        before[open_rows], first = now, False
        panels[open_rows] *= 2
        open_rows = open_rows[(error[open_rows] > TARGET) & (panels[open_rows] <= MOST_PANELS)]
    if not (error <= tolerance).all():
        row = int(error.argmax())
        length = float(_length(posterior, terms)[row])
        raise ToleranceError(
            f"tolerance: attributions of the probability of row {row} are sure to {error[row]:.0e} only, not to {tolerance:.0e}; "
            f"its path is {length:.3g} length-scales long, or the probability changes too fast on it; choose a baseline nearer "
            "to the row, or accept it by a larger tolerance="
        )
    return values, error


def drawn_attributions(
    posterior: Posterior, operator: IntegratedGradients, X: Array, n_draws: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of A, (n_draws, n, d), and the root mean square of their completeness gaps in each row, (n,).

    Features are joint within a row. The same standard draws serve every row, so a row's draws do not depend on the others.
    """
    X = to_numpy(X)
    n, d = X.shape
    require_room("The draws", (n_draws, n, d), "use fewer draws or rows")
    generator = random_generator(random_state)
    parts = posterior.components
    counts = generator.multinomial(n_draws, [weight for weight, _ in parts]) if len(parts) > 1 else np.array([n_draws])
    seed, order = int(generator.integers(2**62)), generator.permutation(n_draws)
    terms: list[Any] = operator.terms(X)
    most = max(1, int((LARGEST / ((1 + d) * len(terms)) - 2) // ORDER))
    require_room("The covariance along a path", (LARGEST, LARGEST), "use fewer baselines or features", copies=4)
    draws, total, first = np.empty((n_draws, n, d)), np.zeros(n), 0
    for count, (_, part) in zip(counts.tolist(), parts, strict=True):
        here, gaps, panels = slice(first, first + count), np.full(n, np.inf), _first_panels(part, terms)
        open_rows = np.flatnonzero(panels <= most) if count else np.empty(0, dtype=int)
        while len(open_rows):
            for size in np.unique(panels[open_rows]):
                rows = open_rows[panels[open_rows] == size]
                some = [(weight, paths[rows]) for weight, paths in terms]
                draws[here, rows], gaps[rows] = _draws(part, some, int(size), count, [seed, first])
            panels[open_rows] *= 2
            size = draws[here, open_rows].std(axis=0) if count > FEW else np.abs(draws[here, open_rows]).max(axis=0)
            coarse = gaps[open_rows] > NEGLIGIBLE * size.max(axis=1)
            open_rows = open_rows[coarse & (panels[open_rows] <= most)]
        if count:
            total += count * gaps**2
        first += count
    gaps = np.sqrt(total / n_draws)
    _require_good_draws(gaps, draws, _length(posterior, terms))
    return draws[order], gaps


def _require_good_draws(gaps: np.ndarray, draws: np.ndarray, length: np.ndarray) -> None:
    size = draws.std(axis=0) if len(draws) > FEW else np.abs(draws).max(axis=0)
    excess = gaps - ACCEPTABLE * size.max(axis=1)
    if (excess > 0).any():
        row = int(excess.argmax())
        raise ToleranceError(
            f"scale: draws of the probability of row {row} would be good to {gaps[row]:.0e} only; its path is {length[row]:.3g} "
            "length-scales long, or the probability changes too fast on it; choose a baseline nearer to the row, or ask for "
            'means alone, uncertainty="none"'
        )


def _inner(part: Any) -> Any:
    """Return the posterior behind scalers."""
    return getattr(part, "posterior", part)


def _length(posterior: Posterior, terms: list[tuple[float, Any]]) -> np.ndarray:
    """Return how many length-scales the longest path of each row covers, (n,)."""

    def span(part: Any, paths: Any) -> np.ndarray:
        start, stop = np.broadcast_to(paths.start, paths.shape), paths.stop
        inside = getattr(part, "inside", lambda rows: rows)
        return np.asarray(_inner(part).kernel.span(to_numpy(inside(stop)) - to_numpy(inside(start))))

    return np.max([span(part, paths) for _, part in posterior.components for _, paths in terms], axis=0)


def _first_panels(posterior: Posterior, terms: list[tuple[float, Any]]) -> np.ndarray:
    """Return with how many panels to begin on each row, (n,): a power of two, none longer than a few length-scales."""
    wanted = np.clip(_length(posterior, terms) / PANEL, 1.0, 4.0 * MOST_PANELS)
    return 2 ** np.ceil(np.log2(wanted)).astype(int)


def _mean(posterior: Posterior, paths: Paths, panels: int) -> np.ndarray:
    """Return E[A] along each path, (n, d), by a rule with so many panels."""
    t, w = gauss_legendre(ORDER, panels)
    values = np.zeros(paths.shape)
    for rows in blocks(len(values), 20000.0 * len(t)):  # the link's own integrals take 400 nodes a point
        points = paths[rows].at(t)
        for weight, part in posterior.components:
            mean, var, gradient, cov = slopes(part, points.reshape(-1, points.shape[2]))  # pyright: ignore[reportArgumentType]
            first, second = expected_slopes(mean, np.sqrt(var))
            rates = first[:, None] * gradient + second[:, None] * cov
            values[rows] += weight * np.tensordot(w, rates.reshape(points.shape), axes=1)
    return values * paths.step


def _draws(
    part: Any, terms: list[tuple[float, Paths]], panels: int, count: int, seed: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of A at every row, (count, n, d), and the root mean square of their completeness gaps, (n,)."""
    t, w = gauss_legendre(ORDER, panels)
    (n, d), K = terms[0][1].shape, len(terms)
    along = [paths.at(np.concatenate([t, [0.0, 1.0]])) for _, paths in terms]
    points = np.swapaxes(np.concatenate(along), 0, 1)  # (n, K(T + 2), d)
    size = points.shape[1] * (1 + d)
    share = np.array([weight for weight, _ in terms])
    steps = np.stack([paths.step for _, paths in terms], axis=1)  # (n, K, d)
    draws, gap = np.empty((count, n, d)), np.zeros(n)
    chunks = [slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    normals = _normals(seed, size, chunks[0]) if len(chunks) == 1 else None
    for rows in blocks(n, 8.0 * size * (4 * size + 2 * len(_inner(part).inputs))):
        mean, cov = jets(part, points[rows])
        for row, m, C in zip(range(rows.start, rows.stop), mean, cov, strict=True):
            root, squares = jittered_root(C), 0.0
            for chunk in chunks:
                normal = _normals(seed, size, chunk) if normals is None else normals
                jet = (m.ravel()[:, None] + product(root, normal)).reshape(K, len(t) + 2, 1 + d, -1)
                f, slope = jet[:, :, 0], jet[:, :-2, 1:]
                rate = expit(f[:, :-2]) * expit(-f[:, :-2]) * w[:, None]
                A = np.einsum("k,kts,ktis,ki->si", share, rate, slope, steps[row], optimize=True)
                draws[chunk, row] = A
                gain = share @ (expit(f[:, -1]) - expit(f[:, -2]))
                squares += float(((A.sum(axis=1) - gain) ** 2).sum())
            size_of_f = np.sqrt(C.diagonal().reshape(-1, 1 + d)[:, 0].max(initial=0.0))
            floor = 1e-5 * (1.0 + size_of_f)  # what the jitter of the root explains is no gap
            gap[row] = max(0.0, np.sqrt(squares / count) - floor)
    return draws, gap


def _normals(seed: list[int], size: int, chunk: slice) -> np.ndarray:
    """Return the standard draws of these positions, (size, count): the same for every row."""
    return np.random.default_rng([*seed, chunk.start]).standard_normal((size, chunk.stop - chunk.start))
