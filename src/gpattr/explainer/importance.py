"""Draws of the global importance: the mean absolute attribution of each feature over rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy.special import erf

from gpattr._core.array import Array, LinAlgError, cholesky, product
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import check_count, random_generator
from gpattr._core.validation import Names, read_only
from gpattr.explanation.importance import Importance

TOGETHER = 3000  # attributions that are drawn together: a factor of 72 MB, and a few seconds
GUIDE = (
    1500  # attributions whose joint draws tell what features share, where each is drawn by itself
)
# Rows that are drawn where there are more: as a rule, and however many features there are.
ROWS, FEWEST = 300, 40
WORK = 2e9  # entries of the prior covariance between rows that are evaluated: about ten seconds
PAIR = 500  # what a pair of rows costs besides, in entries
# Relative to each variance; the largest is far below the hundredth to which draws give a std.
JITTERS = (1e-12, 1e-9, 1e-6)
ESTIMATED_BY = 500  # draws, at least, from which a variance is estimated


class Part(Protocol):
    """One Gaussian of a posterior's mixture; ``chosen`` are positions of rows."""

    @property
    def weight(self) -> float:
        """Its share of the mixture."""
        ...

    def moments(self) -> Iterator[tuple[Array, Array]]:
        """Yield means and variances of the attributions, (r, d) each, by blocks of rows."""
        ...

    def mean(self, chosen: Array) -> Array:
        """Return the mean attributions of some rows, (s, d)."""
        ...

    def joint(self, chosen: Array) -> Array:
        """Return the covariance between all features of some rows, (s, d, s, d)."""
        ...

    def alone(self, chosen: Array) -> Array:
        """Return the covariance between some rows of each feature by itself, (d, s, s)."""
        ...


def draw_importance(
    parts: Iterable[Part],
    n: int,
    names: Names,
    n_samples: int,
    random_state: Any,
    *,
    columns: int = 1,
    terms: int = 1,
) -> Importance:
    """Return the importance over n rows for a mixture of Gaussian ``parts``.

    Each part has its share of the draws. The expectation of each |attribution| is that of a folded
    normal; what the rows share enters through the draws. ``columns`` is the number of columns whose
    covariance is evaluated, ``terms`` that of the paths to each row.
    """
    n_samples, generator = check_count("n_samples", n_samples), random_generator(random_state)
    d = len(names)
    check_memory("n_samples: the draws", (n_samples, d), "use fewer draws")
    columns = max(columns, d)
    s = sample_size(n, columns, terms)
    together = s * columns <= TOGETHER
    rows = np.arange(n) if s == n and together else generator.permutation(n)[:s]
    expected, draws, reached, taken = np.zeros(d), [], 0.0, 0
    for part in parts:
        centre, own = _folded_moments(part, n)
        expected += part.weight * centre
        reached += part.weight
        share = int(reached * n_samples + 1e-6) - taken
        if share > 0:
            # Few draws do not tell the variance that is scaled.
            count = share if s == n else max(share, ESTIMATED_BY)
            if together:
                deviation, scatter = _drawn_together(part, rows, count, generator)
            else:
                deviation, scatter = _drawn_alone(
                    part, rows, rows[: GUIDE // columns], count, generator
                )
            if s < n:
                deviation *= scale_of(deviation.var(axis=0, ddof=1), scatter, own, s, n)
            draws.append(np.maximum(centre + deviation[:share], 0.0))
            taken += share
    return Importance(read_only(expected), read_only(np.concatenate(draws)), names, n, s)


def sample_size(n: int, columns: int, terms: int) -> int:
    """Return of how many of n rows the joint distribution is drawn."""
    affordable = (WORK / (columns**2 + PAIR)) ** 0.5 / terms
    return min(n, max(FEWEST, int(min(max(ROWS, TOGETHER // columns), affordable))))


def folded_mean(mean: Array, var: Array) -> Array:
    """Return E|A| for A ~ N(μ, s²): s√(2/π) exp(−μ²/2s²) + μ erf(μ/(√2 s)), and |μ| at s = 0."""
    s = np.sqrt(var)
    z = np.divide(mean, s, out=np.full_like(mean, np.inf), where=s > np.abs(mean) * 1e-150)
    folded = s * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z * z) + mean * erf(z / np.sqrt(2.0))
    return np.where(np.isinf(z), np.abs(mean), folded)


def folded_var(mean: Array, var: Array) -> Array:
    """Return Var|A| = μ² + s² − (E|A|)² for A ~ N(μ, s²)."""
    folded = folded_mean(mean, var)
    # In this order digits are lost only where the variance is far below what it is added to.
    return np.maximum(var - (folded - np.abs(mean)) * (folded + np.abs(mean)), 0.0)


def _folded_moments(part: Part, n: int) -> tuple[Array, Array]:
    """Return the means over all rows of E|A| and of Var|A|, (d,) each."""
    sums = [
        (folded_mean(mean, var).sum(axis=0), folded_var(mean, var).sum(axis=0))
        for mean, var in part.moments()
    ]
    centre, own = (np.sum(each, axis=0) / n for each in zip(*sums, strict=True))
    return centre, own


def _drawn_together(
    part: Part, rows: Array, count: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return draws of mean |A| − E[mean |A|] over ``rows``, (count, d), and mean Var|A|, (d,)."""
    mean = part.mean(rows)
    s, d = mean.shape
    C = part.joint(rows).reshape(s * d, s * d)
    var = C.diagonal().reshape(s, d)
    sizes = _sizes(mean.ravel(), C, count, generator, (s, d))
    return sizes - folded_mean(mean, var).mean(axis=0), folded_var(mean, var).mean(axis=0)


def _drawn_alone(
    part: Part, rows: Array, few: Array, count: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return the same for each feature by itself, ordered like joint draws of the ``few`` rows."""
    mean, covariances = part.mean(rows), part.alone(rows)
    s, d = mean.shape
    deviation, scatter = np.empty((count, d)), np.empty(d)
    for i, C in enumerate(covariances):
        var = C.diagonal()
        deviation[:, i] = (
            _sizes(mean[:, i], C, count, generator, (s, 1))[:, 0]
            - folded_mean(mean[:, i], var).mean()
        )
        scatter[i] = folded_var(mean[:, i], var).mean()
    if len(few):
        guide, _ = _drawn_together(part, few, count, generator)
        for i in np.flatnonzero(guide.std(axis=0) > 0):  # what does not vary has no order
            ranks = guide[:, i].argsort(kind="stable").argsort(kind="stable")
            deviation[:, i] = np.sort(deviation[:, i])[ranks]
    return deviation, scatter


def _sizes(
    mean: Array, C: Array, count: int, generator: np.random.Generator, shape: tuple[int, int]
) -> Array:
    """Return draws of mean |A| over rows, (count, d), for A ~ N(mean, C) of ``shape`` (s, d)."""
    root = _root(C)
    result = np.empty((count, shape[1]))
    for some in blocks(count, 32.0 * len(mean)):
        normal = generator.standard_normal((some.stop - some.start, root.shape[1]))
        result[some] = np.abs(mean + product(normal, root.T)).reshape(-1, *shape).mean(axis=1)
    return result


def scale_of(drawn: Array, scatter: Array, own: Array, s: int, n: int) -> Array:
    """Return the factors that turn deviations of a mean over s rows into those over n rows.

    ``drawn`` are the variances of the former. ``scatter`` and ``own`` are the mean variances of one
    row's |A|, in the sample and in all rows.
    """
    shared = np.maximum((drawn - scatter / s) / (1.0 - 1.0 / s), 0.01 * drawn)
    variance = shared * (1.0 - 1.0 / n) + own / n
    return np.sqrt(np.divide(variance, drawn, out=np.zeros_like(drawn), where=drawn > 0))


def _root(C: Array) -> Array:
    """Return A (k, r) with AAᵀ = C, to far below the Monte-Carlo error.

    C is singular where rows repeat or features tie, and of sparse models always nearly so. A jitter
    relative to each entry's own variance, the least that suffices, lets Cholesky through; where
    variances are themselves rounding none does, and the eigenvectors serve, which take ten times as
    long.
    """
    free = np.flatnonzero(C.diagonal() > 0)
    root = np.zeros((len(C), len(free)))
    core = C[np.ix_(free, free)]
    std = np.sqrt(core.diagonal())
    for jitter in JITTERS:
        try:
            root[free] = std[:, None] * cholesky(
                core / std[:, None] / std + jitter * np.eye(len(free))
            )
        except LinAlgError:
            continue
        return root
    values, vectors = np.linalg.eigh(core)
    root[free] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
