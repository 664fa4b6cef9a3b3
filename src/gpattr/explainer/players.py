"""Players of Shapley values as the user names them: features, or groups of features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.validation import Names
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.explanation.grouping import group_names
from gpattr.operators import Players

Groups = Mapping[str, Iterable[str | int]]


@dataclass(frozen=True)
class FeatureGroups:
    """Which player each feature belongs to, ``owner``, and the name of each group of features.

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
        """Return the texts of those features that are players by themselves."""
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
    """Refuse players where values are not those of coalitions."""
    if players is not None and attribution != "shapley":
        raise InvalidInputError(
            'players: expected attribution="shapley" with players; groups of features of other'
            f" attributions add up, ex.group({{…}}), got attribution={attribution!r}"
        )
