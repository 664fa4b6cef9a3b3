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

from gpattr._array import EPS, Array, to_numpy
from gpattr._memory import blocks, require_room
from gpattr._normal import jittered_root, random_generator
from gpattr.exceptions import ToleranceError, UnsupportedModelError
from gpattr.operators import IntegratedGradients, Paths
from gpattr.posteriors import FunctionSpacePosterior, Posterior
from gpattr.posteriors.jets import jets, slopes
from gpattr.special.logistic import expected_probability, expected_slopes
from gpattr.special.quadrature import gauss_legendre

ORDER, PANELS = 16, (1, 2, 4, 8, 16, 32, 64, 128, 256)
TARGET = 1e-9  # of a probability: where panels stop doubling
DRAWN_PANELS = (1, 2, 4, 8)
NEGLIGIBLE = 0.03  # of the draws' standard deviation: an error of their integrals that adds a thousandth to their variance


def require_link(posterior: Posterior) -> None:
    """Raise `UnsupportedModelError` for a posterior whose function makes no probability."""
    if posterior.link is None or not all(isinstance(part, FunctionSpacePosterior) for _, part in posterior.components):
        raise UnsupportedModelError(
            f'scale: "probability" needs a classifier, such as GPClassifier; a {type(posterior).__name__} has no link'
        )


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
    open_rows, before = np.arange(len(X)), None
    for panels in PANELS:
        now = np.sum([weight * _mean(posterior, paths[open_rows], panels) for weight, paths in terms], axis=0)
        if before is not None:
            values[open_rows] = now
            gap = np.abs(now.sum(axis=1) - gain[open_rows])
            error[open_rows] = np.abs(now - before).max(axis=1) + gap + EPS
            going = error[open_rows] > TARGET
            open_rows, now = open_rows[going], now[going]
        if not len(open_rows):
            break
        before = now
    if not (error <= tolerance).all():
        row = int(error.argmax())
        raise ToleranceError(
            f"tolerance: attributions of the probability of row {row} are sure to {error[row]:.1e} only, not to {tolerance:.0e}: "
            "it changes too fast along the path; a larger tolerance= accepts it"
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
    draws, gaps, total, first = np.empty((n_draws, n, d)), np.zeros(n), np.zeros(n), 0
    for count, (_, part) in zip(counts.tolist(), parts, strict=True):
        open_rows, here = np.arange(n), slice(first, first + count)
        for panels in DRAWN_PANELS if count else ():
            some, gap = _draws(part, [(weight, paths[open_rows]) for weight, paths in terms], panels, count, [seed, first])
            draws[here, open_rows], gaps[open_rows] = some, gap
            open_rows = open_rows[gap > NEGLIGIBLE * some.std(axis=0).max(axis=1)]
            if not len(open_rows):
                break
        total += count * gaps**2
        first += count
    return draws[order], np.sqrt(total / n_draws)


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
    require_room("The covariance along a path", (size, size), "use fewer baselines or features", copies=4)
    normal = np.random.default_rng(seed).standard_normal((size, count))
    share = np.array([weight for weight, _ in terms])
    steps = np.stack([paths.step for _, paths in terms], axis=1)  # (n, K, d)
    draws, gap = np.empty((count, n, d)), np.empty(n)
    for rows in blocks(n, 8.0 * size * (4 * size + 2 * len(part.inputs))):
        mean, cov = jets(part, points[rows])
        for row, m, C in zip(range(rows.start, rows.stop), mean, cov, strict=True):
            root = jittered_root(C)
            jet = (m.ravel()[:, None] + root @ normal).reshape(K, len(t) + 2, 1 + d, count)
            f, slope = jet[:, :, 0], jet[:, :-2, 1:]
            rate = expit(f[:, :-2]) * expit(-f[:, :-2]) * w[:, None]
            A = np.einsum("k,kts,ktis,ki->si", share, rate, slope, steps[row], optimize=True)
            draws[:, row] = A
            gain = share @ (expit(f[:, -1]) - expit(f[:, -2]))
            gap[row] = np.sqrt(np.mean((A.sum(axis=1) - gain) ** 2))
    return draws, gap
