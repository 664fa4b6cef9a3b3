"""An explanation as a frame, a SHAP explanation, or an xarray data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gpattr.explanation.explanation import Explanation


def to_frame(ex: Explanation, level: float) -> pd.DataFrame:
    """Return one line per row and feature."""
    import pandas as pd

    n, d = ex.shape
    columns: dict[str, Any] = {
        "row": np.repeat(np.asarray(ex.row_names, dtype=object), d),
        "feature": np.tile(np.asarray(ex.feature_names, dtype=object), n),
        "data": ex.data.ravel(),
    }
    if ex.labels:
        columns["label"] = _labels(ex, "").ravel()
    if ex.baseline_weights is None:
        columns["baseline"] = ex.baselines.ravel()
    columns["attribution"] = ex.values.ravel()
    if ex.var is not None:
        lower, upper = ex.interval(level)
        columns["std"] = np.sqrt(ex.var).ravel()
        columns["lower"], columns["upper"] = lower.ravel(), upper.ravel()
        columns["prob_positive"] = ex.prob_positive().ravel()
        if hasattr(ex, "standard_error"):  # of attributions known by draws
            columns["standard_error"] = ex.standard_error().ravel()  # pyright: ignore[reportAttributeAccessIssue]
    return pd.DataFrame(columns).infer_objects()


def to_shap(ex: Explanation, level: float) -> Any:
    """Return a ``shap.Explanation``."""
    shap = _optional("shap")
    uncertainty = {}
    if ex.var is not None:
        lower, upper = ex.interval(level)
        uncertainty = {"error_std": np.sqrt(ex.var), "lower_bounds": lower, "upper_bounds": upper}
    return shap.Explanation(
        values=np.array(ex.values),
        base_values=np.array(ex.base_values),
        data=np.array(ex.data),
        display_data=_labels(ex, None) if ex.labels else None,
        feature_names=list(ex.feature_names),
        **uncertainty,
    )


def to_xarray(ex: Explanation) -> xr.Dataset:
    """Return an ``xarray.Dataset``; the covariance's second feature axis is called feature_2."""
    xr = _optional("xarray")
    arrays = {}
    for name, dimensions in ex.dimensions().items():
        unique = [
            f"{dim}_2" if dim in dimensions[:axis] else dim for axis, dim in enumerate(dimensions)
        ]
        arrays[name] = (unique, np.array(getattr(ex, name)))
    if ex.labels:
        arrays["labels"] = (["row", "feature"], _labels(ex, ""))
    coordinates = {"row": list(ex.row_names), "feature": list(ex.feature_names)}
    if ex.cov is not None:
        coordinates["feature_2"] = list(ex.feature_names)
    return xr.Dataset(
        arrays, coords=coordinates, attrs={"method": ex.method, "baseline": ex.baseline_name}
    )


def _labels(ex: Explanation, number: str | None) -> np.ndarray:
    """Return the texts of categories, (n, d); a number is itself, or that text."""
    shown = ex.data.astype(object) if number is None else np.full(ex.shape, number, dtype=object)
    for name, texts in ex.labels.items():
        shown[:, ex.feature_names.index(name)] = texts
    return shown


def _optional(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f'This needs {name}, which is not installed: pip install "gpattr[{name}]"'
        ) from None
