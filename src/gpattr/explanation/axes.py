"""Axes of an explanation: the named dimensions after the row, their sizes and their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.validation import Names
from gpattr.exceptions import InvalidInputError

FEATURE = "feature"
FEATURES = (FEATURE,)
Labels = tuple[str | int | float, ...]
# Names of other dimensions, arrays and columns, which an axis must not have.
RESERVED = frozenset(
    {
        "row",
        "draw",
        "chain",
        "component",
        "baseline",
        "output",
        "values",
        "var",
        "cov",
        "predictions",
        "base_values",
        "data",
        "baselines",
        "error",
        "baseline_weights",
        "component_weights",
        "component_values",
        "component_var",
        "component_cov",
        "draws",
        "label",
        "labels",
        "baseline_label",
        "baseline_labels",
        "draw_error",
        "cov_error",
        "delta",
        "attribution",
        "std",
        "lower",
        "upper",
        "prob_positive",
        "standard_error",
    }
)


def check_axes(axes: Any) -> tuple[str, ...]:
    """Return the names of axes as a tuple."""
    listed = isinstance(axes, (list, tuple))
    if not listed or not all(isinstance(axis, str) and axis.isidentifier() for axis in axes):
        raise InvalidInputError(
            f"axes: expected a tuple of names, such as ('feature',), got {axes!r}"
        )
    taken = [axis for axis in axes if axis in RESERVED]
    if taken:
        raise InvalidInputError(
            f"axes: expected names that are not those of other arrays or columns, got {taken[0]!r}"
        )
    return tuple(axes)


def check_coordinates(axes: Names, coordinates: Any, d: int, q: int) -> dict[str, Labels]:
    """Return the labels of every axis but "feature", positions where none are given.

    A distribution of q entries in each row has the axes; d is the number of features.
    """
    named = [axis for axis in dict.fromkeys(axes) if axis != FEATURE]
    if not isinstance(coordinates, Mapping) or not set(coordinates) <= set(named):
        raise InvalidInputError(
            f"coordinates: expected {{axis: labels}} for the axes {named}, got {coordinates!r}"
        )
    found = {axis: _check_labels(axis, labels) for axis, labels in coordinates.items()}
    sizes = {FEATURE: d} | {axis: len(labels) for axis, labels in found.items()}
    unlabelled = [axis for axis in axes if axis not in sizes]
    if len(unlabelled) > 1:
        raise InvalidInputError(
            f"coordinates: expected labels of all of the axes {unlabelled} but one: sizes follow"
            " from them"
        )
    known = math.prod(sizes[axis] for axis in axes if axis in sizes)
    if unlabelled:
        sizes[unlabelled[0]] = q // max(known, 1)
    if math.prod(sizes[axis] for axis in axes) != q:
        product = " × ".join(f"{axis} ({sizes.get(axis)})" for axis in axes) or "one number"
        raise InvalidInputError(
            f"axes: expected {product} in each row, got a distribution of {q} numbers"
        )
    return {axis: found.get(axis, tuple(range(sizes[axis]))) for axis in named}


def across(G: Array, axes: Names, sizes: Sequence[int]) -> Array:
    """Return the matrix that applies G to every axis called "feature", and to no other."""
    matrix = np.ones((1, 1))
    for axis, size in zip(axes, sizes, strict=True):
        matrix = np.kron(matrix, G if axis == FEATURE else np.eye(size))
    return matrix


def entries_of(features: Array, axes: Names, sizes: Sequence[int]) -> Array:
    """Return the positions, in a row, of the entries that belong to these features."""
    places = np.arange(math.prod(sizes)).reshape(tuple(sizes))
    for k, axis in enumerate(axes):
        if axis == FEATURE:
            places = np.take(places, features, axis=k)
    return places.ravel()


def unique(dimensions: Sequence[str]) -> list[str]:
    """Return names of dimensions told apart by numbers: feature, feature_2, …"""
    counts = [dimensions[: k + 1].count(name) for k, name in enumerate(dimensions)]
    return [
        name if count == 1 else f"{name}_{count}"
        for name, count in zip(dimensions, counts, strict=True)
    ]


def _check_labels(axis: str, labels: Any) -> Labels:
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    labels = list(labels) if isinstance(labels, (list, tuple, range)) else None
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels or ()]
    if labels is None or not all(isinstance(label, (str, int, float)) for label in plain):
        raise InvalidInputError(
            f"coordinates: expected a list of texts or numbers for {axis!r}, got {labels!r}"
        )
    return tuple(plain)
