"""Attributions by name: which operator an explainer applies, for a baseline and its players."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import Names
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explanation.grouping import group_names
from gpattr.explanation.result import INTEGRATED_GRADIENTS, SHAPLEY_VALUES
from gpattr.operators import IntegratedGradients, Operator, Players, Reference, Shapley

Groups = Mapping[str, Iterable[str | int]]

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
    """Return the name of an attribution in tables and pictures."""
    if isinstance(attribution, str):
        return ATTRIBUTION_NAMES[attribution]
    if isinstance(attribution, Shapley):
        return SHAPLEY_VALUES
    if isinstance(attribution, IntegratedGradients):
        return INTEGRATED_GRADIENTS
    return type(attribution).__name__


def reference_name(operator: Operator) -> str:
    """Return the name of the baseline of a user's operator."""
    reference = operator.reference
    if reference is None:
        return "none"
    if reference.per_row:
        return "one per row"
    k = len(reference.points)
    return "given point" if k == 1 else f"average over {k} points"


def check_reference(reference: Reference | None, rows: Array) -> None:
    """Refuse the baseline of an operator that does not fit the rows."""
    if reference is None:
        return
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


@dataclass(frozen=True)
class FeatureGroups:
    """The player of each feature, ``owner``, and the name of each group of features.

    ``groups`` has a name for each player that is a group, None for one that is a feature.
    """

    owner: tuple[int, ...]
    groups: tuple[str | None, ...]

    @classmethod
    def of(cls, groups: Groups, names: Names) -> FeatureGroups:
        """Return the groups of these features; a feature in none is a player by itself."""
        labels = group_names(groups, names, "players")
        players = list(dict.fromkeys(labels))
        owner = tuple(players.index(label) for label in labels)
        return cls(owner, tuple(player if player in groups else None for player in players))

    @property
    def first(self) -> list[int]:
        """The first feature of each player."""
        return [self.owner.index(player) for player in range(len(self.groups))]

    def names(self, features: Names) -> Names:
        """Return the names of players: of the group, or of the feature."""
        pairs = zip(self.groups, self.first, strict=True)
        return tuple(features[place] if name is None else name for name, place in pairs)

    def data(self, values: np.ndarray) -> np.ndarray:
        """Return values of features, (n, features), by player; NaN for groups."""
        blank = [0.0 if name is None else np.nan for name in self.groups]
        return values[:, self.first] + np.array(blank)

    def texts(self, texts: Mapping[str, Any], features: Names) -> dict[str, Any]:
        """Return the texts of the features that are players by themselves."""
        pairs = zip(self.groups, self.first, strict=True)
        alone = {features[place] for name, place in pairs if name is None}
        return {name: value for name, value in texts.items() if name in alone}


def column_players(encoder: Encoder | None, groups: FeatureGroups | None) -> Players | None:
    """Return the player of each column that a posterior sees; None where each is by itself."""
    if groups is None:
        return None  # what encodes one feature is put together where columns become features
    features = range(len(groups.owner))
    if encoder is not None:
        features = [int(row.argmax()) for row in encoder.gathering]
    return Players(tuple(groups.owner[feature] for feature in features), len(groups.groups))


def check_players(attribution: Any, players: Any) -> None:
    """Refuse ``players`` for attributions without coalitions."""
    if players is not None and attribution != "shapley":
        raise InvalidInputError(
            'players: expected attribution="shapley" with players; groups of features of other'
            f" attributions add up, ex.group({{…}}), got attribution={attribution!r}"
        )
