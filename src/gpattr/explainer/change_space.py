"""The changes of one row that are allowed: which features, within which bounds, in which units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.validation import Names, numbers
from gpattr.distributions.positions import listed
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidIndexError, InvalidInputError, UnsupportedModelError
from gpattr.explainer.rows import Rows
from gpattr.explanation.grouping import feature_index

FARTHEST, LARGEST = 1e15, 1e100  # of changes in standard units, and of such a unit
MOST_SETTINGS = 200  # of categories that are tried, those with few changes first


@dataclass(frozen=True, eq=False)
class ChangeSpace:
    """Changes of a ``row`` (D,) of columns: u = (x' − x)/``scales`` in numeric ``columns`` (p,).

    ``bounds`` (p, 2) are in the units of x and contain it. ``settings`` (c, D) are the row with its
    categories as they are, first, and with some of them changed, ``n_switched`` (c,): each of these
    counts as one feature and as one standard unit.
    """

    row: np.ndarray
    columns: np.ndarray
    bounds: np.ndarray
    scales: np.ndarray
    settings: np.ndarray
    n_switched: np.ndarray

    @property
    def low(self) -> np.ndarray:
        """The lower ends of u, (p,), at most 0."""
        return np.minimum((self.bounds[:, 0] - self.row[self.columns]) / self.scales, 0.0)

    @property
    def high(self) -> np.ndarray:
        """The upper ends of u, (p,), at least 0."""
        return np.maximum((self.bounds[:, 1] - self.row[self.columns]) / self.scales, 0.0)

    def rows(self, u: np.ndarray, setting: np.ndarray) -> np.ndarray:
        """Return the changed rows (r, D); unchanged values keep their last bit."""
        rows, old = self.settings[setting], self.row[self.columns]
        new = np.clip(old + u * self.scales, self.bounds[:, 0], self.bounds[:, 1])
        rows[:, self.columns] = np.where(u == 0, old, new)
        return rows

    def units(self, rows: np.ndarray) -> np.ndarray:
        """Return u (r, p) of rows (r, D), moved into the bounds."""
        u = (rows[:, self.columns] - self.row[self.columns]) / self.scales
        return np.clip(u, self.low, self.high)

    def distances(self, u: np.ndarray, setting: np.ndarray) -> np.ndarray:
        """Return the lengths of changes in standard units, (r,)."""
        return np.sqrt((u**2).sum(axis=1) + self.n_switched[setting])


def change_space(
    rows: Rows, row: np.ndarray, names: Names, features: Any, bounds: Any, scales: Any
) -> ChangeSpace:
    """Return the changes of ``row`` (D,) that a user allows, checked."""
    encoder = rows.encoder
    known = rows.posterior.training_inputs
    seen = None if known is None else to_numpy(known)
    dates = () if encoder is None else tuple(encoder.dates)
    categories = {} if encoder is None else dict(encoder.categories)
    unused = frozenset() if encoder is None else encoder.unused
    allowed = _allowed(features, names, dates, unused)
    limits = _limits(bounds, names, allowed)
    units = _units(scales, names)
    places = {i: [i] if encoder is None else encoder.places(names[i]) for i in range(len(names))}
    numeric = [i for i in allowed if names[i] not in categories]
    ends, sizes, columns = [], [], []
    for i in numeric:
        place = places[i][0]
        column = None if seen is None else seen[:, place]
        end = _ends(names[i], float(row[place]), limits.get(i), column)
        if end[0] == end[1]:
            continue  # nothing else is allowed
        columns.append(place)
        ends.append(end)
        size = _size(names[i], units.get(i), column)
        _check_size(names[i], size, end)
        sizes.append(size)
    switches = {
        i: _labels(names[i], encoder, limits.get(i), places[i], row, seen)
        for i in allowed
        if encoder is not None and names[i] in categories
    }
    settings, counts = _settings(row, places, switches)
    return ChangeSpace(
        row,
        np.array(columns, dtype=int),
        np.array(ends, dtype=float).reshape(-1, 2),
        np.array(sizes, dtype=float),
        settings,
        counts,
    )


def _allowed(features: Any, names: Names, dates: Names, unused: frozenset[str]) -> list[int]:
    """Return the positions of the features that may change."""
    fixed = {*dates, *unused}
    if features is None:
        return [i for i, name in enumerate(names) if name not in fixed]
    given = [features] if isinstance(features, str) else listed(features)
    if not given:
        raise InvalidInputError(
            f"features: expected a list of at least one feature that may change, got {features!r}"
        )
    try:
        chosen = [feature_index(feature, names) for feature in given]
    except InvalidIndexError as error:
        raise InvalidIndexError(f"features: {str(error).removeprefix('feature: ')}") from None
    for i in chosen:
        if names[i] in dates:
            raise UnsupportedModelError(
                f"features: {names[i]!r} is a date, and dates are kept as they are"
            )
    return sorted(set(chosen))


def _limits(bounds: Any, names: Names, allowed: list[int]) -> dict[int, Any]:
    """Return the bounds that are given, by position."""
    if bounds is None:
        return {}
    if isinstance(bounds, Mapping):
        found = {}
        for feature, ends in bounds.items():
            try:
                index = feature_index(feature, names)
            except InvalidIndexError as error:
                raise InvalidIndexError(f"bounds: {str(error).removeprefix('feature: ')}") from None
            if index not in allowed:
                raise InvalidInputError(
                    f"bounds: {names[index]!r} is not among the features that may change"
                )
            found[index] = ends
        return found
    array = to_numpy(numbers("bounds", bounds))
    if array.shape != (len(names), 2):
        raise InvalidInputError(
            f"bounds: expected {{feature: (low, high)}} or an array ({len(names)}, 2), got the"
            f" shape {array.shape}"
        )
    return {i: array[i] for i in allowed}


def _units(scales: Any, names: Names) -> dict[int, float]:
    """Return the scales that are given, by position."""
    if scales is None:
        return {}
    if isinstance(scales, Mapping):
        try:
            given = {feature_index(key, names): value for key, value in scales.items()}
        except InvalidIndexError as error:
            raise InvalidIndexError(f"scales: {str(error).removeprefix('feature: ')}") from None
    else:
        array = to_numpy(numbers("scales", scales))
        if array.shape != (len(names),):
            raise InvalidInputError(
                f"scales: expected {{feature: number}} or {len(names)} numbers, one per feature,"
                f" got the shape {array.shape}"
            )
        given = dict(enumerate(array))
    for i, value in given.items():
        number = to_numpy(numbers("scales", value))
        if number.ndim or not (np.isfinite(number) and number > 0):
            raise InvalidInputError(
                f"scales: expected a number larger than 0 for {names[i]!r}, got {value!r}"
            )
    return {i: float(value) for i, value in given.items()}


def _ends(name: str, value: float, given: Any, seen: np.ndarray | None) -> tuple[float, float]:
    """Return the bounds of a number: the given ones, or the range of the data and the row."""
    if given is None:
        if seen is None:
            raise InvalidInputError(
                f"bounds: this model does not store its training inputs; give bounds for {name!r}"
            )
        return min(float(seen.min()), value), max(float(seen.max()), value)
    array = to_numpy(numbers("bounds", given))
    if array.shape != (2,) or not np.isfinite(array).all() or array[0] > array[1]:
        raise InvalidInputError(
            f"bounds: expected two finite numbers (low, high), low first, for {name!r}, got"
            f" {given!r}"
        )
    low, high = map(float, array)
    if not low <= value <= high:
        raise InvalidInputError(
            f"bounds: {name!r} is {value:g} in x, which lies outside ({low:g}, {high:g}); widen its"
            " bounds, or leave it out of features"
        )
    return low, high


def _size(name: str, given: float | None, seen: np.ndarray | None) -> float:
    """Return the standard unit of a number."""
    if given is not None:
        return given
    if seen is None:
        raise InvalidInputError(
            f"scales: this model does not store its training inputs; give a scale for {name!r}"
        )
    size = float(seen.std())
    if not size > 1e-12 * float(np.abs(seen).max()):
        raise InvalidInputError(
            f"scales: {name!r} is constant in the training inputs and has no standard deviation;"
            " give a scale for it"
        )
    return size


def _check_size(name: str, size: float, ends: tuple[float, float]) -> None:
    """Refuse a unit in which the bounds are beyond float64."""
    low, high = ends
    if not 0.5 * high - 0.5 * low <= 0.5 * FARTHEST * min(size, LARGEST) or size > LARGEST:
        raise InvalidInputError(
            f"scales: expected a unit of {name!r} that its bounds ({low:g}, {high:g}) can be"
            f" measured in, at most {FARTHEST:g} of it apart, got {size:g}"
        )


def _labels(
    name: str,
    encoder: Encoder,
    given: Any,
    places: list[int],
    row: np.ndarray,
    seen: np.ndarray | None,
) -> list[np.ndarray]:
    """Return the codes of the other categories that are allowed: the given or the seen ones."""
    labels = encoder.categories[name]
    here = int(encoder.chosen(name, row[None, places])[0])
    if given is None:
        every = range(len(labels))
        open_to = every if seen is None else encoder.seen(name, seen[:, places])
    else:
        wanted = listed(given) or []
        if not wanted or any(label not in labels for label in wanted):
            raise InvalidInputError(
                f"bounds: expected a list of categories of {name!r}, among {list(labels)}, got"
                f" {given!r}"
            )
        open_to = [labels.index(label) for label in wanted]
    return [encoder.code(name)[k] for k in open_to if k != here]


def _settings(
    row: np.ndarray, places: Mapping[int, list[int]], switches: Mapping[int, list[np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with no, one, two … categories changed, and how many are."""

    def changes() -> Any:
        for count in range(len(switches) + 1):
            for chosen in combinations(switches, count):
                yield from (
                    list(zip(chosen, codes, strict=True))
                    for codes in product(*(switches[i] for i in chosen))
                )

    found = list(islice(changes(), MOST_SETTINGS))
    settings = np.tile(row, (len(found), 1))
    for line, change in zip(settings, found, strict=True):
        for i, code in change:
            line[places[i]] = code
    return settings, np.array([len(change) for change in found])
