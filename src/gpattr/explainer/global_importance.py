"""Global importance of features over the rows of a table, for a function or a probability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from gpattr._core.array import Array
from gpattr._core.memory import blocks
from gpattr._core.validation import Names
from gpattr.explainer.gaussian_part import GaussianPart
from gpattr.explainer.importance import draw_importance
from gpattr.explainer.importance_request import ImportanceRequest
from gpattr.explainer.probability_importance import draw_probability_importance
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.operators import IntegratedGradients, Operator
from gpattr.posteriors import Evaluation, Posterior


def importance_of(
    posterior: Posterior,
    operator: Operator,
    rows: Array,
    names: Names,
    evaluation: Evaluation,
    known: Explanation | None,
    request: ImportanceRequest,
) -> Importance:
    """Return the importance of a function, whose explanation may be ``known`` already."""
    sums = request.sums(names)
    matrix = None if sums is None else sums.matrix
    parts = (
        GaussianPart(k, weight, part, operator, rows, evaluation, known, matrix)
        for k, (weight, part) in enumerate(posterior.components)
    )
    terms = len(operator.rows(slice(1)).terms(rows[:1]))
    bounds = [part.bind(operator, evaluation) for _, part in posterior.components]
    cost = len(bounds) * max(bound.pair_cost for bound in bounds)
    size: dict[str, Any] = {"columns": rows.shape[1], "terms": terms, "pair_cost": cost}
    if sums is None:
        return draw_importance(parts, len(rows), names, request, **size)
    result = draw_importance(parts, len(rows), sums.names, request, **size)
    return replace(result, groups=sums.members)


def importance_of_probability(
    posterior: Posterior,
    operator: IntegratedGradients,
    rows: Array,
    gathering: Array,
    names: Names,
    parts: Iterable[Explanation],
    request: ImportanceRequest,
) -> Importance:
    """Return the importance of a probability, from explanations ``parts`` of all rows by draws.

    Expectations are those of the draws of every row, their uncertainty comes from joint draws of
    some rows.
    """
    sums = request.sums(names)
    if sums is None:
        return draw_probability_importance(
            posterior, operator, rows, gathering, names, centred_draws(parts), request
        )
    draws = (part @ sums.matrix for part in centred_draws(parts))
    result = draw_probability_importance(
        posterior, operator, rows, gathering @ sums.matrix, sums.names, draws, request
    )
    return replace(result, groups=sums.members)


def centred_draws(parts: Iterable[Explanation]) -> Iterator[Array]:
    """Yield the draws of all rows, (draws, r, d), in blocks of rows, about their known means."""
    for part in parts:
        every = part.draws
        assert every is not None
        for some in blocks(len(part), 40.0 * every[:, 0].size):
            draws = every[:, some]
            # The means are known better than by draws.
            yield draws + (part.values[some] - draws.mean(axis=0))
