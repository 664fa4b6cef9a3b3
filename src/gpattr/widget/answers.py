"""Explanations of single rows, as the widget shows them, computed by the explainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpattr._core.array import to_numpy
from gpattr.distributions import Point
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.rows import Rows
from gpattr.explanation.explanation import Explanation
from gpattr.widget.columns import ControlColumns

# What an answer has of its uncertainty; nothing where it is known without.
SPREAD = ("std", "stds", "low", "high", "positive")


@dataclass(frozen=True)
class Answers:
    """What an explainer says about rows given by values of their columns."""

    explainer: Explainer
    reader: Rows
    columns: ControlColumns
    level: float

    def explain(self, values: Mapping[str, Any]) -> Explanation:
        """Return the explanation of one row."""
        return self.explainer(self.columns.table(values), uncertainty="std")

    def answer(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return it as JSON values: prediction, baseline, attributions, and their uncertainty."""
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
        """Return the standard deviation of the function; that of a probability is not known."""
        if self.explainer.output != "latent":
            return None
        rows = self.reader.matrix("X", self.columns.table(values))
        _, std = self.explainer.posterior.in_columns.moments(rows, return_std=True)
        return float(to_numpy(std)[0])
