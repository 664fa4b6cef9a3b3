"""Summaries of interactions for pictures: one matrix, of a row or the mean over rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from gpattr._core.array import Array
from gpattr._core.normal import check_level
from gpattr.distributions.positions import position
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.explanation.pairs import as_matrices
from gpattr.plots.style import check_kind, largest
from gpattr.plots.words import count_of, row_title


@dataclass(frozen=True, eq=False)
class InteractionSummary:
    """A symmetric matrix of ``values`` (d, d), with ``std`` and how ``sure`` each sign is, (d, d).

    ``std`` is None, and all signs are sure, where the uncertainty is not known. ``mean`` says that
    it is the mean over several rows: these share one unknown function, whose joint distribution an
    explanation does not hold. The standard deviation of a mean is at most the mean of the standard
    deviations, however rows are correlated; ``std`` and ``sure`` are these bounds.
    """

    values: Array
    std: Array | None
    sure: Array
    names: tuple[str, ...]
    title: str
    mean: bool
    size: Array  # (d,): how much each feature interacts, by which the largest are chosen

    def select(self, chosen: Array) -> InteractionSummary:
        """Return the summary for some features only."""
        both = np.ix_(chosen, chosen)
        return replace(
            self,
            values=self.values[both],
            std=None if self.std is None else self.std[both],
            sure=self.sure[both],
            names=tuple(self.names[i] for i in chosen),
            size=self.size[chosen],
        )

    def leading(self, max_display: int, *, keep_order: bool = False) -> InteractionSummary:
        """Return the features that interact most, in falling order or in the model's."""
        chosen = largest(self.size, max_display)
        return self.select(np.sort(chosen) if keep_order else chosen)


def summary_of(explanation: Any, row: int | None) -> InteractionSummary:
    """Return the matrix of one row, or the mean over all rows."""
    ex = _checked(explanation)
    if row is not None:
        ex = ex[[position("row", row, len(ex))]]
    d, pairs, known = len(ex.feature_names), ex.pairs, ex.distribution
    values, var = known.mean, known.var
    std = None if var is None else np.sqrt(var).mean(axis=0)
    sure = np.ones(len(pairs)) if var is None else _sureness(ex)
    sizes = np.nan_to_num(as_matrices(np.abs(values).mean(axis=0), pairs, d))
    between = np.where(np.eye(d, dtype=bool), 0.0, sizes)
    what = "" if ex.quantity == "prediction" else f" in the {ex.quantity}"
    title = (
        f"{row_title(ex.by_pair)}: interactions{what}"
        if len(ex) == 1
        else f"Mean interactions{what} over {count_of(len(ex), len(ex))}"
    )
    return InteractionSummary(
        as_matrices(values.mean(axis=0), pairs, d),
        None if std is None else as_matrices(std, pairs, d),
        as_matrices(sure, pairs, d),
        ex.feature_names,
        title,
        len(ex) > 1,
        between.sum(axis=1) + 1e-9 * sizes.diagonal(),  # main effects decide between equals
    )


def certainty(sure: Array, level: float) -> Array:
    """Return how certain signs are: from 0, of ½, to 1, of ``level`` and above."""
    full = max(2.0 * check_level(level) - 1.0, 1e-9)
    return np.clip((2.0 * sure - 1.0) / full, 0.0, 1.0)


def _sureness(ex: InteractionExplanation) -> Array:
    """Return P(the sign is the mean's), (k,); over several rows a lower bound.

    A component of a mixture counts only where its own mean has that sign.
    """
    if len(ex) == 1:
        positive = ex.distribution.prob_positive()[0]
        return np.maximum(positive, 1.0 - positive)
    parts = ex.distribution.marginals()  # weights (K,), means and variances (K, n, k)
    sign = np.sign(ex.distribution.mean.mean(axis=0))
    mean, std = sign * parts.means.mean(axis=1), np.sqrt(parts.variances).mean(axis=1)
    z = np.divide(mean, std, out=np.full_like(mean, np.inf), where=std > 0)
    agreeing = np.where(mean > 0, ndtr(z), 0.0)
    return np.where(sign == 0, 0.5, np.maximum(parts.weights @ agreeing, 0.5))


def _checked(explanation: Any) -> InteractionExplanation:
    what = "a gpattr InteractionExplanation, the result of explainer.interactions(X)"
    check_kind("explanation", explanation, InteractionExplanation, what)
    if not len(explanation):
        raise InvalidInputError("explanation: expected at least one row, got none")
    return explanation
