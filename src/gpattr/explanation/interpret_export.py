"""An explanation as InterpretML shows it: `interpret.show(ex.to_interpret())`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.optional import optional
from gpattr.explanation.export import display_data

if TYPE_CHECKING:
    from gpattr.explanation.explanation import Explanation

SHOWN = 15  # features in a picture of InterpretML


def to_interpret(ex: Explanation, name: str | None) -> Any:
    """Return a local explanation of InterpretML, whose bars have standard deviations."""
    import pandas as pd

    base = optional("interpret.api.templates", "to_interpret()").FeatureValueExplanation

    class GPAttributions(base):
        """Bars of attributions, with error bars of one standard deviation."""

        def visualize(self, key: Any = None, title: str | None = None) -> Any:
            """Return a Plotly figure of one row, or of the mean absolute attributions."""
            figure, data = super().visualize(key, title), self.data(key)
            if figure is not None and isinstance(key, int) and "std" in data:
                order = sorted(range(len(data["scores"])), key=lambda i: -abs(data["scores"][i]))
                std = [data["std"][i] for i in order[:SHOWN][::-1]]
                figure.data[0].error_x = {"type": "data", "array": [*std, 0.0]}
            return figure

    rows = [_row(ex, i) for i in range(len(ex))]
    overall = {
        "type": "univariate",
        "names": list(ex.feature_names),
        "scores": np.abs(ex.values).mean(axis=0).tolist() if len(ex) else [],
    }
    selector = pd.DataFrame(
        {
            "Row": list(map(str, ex.row_names)),
            "Predicted": ex.predictions,
            "Baseline": ex.base_values,
        }
    )
    return GPAttributions(
        "local",
        {"overall": overall if len(ex) else None, "specific": rows},
        feature_names=list(ex.feature_names),
        feature_types=[
            "nominal" if each in ex.labels else "continuous" for each in ex.feature_names
        ],
        name=f"{ex.attribution} of the {ex.quantity}" if name is None else name,
        selector=selector.round(3),
    )


def _row(ex: Explanation, i: int) -> dict[str, Any]:
    """Return one row in the words of InterpretML."""
    one, prediction = ex[i], float(ex.predictions[i])
    row = {
        "type": "univariate",
        "names": list(ex.feature_names),
        "scores": one.values[0].tolist(),
        "values": display_data(one, None)[0].tolist(),
        "extra": {"names": ["Baseline"], "scores": [float(ex.base_values[i])], "values": [1]},
        "perf": {
            "is_classification": False,
            "actual": np.nan,
            "predicted": prediction,
            "actual_score": np.nan,
            "predicted_score": prediction,
        },
    }
    return row if one.std is None else row | {"std": one.std[0].tolist()}
