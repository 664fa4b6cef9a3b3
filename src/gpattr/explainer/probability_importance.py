"""Importance of features for a probability: mean |attribution|, with joint draws of some rows.

The latent function and its gradient are drawn together at the nodes of several rows' paths, as many
as make `LARGEST` numbers, and each draw is integrated as in `gpattr.explainer.probability`: what
rows share is kept. The rest is scaled as for other models (`Importance`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._core.array import Array, product, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import check_count, jittered_root, random_generator
from gpattr._core.validation import Names, read_only
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer.importance import ROWS, scale_of
from gpattr.explainer.probability import LARGEST, first_pieces, nodes, path_draws
from gpattr.explanation.importance import Importance
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import Posterior


def draw_probability_importance(
    posterior: Posterior,
    operator: IntegratedGradients,
    X: Array,
    gathering: Array,
    names: Names,
    expected: Array,
    own: Array,
    n_samples: int,
    random_state: Any,
) -> Importance:
    """Return the importance over the rows of X.

    ``expected`` and ``own`` (d,) are the means of E|A| and Var|A| over all rows. ``gathering`` adds
    columns up to features. Each part of a mixture has its share of the draws.
    """
    n_samples, generator, n = (
        check_count("n_samples", n_samples),
        random_generator(random_state),
        len(X),
    )
    check_memory("n_samples: the draws", (n_samples, len(names)), "use fewer draws")
    X = to_numpy(X)
    order = generator.permutation(n)
    drawn, scatters, reached, taken = [], [], 0.0, 0
    chosen = [_fitting(part, operator, X, order) for _, part in posterior.components]
    s = min(map(len, chosen))
    if s < 2 <= n:
        raise UnsupportedModelError(
            "importance: the paths of two rows are too long to be drawn together; choose a nearer"
            " baseline"
        )
    rows = order[:s]
    for weight, part in posterior.components:
        reached += weight
        share = int(reached * n_samples + 1e-6) - taken
        if share:
            sizes, scatter = _drawn(part, operator, X, rows, gathering, share, generator)
            drawn.append(sizes)
            scatters.append(weight * scatter)
        taken += share
    sizes = np.concatenate(drawn)
    deviation = sizes - sizes.mean(axis=0)
    if s < n:
        deviation = deviation * scale_of(
            deviation.var(axis=0, ddof=1), np.sum(scatters, axis=0), own, s, n
        )
    return Importance(
        read_only(expected), read_only(np.maximum(expected + deviation, 0.0)), names, n, s
    )


def _fitting(part: Posterior, operator: IntegratedGradients, X: Array, order: Array) -> Array:
    """Return as many of the first rows in ``order`` as can be drawn together, `ROWS` at most."""
    few = order[:ROWS]
    terms = operator.rows(few).terms(X[few])
    numbers = (first_pieces(part, terms) + 1) * len(terms) * (1 + X.shape[1])
    return few[np.cumsum(numbers) <= LARGEST]


def _drawn(
    part: Posterior,
    operator: IntegratedGradients,
    X: Array,
    rows: Array,
    gathering: Array,
    count: int,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Return draws of mean |A| over ``rows``, (count, features), and mean Var|A|, (features,)."""
    terms: list[Any] = operator.rows(rows).terms(X[rows])
    pieces, d, share = (
        first_pieces(part, terms),
        X.shape[1],
        np.array([weight for weight, _ in terms]),
    )
    points = [
        [paths[[row]].at(nodes(int(size)))[:, 0] for _, paths in terms]
        for row, size in enumerate(pieces)
    ]
    steps = np.stack([paths.step for _, paths in terms], axis=1)  # (s, K, d)
    together = np.concatenate([point for row in points for point in row])
    mean, cov = part.jets(together[None])
    root, centre = jittered_root(cov[0]), mean[0].ravel()[:, None]
    del cov
    sizes, squares = (
        np.empty((count, gathering.shape[1])),
        np.zeros((len(rows), gathering.shape[1])),
    )
    sums = np.zeros_like(squares)
    for some in blocks(count, 64.0 * len(root)):
        jet = (
            centre + product(root, generator.standard_normal((len(root), some.stop - some.start)))
        ).reshape(len(together), 1 + d, -1)
        total, first = np.zeros((some.stop - some.start, gathering.shape[1])), 0
        for row, size in enumerate(pieces):
            last = first + len(terms) * (int(size) + 1)
            path = jet[first:last].reshape(len(terms), int(size) + 1, 1 + d, -1)
            A = np.abs(path_draws(path, share, steps[row])[0] @ gathering)
            total += A
            sums[row] += A.sum(axis=0)
            squares[row] += (A**2).sum(axis=0)
            first = last
        sizes[some] = total / len(rows)
    scatter = np.maximum(squares / count - (sums / count) ** 2, 0.0).mean(axis=0)
    return sizes, scatter
