"""One-hot columns of categories, as an estimator's ``categories`` name them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr.estimators.search_space import Labels
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel


def label_columns(model: Any, X: Any) -> Labels:
    """Return the positions of the one-hot columns of each category of ``model``, in the rows X."""
    given = model.categories
    if given is None:
        return ()
    if isinstance(model.kernel, Kernel):
        raise InvalidInputError(
            "categories: expected None with a kernel of your own, which has Categorical() for the"
            " labels of a category; or give the class of a radial kernel, such as Matern52"
        )
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise _unexpected(given)
    names = getattr(model, "feature_names_in_", None)
    known = [] if names is None else names.tolist()
    rows = to_numpy(X)
    groups = tuple(_positions(group, given, known, rows.shape[1]) for group in given)
    every = [i for group in groups for i in group]
    if len(set(every)) < len(every):
        raise InvalidInputError("categories: expected each column at most once, got one twice")
    for group in groups:
        part = rows[:, group]
        if not (np.isin(part, (0.0, 1.0)).all() and (part.sum(axis=1) == 1.0).all()):
            row = int(np.argmax((part.sum(axis=1) != 1.0) | ~np.isin(part, (0.0, 1.0)).all(axis=1)))
            raise InvalidInputError(
                f"categories: expected one-hot columns, of which one is 1 and the others are 0 in"
                f" every row; columns {list(group)} are {part[row].tolist()} in row {row}"
            )
    return groups


def _positions(group: Any, given: Any, names: list[Any], d: int) -> tuple[int, ...]:
    if isinstance(group, str) or not isinstance(group, Sequence) or not len(group):
        raise _unexpected(given)
    found = []
    for column in group:
        if isinstance(column, str):
            if column not in names:
                raise InvalidInputError(
                    f"categories: expected columns among {names or f'positions 0 to {d - 1}'}, got"
                    f" {column!r}"
                )
            found.append(names.index(column))
            continue
        try:
            place = index(column)
        except TypeError:
            raise _unexpected(given) from None
        if isinstance(column, bool) or not 0 <= place < d:
            raise InvalidInputError(
                f"categories: expected column positions from 0 to {d - 1}, got {column!r}"
            )
        found.append(place)
    return tuple(found)


def _unexpected(given: Any) -> InvalidInputError:
    return InvalidInputError(
        "categories: expected the one-hot columns of each category, such as [[2, 3, 4], [5, 6]] or"
        f" lists of column names, got {given!r:.80}"
    )
