"""Interactions as frames, as a SHAP explanation, and as files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array
from gpattr._core.normal import check_count
from gpattr._core.optional import optional
from gpattr.explanation import storage
from gpattr.explanation.export import coded_data, display_data

if TYPE_CHECKING:
    import pandas as pd

    from gpattr.explanation.interactions import InteractionExplanation

FORMAT = "gpattr.InteractionExplanation"


def to_frame(ex: InteractionExplanation, level: float) -> pd.DataFrame:
    """Return one line for each row and pair."""
    frame = ex.by_pair.to_frame(level)
    one, other = (np.tile(names, len(ex)) for names in _members(ex, np.array(ex.pairs)))
    frame.insert(1, "feature", one)
    frame.insert(2, "with", other)
    return frame.drop(columns="pair").rename(columns={"attribution": "value"})


def strongest(ex: InteractionExplanation, row: int | None, n: int) -> pd.DataFrame:
    """Return one line for each of the n strongest pairs of different features."""
    import pandas as pd

    check_count("n", n)
    pairs = np.array(ex.pairs)
    between = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
    about = ex[[row]] if row is not None else ex
    values, var = about.distribution.mean[:, between], about.distribution.var
    size = np.abs(values).mean(axis=0) if len(about) else np.zeros(len(between))
    order = np.argsort(-size, kind="stable")[:n]
    one, other = _members(ex, pairs[between[order]])
    columns: dict[str, Any] = {"feature": one, "with": other}
    if len(about) == 1:
        columns["value"] = values[0, order]
        if var is not None:
            columns["std"] = np.sqrt(var[0, between[order]])
            columns["prob_positive"] = about.distribution.prob_positive()[0, between[order]]
    else:
        columns["mean_abs"] = size[order]
        columns["mean"] = values.mean(axis=0)[order] if len(about) else size[order]
        if var is not None and len(about):
            columns["rms_std"] = np.sqrt(var[:, between[order]].mean(axis=0))
    return pd.DataFrame(columns)


def to_shap(ex: InteractionExplanation, level: float) -> Any:
    """Return a ``shap.Explanation`` of matrices."""
    shap = optional("shap", "to_shap()")
    uncertainty = {}
    std = ex.std
    if std is not None:
        lower, upper = ex.interval(level)
        uncertainty = {"error_std": np.array(std), "lower_bounds": lower, "upper_bounds": upper}
    return shap.Explanation(
        values=np.array(ex.values),
        base_values=np.array(ex.base_values),
        data=coded_data(ex.by_pair),
        display_data=display_data(ex.by_pair, None) if ex.labels else None,
        feature_names=list(ex.feature_names),
        **uncertainty,
    )


def to_dict(ex: InteractionExplanation) -> dict[str, Any]:
    """Return the interactions as JSON values."""
    return storage.content_of(ex.by_pair) | {
        "pairs": [list(pair) for pair in ex.pairs],
        "index": ex.index,
    }


def save(ex: InteractionExplanation, path: str | PathLike[str]) -> None:
    """Write ``ex`` to ``path``."""
    documents.write(FORMAT, to_dict(ex), path)


def load(path: str | PathLike[str]) -> InteractionExplanation:
    """Read interactions from ``path``."""
    return documents.read(FORMAT, path, _build)


def _build(content: Any) -> InteractionExplanation:
    from gpattr.explanation.interactions import InteractionExplanation

    pairs = tuple(tuple(pair) for pair in content["pairs"])
    return InteractionExplanation(storage.build(content), pairs, content["index"])


def _members(ex: InteractionExplanation, pairs: Array) -> tuple[Array, Array]:
    """Return the names of the first and of the second feature of each pair."""
    names = np.array(ex.feature_names, dtype=object)
    return names[pairs[:, 0]], names[pairs[:, 1]]
