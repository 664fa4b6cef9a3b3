"""Groups of features: which feature belongs to which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpattr._core.validation import Names
from gpattr.distributions.positions import listed, positions
from gpattr.exceptions import InvalidIndexError, InvalidInputError


def feature_index(feature: str | int, names: Names) -> int:
    """Return the position of a feature given by name or position."""
    if isinstance(feature, str):
        if feature not in names:
            raise InvalidIndexError(f"feature: expected one of {list(names)}, got {feature!r}")
        return names.index(feature)
    if not isinstance(feature, (int, np.integer)) or isinstance(feature, bool):
        raise InvalidIndexError(f"feature: expected a name or a position, got {feature!r}")
    return int(positions("feature", feature, len(names))[0])


def feature_positions(features: Any, names: Names) -> np.ndarray:
    """Return the positions of features given by names, positions, a slice or a mask."""
    if isinstance(features, str):
        features = [features]
    named = [] if isinstance(features, slice) or np.ndim(features) != 1 else list(features)
    if any(isinstance(feature, str) for feature in named):
        features = [feature_index(feature, names) for feature in named]
    return positions("features", features, len(names))


def group_names(
    groups: Mapping[str, Iterable[str | int]], names: Names, argument: str = "groups"
) -> list[str]:
    """Return the group of each feature; a feature in none is by itself, under its own name."""
    if not isinstance(groups, Mapping):
        raise InvalidInputError(
            f"{argument}: expected a dictionary {{name: [features]}}, got a {type(groups).__name__}"
        )
    assigned: dict[int, str] = {}
    for name, members in groups.items():
        if not isinstance(name, str):
            raise InvalidInputError(f"{argument}: expected names of groups, got {name!r}")
        for index in _members(argument, name, members, names):
            if index in assigned:
                raise InvalidInputError(
                    f"{argument}: {names[index]!r} is in {assigned[index]!r} and in {name!r}"
                )
            assigned[index] = name
    clash = {label for i, label in enumerate(names) if i not in assigned} & set(groups)
    if clash:
        raise InvalidInputError(
            f"{argument}: {clash.pop()!r} is also the name of a feature that is not in that group"
        )
    return [assigned.get(i, label) for i, label in enumerate(names)]


def group_matrix(labels: list[str]) -> np.ndarray:
    """Return G (features, groups) of zeros and ones: ``values @ G`` adds each group up."""
    names = list(dict.fromkeys(labels))
    flags = [label == name for label in labels for name in names]
    return np.array(flags, dtype=np.float64).reshape(len(labels), len(names))


def _members(argument: str, name: str, members: Any, names: Names) -> list[int]:
    found = listed(members)
    if not found:
        raise InvalidInputError(
            f"{argument}: expected a list of at least one feature for {name!r}, got {members!r}"
        )
    try:
        return [feature_index(member, names) for member in found]
    except InvalidIndexError as error:
        raise InvalidIndexError(f"{argument}: in {name!r}, {error}") from None
