"""Words about explanations: the output of ``gpattr explain``, for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpattr.commands.whole_function import WholeFunction
from gpattr.explanation.dependence import Dependence
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.feature_grid import NUMBER
from gpattr.explanation.importance import Importance
from gpattr.report.whole_function import extremes
from gpattr.sobol import SobolIndices
from gpattr.tables import TableModel
from gpattr.tables.held_out import HeldOutClasses

MOST_SENTENCES = 3  # rows that are printed
MOST_SHARES = 3  # features whose index is printed


def sentences(model: TableModel, found: Mapping[str, Explanation], y: Any) -> list[str]:
    """Return the rows of a classifier farthest from the baseline, in words.

    For example "Row 372: probability of malignant 0.97; observed: malignant".
    """
    if model.task == "regression":
        return []
    moves = np.max([np.abs(ex.predictions - ex.base_values) for ex in found.values()], axis=0)
    words = []
    for row in np.argsort(-moves, kind="stable")[:MOST_SENTENCES]:
        label = max(
            found, key=lambda each: abs(found[each].predictions[row] - found[each].base_values[row])
        )
        ex = found[label]
        observed = f"; observed: {y[row]}" if y is not None and y[row] else ""
        probability = _rounded(float(ex.predictions[row]))
        words.append(f"Row {ex.row_names[row]}: {ex.quantity} {probability}{observed}")
    return words


def _rounded(probability: float) -> str:
    """Return a probability with two digits, or more if it would otherwise read as 0 or 1."""
    least = min(probability, 1 - probability)
    digits = min(6, 1 - math.floor(math.log10(least))) if 0 < least < 0.005 else 2
    return f"{probability:.{digits}f}"


def variance_sentence(indices: SobolIndices) -> str:
    """Return where the variance comes from, in words, by the largest total indices."""
    order = np.argsort(-indices.total, kind="stable")[:MOST_SHARES]
    parts = ", ".join(f"{indices.feature_names[i]} {_percent(indices.total[i])}" for i in order)
    return (
        f"Variance of the {indices.quantity}, by total Sobol index: {parts};"
        f" {_percent(indices.unknown_share)} of it is not yet known"
    )


def _percent(share: float) -> str:
    return "< 0.1%" if share < 1e-3 else f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def whole_summary(whole: WholeFunction) -> dict[str, Any]:
    """Return curves and indices as JSON values, by class if there are several; None for none."""
    curves = {
        label: {curve.features[0]: _ends(curve) for curve in found}
        for label, found in whole.curves.items()
    }
    indices = {label: _shares(found) for label, found in whole.indices.items()}
    return {
        name: (found if len(found) > 1 else next(iter(found.values()), None)) or None
        for name, found in (("dependence", curves), ("sobol", indices))
    }


def _ends(curve: Dependence) -> dict[str, Any]:
    """Return where a curve is lowest and highest, and how certain that is."""
    low, high, certain = extremes(curve)
    axis = curve.axes[0]

    def at(place: int) -> dict[str, Any]:
        value = axis.values[place]
        shown = float(value) if axis.kind == NUMBER else str(value)
        return {"at": shown, "mean": float(curve.values[place])}

    return {
        "lowest": at(low),
        "highest": at(high),
        "probability": certain,
        "rows": curve.n_background,
    }


def _shares(indices: SobolIndices) -> dict[str, Any]:
    order = np.argsort(-indices.total, kind="stable")
    names = [indices.feature_names[i] for i in order]
    return {
        "quantity": indices.quantity,
        "inputs": indices.inputs,
        "variance": indices.variance,
        "unknown_share": indices.unknown_share,
        "first": dict(zip(names, indices.first[order].tolist(), strict=True)),
        "total": dict(zip(names, indices.total[order].tolist(), strict=True)),
        "method": indices.method,
        "error": float(indices.error.max(initial=0.0)),
    }


def summary(
    model: TableModel, found: Mapping[str, Explanation], importance: Mapping[str, Importance]
) -> dict[str, Any]:
    """Return the results as JSON values; importance by class if there are several."""
    ex, first = next(iter(found.values())), next(iter(importance.values()))
    several = len(importance) > 1
    known: dict[str, Any] = {
        "rows": len(ex),
        "features": list(ex.feature_names),
        "baseline": ex.baseline_name,
        "attribution": ex.attribution,
        "method": ex.method,
        "largest_error": float(ex.error.max(initial=0.0)),
        "largest_gap": float(np.abs(ex.delta).max(initial=0.0)),
        "importance": {label: _ranked(each) for label, each in importance.items()}
        if several
        else _ranked(first),
        "importance_drawn_from_rows": first.n_joint_rows,
        "task": model.task,
    }
    if model.task == "classification":
        judged = model.held_out
        accuracy = judged.accuracy if isinstance(judged, HeldOutClasses) else None
        known |= {"classes": list(model.classes), "accuracy": accuracy}
    return known


def _ranked(importance: Importance) -> dict[str, float]:
    order = np.argsort(-importance.values, kind="stable")
    return {importance.feature_names[i]: float(importance.values[i]) for i in order}
