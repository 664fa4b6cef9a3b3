"""The widget of an explainer and rows: its abilities, its contents, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from gpattr._core.array import Array, to_numpy
from gpattr._core.optional import optional
from gpattr._core.validation import Names
from gpattr.distributions import Point
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.rows import RowNames, Rows
from gpattr.explanation.explanation import Explanation
from gpattr.report.what_if import ARRAYS, slider_model
from gpattr.widget.columns import ControlColumns, control_columns

LEVEL = 0.95
# What an answer has of its uncertainty; nothing where it is known without.
SPREAD = ("std", "stds", "low", "high", "positive")


def make_widget(
    explainer: Explainer, reader: Rows, rows: Array, names: Names, row_names: RowNames
) -> Any:
    """Return the widget for rows, read by the ``reader`` of an explainer, and its columns' names.

    Kernels that the script knows are computed in the browser, all others by the explainer.
    """
    if explainer.posterior.several_outputs:
        outputs = list(explainer.posterior.outputs)
        raise UnsupportedModelError(
            "model: a widget shows a single output; select one by its name,"
            f" explainer[{outputs[0]!r}]; there are {outputs}"
        )
    if not isinstance(explainer.attribution, str):
        raise UnsupportedModelError(
            "attribution: a widget shows attributions that add up to the prediction,"
            ' "integrated_gradients" or "shapley", not those of an operator'
        )
    if not len(rows):
        raise InvalidInputError("X: expected at least one row, got none")
    optional("anywidget", "The widget")
    from gpattr.widget.notebook import WhatIfWidget

    columns = control_columns(reader, rows, names)
    answers = Answers(explainer, reader, columns, LEVEL)
    ex = answers.explain(columns.start(0))
    model = slider_model(explainer, ex)
    data, texts = columns.starts()
    arrays: dict[str, Array | None] = {"data": data}
    facts: dict[str, Any] = {
        "features": list(ex.feature_names),
        "columns": columns.describe(),
        "texts": texts,
        "rows": [str(name) for name in row_names],
        "numbered": all(isinstance(name, int) for name in row_names),
        "level": LEVEL,
        "quantile": -float(ndtri(0.5 * (1.0 - LEVEL))),
        "quantity": ex.quantity,
        "attribution": ex.attribution,
        "baseline": ex.baseline_name,
        "probability": explainer.output == "probability",
        "model": None,
    }
    if isinstance(model, dict):
        arrays |= {name: model[name] for name in ARRAYS}
        facts["model"] = {name: value for name, value in model.items() if name not in ARRAYS}
    facts["arrays"], packed = _packed(arrays)
    return WhatIfWidget(answers, facts, packed)


def _packed(arrays: dict[str, Array | None]) -> tuple[dict[str, list[int]], bytes]:
    """Return where each array starts, in numbers, and how long it is; and all of them as bytes."""
    places: dict[str, list[int]] = {}
    parts, start = [], 0
    for name, array in arrays.items():
        if array is not None:
            parts.append(np.ascontiguousarray(array, dtype="<f8").tobytes())
            places[name] = [start, array.size]
            start += array.size
    return places, b"".join(parts)


@dataclass(frozen=True)
class Answers:
    """Answers of an explainer on rows given by values of their columns."""

    explainer: Explainer
    reader: Rows
    columns: ControlColumns
    level: float

    def explain(self, values: Mapping[str, Any]) -> Explanation:
        """Return the explanation of one row."""
        return self.explainer(self.columns.table(values), uncertainty="std")

    def answer(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row's answer as JSON values: prediction, baseline, attributions, uncertainty."""
        ex = self.explain(values)
        numbers = {
            "prediction": float(ex.predictions[0]),
            "base": float(ex.base_values[0]),
            "values": ex.values[0].tolist(),
        }
        if ex.std is None or isinstance(ex.distribution, Point):
            return numbers | dict.fromkeys(SPREAD)
        spread = ex.std, *ex.interval(self.level), ex.prob_positive()
        rows = (part[0].tolist() for part in spread)
        return numbers | dict(zip(SPREAD, (self._std(values), *rows), strict=True))

    def _std(self, values: Mapping[str, Any]) -> float | None:
        """Return the standard deviation of the function; a probability's is not known."""
        if self.explainer.output != "latent":
            return None
        rows = self.reader.matrix("X", self.columns.table(values))
        _, std = self.explainer.posterior.in_columns.moments(rows, return_std=True)
        return float(to_numpy(std)[0])
