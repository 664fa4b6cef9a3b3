"""Task of an explainer: a model, an attribution and a baseline, and rows read for them.

Every question about a model is asked of a task. The parts that do not depend on the rows, the
operator of the baseline, its formulas and the prediction there, are found once and kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import device_memory
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import Names, check_choice
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explainer.attributions import (
    ATTRIBUTIONS,
    FeatureGroups,
    attribution_name,
    check_reference,
    column_players,
)
from gpattr.explainer.results import ExplainedRows, of_function, words
from gpattr.explainer.rows import RowNames, Rows, row_names
from gpattr.explanation.multi_output import MultiOutputExplanation
from gpattr.operators import Baselines, Operator
from gpattr.posteriors import UNCERTAINTY, Bound, Evaluation, MultiOutputPosterior, Posterior

if TYPE_CHECKING:
    from gpattr.quantities import Quantity


@dataclass(frozen=True, eq=False)
class Start:
    """An operator and the baselines to show.

    ``points`` are one number a feature, None where there is no baseline, ``weights`` the weights of
    averaged points, ``texts`` the categories of others. ``bounds``, by uncertainty, and
    ``base_values``, by output, are kept from one explanation to the next.
    """

    operator: Operator
    name: str
    points: np.ndarray | None = None
    weights: np.ndarray | None = None
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: dict[str, Bound] = field(default_factory=dict)
    base_values: dict[str, float] | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """The task of an `Explainer`; ``reader`` reads rows, ``groups`` are the players."""

    posterior: Posterior
    reader: Rows
    groups: FeatureGroups | None
    attribution: str | Operator
    baseline: Array | Baselines | None
    baseline_name: str
    quantity: Quantity | None
    evaluation: Evaluation
    output: str
    n_draws: int
    random_state: RandomLike
    target_name: str | None
    errors: str

    def __getstate__(self) -> dict[str, Any]:
        """Formulas that are kept stay behind: they are found again, and need not be picklable."""
        return {name: value for name, value in vars(self).items() if name not in KEPT}

    # Rows and names

    def names(self, X: Any) -> Names:
        """The names of the explained features, or of players made of them."""
        features = self.reader.features(X)
        return features if self.groups is None else self.groups.names(features)

    def numbers(self, rows: Array) -> np.ndarray:
        """One number for each explained feature or player, (n, ·); NaN where there is none."""
        values = self.reader.data(rows)
        return values if self.groups is None else self.groups.data(values)

    def own_baselines(self, baselines: Any, n: int) -> Array | None:
        """One baseline for each of n rows as numbers; None for the baseline of the task."""
        return None if baselines is None else self.reader.baselines(baselines, n)

    # Operators

    def operator(self, baselines: Array | None = None) -> Operator:
        """The operator, with one baseline per row if they are given."""
        if isinstance(self.attribution, str):
            baseline = self.baseline if baselines is None else baselines
            players = column_players(self.reader.encoder, self.groups)
            return ATTRIBUTIONS[self.attribution](baseline, self.reader.jumps, players)
        if baselines is not None:
            raise InvalidInputError(
                f"baselines: {type(self.attribution).__name__} has its own baseline, or none; leave"
                " baselines out"
            )
        return self.attribution

    def operator_for(self, rows: Array, baselines: Any) -> Operator:
        """The operator for rows, with baselines as the user gives them."""
        return self.operator(self.own_baselines(baselines, len(rows)))

    def start(self, rows: Array, baselines: Array | None, part: Any = slice(None)) -> Start:
        """The operator of rows, a ``part`` of the operator's rows, and its baselines."""
        if isinstance(self.attribution, str):
            if baselines is None:
                return self._start
            return self.start_of(self.operator(baselines), per_row=True)
        operator = self.operator(baselines).rows(part)
        check_reference(operator.reference, rows)
        return self.start_of(operator)

    @cached_property
    def _start(self) -> Start:
        """The operator of the baseline: all that is kept belongs to it."""
        return replace(self.start_of(self.operator()), base_values={})

    def start_of(self, operator: Operator, *, per_row: bool = False) -> Start:
        """An operator with its baselines, which are the user's own where they are ``per_row``."""
        name = "one per row" if per_row else self.baseline_name
        reference = operator.reference
        if reference is None:
            return Start(operator, name)
        points = self.numbers(reference.points)
        averaged = not reference.per_row and len(points) > 1
        if averaged or (isinstance(self.baseline, Baselines) and not per_row):
            return Start(operator, name, points, to_numpy(reference.weights))
        texts = self._own_texts(self.reader.whole_labels(reference.points))
        return Start(operator, name, points, None, texts)

    def _own_texts(self, texts: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        """The texts of features, except features in a group of several."""
        if self.groups is None or self.reader.encoder is None:
            return texts
        return self.groups.texts(texts, self.reader.encoder.features)

    # Explanations

    def explain_table(self, X: Any, baselines: Any, uncertainty: str) -> Any:
        """Explain the rows of a table."""
        check_choice("uncertainty", uncertainty, UNCERTAINTY)
        rows = self.reader.matrix("X", X)
        own = self.own_baselines(baselines, len(rows))
        return self.explain(rows, own, uncertainty, self.names(X), row_names(X, len(rows)))

    def explain(
        self,
        rows: Array,
        baselines: Array | None,
        uncertainty: str,
        names: Names,
        labels: RowNames,
        part: Any = slice(None),
    ) -> Any:
        """Explain rows, which are a ``part`` of the operator's rows."""
        if self.errors == "mark":
            from gpattr.explainer.marking import explain_and_mark

            return explain_and_mark(self, rows, baselines, uncertainty, names, labels, part)
        start = self.start(rows, baselines, part)
        asked, evaluation = self.about(rows, start, names, labels), self._evaluations[uncertainty]
        if self.quantity is not None:
            from gpattr.explainer.quantity_attributions import of_quantity

            parts = {
                name: of_quantity(posterior, self.quantity, asked, what, evaluation)
                for name, posterior, what in self._outputs
            }
        elif self.output == "probability":
            from gpattr.explainer.probability import of_probability

            drawn: dict[str, Any] = {"n_draws": self.n_draws, "random_state": self.random_state}
            parts = {
                name: of_probability(posterior, asked, what, evaluation, **drawn)
                for name, posterior, what in self._outputs
            }
        else:
            found = self._answers(start, evaluation, rows)
            parts = {
                name: of_function(posterior, found[name], asked, what, output=name)
                for name, posterior, what in self._outputs
            }
        return MultiOutputExplanation(parts) if self.posterior.several_outputs else parts[""]

    def about(self, rows: Array, start: Start, names: Names, labels: RowNames) -> ExplainedRows:
        """The rows and arrays that the explanations of all outputs share."""
        shown, encoder = self.numbers(rows), self.reader.encoder
        baselines, texts = np.full(shown.shape, np.nan), start.texts
        if start.points is not None:
            averaged = start.weights is not None
            baselines = start.points if averaged else np.broadcast_to(start.points, shown.shape)
            if texts:
                n = len(rows)
                texts = {name: t if len(t) == n else t * n for name, t in texts.items()}
        shared = {
            "data": shown,
            "baselines": baselines,
            "baseline_weights": start.weights,
            "baseline_name": start.name,
            "attribution": self.attribution_name,
            "feature_names": names,
            "row_names": labels,
            "labels": self._own_texts(self.reader.labels(rows)),
            "baseline_labels": texts,
        }
        gathering = None if encoder is None else encoder.gathering
        return ExplainedRows(start.operator, rows, shared, gathering, start.base_values)

    @cached_property
    def attribution_name(self) -> str:
        """The name of the attributions in tables and pictures."""
        return attribution_name(self.attribution)

    @cached_property
    def _evaluations(self) -> dict[str, Evaluation]:
        """The evaluation by uncertainty."""
        return {name: replace(self.evaluation, uncertainty=name) for name in UNCERTAINTY}

    @cached_property
    def _outputs(self) -> list[tuple[str, Posterior, str]]:
        """Name, posterior and words of every output."""
        several = self.posterior.several_outputs
        return [
            (name, part, words(part, self.output, self.target_name, several))
            for name, part in self.posterior.outputs.items()
        ]

    def _answers(self, start: Start, evaluation: Evaluation, rows: Array) -> dict[str, Any]:
        """The attributions of every output by name."""
        with device_memory("The explanation", rows):
            bound = start.bounds.get(evaluation.uncertainty)
            if bound is None:
                bound = self.posterior.bind(start.operator, evaluation)
                start.bounds[evaluation.uncertainty] = bound
            if isinstance(self.posterior, MultiOutputPosterior):
                return bound.by_output(rows)  # pyright: ignore[reportAttributeAccessIssue]
            return {"": bound.apply(rows)}

    # Requirements of questions

    @property
    def single(self) -> Posterior:
        """The posterior, if there is one output."""
        if isinstance(self.posterior, MultiOutputPosterior):
            names = list(self.posterior.outputs)
            raise UnsupportedModelError(
                "model: joint, importance, interactions, dependence, measure_next, counterfactual,"
                " baseline_sensitivity and training_contributions are of a single output; select"
                f" one by its name, explainer[{names[0]!r}]; there are {names}"
            )
        return self.posterior

    @property
    def words(self) -> str:
        """The explained quantity in words, if there is one output."""
        return words(self.single, self.output, self.target_name, several=False)

    def require_latent(self, what: str) -> None:
        """Refuse a question that only the latent function answers."""
        if self.output == "probability":
            raise UnsupportedModelError(f'output: {what} available only with output="latent"')
        self.require_function(what)

    def require_function(self, what: str) -> None:
        """Refuse a question that is about predictions, for a task with a quantity."""
        if self.quantity is not None:
            raise UnsupportedModelError(
                f"quantity: {what} available only for predictions, not for the"
                f" {self.quantity.words('prediction')}"
            )


KEPT = ("attribution_name", "_start", "_evaluations", "_outputs")
