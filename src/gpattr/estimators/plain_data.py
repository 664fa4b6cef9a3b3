"""scikit-learn's checks of data, called only where a quick look does not suffice.

Their messages are familiar to users, but they change Python's warning filters while they run, and
these belong to the whole process: other threads would see them changed. Data that are obviously
valid need no such check.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_X_y, validate_data

from gpattr._core.array import to_numpy
from gpattr._core.validation import as_matrix, is_frame, is_series
from gpattr.exceptions import GpattrError, InvalidInputError, InvalidTypeError


def checked_rows(X: ArrayLike) -> np.ndarray:
    """Return rows (n, d) as float64, or raise what `check_array` raises."""
    rows = _plain_rows(X)
    if rows is not None:
        return rows
    with naming("X"):
        return check_array(X, dtype="float64")


def checked_pair(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n, d) and targets (n,), or raise what `check_X_y` raises."""
    rows, targets = _plain_rows(X), _plain(y)
    if rows is None or targets is None or targets.shape != (len(rows),):
        checked_rows(X)
        with naming("y"):
            return check_X_y(X, y, dtype="float64", y_numeric=True, order="C")
    return rows, targets


def checked_training_data(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    labels: bool = False,
    multi_output: bool = False,
    target: str = "y",
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n, d) as float64 and targets, or raise what `validate_data` raises.

    Targets are (n,), with ``multi_output`` also (n, P). The number of features, and their names,
    are stored in the estimator. ``labels`` are of any kind that has an order; ``target`` is what
    the targets are called.
    """
    rows, targets = _plain_rows(X), _plain_labels(y) if labels else _plain(y)
    shapes = (1, 2) if multi_output else (1,)
    if (
        rows is None
        or targets is None
        or len(rows) != len(targets)
        or targets.ndim not in shapes
        or not targets.size
    ):
        options: dict[str, Any] = (
            {} if labels else {"y_numeric": True, "multi_output": multi_output}
        )
        with naming("X"):
            validate_data(estimator, X, dtype=np.float64)
        with naming(target):
            data: Any = validate_data(estimator, X, y, dtype=np.float64, order="C", **options)
        return data
    validate_data(estimator, X, y, skip_check_array=True)
    return rows, targets


def check_classes(labels: np.ndarray) -> None:
    """Raise what `check_classification_targets` raises for labels that are not classes."""
    plain = _plain_labels(labels)
    if plain is None or (plain.dtype.kind == "f" and (plain != np.round(plain)).any()):
        with naming("y"):
            check_classification_targets(labels)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the argument in errors of scikit-learn's own checks, whose wording its tests expect."""
    try:
        yield
    except GpattrError:
        raise
    except TypeError as error:
        raise InvalidTypeError(f"{name}: {error}") from None
    except ValueError as error:
        raise InvalidInputError(f"{name}: {error}") from None


def _plain_rows(X: Any) -> np.ndarray | None:
    array = to_numpy(as_matrix("X", X)) if is_frame(X) else _plain(X)
    if array is None or array.ndim != 2 or not array.size:
        return None
    rows = np.asarray(array, dtype=np.float64, order="C")
    return rows if np.isfinite(rows).all() else None  # other types may exceed the range of float64


def _plain(values: Any) -> np.ndarray | None:
    """Return finite real numbers as an array; None if that takes more than a quick look."""
    if (
        type(values) not in (np.ndarray, list, tuple)
        and not is_series(values)
        and not is_frame(values)
    ):
        return None
    try:
        array = np.asarray(values)
    except ValueError:
        return None
    return array if array.dtype.kind in "fiub" and array.ndim and np.isfinite(array).all() else None


def _plain_labels(values: Any) -> np.ndarray | None:
    numbers = _plain(values)
    if numbers is not None or type(values) not in (np.ndarray, list, tuple):
        return numbers
    array = np.asarray(values)
    texts = array.dtype.kind in "US" or (
        array.dtype.kind == "O" and all(isinstance(label, str) for label in array.ravel())
    )
    return array if texts and array.ndim == 1 else None
