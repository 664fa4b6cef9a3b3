"""Global importance: the mean absolute attribution of each feature, with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import erf

from gpattr._array import Array, LinAlgError, cholesky, product
from gpattr._memory import blocks, require_room
from gpattr._normal import check_count, check_level, random_generator
from gpattr._numbers_text import readable_all
from gpattr._validation import Names, read_only

if TYPE_CHECKING:
    import pandas as pd

TOGETHER = 3000  # attributions that are drawn together: a factor of 72 MB, and a few seconds
GUIDE = 1500  # attributions whose joint draws tell what features share, where each is drawn by itself
ROWS, FEWEST = 300, 40  # rows that are drawn where there are more: as a rule, and however many features there are
WORK = 2e9  # entries of the prior covariance between rows that are evaluated: about ten seconds
PAIR = 500  # what a pair of rows costs besides, in entries
JITTERS = (1e-12, 1e-9, 1e-6)  # of each variance; draws tell a standard deviation to a hundredth, which the largest is far below
ESTIMATED_BY = 500  # draws, at least, from which a variance is estimated


@dataclass(frozen=True, eq=False)
class Importance:
    """Mean |attribution| over ``n_rows`` rows: ``values`` (d,) its expectation, ``samples`` (s, d) draws of it, ``std`` (d,).

    ``quantity`` says what the features are important to, ``baseline_name`` what attributions are compared with.

    The expectation of |attribution| contains its uncertainty: a feature of no effect that the model is unsure about is not near
    zero. The mean of |``Explanation.values``| does not contain it, and is smaller.

    ``values`` are exact and of all rows. The draws are joint ones of all rows and features where these are at most 3000 numbers.
    Beyond that:

    - Each feature is drawn by itself, from its exact covariance between rows. Which draws of different features belong together
      is copied, rank by rank, from joint draws of as many rows as make 1500 numbers; of more than 1500 features they are
      independent.
    - Of more than 300 rows (3000/d where that is more, fewer where there are hundreds of features or many baselines, but at least
      40) a random sample is drawn: ``n_joint_rows`` of them. ``samples`` are then ``values`` plus the deviation of the sample's
      mean from its own expectation, scaled from the variance v of a mean over s rows to that of a mean over all n:
      c(1 − 1/n) + u/n with c = (v − u/s)/(1 − 1/s), where u is the mean variance of one row's |attribution|, and c the mean
      covariance of two rows', at least v/100. The sample tells ``std`` to about 1/√s of its size.
    """

    values: Array
    samples: Array
    feature_names: Names
    n_rows: int
    n_joint_rows: int
    quantity: str = "prediction"
    baseline_name: str = ""

    @property
    def std(self) -> Array:
        """The posterior standard deviation of each importance, (d,)."""
        return self.samples.std(axis=0, ddof=1)

    @property
    def note(self) -> str:
        """What must be said of the intervals where they do not come from all rows: "spread from 300 of 20,000 rows"."""
        return "" if self.n_joint_rows == self.n_rows else f"spread from {self.n_joint_rows} of {self.n_rows:,} rows"

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (d,), of the central credible interval."""
        tail = 0.5 * (1.0 - check_level(level))
        lower, upper = np.quantile(self.samples, [tail, 1.0 - tail], axis=0)
        return lower, upper

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, most important first."""
        import pandas as pd

        lower, upper = self.interval(level)
        columns = {"importance": self.values, "std": self.std, "lower": lower, "upper": upper}
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.sort_values("importance", ascending=False)

    def __repr__(self) -> str:
        order, largest = np.argsort(-self.values, kind="stable"), float(self.values.max(initial=0.0))
        sizes, spreads = (readable_all(column, largest=largest) for column in (self.values, self.std))
        width, wide = max(map(len, self.feature_names)), max(map(len, sizes))
        lines = [f"  {self.feature_names[i]:<{width}}  {sizes[i]:>{wide}} ± {spreads[i]}" for i in order]
        rows = f"{self.n_rows:,} row" + "s" * (self.n_rows != 1)
        head = f"Importance: expected mean |attribution| over {rows} ± one standard deviation"
        return "\n".join([head + (f" ({self.note})" if self.note else ""), *lines])


class Part(Protocol):
    """A Gaussian of the mixture that a posterior is, as it is asked here; ``chosen`` are positions of rows."""

    @property
    def weight(self) -> float:
        """Its share of the mixture."""
        ...

    def moments(self) -> Iterator[tuple[Array, Array]]:
        """Yield means and variances of the attributions, (r, d) each, of blocks of rows that together are all of them."""
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
    parts: Iterable[Part], n: int, names: Names, n_samples: int, random_state: Any, *, columns: int = 1, terms: int = 1
) -> Importance:
    """Return the importance over n rows for a mixture of Gaussian ``parts``, of which each has its share of the draws.

    The expectation of each |attribution| is that of a folded normal; what the rows share enters through the draws. ``columns`` is
    the number of columns whose covariance is evaluated, ``terms`` that of the paths to each row.
    """
    n_samples, generator = check_count("n_samples", n_samples), random_generator(random_state)
    d = len(names)
    require_room("n_samples: the draws", (n_samples, d), "use fewer draws")
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
                deviation, scatter = _drawn_alone(part, rows, rows[: GUIDE // columns], count, generator)
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
    sums = [(folded_mean(mean, var).sum(axis=0), folded_var(mean, var).sum(axis=0)) for mean, var in part.moments()]
    centre, own = (np.sum(each, axis=0) / n for each in zip(*sums, strict=True))
    return centre, own


def _drawn_together(part: Part, rows: Array, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return draws of the deviation of mean |A| over ``rows`` from its expectation, (count, d), and the mean of Var|A|, (d,)."""
    mean = part.mean(rows)
    s, d = mean.shape
    C = part.joint(rows).reshape(s * d, s * d)
    var = C.diagonal().reshape(s, d)
    sizes = _sizes(mean.ravel(), C, count, generator, (s, d))
    return sizes - folded_mean(mean, var).mean(axis=0), folded_var(mean, var).mean(axis=0)


def _drawn_alone(part: Part, rows: Array, few: Array, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return the same of each feature by itself, in the order that joint draws of the ``few`` rows have."""
    mean, covariances = part.mean(rows), part.alone(rows)
    s, d = mean.shape
    deviation, scatter = np.empty((count, d)), np.empty(d)
    for i, C in enumerate(covariances):
        var = C.diagonal()
        deviation[:, i] = _sizes(mean[:, i], C, count, generator, (s, 1))[:, 0] - folded_mean(mean[:, i], var).mean()
        scatter[i] = folded_var(mean[:, i], var).mean()
    if len(few):
        guide, _ = _drawn_together(part, few, count, generator)
        for i in np.flatnonzero(guide.std(axis=0) > 0):  # what does not vary has no order
            ranks = guide[:, i].argsort(kind="stable").argsort(kind="stable")
            deviation[:, i] = np.sort(deviation[:, i])[ranks]
    return deviation, scatter


def _sizes(mean: Array, C: Array, count: int, generator: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return draws of mean |A| over rows, (count, d), for A ~ N(mean, C) of ``shape`` (s, d)."""
    root = _root(C)
    result = np.empty((count, shape[1]))
    for some in blocks(count, 32.0 * len(mean)):
        normal = generator.standard_normal((some.stop - some.start, root.shape[1]))
        result[some] = np.abs(mean + product(normal, root.T)).reshape(-1, *shape).mean(axis=1)
    return result


def scale_of(drawn: Array, scatter: Array, own: Array, s: int, n: int) -> Array:
    """Return by what deviations of a mean over s rows, with the variances ``drawn``, become those of a mean over n rows.

    ``scatter`` and ``own`` are the mean variances of one row's |A|, in the sample and in all rows.
    """
    shared = np.maximum((drawn - scatter / s) / (1.0 - 1.0 / s), 0.01 * drawn)
    variance = shared * (1.0 - 1.0 / n) + own / n
    return np.sqrt(np.divide(variance, drawn, out=np.zeros_like(drawn), where=drawn > 0))


def _root(C: Array) -> Array:
    """Return A (k, r) with AAᵀ = C, to far below the Monte-Carlo error.

    C is singular where rows repeat or features tie, and of sparse models always nearly so. A jitter relative to each entry's own
    variance, the least that suffices, lets Cholesky through; where variances are themselves rounding none does, and the
    eigenvectors serve, which take ten times as long.
    """
    free = np.flatnonzero(C.diagonal() > 0)
    root = np.zeros((len(C), len(free)))
    core = C[np.ix_(free, free)]
    std = np.sqrt(core.diagonal())
    for jitter in JITTERS:
        try:
            root[free] = std[:, None] * cholesky(core / std[:, None] / std + jitter * np.eye(len(free)))
        except LinAlgError:
            continue
        return root
    values, vectors = np.linalg.eigh(core)
    root[free] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
