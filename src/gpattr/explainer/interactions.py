"""Interactions by index: which operator they are, and the explanation made of its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpattr._core.memory import check_memory
from gpattr._core.validation import check_choice
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explainer.results import Setting, of_function
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.explanation.pairs import PAIR, Pairs, all_pairs, pair_labels
from gpattr.operators import IntegratedHessians, Operator, Players, ShapleyInteractions
from gpattr.posteriors import Evaluation, Posterior

Jumps = tuple[int, ...]
# The indices of each attribution, that of `index=None` first.
INDICES = {
    "shapley": ("shapley", "taylor"),
    "integrated_gradients": ("integrated_hessians",),
}
# Made of a baseline, the columns that jump, the players that columns belong to, and the pairs of
# features, or of players, if they were chosen.
Maker = Callable[[Any, Jumps, Players | None, Pairs | None], Operator]
OPERATORS: dict[str, Maker] = {
    "shapley": lambda baseline, jumps, players, pairs: ShapleyInteractions(
        baseline, players, index="shapley", pairs=pairs
    ),
    "taylor": lambda baseline, jumps, players, pairs: ShapleyInteractions(
        baseline, players, index="taylor", pairs=pairs
    ),
    "integrated_hessians": lambda baseline, jumps, players, pairs: IntegratedHessians(
        baseline, jumps, pairs=pairs
    ),
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
    names = setting.shared["feature_names"]
    pairs = all_pairs(len(names)) if pairs is None else pairs
    coordinates = {PAIR: pair_labels(pairs, names)}
    ex = of_function(posterior, result, setting, quantity, coordinates)
    return InteractionExplanation.of_pairs(ex, pairs, index)
