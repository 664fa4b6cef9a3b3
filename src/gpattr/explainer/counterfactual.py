"""Counterfactuals for an explainer: the request, and the result in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit

from gpattr._core.array import to_numpy
from gpattr._core.normal import check_level
from gpattr._core.validation import Names, beside, check_choice, finite_scalar, is_frame, read_only
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.change_margin import Change, ChangeMargin
from gpattr.explainer.change_space import change_space
from gpattr.explainer.few_features import ChangeSearch
from gpattr.explainer.rows import RowNames, Rows, row_name
from gpattr.explainer.task import Task
from gpattr.explanation.counterfactual import AT_LEAST, AT_MOST, Counterfactual
from gpattr.explanation.explanation import Explanation

FEWEST, NEAREST = "fewest", "nearest"
BEFORE = "the row before the change"


@dataclass(frozen=True, eq=False)
class CounterfactualRequest:
    """A request: the target, its direction, the probability, and the allowed changes."""

    target: Any
    direction: str
    level: float
    features: Any
    bounds: Any
    scales: Any
    prefer: str

    def __post_init__(self) -> None:
        finite_scalar("target", self.target)
        check_choice("direction", self.direction, (AT_LEAST, AT_MOST))
        check_level(self.level)
        check_choice("prefer", self.prefer, (FEWEST, NEAREST))

    def latent_target(self, output: str) -> float:
        """Return the target of the latent function."""
        target = float(self.target)
        if output != "probability":
            return target
        if not 0.0 < target < 1.0:
            raise InvalidInputError(
                f"target: expected a probability between 0 and 1, got {self.target!r}"
            )
        return float(logit(target))


def counterfactual_of(task: Task, x: Any, request: CounterfactualRequest) -> Counterfactual:
    """The counterfactual of x for a task with one output."""
    task.require_function("counterfactual is")
    posterior, rows = task.single, task.reader
    target = request.latent_target(task.output)
    row = np.array(to_numpy(rows.point("x", x)))
    names = rows.names(x) if rows.encoder is None else rows.encoder.names
    space = change_space(rows, row, names, request.features, request.bounds, request.scales)
    sign = 1.0 if request.direction == AT_LEAST else -1.0
    margin = ChangeMargin(posterior.in_columns, space, target, float(request.level), sign)
    margin.check()
    inputs = posterior.training_inputs
    front, best = ChangeSearch(margin, None if inputs is None else to_numpy(inputs)).run()
    label = row_name(x)
    make = _Maker(task, margin, rows, names, x, request)
    labels = (0 if label is None else label,)
    made = [make(change, labels) for change in (front if best is None else [best])]
    results = tuple(one for one in made if one.found)
    if not results:
        return max(made, key=lambda one: one.probability)
    chosen = results[0] if request.prefer == FEWEST else results[-1]
    return replace(chosen, alternatives=results)


@dataclass(frozen=True, eq=False)
class _Maker:
    """Makes results of changes, in the units and with the names of the user."""

    task: Task
    margin: ChangeMargin
    rows: Rows
    names: Names
    x: Any
    request: CounterfactualRequest

    def __call__(self, change: Change, labels: RowNames) -> Counterfactual:
        """Return the result; only its own probability decides whether it is found."""
        space, margin = self.margin.space, self.margin
        new = space.rows(change.u[None], np.array([change.setting]))
        both = np.concatenate([space.row[None], new])
        # One by one, as the search had them: rounding depends on the number of rows.
        means, stds = np.concatenate([margin.moments(row[None]) for row in both], axis=1)
        chances = np.concatenate([margin.probabilities(row[None]) for row in both])
        explanation = self._explained(new, space.row[None], labels)
        predictions = np.array([explanation.base_values[0], explanation.predictions[0]])
        shown, old, values = self._shown(both)
        steps = self._steps(change)
        return Counterfactual(
            found=bool(chances[1] >= margin.level),
            changes={self.names[i]: (old[i], values[i]) for i in steps},
            steps={self.names[i]: step for i, step in steps.items()},
            distance=change.distance,
            target=float(self.request.target),
            level=margin.level,
            direction=self.request.direction,
            probability=float(chances[1]),
            probability_before=float(chances[0]),
            means=read_only(means),
            stds=read_only(stds),
            predictions=read_only(predictions),
            explanation=explanation,
            feature_names=self.names,
            features=tuple(self.names[i] for i in self._allowed()),
            quantity=self.task.words,
            output=self.task.output,
            _rows=shown,
            marginals=margin.marginals(both),
        )

    def _explained(self, new: np.ndarray, old: np.ndarray, labels: RowNames) -> Explanation:
        """The explanation of the change, from the row before to the row after."""
        task, like = self.task, self.task.posterior.like
        if not isinstance(task.attribution, str):  # which has its own baseline, or none
            task = replace(task, attribution="integrated_gradients")
        after, before = beside("x", new, like), beside("x", old, like)
        names = task.names(self.x)
        ex = task.explain(after, before, task.evaluation.uncertainty, names, labels)
        return replace(ex, baseline_name=BEFORE)

    def _shown(self, both: np.ndarray) -> tuple[Any, list[Any], list[Any]]:
        """Return the rows as the user has them, and the values of both, one a feature."""
        encoder = self.rows.encoder
        if encoder is None:
            old, new = both.tolist()
            if self.rows.columns is None and not is_frame(self.x):
                return read_only(both), old, new
            import pandas as pd

            return pd.DataFrame(both, columns=list(self.names)), old, new
        frame = encoder.decode(both)
        old, new = ([_plain(frame[name].iloc[i]) for name in self.names] for i in (0, 1))
        if encoder.named:
            return frame, old, new
        array = frame.to_numpy()
        array.flags.writeable = False
        return array, old, new

    def _steps(self, change: Change) -> dict[int, float]:
        """Return the changes in standard units by feature; 1 for a category."""
        space, steps = self.margin.space, {}
        numeric = dict(zip(space.columns.tolist(), change.u.tolist(), strict=True))
        for i in range(len(self.names)):
            places = self._places(i)
            if numeric.get(places[0], 0.0) != 0.0:
                steps[i] = numeric[places[0]]
            elif (space.settings[change.setting][places] != space.row[places]).any():
                steps[i] = 1.0
        return steps

    def _allowed(self) -> list[int]:
        """Return the features that may change."""
        space = self.margin.space
        moves = set(space.columns.tolist())
        switched = (space.settings != space.row).any(axis=0)
        return [
            i
            for i in range(len(self.names))
            if moves & set(self._places(i)) or switched[self._places(i)].any()
        ]

    def _places(self, i: int) -> list[int]:
        return [i] if self.rows.encoder is None else self.rows.encoder.places(self.names[i])


def _plain(value: Any) -> Any:
    """Return a number of a frame as Python's own."""
    return value.item() if isinstance(value, np.number) else value
