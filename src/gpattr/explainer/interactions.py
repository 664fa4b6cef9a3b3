"""Interactions by index: which operator they are, and the explanation made of its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpattr._core.memory import check_memory
from gpattr._core.validation import check_choice
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explainer.results import Setting, of_function
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.explanation.pairs import Pairs, all_pairs
from gpattr.operators import Operator
from gpattr.posteriors import Evaluation, Posterior

# The indices of each attribution, that of `index=None` first.
INDICES = {
    "shapley": ("shapley", "taylor"),
    "integrated_gradients": ("integrated_hessians",),
}


def _shapley(baseline: Any, players: Any, pairs: Pairs | None) -> Operator:
    from gpattr.operators import ShapleyInteractions

    return ShapleyInteractions(baseline, players, index="shapley", pairs=pairs)


def _taylor(baseline: Any, players: Any, pairs: Pairs | None) -> Operator:
    from gpattr.operators import ShapleyInteractions

    return ShapleyInteractions(baseline, players, index="taylor", pairs=pairs)


def _integrated_hessians(baseline: Any, players: Any, pairs: Pairs | None) -> Operator:
    from gpattr.operators import IntegratedHessians

    return IntegratedHessians(baseline, pairs=pairs)


# Made of a baseline, the players, if any were named, and the pairs, if they were chosen.
OPERATORS: dict[str, Callable[[Any, Any, Pairs | None], Operator]] = {
    "shapley": _shapley,
    "taylor": _taylor,
    "integrated_hessians": _integrated_hessians,
}


def check_index(index: Any, attribution: str | Operator) -> str:
    """Return the index of interactions that belongs to an attribution."""
    if not isinstance(attribution, str):
        raise UnsupportedModelError(
            'attribution: interactions are defined for attribution="shapley" and'
            ' "integrated_gradients"; this explainer applies an operator of its own,'
            f" {type(attribution).__name__}"
        )
    fitting = INDICES[attribution]
    if index is None:
        return fitting[0]
    check_choice("index", index, tuple(OPERATORS))
    if index not in fitting:
        other = next(name for name, indices in INDICES.items() if index in indices)
        raise InvalidInputError(
            f'index: "{index}" divides attributions by attribution="{other}" between pairs of'
            f' features; this explainer has attribution="{attribution}", whose indices are'
            f" {', '.join(fitting)}"
        )
    return index


def check_size(n: int, d: int, pairs: Pairs | None, uncertainty: str) -> None:
    """Raise `TooLargeError` for matrices, or covariances between pairs, that would not fit."""
    k = len(all_pairs(d)) if pairs is None else len(pairs)
    check_memory("The matrices of interactions", (n, d, d), "go through the rows in parts")
    if uncertainty == "cov":
        remedy = 'choose fewer with pairs=[…], or use uncertainty="std"'
        check_memory("The covariance between pairs", (n, k, k), remedy)


def interactions_of(
    posterior: Posterior,
    setting: Setting,
    evaluation: Evaluation,
    quantity: str,
    pairs: Pairs | None,
    index: str,
) -> InteractionExplanation:
    """Return the interactions that the operator of a ``setting`` finds in its rows."""
    result = posterior.bind(setting.operator, evaluation).apply(setting.rows)
    ex = of_function(posterior, result, setting, quantity)
    if pairs is None:
        pairs = all_pairs(len(ex.feature_names))
    return InteractionExplanation.of_pairs(ex, pairs, index)
