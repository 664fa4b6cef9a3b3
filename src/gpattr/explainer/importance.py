"""Global importance of features over rows, drawn jointly for rows and features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, LinAlgError, cholesky, product, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.validation import Names, beside, read_only
from gpattr.closed_forms.table import Formulas
from gpattr.explainer.attributions import require_features
from gpattr.explainer.batches import batches_of
from gpattr.explainer.importance_measures import (
    MEASURES,
    ROWS,
    FeatureSums,
    ImportanceRequest,
    Measure,
    Sample,
    Spread,
    draw_error,
    row_error,
    scale_of,
    std_error_of,
    variance_of,
)
from gpattr.explainer.probability_importance import draw_probability_importance
from gpattr.explainer.task import Task
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.operators import IntegratedGradients, Operator
from gpattr.posteriors import Bound, Evaluation, Posterior
from gpattr.posteriors.wrapper import LinearBound


def importance_of(
    task: Task,
    X: Any,
    baselines: Any = None,
    known: Explanation | None = None,
    request: ImportanceRequest | None = None,
) -> Importance:
    """The importance over the rows of X, whose explanation may be ``known`` already."""
    rows = task.reader.matrix("X", X)
    request = request or ImportanceRequest()
    request.check(len(rows), players=task.groups is not None)
    operator, names = task.operator_for(rows, baselines), task.names(X)
    require_features(operator, "importance is")
    task.require_function("importance is")
    sums = request.sums(names)
    if task.output == "probability":
        importance = _of_probability(task, X, baselines, operator, rows, known, request, sums)
    else:
        importance = _of_function(task, operator, rows, names, known, request, sums)
    return replace(
        importance,
        groups=None if sums is None else sums.members,
        quantity=task.words if known is None else known.quantity,
        baseline_name=task.baseline_name if baselines is None else "one per row",
        attribution=task.attribution_name,
    )


def _of_function(
    task: Task,
    operator: Operator,
    rows: Array,
    names: Names,
    known: Explanation | None,
    request: ImportanceRequest,
    sums: FeatureSums | None,
) -> Importance:
    components, evaluation = task.single.components, task.evaluation
    matrix = None if sums is None else sums.matrix
    parts = (
        GaussianPart(k, weight, part, operator, rows, evaluation, known, matrix)
        for k, (weight, part) in enumerate(components)
    )
    bounds = [part.bind(operator, evaluation) for _, part in components]
    return draw_importance(
        parts,
        len(rows),
        names if sums is None else sums.names,
        request,
        columns=rows.shape[1],
        terms=len(operator.rows(slice(1)).terms(rows[:1])),
        pair_cost=len(bounds) * max(bound.pair_cost for bound in bounds),
    )


def _of_probability(
    task: Task,
    X: Any,
    baselines: Any,
    operator: Operator,
    rows: Array,
    known: Explanation | None,
    request: ImportanceRequest,
    sums: FeatureSums | None,
) -> Importance:
    """The importance of a probability, from explanations of all rows by draws.

    Expectations come from the draws of every row, their uncertainty from joint draws of some rows.
    """
    assert isinstance(operator, IntegratedGradients)
    encoder, names = task.reader.encoder, task.names(X)
    if known is None:
        parts: Iterable[Explanation] = batches_of(task, X, baselines, "std", 256)
    else:
        parts = [known]
    gathering = np.eye(rows.shape[1]) if encoder is None else encoder.gathering
    draws = centred_draws(parts)
    if sums is not None:
        names, gathering, matrix = sums.names, gathering @ sums.matrix, sums.matrix
        draws = (part @ matrix for part in draws)
    return draw_probability_importance(
        task.single.in_columns, operator, rows, gathering, names, draws, request
    )


def centred_draws(parts: Iterable[Explanation]) -> Iterator[Array]:
    """Yield the draws of all rows, (draws, r, d), in blocks of rows, about their known means."""
    for part in parts:
        every = part.draws
        assert every is not None
        for some in blocks(len(part), 40.0 * every[:, 0].size):
            draws = every[:, some]
            # The means are known better than by draws.
            yield draws + (part.values[some] - draws.mean(axis=0))


@dataclass(frozen=True, eq=False)
class GaussianPart:
    """The ``component``-th Gaussian of a mixture, with its ``weight``.

    It is asked about the attributions of ``X`` by ``operator``, or about their sums 𝒜G for a matrix
    ``sums`` G (d, k). ``known`` is the explanation of the same rows, if there is one: its means and
    variances, where features are not added up, are not computed again.
    """

    component: int
    weight: float
    posterior: Posterior
    operator: Operator
    X: Array
    evaluation: Evaluation
    known: Explanation | None = None
    sums: Array | None = None

    def moments(self) -> Iterator[tuple[Array, Array]]:
        """Yield means and variances of the attributions, (r, d) each, by blocks of rows."""
        if self.known is not None and self.sums is None:
            yield self._known("values"), self._known("var")
            return
        n, d = self.X.shape
        whole = (
            self.posterior.encoder is not None or self.sums is not None
        )  # covariances are formed
        bound = self._bound("std")
        for rows in blocks(n, 64.0 * d * (d if whole else 1), self.X):
            result = bound.rows(rows).apply(self.X[rows])
            assert result.var is not None
            yield to_numpy(result.mean), to_numpy(result.var)

    def mean(self, chosen: Array) -> Array:
        """The mean attributions of chosen rows, (s, d)."""
        if self.known is not None and self.sums is None:
            return self._known("values")[chosen]
        return to_numpy(self._bound("none").rows(chosen).mean(self.X[chosen]))

    def joint(self, chosen: Array) -> Array:
        """The covariance between all features of chosen rows, (s, d, s, d)."""
        return to_numpy(self._bound("none").rows(chosen).joint(self.X[chosen]))

    def alone(self, chosen: Array) -> Array:
        """The covariance between chosen rows of each feature by itself, (d, s, s)."""
        return to_numpy(self._bound("none").rows(chosen).rows_covariance(self.X[chosen]))

    def _bound(self, uncertainty: str) -> Bound:
        evaluation = replace(self.evaluation, uncertainty=uncertainty)
        if self.sums is None:
            return self.posterior.bind(self.operator, evaluation)
        needed = replace(evaluation, uncertainty="none" if uncertainty == "none" else "cov")
        G = beside("groups", self.sums, self.X)
        inner = self.posterior.bind(self.operator, needed)
        return LinearBound(inner, self.operator, evaluation, G)

    def _known(self, name: str) -> Array:
        ex = self.known
        assert ex is not None
        own = {"values": ex.values, "var": ex.var}[name]
        parts = {"values": ex.component_values, "var": ex.component_var}[name]
        array = own if parts is None else parts[self.component]
        assert array is not None
        return array


TOGETHER = 3000  # attributions that are drawn together: a factor of 72 MB, and a few seconds
GUIDE = (
    1500  # attributions whose joint draws tell what features share, where each is drawn by itself
)
FEWEST = 40  # rows that are drawn where there are more, however many features there are
WORK = 2e9  # entries of the prior covariance between rows that are evaluated: about ten seconds
# Relative to each variance; the largest is far below the hundredth to which draws give a std.
JITTERS = (1e-12, 1e-9, 1e-6)
ESTIMATED_BY = 500  # draws, at least, from which a variance is estimated


def draw_importance(
    parts: Iterable[GaussianPart],
    n: int,
    names: Names,
    request: ImportanceRequest,
    *,
    columns: int = 1,
    terms: int = 1,
    pair_cost: float = Formulas.pair_cost,
) -> Importance:
    """Return the importance over n rows for a mixture of Gaussian ``parts``.

    Each part has its share of the draws. Expectations are exact, or, of a variance over rows that
    are not all drawn, estimated; dependence between rows enters through the draws. ``columns`` is
    the number of columns whose covariance is evaluated, ``terms`` the number of paths to each row;
    a pair of rows costs ``pair_cost`` entries besides.
    """
    n_samples, generator = request.counted
    d, measure = len(names), MEASURES[request.by]
    check_memory("n_samples: the draws", (n_samples, d), "use fewer draws")
    columns = max(columns, d)
    s = sample_size(n, columns, terms, pair_cost)
    together = s * columns <= TOGETHER
    rows = np.arange(n) if s == n and together else generator.permutation(n)[:s]
    estimated = s < n or not measure.exact  # moments are not the draws' own
    found: list[_Drawn] = []
    reached, taken = 0.0, 0
    for part in parts:
        reached += part.weight
        share = int(reached * n_samples + 1e-6) - taken
        taken += share
        over_all = measure.over_all(part.moments())
        if not share and not estimated:
            found.append(_Drawn(part.weight, over_all[0], np.empty((0, d)), None))
            continue
        # Few draws do not tell the variance that is scaled.
        count = max(share, ESTIMATED_BY) if s < n else max(share, 1)
        draw = _drawn_together if together else _drawn_alone
        sample = draw(part, rows, count, generator, measure, GUIDE // columns)
        expected, spread, deviation = over_all[0], None, sample.draws[:share]
        if estimated:
            spread = measure.spread(over_all, sample, n)
            expected = spread.expected
        if spread is not None and s < n:
            drawn = sample.draws.var(axis=0, ddof=1)
            deviation = deviation * scale_of(spread.variance, drawn)
        found.append(_Drawn(part.weight, expected, deviation, spread))
    return _combined(found, names, n, s, request.by)


@dataclass(frozen=True)
class _Drawn:
    """One part of a mixture: its expectation (d,) and deviations from it, (share, d)."""

    weight: float
    expected: Array
    deviation: Array
    spread: Spread | None


def _combined(found: list[_Drawn], names: Names, n: int, s: int, by: str) -> Importance:
    """Return the importance of a mixture; draws tell the spread where the parts do not."""
    d = len(names)
    expected = sum((part.weight * part.expected for part in found), np.zeros(d))
    samples = np.concatenate([np.maximum(part.expected + part.deviation, 0.0) for part in found])
    influence, shift = np.zeros((s, d)), np.zeros((s, d))
    others, variance = np.zeros((2, d)), np.zeros(d)
    for part in found:
        if part.spread is not None:
            # The variance of a mixture includes the variance of its parts' expectations.
            own, apart = part.spread.expected_influence, part.expected - expected
            variance += part.weight * (part.spread.variance + apart**2)
            influence += part.weight * (part.spread.influence + 2.0 * apart * own)
            shift += part.weight * own
            others += part.weight * part.spread.others  # at most: the same rows serve every part
    if found[0].spread is None:
        variance, others[1] = variance_of(samples), draw_error(samples)
    return Importance(
        read_only(expected),
        read_only(samples),
        names,
        n,
        s,
        std=read_only(np.sqrt(variance)),
        std_error=read_only(std_error_of(variance, row_error(influence, n) + others[1])),
        error=read_only(np.sqrt(row_error(shift, n) + others[0])),
        by=by,
    )


def sample_size(n: int, columns: int, terms: int, pair_cost: float) -> int:
    """Return of how many of n rows the joint distribution is drawn."""
    affordable = (WORK / (columns**2 + pair_cost)) ** 0.5 / terms
    return min(n, max(FEWEST, int(min(max(ROWS, TOGETHER // columns), affordable))))


def _drawn_together(
    part: GaussianPart,
    rows: Array,
    count: int,
    generator: np.random.Generator,
    measure: Measure,
    _: int = 0,
) -> Sample:
    """Return draws of the importance over ``rows``, of all features together."""
    mean = part.mean(rows)
    s, d = mean.shape
    joint = part.joint(rows)
    covariances = np.einsum("nimi->inm", joint)
    expected = measure.expected(mean, covariances)
    draws, shares = _sizes(mean, joint.reshape(s * d, s * d), expected, count, generator, measure)
    return Sample(mean, covariances, draws, shares)


def _drawn_alone(
    part: GaussianPart,
    rows: Array,
    count: int,
    generator: np.random.Generator,
    measure: Measure,
    few: int,
) -> Sample:
    """Return draws for each feature by itself, ordered like joint draws of a ``few`` rows."""
    mean, covariances = part.mean(rows), part.alone(rows)
    s, d = mean.shape
    expected = measure.expected(mean, covariances)
    draws, shares = np.empty((count, d)), np.empty((s, d))
    for i, C in enumerate(covariances):
        own = slice(i, i + 1)
        draws[:, own], shares[:, own] = _sizes(
            mean[:, own], C, expected[own], count, generator, measure
        )
    if min(few, s) > 0:
        guide = _drawn_together(part, rows[:few], count, generator, measure).draws
        for i in np.flatnonzero(guide.std(axis=0) > 0):  # what does not vary has no order
            ranks = guide[:, i].argsort(kind="stable").argsort(kind="stable")
            draws[:, i] = np.sort(draws[:, i])[ranks]
    return Sample(mean, covariances, draws, shares)


def _sizes(
    mean: Array,
    C: Array,
    expected: Array,
    count: int,
    generator: np.random.Generator,
    measure: Measure,
) -> tuple[Array, Array]:
    """Return draws of the importance less its ``expected`` value, and the rows' shares in it.

    Attributions are N(mean, C), with means (s, d); draws are (count, d), shares (s, d).
    """
    root, (s, d) = _root(C), mean.shape
    result = np.empty((count, d))
    first, second = np.zeros((s, d)), np.zeros((s, d))
    for some in blocks(count, 48.0 * mean.size):
        normal = generator.standard_normal((some.stop - some.start, root.shape[1]))
        terms = measure.terms((mean.ravel() + product(normal, root.T)).reshape(-1, s, d))
        result[some] = terms.mean(axis=1) - expected
        first += terms.sum(axis=0)
        second += np.einsum("rsd,rd->sd", terms, result[some])
    return result, second / count - first / count * result.mean(axis=0)


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
