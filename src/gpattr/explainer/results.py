"""Explanations built from the answers of posteriors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.distributions import Distribution
from gpattr.explanation.explanation import Explanation
from gpattr.operators import Expectation, Marginals, Operator, Shapley
from gpattr.posteriors import Attributions, Evaluation, Posterior

LATENT, UNIT = "of the latent function", r" \([^()]*\)$"
Coordinates = dict[str, tuple[Any, ...]]


def words(posterior: Posterior, output: str, target_name: str | None, several: bool) -> str:
    """Return the name of the explained quantity, in words.

    Of one output among ``several`` classes the label says more than the target's name.
    """
    if target_name is None:
        target_name = posterior.target_name
    if not posterior.link:
        if target_name is None:
            return "prediction"
        if LATENT in (posterior.note or ""):  # which is not in the units of the target
            return f"latent function of {re.sub(UNIT, '', target_name)}"
        return f"predicted {target_name}"
    label = posterior.label if target_name is None or several else target_name
    return f"{'probability' if output == 'probability' else 'log odds'} of {label}"


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Rows to explain, the operator, and the arrays shared by the explanations of all outputs.

    ``shared`` are arguments of `Explanation`; ``gathering`` adds columns up to features, if some
    features are encoded. ``kept`` are values at a baseline that all calls have, by output.
    """

    operator: Operator
    rows: Array
    shared: dict[str, Any]
    gathering: np.ndarray | None = None
    kept: dict[str, float] | None = None

    def base_values(self, at: Any, posterior: Posterior, output: str | None = None) -> np.ndarray:
        """F(b), (n,), for a function ``at`` of points; NaN if there is no baseline.

        That of a baseline for all rows is kept for the ``output``, if there is one.
        """
        if self.kept is not None and output in self.kept:
            return np.full(len(self.rows), self.kept[output])
        found = self._base_values(at, posterior)
        if self.kept is not None and output is not None:
            self.kept[output] = float(found[0])
        return found

    def _base_values(self, at: Any, posterior: Posterior) -> np.ndarray:
        reference = self.operator.reference
        if reference is None:
            return np.full(len(self.rows), np.nan)
        if isinstance(self.operator, Shapley) and reference.independent:
            drawn = Expectation(
                Marginals(reference.points, reference.weights), self.operator.players
            )
            mean = posterior.bind(drawn, Evaluation("none")).mean(self.rows[:1])
            return np.full(len(self.rows), float(to_numpy(mean)[0, 0]))
        values = at(reference.points)
        if reference.per_row:
            return values
        return np.full(len(self.rows), to_numpy(reference.weights) @ values)


def of_function(
    posterior: Posterior,
    result: Attributions,
    asked: ExplainedRows,
    quantity: str,
    coordinates: Coordinates | None = None,
    output: str | None = None,
) -> Explanation:
    """The explanation of f, whose attributions are ``result``.

    ``coordinates`` are labels along axes, by default the operator's.
    """
    operator = asked.operator
    predictions = to_numpy(posterior.moments(asked.rows))
    base_values = asked.base_values(
        lambda points: to_numpy(posterior.moments(posterior.rows("baseline", points))),
        posterior,
        output,
    )
    if coordinates is None:
        coordinates = _coordinates(operator, posterior.n_features)
    jump = ", categories jump" if operator.jumps else ""
    return Explanation(
        distribution=owned(result.distribution),
        predictions=predictions,
        base_values=base_values,
        method=result.method + jump + noted(posterior),
        error=to_numpy(result.error),
        cov_error=None if result.cov_error is None else to_numpy(result.cov_error),
        delta=gap(to_numpy(result.distribution.mean), predictions, base_values),
        quantity=quantity,
        axes=operator.axes,
        coordinates=coordinates,
        **asked.shared,
    )


def _coordinates(operator: Operator, d: int) -> Coordinates:
    """Return labels along the axes of an operator other than "feature"."""
    sizes = zip(operator.axes, operator.sizes(d), strict=True)
    return {
        axis: tuple(operator.coordinates.get(axis, range(size)))
        for axis, size in sizes
        if axis != "feature"
    }


def owned(distribution: Distribution) -> Distribution:
    """Mark arrays that nobody else holds as read-only, so that they need not be copied."""
    for array in distribution.held().values():
        to_numpy(array).flags.writeable = False
    return distribution


def gap(values: np.ndarray, predictions: np.ndarray, base_values: np.ndarray) -> np.ndarray:
    """Return the completeness gap of each row, (n,)."""
    return values.sum(axis=1) - (predictions - base_values)


def noted(posterior: Posterior) -> str:
    """The note of a posterior, to be put behind a method."""
    return f" ({posterior.note})" if posterior.note else ""
