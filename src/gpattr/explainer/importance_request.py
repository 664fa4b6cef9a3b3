"""Options of the importance, as the user gives them: its measure, groups of features, draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array
from gpattr._core.normal import check_count
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import Names, check_choice
from gpattr.exceptions import InvalidInputError
from gpattr.explainer.players import Groups
from gpattr.explanation.grouping import group_matrix, group_names
from gpattr.explanation.importance import MEASURES


@dataclass(frozen=True)
class FeatureSums:
    """Sums of features: their ``names``, which features each has, and ``matrix`` (features, sums).

    ``members`` names the features of those that are groups; the others are features themselves.
    """

    names: Names
    matrix: Array
    members: dict[str, Names]


@dataclass(frozen=True)
class ImportanceRequest:
    """How importance is measured, ``by``, of which ``groups``, and by how many draws."""

    n_samples: int = 2000
    random_state: RandomLike = 0
    by: str = "absolute"
    groups: Groups | None = None

    @property
    def counted(self) -> tuple[int, np.random.Generator]:
        """The number of draws and where they come from, checked."""
        return check_count("n_samples", self.n_samples), random_generator(self.random_state)

    def check(self, n: int, *, players: bool) -> None:
        """Refuse what n rows, or features that are ``players`` already, do not have."""
        check_choice("by", self.by, tuple(MEASURES))
        if self.by == "variance" and n < 2:
            raise InvalidInputError(
                f'X: expected at least 2 rows with by="variance", since the variance over one row'
                f" is zero, got {n}"
            )
        if players and self.groups is not None:
            raise InvalidInputError(
                "groups: this explainer has players, which are groups of features already; use an"
                " explainer without players, or leave groups out"
            )

    def sums(self, features: Names) -> FeatureSums | None:
        """Return the sums of features that are asked for; None for each by itself."""
        if self.groups is None:
            return None
        labels = group_names(self.groups, features)
        names = tuple(dict.fromkeys(labels))
        members = {
            name: tuple(
                feature for feature, label in zip(features, labels, strict=True) if label == name
            )
            for name in names
            if name in self.groups
        }
        return FeatureSums(names, group_matrix(labels), members)
