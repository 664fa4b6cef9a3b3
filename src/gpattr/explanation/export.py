"""An explanation as a frame, a SHAP explanation, or an xarray data set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.memory import check_memory
from gpattr._core.optional import optional
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import check_count
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
    shap = optional("shap", "to_shap()")
    uncertainty = {}
    if ex.var is not None:
        lower, upper = ex.interval(level)
        uncertainty = {"error_std": np.sqrt(ex.var), "lower_bounds": lower, "upper_bounds": upper}
    return shap.Explanation(
        values=np.array(ex.values),
        base_values=np.array(ex.base_values),
        data=coded_data(ex),
        display_data=display_data(ex, None) if ex.labels else None,
        feature_names=list(ex.feature_names),
        **uncertainty,
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


def _inputs(ex: Explanation) -> dict[str, Any]:
    """Return the columns that tell the value of each feature and where it started."""
    columns: dict[str, Any] = {"data": ex.data.ravel()}
    if ex.labels:
        columns["label"] = display_data(ex, "").ravel()
    if ex.baseline_weights is None:
        columns["baseline"] = ex.baselines.ravel()
        if ex.baseline_labels:
            columns["baseline_label"] = _texts(ex, ex.baseline_labels, "").ravel()
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
