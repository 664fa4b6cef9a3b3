"""An explanation as a frame, a SHAP explanation, or an xarray data set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr.distributions import Draws
from gpattr.explanation.axes import FEATURE, FEATURES, unique

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gpattr.explanation.explanation import Explanation


def to_frame(ex: Explanation, level: float) -> pd.DataFrame:
    """Return one line per row and entry."""
    import pandas as pd

    n, *sizes = ex.shape
    q = math.prod(sizes)
    columns: dict[str, Any] = {"row": np.repeat(np.asarray(ex.row_names, dtype=object), q)}
    names = zip(unique(ex.axes), ex.axis_labels(), strict=True)
    for k, (name, labels) in enumerate(names):
        inner = np.repeat(np.asarray(labels, dtype=object), math.prod(sizes[k + 1 :]))
        columns[name] = np.tile(inner, n * math.prod(sizes[:k]))
    if ex.axes == FEATURES:
        columns |= _inputs(ex)
    columns["attribution"] = ex.values.ravel()
    if ex.var is not None:
        lower, upper = ex.interval(level)
        columns["std"] = np.sqrt(ex.var).ravel()
        columns["lower"], columns["upper"] = lower.ravel(), upper.ravel()
        columns["prob_positive"] = ex.prob_positive().ravel()
        if isinstance(ex.distribution, Draws):
            columns["standard_error"] = ex.standard_error().ravel()
    return pd.DataFrame(columns).infer_objects()


def to_shap(ex: Explanation, level: float) -> Any:
    """Return a ``shap.Explanation``."""
    shap = optional("shap")
    uncertainty = {}
    if ex.var is not None:
        lower, upper = ex.interval(level)
        uncertainty = {"error_std": np.sqrt(ex.var), "lower_bounds": lower, "upper_bounds": upper}
    return shap.Explanation(
        values=np.array(ex.values),
        base_values=np.array(ex.base_values),
        data=np.array(ex.data),
        display_data=display_data(ex, None) if ex.labels else None,
        feature_names=list(ex.feature_names),
        **uncertainty,
    )


def to_xarray(ex: Explanation) -> xr.Dataset:
    """Return an ``xarray.Dataset``; axes that repeat are numbered, feature and feature_2."""
    xr = optional("xarray")
    arrays, coordinates = {}, {"row": list(ex.row_names), FEATURE: list(ex.feature_names)}
    for name, (dimensions, array) in ex.arrays().items():
        names = unique(dimensions)
        arrays[name] = (names, np.array(array))
        for dimension, numbered in zip(dimensions, names, strict=True):
            if dimension == FEATURE:
                coordinates[numbered] = list(ex.feature_names)
            elif dimension in ex.coordinates:
                coordinates[numbered] = list(ex.coordinates[dimension])
    if ex.labels:
        arrays["labels"] = (["row", FEATURE], display_data(ex, ""))
    about = {
        "method": ex.method,
        "baseline": ex.baseline_name,
        "attribution": ex.attribution,
    }
    return xr.Dataset(arrays, coords=coordinates, attrs=about)


def _inputs(ex: Explanation) -> dict[str, Any]:
    """Return the columns that tell the value of each feature and where it started."""
    columns: dict[str, Any] = {"data": ex.data.ravel()}
    if ex.labels:
        columns["label"] = display_data(ex, "").ravel()
    if ex.baseline_weights is None:
        columns["baseline"] = ex.baselines.ravel()
    return columns


def display_data(ex: Explanation, number: str | None) -> np.ndarray:
    """Return the texts of categories, (n, d); a number is itself, or that text."""
    shown = ex.data.astype(object)
    if number is not None:
        shown[:] = number
    for name, texts in ex.labels.items():
        shown[:, ex.feature_names.index(name)] = texts
    return shown


def optional(name: str, extra: str | None = None) -> Any:
    """Return a module that is not always installed, but comes with an extra of that name."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f'This needs {name}, which is not installed: pip install "gpattr[{extra or name}]"'
        ) from None
