"""Attributions by name: which operator an explainer applies, made for a baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpattr.exceptions import InvalidInputError
from gpattr.operators import IntegratedGradients, Operator

# Made of a baseline (a point, one per row, or `Baselines`) and the columns that jump.
ATTRIBUTIONS: dict[str, Callable[[Any, tuple[int, ...]], Operator]] = {
    "integrated_gradients": IntegratedGradients,
}


def check_attribution(attribution: Any, baseline: Any) -> str | Operator:
    """Return the name of an attribution, or a user-defined operator, which has its own baseline."""
    if isinstance(attribution, str) and attribution in ATTRIBUTIONS:
        return attribution
    if not isinstance(attribution, Operator):
        names = ", ".join(f'"{name}"' for name in ATTRIBUTIONS)
        raise InvalidInputError(
            f"attribution: expected {names} or an instance of a gpattr operator, such as"
            f" gpattr.operators.Gradient(), got {attribution!r}"
        )
    if not (isinstance(baseline, str) and baseline == "mean"):
        raise InvalidInputError(
            f"baseline: {type(attribution).__name__} has its own baseline, or none; leave baseline"
            " out"
        )
    return attribution


def reference_name(operator: Operator) -> str:
    """Return what to call the baseline of an operator of one's own."""
    reference = operator.reference
    if reference is None:
        return "none"
    if reference.per_row:
        return "one per row"
    k = len(reference.points)
    return "given point" if k == 1 else f"average over {k} points"
