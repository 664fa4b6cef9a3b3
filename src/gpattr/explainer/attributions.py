"""Attributions by name: which operator an explainer applies, made for a baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpattr._core.array import Array
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explanation.result import INTEGRATED_GRADIENTS, SHAPLEY_VALUES
from gpattr.operators import IntegratedGradients, Operator, Players, Reference, Shapley

# Made of a baseline (a point, one per row, `Baselines` or `Marginals`), the columns that jump, and
# the players that columns belong to.
Maker = Callable[[Any, tuple[int, ...], Players | None], Operator]
ATTRIBUTIONS: dict[str, Maker] = {
    "integrated_gradients": lambda baseline, jumps, players: IntegratedGradients(baseline, jumps),
    "shapley": lambda baseline, jumps, players: Shapley(baseline, players),
}
ATTRIBUTION_NAMES = {
    "integrated_gradients": INTEGRATED_GRADIENTS,
    "shapley": SHAPLEY_VALUES,
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


def attribution_name(attribution: str | Operator) -> str:
    """Return what attributions are called in tables and pictures."""
    if isinstance(attribution, str):
        return ATTRIBUTION_NAMES[attribution]
    if isinstance(attribution, Shapley):
        return SHAPLEY_VALUES
    if isinstance(attribution, IntegratedGradients):
        return INTEGRATED_GRADIENTS
    return type(attribution).__name__


def reference_name(operator: Operator) -> str:
    """Return what to call the baseline of an operator of one's own."""
    reference = operator.reference
    if reference is None:
        return "none"
    if reference.per_row:
        return "one per row"
    k = len(reference.points)
    return "given point" if k == 1 else f"average over {k} points"


def check_reference(reference: Reference, rows: Array) -> None:
    """Refuse the baseline of an operator that does not fit the rows."""
    (k, d), (n, columns) = reference.points.shape, rows.shape
    if d != columns:
        raise InvalidInputError(f"baseline: expected {columns} columns, got {d}")
    if reference.per_row and k != n:
        raise InvalidInputError(f"baseline: expected one row per row of X ({n}), got {k}")


def require_features(operator: Operator, what: str) -> None:
    """Raise `UnsupportedModelError` unless an operator has one output per feature."""
    if operator.axes != ("feature",):
        raise UnsupportedModelError(
            f"attribution: {what} defined for one number per feature; {type(operator).__name__} has"
            f" the axes {operator.axes}"
        )
