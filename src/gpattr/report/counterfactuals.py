"""Counterfactuals in the report: their rows, and their content for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.explainer import Explainer
from gpattr.explanation.counterfactual import Counterfactual, heading, order
from gpattr.explanation.explanation import Explanation
from gpattr.posteriors import MultiOutputPosterior
from gpattr.report.whole_function import by_output

WANTED = "a gpattr Counterfactual, a list of them, or None"
SAME_VALUE, SAME_PREDICTION = 1e-9, 1e-6  # relative to the value, and to the size of the function

Placed = tuple[Counterfactual, list[int]]


def placed(
    given: Any, outputs: Mapping[str, Explanation], explainer: Explainer | None
) -> dict[str, list[Placed]]:
    """Return counterfactuals by output, each with the positions of the rows that it is of.

    A row is known by its values and, among several with the same, by its name. What belongs to no
    row, or to another model, is refused.
    """
    known = by_output("counterfactuals", given, list(outputs), _listed)
    found = {}
    for name, each in known.items():
        own = _of_output(explainer, name)
        found[name] = [(one, _positions(one, outputs[name], own)) for one in each]
    return found


def counterfactual_content(one: Counterfactual, rows: list[int], level: float) -> dict[str, Any]:
    """Return one counterfactual of some rows as JSON values, with its alternatives."""
    others = [other for other in one.alternatives if other.n_changed != one.n_changed]
    return {
        "rows": rows,
        "direction": one.direction.replace("_", " "),
        "target": one.target,
        "level": one.level,
        "probability": one.probability,
        "refusal": "" if one.found else f"{'; '.join(heading(one))}.",
        "options": [_option(option, level) for option in (one, *others) if option.changes],
    }


def _option(one: Counterfactual, level: float) -> dict[str, Any]:
    """Return one way to change the row."""
    return {
        "changes": [
            [name, *(write(value) for value in one.changes[name]), one.steps[name]]
            for name in order(one)
            for write in [str if name in one.explanation.labels else _value]
        ],
        "distance": one.distance,
        "prediction": one.prediction,
        "interval": list(one.interval(level)),
    }


def _value(value: Any) -> float | str:
    """Return a number, or another value as text."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return float(value) if number else str(value)


def _listed(given: Any) -> tuple[Counterfactual, ...]:
    if isinstance(given, Counterfactual):
        return (given,)
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise InvalidInputError(f"counterfactuals: expected {WANTED}, got a {type(given).__name__}")
    for one in given:
        if not isinstance(one, Counterfactual):
            raise InvalidInputError(
                f"counterfactuals: expected {WANTED}, got a list with a {type(one).__name__}"
            )
    return tuple(given)


def _of_output(explainer: Explainer | None, name: str) -> Explainer | None:
    """Return the explainer of one output, None if there is none."""
    if explainer is None:
        return None
    if isinstance(explainer.posterior, MultiOutputPosterior):
        return explainer[name] if name in explainer.posterior.outputs else None
    return None if name else explainer


def _positions(one: Counterfactual, ex: Explanation, explainer: Explainer | None) -> list[int]:
    """Return the positions of the rows that a counterfactual is of."""
    before = one.explanation
    for what, expected, got in (
        ("features", list(ex.feature_names), list(before.feature_names)),
        ("quantity", ex.quantity, one.quantity),
    ):
        if got != expected:
            raise InvalidInputError(
                f"counterfactuals: expected the {what} of the explanation, {expected!r}, got"
                f" {got!r}"
            )
    row = before.row_names[0]
    rows = np.flatnonzero(_same_values(one, ex))
    if not len(rows):
        raise InvalidInputError(
            "counterfactuals: expected those of rows of the explanation, got one of row"
            f" {row!r}, whose values no row of the explanation has"
        )
    near = SAME_PREDICTION * np.abs(ex.predictions).max()
    rows = rows[np.abs(ex.predictions[rows] - one.prediction_before) <= near]
    if not len(rows) or not _same_function(one, explainer):
        raise InvalidInputError(
            "counterfactuals: expected those of the model that is explained, got one of row"
            f" {row!r} of a model with other predictions"
        )
    named = [r for r in rows.tolist() if ex.row_names[r] == row]
    return named or rows.tolist()


def _same_values(one: Counterfactual, ex: Explanation) -> Array:
    """Return which rows of an explanation have the values of a counterfactual's row."""
    point = one.explanation.baselines[0]
    near = np.abs(ex.data - point) <= SAME_VALUE * np.abs(point)
    same = (near | (np.isnan(ex.data) & np.isnan(point))).all(axis=1)
    for name, texts in ex.labels.items():
        if name not in one.feature_names or name not in one.explanation.labels:
            continue  # categories that are one feature together: the prediction tells
        new = one.explanation.labels[name][0]
        text = str(one.changes[name][0]) if name in one.changes else new
        # Times are written to the second if any row has seconds.
        same &= np.isin(np.array(texts, dtype=object), [text, f"{text}:00"])
    return same


def _same_function(one: Counterfactual, explainer: Explainer | None) -> bool:
    """Return whether a model, if it is known, predicts the same for the changed row."""
    if explainer is None:
        return True
    new = one.counterfactual
    row = new[None] if isinstance(new, np.ndarray) else new
    rows = explainer.task.reader.matrix("counterfactuals", row)
    mean = float(to_numpy(explainer.posterior.moments(rows))[0])
    size = (np.abs(one.means) + one.stds).max()
    return bool(abs(mean - one.means[1]) <= SAME_PREDICTION * size)
