"""Interactions by index: which operator they are, and the explanation made of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpattr._core.memory import check_memory
from gpattr._core.validation import check_choice
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explainer.attributions import column_players
from gpattr.explainer.results import of_function
from gpattr.explainer.rows import row_names
from gpattr.explainer.task import Task
from gpattr.explanation.interactions import InteractionExplanation
from gpattr.explanation.pairs import PAIR, Pairs, all_pairs, check_pairs, pair_labels
from gpattr.operators import IntegratedHessians, Operator, Players, ShapleyInteractions

Jumps = tuple[int, ...]
# The indices of each attribution, the default (`index=None`) first.
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
    task: Task, X: Any, baselines: Any, uncertainty: str, index: Any, pairs: Any
) -> InteractionExplanation:
    """The interactions between features in the rows of X."""
    index = check_index(index, task.attribution)
    task.require_latent("interactions are")
    posterior, evaluation = task.single, replace(task.evaluation, uncertainty=uncertainty)
    rows, names = task.reader.matrix("X", X), task.names(X)
    chosen = None if pairs is None else check_pairs(pairs, names)
    check_size(len(rows), len(names), chosen, uncertainty)
    own = task.own_baselines(baselines, len(rows))
    players = column_players(task.reader.encoder, task.groups)
    baseline = task.baseline if own is None else own
    operator = OPERATORS[index](baseline, task.reader.jumps, players, chosen)
    start = task.start_of(operator, per_row=own is not None)
    asked = task.about(rows, start, names, row_names(X, len(rows)))
    result = posterior.bind(operator, evaluation).apply(rows)
    every = all_pairs(len(names)) if chosen is None else chosen
    ex = of_function(posterior, result, asked, task.words, {PAIR: pair_labels(every, names)})
    return InteractionExplanation.of_pairs(ex, every, index)
