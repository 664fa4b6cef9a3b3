"""Global importance of features over the rows of a table, for a function or a probability."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.memory import blocks
from gpattr._core.validation import Names
from gpattr.explainer.gaussian_part import GaussianPart
from gpattr.explainer.importance import draw_importance
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
    n_samples: int,
    random_state: Any,
) -> Importance:
    """Return the importance of a function, whose explanation may be ``known`` already."""
    parts = (
        GaussianPart(k, weight, part, operator, rows, evaluation, known)
        for k, (weight, part) in enumerate(posterior.components)
    )
    terms = len(operator.rows(slice(1)).terms(rows[:1]))
    size = {"columns": rows.shape[1], "terms": terms}
    return draw_importance(parts, len(rows), names, n_samples, random_state, **size)


def importance_of_probability(
    posterior: Posterior,
    operator: IntegratedGradients,
    rows: Array,
    gathering: Array,
    names: Names,
    parts: Iterable[Any],
    n_samples: int,
    random_state: Any,
) -> Importance:
    """Return the importance of a probability, from explanations ``parts`` of all rows by draws.

    Expectations are those of the draws of every row, their uncertainty comes from joint draws of
    some rows.
    """
    expected, own = np.zeros(len(names)), np.zeros(len(names))
    for part in parts:
        for some in blocks(len(part), 40.0 * part.draws[:, 0].size):
            draws = part.draws[:, some]
            # The means are known better than by draws.
            sizes = np.abs(draws + (part.values[some] - draws.mean(axis=0)))
            expected += sizes.mean(axis=0).sum(axis=0) / len(rows)
            own += sizes.var(axis=0, ddof=1).sum(axis=0) / len(rows)
    shared = (posterior, operator, rows, gathering, names, expected, own)
    return draw_probability_importance(*shared, n_samples, random_state)
