"""Importance of features for a probability, with joint draws of some rows.

The terms of features on the panels of several rows' paths are drawn together, as many as make
`TOGETHER` numbers, and each draw is summed up as in `gpattr.explainer.probability`: dependence
between rows is kept. The rest is scaled as for other models (`Importance`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gpattr._core.array import Array, product, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import jittered_root
from gpattr._core.validation import Names, read_only
from gpattr.explainer.importance_measures import (
    MEASURES,
    ROWS,
    ImportanceRequest,
    draw_error,
    moments_over_rows,
    over_all_rows,
    row_error,
    scale_of,
    std_error_of,
    variance_of,
)
from gpattr.explainer.probability import ends_of, first_panels, panel_rule, path_draws
from gpattr.explanation.importance import Importance
from gpattr.operators import IntegratedGradients
from gpattr.posteriors import Posterior

TOGETHER = 2000  # increments that are drawn together


def draw_probability_importance(
    posterior: Posterior,
    operator: IntegratedGradients,
    X: Array,
    gathering: Array,
    names: Names,
    draws: Iterable[Array],
    request: ImportanceRequest,
) -> Importance:
    """Return the importance over the rows of X, of which ``draws`` (r, rows, d) come in blocks.

    ``gathering`` adds columns up to features. Each part of a mixture has its share of the joint
    draws.
    """
    (n_samples, generator), n = request.counted, len(X)
    check_memory("n_samples: the draws", (n_samples, len(names)), "use fewer draws")
    X, variance = to_numpy(X), request.by == "variance"
    order = generator.permutation(n)
    few = order[:ROWS]
    s = min(_fitting(part, operator.rows(few), X[few]) for _, part in posterior.components)
    rows, found, reached, taken = order[:s], [], 0.0, 0
    for weight, part in posterior.components:
        reached += weight
        share = int(reached * n_samples + 1e-6) - taken
        if share:
            found.append(_drawn(part, operator, X, rows, gathering, share, generator))
        taken += share
    A = np.concatenate(found)  # (draws, s, d)
    centre, own, squared = (_variance_of_rows if variance else _size_of_rows)(draws)
    if variance:
        between, shifted = _between(A, n)
        centre, squared = centre - (1.0 - 1.0 / n) * between, squared + shifted
    terms = MEASURES[request.by].terms(A)
    sizes, scatter = terms.mean(axis=1), terms.var(axis=0).mean(axis=0)
    deviation = sizes - sizes.mean(axis=0)
    drawn = variance_of(sizes)
    # Of a variance, what one row adds is known from the sample alone.
    goal = over_all_rows(drawn, scatter, scatter if variance else own, s, n)
    samples = np.maximum(centre + deviation * scale_of(goal, drawn), 0.0)
    shares = np.einsum("rsd,rd->sd", terms, deviation) / len(deviation)
    errors = row_error(2.0 * (shares - shares.mean(axis=0)), n) + draw_error(samples)
    return Importance(
        read_only(np.maximum(centre, 0.0)),
        read_only(samples),
        names,
        n,
        s,
        std=read_only(np.sqrt(goal)),
        std_error=read_only(std_error_of(goal, errors)),
        error=read_only(np.sqrt(squared)),
        by=request.by,
    )


def _size_of_rows(draws: Iterable[Array]) -> tuple[Array, Array, Array]:
    """Return the means over rows of E|A| and of Var|A|, and the former's squared standard error.

    The same standard draws serve every row: errors of rows may all have one sign.
    """
    expected, own, off, n = np.zeros(()), np.zeros(()), np.zeros(()), 0
    for some in draws:
        sizes = np.abs(some)
        var = sizes.var(axis=0, ddof=1)
        expected, own = expected + sizes.mean(axis=0).sum(axis=0), own + var.sum(axis=0)
        off, n = off + np.sqrt(var / len(some)).sum(axis=0), n + some.shape[1]
    return expected / n, own / n, (off / n) ** 2


def _variance_of_rows(draws: Iterable[Array]) -> tuple[Array, Array, Array]:
    """Return the variance over rows of E A plus the mean of Var A, that mean, and its error."""
    off, n = np.zeros(()), 0

    def moments() -> Iterator[tuple[Array, Array]]:
        nonlocal off, n
        for some in draws:
            mean = some.mean(axis=0)
            squares = (some - mean) ** 2
            off = off + np.sqrt(squares.var(axis=0, ddof=1) / len(some)).sum(axis=0)
            n += some.shape[1]
            yield mean, some.var(axis=0, ddof=1)

    between_means, own, _ = moments_over_rows(moments())
    # E Q = variance of means + (1 − 1/n)(mean variance − mean covariance of two rows)
    share = 1.0 - 1.0 / n
    return between_means + share * own, own, (share * off / n) ** 2


def _between(A: Array, n: int) -> tuple[Array, Array]:
    """Return the mean covariance of two rows of draws (r, s, d), and its squared error, (d,)."""
    (r, s, _), deviation = A.shape, A - A.mean(axis=0)
    if r < 2 or s < 2:
        return np.zeros(A.shape[2]), np.zeros(A.shape[2])
    total = deviation.sum(axis=1)
    # Each row with the sum of the others, (s, d), averaged over them.
    shares = np.einsum("rsd,rd->sd", deviation, total) - (deviation**2).sum(axis=0)
    shares /= (r - 1.0) * (s - 1.0)
    squared = row_error(2.0 * (shares - shares.mean(axis=0)), n) + draw_error(total / s)
    return shares.mean(axis=0), squared


def _panels(part: Posterior, terms: list[tuple[float, Any]]) -> np.ndarray:
    """Return the panels of each path, (n,): no more than with which two rows are drawn together."""
    each = TOGETHER / 2 / len(terms) - 1
    most = max(2, int(each / terms[0][1].shape[1]) // 4 * 4)
    return np.minimum(first_panels(part, terms), most)


def _fitting(part: Posterior, operator: IntegratedGradients, X: Array) -> int:
    """Return how many of the first rows of X can be drawn together, at least one.

    All have as many panels as the longest of their paths wants.
    """
    terms = operator.terms(X)
    panels = np.maximum.accumulate(_panels(part, terms))
    numbers = (1 + panels * X.shape[1]) * len(terms) * np.arange(1, len(X) + 1)
    return max(1, int((numbers <= TOGETHER).sum()))


def _drawn(
    part: Posterior,
    operator: IntegratedGradients,
    X: Array,
    rows: Array,
    gathering: Array,
    count: int,
    generator: np.random.Generator,
) -> Array:
    """Return draws of the attributions of ``rows`` together, (count, s, features)."""
    terms: list[Any] = operator.rows(rows).terms(X[rows])
    s, J, features = len(rows), len(terms), gathering.shape[1]
    share = np.array([weight for weight, _ in terms])
    panels = int(_panels(part, terms).max())
    start, stop = (ends.reshape(1, s * J, -1) for ends in ends_of(terms))
    mean, cov = part.increments(start, stop, gathering, *panel_rule(panels))
    root, centre = jittered_root(cov[0]), mean[0].ravel()[:, None]
    del cov
    result = np.empty((count, s, features))
    for some in blocks(count, 64.0 * len(root)):
        normal = generator.standard_normal((len(root), some.stop - some.start))
        drawn = (centre + product(root, normal)).reshape(s, J, 1 + panels * features, -1)
        for row in range(s):
            result[some, row] = path_draws(drawn[row], share, features)[0]
    return result
