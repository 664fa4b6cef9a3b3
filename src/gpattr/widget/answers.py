"""Explanations of single rows, as the widget shows them, computed by the explainer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpattr._core.array import to_numpy
from gpattr.explainer.explainer import Explainer
from gpattr.explainer.rows import Rows
from gpattr.explanation.explanation import Explanation
from gpattr.widget.columns import ControlColumns


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
        low, high = ex.interval(self.level)
        return {
            "prediction": float(ex.predictions[0]),
            "base": float(ex.base_values[0]),
            "values": ex.values[0].tolist(),
            "std": self._std(values),
            "stds": None if ex.std is None else ex.std[0].tolist(),
            "low": low[0].tolist(),
            "high": high[0].tolist(),
            "positive": ex.prob_positive()[0].tolist(),
        }

    def _std(self, values: Mapping[str, Any]) -> float | None:
        """Return the standard deviation of the function; that of a probability is not known."""
        if self.explainer.output != "latent":
            return None
        rows = self.reader.matrix("X", self.columns.table(values))
        _, std = self.explainer.posterior.in_columns.moments(rows, return_std=True)
        return float(to_numpy(std)[0])
