"""Explanations as frames, and as objects of SHAP, xarray and InterpretML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.memory import check_memory
from gpattr._core.optional import optional
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import check_count
from gpattr.distributions import Draws
from gpattr.explanation.axes import FEATURE, FEATURES, unique
from gpattr.explanation.result import JointResult, long_frame, spread

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gpattr.explanation.explanation import Explanation


IN_A_PICTURE = 15  # features that InterpretML draws


def to_frame(ex: Explanation, level: float) -> pd.DataFrame:
    """Return one line per row and entry."""
    labels = dict(zip(unique(ex.axes), ex.axis_labels(), strict=True))
    columns: dict[str, Any] = {}
    if ex.axes == FEATURES:
        columns |= _inputs(ex)
    columns |= {"attribution": ex.values} | spread(ex, level)
    if ex.var is not None:
        columns["prob_positive"] = ex.prob_positive()
        if isinstance(ex.distribution, Draws):
            columns["standard_error"] = ex.standard_error()
    return long_frame({"row": ex.row_names} | labels, columns).infer_objects()


def to_shap(shown: JointResult, ex: Explanation, level: float) -> Any:
    """Return a ``shap.Explanation`` of the shown numbers; ``ex`` says of which rows."""
    shap = optional("shap", "to_shap()")
    names = {"std": "error_std", "lower": "lower_bounds", "upper": "upper_bounds"}
    return shap.Explanation(
        values=np.array(shown.values),
        base_values=np.array(ex.base_values),
        data=coded_data(ex),
        display_data=display_data(ex, None) if ex.labels else None,
        feature_names=list(ex.feature_names),
        **{names[name]: np.array(part) for name, part in spread(shown, level).items()},
    )


def to_xarray(
    ex: Explanation, n_samples: int | None, n_chains: int, random_state: RandomLike
) -> xr.Dataset:
    """Return an ``xarray.Dataset``; axes that repeat are numbered, feature and feature_2."""
    xr = optional("xarray", "to_xarray()")
    arrays, coordinates = {}, {"row": list(ex.row_names), FEATURE: list(ex.feature_names)}
    for name, (dimensions, array) in ex.arrays().items():
        names = unique(dimensions)
        arrays[name] = (names, np.array(array))
        for dimension, numbered in zip(dimensions, names, strict=True):
            if dimension == FEATURE:
                coordinates[numbered] = list(ex.feature_names)
            elif dimension in ex.coordinates:
                coordinates[numbered] = list(ex.coordinates[dimension])
    if n_samples is not None:
        arrays.pop("draws", None)  # which has a dimension of this name, and no chains
        shape = (check_count("n_chains", n_chains), check_count("n_samples", n_samples))
        check_memory(
            "n_samples, n_chains: the draws", (*shape, *ex.shape), "use fewer draws or rows"
        )
        draws = ex.sample(shape[0] * shape[1], random_state).reshape(*shape, *ex.shape)
        arrays["attribution"] = (["chain", "draw", "row", *unique(ex.axes)], draws)
        coordinates |= {"chain": list(range(shape[0])), "draw": list(range(shape[1]))}
    if ex.labels:
        arrays["labels"] = (["row", FEATURE], display_data(ex, ""))
    if ex.baseline_labels:
        arrays["baseline_labels"] = (["row", FEATURE], _texts(ex, ex.baseline_labels, ""))
    about = {
        "method": ex.method,
        "baseline": ex.baseline_name,
        "attribution": ex.attribution,
    }
    result = xr.Dataset(arrays, coords=coordinates, attrs=about)
    # ArviZ takes every variable for draws of a parameter, and leaves coordinates alone.
    return result if n_samples is None else result.set_coords(set(arrays) - {"attribution"})


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
                std = [data["std"][i] for i in order[:IN_A_PICTURE][::-1]]
                figure.data[0].error_x = {"type": "data", "array": [*std, 0.0]}
            return figure

    rows = [_interpreted_row(ex, i) for i in range(len(ex))]
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


def _interpreted_row(ex: Explanation, i: int) -> dict[str, Any]:
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


def _inputs(ex: Explanation) -> dict[str, Any]:
    """Return the columns that tell the value of each feature and where it started."""
    columns: dict[str, Any] = {"data": ex.data}
    if ex.labels:
        columns["label"] = display_data(ex, "")
    if ex.baseline_weights is None:
        columns["baseline"] = ex.baselines
        if ex.baseline_labels:
            columns["baseline_label"] = _texts(ex, ex.baseline_labels, "")
    return columns


def coded_data(ex: Explanation) -> np.ndarray:
    """Return the values of features, (n, d), a category as its place among the sorted ones.

    Plots of SHAP place and colour rows by these numbers, and write display_data beside them.
    """
    data = np.array(ex.data)
    for name, texts in ex.labels.items():
        data[:, ex.feature_names.index(name)] = np.unique(texts, return_inverse=True)[1]
    return data


def display_data(ex: Explanation, number: str | None) -> np.ndarray:
    """Return the texts of categories, (n, d); a number is itself, or that text."""
    return _texts(ex, ex.labels, number)


def _texts(
    ex: Explanation, labels: Mapping[str, tuple[str, ...]], number: str | None
) -> np.ndarray:
    shown = ex.data.astype(object)
    if number is not None:
        shown[:] = number
    for name, texts in labels.items():
        shown[:, ex.feature_names.index(name)] = texts
    return shown
