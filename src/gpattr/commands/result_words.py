"""Words about explanations: what ``gpattr explain`` prints, for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpattr.explanation.explanation import Explanation
from gpattr.explanation.importance import Importance
from gpattr.tables import TableModel
from gpattr.tables.held_out_classes import HeldOutClasses

MOST_SENTENCES = 3  # rows that are printed


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
