"""Input checks: every error names the argument, what was expected and what was given."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from gpattr._core.array import Array, is_tensor, namespace, to_numpy
from gpattr._core.table_kinds import lazy_kind
from gpattr.exceptions import InvalidInputError

Names = tuple[str, ...]


def positive(name: str, value: Any) -> float | Array:
    """Return ``value`` as a float, or as a read-only (d,) array, all finite and positive."""
    array = to_numpy(unlabelled(name, value))
    if array.ndim > 1 or array.size == 0:
        raise InvalidInputError(
            f"{name}: expected one number or one per feature, got an array of shape {array.shape}"
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise InvalidInputError(
            f"{name}: expected finite numbers larger than 0, got {_show(array)}"
        )
    return float(array) if array.ndim == 0 else read_only(array)


def positive_scalar(name: str, value: Any) -> float:
    """Return ``value`` as a finite float larger than 0."""
    if isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name}: expected one number larger than 0, got {value!r}")
    result = positive(name, value)
    if not isinstance(result, float):
        raise InvalidInputError(
            f"{name}: expected one number, got an array of shape {np.shape(result)}"
        )
    return result


def finite_scalar(name: str, value: Any) -> float:
    """Return ``value`` as a finite float."""
    try:
        number = (
            float(value)
            if _is_real(value) and not isinstance(value, (bool, np.bool_))
            else math.nan
        )
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInputError(f"{name}: expected one finite number, got {value!r}")
    return number


def check_count(name: str, n: Any, *, least: int = 1, most: int | None = None) -> int:
    """Return a whole number of ``least`` or more, and of ``most`` at most."""
    whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
    if not whole or n < least or (most is not None and n > most):
        upper = "or more" if most is None else f"to {most}"
        raise InvalidInputError(f"{name}: expected an integer of {least} {upper}, got {n!r}")
    return int(n)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def check_path(name: str, value: Any, what: str = "file") -> str:
    """Return the path of a file, or of another ``what``, as text."""
    if not isinstance(value, (str, os.PathLike)) or "\0" in os.fsdecode(value):
        raise InvalidInputError(f"{name}: expected the path of a {what}, got {value!r}")
    return os.fsdecode(value)


def check_text(name: str, value: Any) -> str:
    """Return ``value`` if it is text."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name}: expected text, got {value!r}")
    return value


def check_per_feature(name: str, value: Any, d: int) -> None:
    """Raise `InvalidInputError` unless ``value`` is one number, or one for each of d features."""
    if np.ndim(value) == 1 and len(value) != d:
        raise InvalidInputError(
            f"{name}: expected one number or {d} (one per feature), got {len(value)}"
        )


def returned(name: str, result: Any, shape: tuple[int, ...]) -> Array:
    """Return the result of a user's function, if it is a finite array of this shape."""
    array = numbers(name, result)
    if tuple(array.shape) != tuple(shape):
        raise InvalidInputError(
            f"{name}: expected an array of shape {tuple(shape)} from it, got {tuple(array.shape)}"
        )
    if not namespace(array).isfinite(array).all():
        raise InvalidInputError(f"{name}: expected finite numbers from it, got NaN or infinity")
    return array


def require_derivative(
    name: str,
    of_what: str,
    function: Callable[[Any], Any],
    derivative: Callable[[Any], Any],
    X: Array,
) -> None:
    """Raise `InvalidInputError` if a derivative disagrees with its function at rows of X.

    The function is (n, ...), its derivative (n, ..., d).
    """
    rows = to_numpy(X)[:8]
    base = to_numpy(numbers(of_what, function(rows)))
    given = to_numpy(returned(name, derivative(rows), (*base.shape, rows.shape[1])))
    extent = max(float(np.ptp(rows, axis=0).max()), float(np.abs(rows).max()) * 1e-9, 1e-9)
    for i in range(rows.shape[1]):
        worst = math.inf
        # The scale of the function is unknown: the best of several steps counts.
        for step in extent * 10.0 ** -np.arange(2.0, 9.0):
            up, down = rows.copy(), rows.copy()
            up[:, i] += step
            down[:, i] -= step
            width = (up - down)[:, i].reshape(-1, *[1] * (base.ndim - 1))
            if (width > 0).all():
                numeric = to_numpy(function(up) - function(down)) / width
                size = float(np.abs(base).max())
                allowed = 1e-4 * float(np.abs(numeric).max()) + 1e-6 * size / extent
                worst = min(
                    worst, float(np.abs(numeric - given[..., i]).max()) / (allowed + 1e-300)
                )
        if worst > 1.0:
            raise InvalidInputError(
                f"{name}: expected the derivative of {of_what}, but by feature {i} it differs from"
                f" finite differences, by {worst:.1g} times what rounding and curvature explain"
            )


def unlabelled(name: str, value: Any) -> Array:
    """Return ``value`` as numbers; refuse a labelled series, whose labels cannot be aligned."""
    if is_series(value):
        raise InvalidInputError(
            f"{name}: expected plain numbers in the order of the features, got a labelled"
            f" {type(value).__name__}; put it in that order and pass .to_numpy()"
        )
    return numbers(name, value)


def read_only(array: Array) -> Array:
    """Return a read-only copy of an array, or a copy of a tensor, which cannot be read-only."""
    if is_tensor(array):
        return array.clone()
    array = np.array(array, dtype=np.float64)
    array.flags.writeable = False
    return array


class NotNumericError(InvalidInputError):
    """A frame has a column of texts, categories or dates."""


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns (pandas, polars), without importing either."""
    return not isinstance(X, np.ndarray) and hasattr(X, "to_numpy") and hasattr(X, "columns")


def is_series(x: Any) -> bool:
    """Return whether x is a pandas Series, whose index may carry feature names."""
    return (
        not isinstance(x, np.ndarray)
        and hasattr(x, "index")
        and hasattr(x, "to_numpy")
        and not is_frame(x)
    )


def column_names(X: Any) -> Names | None:
    """Return the columns of a frame, or the labels of a series, as strings; None for arrays."""
    if type(X) is np.ndarray or not (is_frame(X) or is_series(X)):
        return None
    return tuple(map(str, X.columns if is_frame(X) else X.index))


def refuse_lazy(name: str, value: Any) -> None:
    """Raise `InvalidInputError` for a table that would have to be collected into memory."""
    if type(value) is np.ndarray:
        return
    kind = lazy_kind(value)
    if kind is not None:
        article = "an" if kind.startswith("A") else "a"
        raise InvalidInputError(
            f"{name}: {article} {kind} is not collected into memory here; explainer.map_table"
            " explains it lazily, part by part, or collect it yourself if it fits"
        )


def as_matrix(
    name: str,
    X: Any,
    *,
    names: Names | None = None,
    n_features: int | None = None,
    like: Array | None = None,
) -> Array:
    """Return X as a finite float64 array (n, d), with a frame's columns in the order of ``names``.

    Tensors stay tensors; with ``like``, the result is of its array library and on its device.
    """
    refuse_lazy(name, X)
    if is_frame(X):
        X = _align(name, X, names)
        array = _frame_values(name, X)
    else:
        array = numbers(name, X)
    if array.ndim == 1:
        advice = (
            "X.iloc[[i]], with double brackets, is a single row"
            if is_series(X)
            else (
                "values of one feature go in as x.reshape(-1, 1)"
                if n_features == 1
                else "a single row x goes in as x.reshape(1, -1)"
            )
        )
        raise InvalidInputError(
            f"{name}: expected rows (n, d), got one dimension of length {len(array)}; {advice}"
        )
    if array.ndim != 2:
        raise InvalidInputError(
            f"{name}: expected rows (n, d), got an array of shape {tuple(array.shape)}"
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise InvalidInputError(
            f"{name}: expected at least one row and one column, got shape {tuple(array.shape)}"
        )
    if n_features is not None and array.shape[1] != n_features:
        raise InvalidInputError(f"{name}: expected {n_features} columns, got {array.shape[1]}")
    _require_finite(name, array, X)
    return array if like is None else beside(name, array, like)


def as_vector(
    name: str,
    x: Any,
    *,
    length: int | None = None,
    names: Names | None = None,
    unit: str = "entries",
    like: Array | None = None,
) -> Array:
    """Return x as a finite float64 array (length,), a labelled series in the order of names."""
    refuse_lazy(name, x)
    labels = column_names(x)
    if names is not None and labels is not None:
        x = x.to_numpy()[positions_of(name, labels, names)]
    array = numbers(name, x)
    if array.ndim != 1:
        raise InvalidInputError(
            f"{name}: expected one dimension, got an array of shape {tuple(array.shape)}"
        )
    if length is not None and len(array) != length:
        raise InvalidInputError(f"{name}: expected {length} {unit}, got {len(array)}")
    finite = namespace(array).isfinite(array)
    if not finite.all():
        finite = to_numpy(finite)
        i = int(np.flatnonzero(~finite)[0])
        raise InvalidInputError(
            f"{name}: expected finite numbers, got {float(array[i])} at position {i}"
        )
    return array if like is None else beside(name, array, like)


def beside(name: str, x: Array, like: Array) -> Array:
    """Return x in the array library and on the device of ``like``.

    For a model on the host tensors are copied there, from a GPU too; between devices they are
    refused, not moved.
    """
    if type(x) is type(like) is np.ndarray:
        return x
    if is_tensor(x) and is_tensor(like) and x.device != like.device:
        raise InvalidInputError(
            f"{name}: expected a tensor on the model's device {like.device}, got one on {x.device}"
        )
    if is_tensor(x) and not is_tensor(like):
        if x.device.type == "meta":
            raise InvalidInputError(
                f"{name}: expected an array on the host, as the model's, got a tensor on {x.device}"
            )
        return to_numpy(x)
    return namespace(like).asarray(x)


def check_names(name: str, value: Sequence[str], n_features: int) -> Names:
    """Return feature names as a tuple of d different strings."""
    sequence = (
        isinstance(value, Iterable)
        and not isinstance(value, (str, set, frozenset))
        and getattr(value, "ndim", 1) == 1
    )
    names = tuple(value) if sequence else ()
    if not sequence or not all(isinstance(label, str) for label in names):
        raise InvalidInputError(f"{name}: expected a sequence of strings, got {value!r}")
    if len(names) != n_features:
        raise InvalidInputError(f"{name}: expected {n_features} names, got {len(names)}")
    if len(set(names)) != len(names):
        repeated = next(label for label in names if names.count(label) > 1)
        raise InvalidInputError(
            f"{name}: expected different names, got {repeated!r} more than once"
        )
    return names


def positions_of(name: str, labels: Sequence[str], names: Names) -> list[int]:
    """Return the position of each of ``names`` in ``labels``, which must be the same names."""
    missing = [label for label in names if label not in labels]
    unknown = [label for label in labels if label not in names]
    repeated = [label for label in names if list(labels).count(label) > 1]
    found = {"missing": missing, "unknown": unknown, "more than once": repeated}
    wrong = [f"{what} {which}" for what, which in found.items() if which]
    if wrong:
        raise InvalidInputError(
            f"{name}: expected the columns {list(names)}; {' and '.join(wrong)}"
        )
    return [list(labels).index(label) for label in names]


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(
            f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}"
        )
    return value


def _align(name: str, X: Any, names: Names | None) -> Any:
    labels = list(map(str, X.columns))
    repeated = [label for label in labels if labels.count(label) > 1]
    if repeated:
        raise InvalidInputError(
            f"{name}: expected different column names, got {repeated[0]!r} more than once"
        )
    return X if names is None else X[[X.columns[i] for i in positions_of(name, labels, names)]]


def _frame_values(name: str, X: Any) -> Array:
    columns = [column_values(name, label, X[label]) for label in X.columns]
    return np.column_stack(columns) if columns else np.empty((len(X), 0))


def column_values(name: str, label: Any, column: Any) -> Array:
    """Return a column of a frame as numbers, NaN where it has none; refuse text and dates."""
    try:
        values = column.to_numpy()
        if str(column.dtype) == "category":  # its numbers are names
            raise ValueError
        if values.dtype.kind not in "buif":
            # Nullable integers and floats arrive as objects; text and dates do not pass as numbers.
            if values.dtype.kind != "O" or not all(
                value is None or _is_number(value) for value in values
            ):
                raise ValueError
            values = np.array([value if _is_real(value) else np.nan for value in values])
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise NotNumericError(
            f"{name}: expected numeric columns, got column {label!r} of type {column.dtype}; encode"
            " it as numbers first"
        ) from None


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, np.integer, np.floating, np.bool_))


def _is_number(value: Any) -> bool:
    return _is_real(value) or type(value).__name__ == "NAType"


def numbers(name: str, value: Any) -> Array:
    """Return ``value`` as a float64 array of any shape, which is a copy."""
    refuse_lazy(name, value)
    if is_tensor(value):
        if value.is_complex():
            raise InvalidInputError(
                f"{name}: expected real numbers, got a tensor of type {value.dtype}"
            )
        return value.detach().to(sys.modules["torch"].float64, copy=True)
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInputError(
            f"{name}: expected plain numbers, got a masked array; remove or fill what is masked"
        )
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            # None, or not numbers.
            if array.ndim == 0 or not all(_is_real(item) or item is None for item in array.flat):
                raise TypeError
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(f"{name}: expected numbers, got {_describe(value)}") from None
    if array.dtype.kind not in "buif":
        raise InvalidInputError(
            f"{name}: expected real numbers, got {_describe(value)} of type {array.dtype}"
        )
    return array.astype(np.float64)


def _require_finite(name: str, array: Array, X: Any) -> None:
    """Raise `InvalidInputError` unless an array, read from X, is finite."""
    finite = namespace(array).isfinite(array)
    if finite.all():
        return
    row, column = map(int, np.argwhere(~to_numpy(finite))[0])
    labels = column_names(X)
    where = f"column {labels[column]!r}" if labels else f"column {column}"
    raise InvalidInputError(
        f"{name}: expected finite numbers, got {float(array[row, column])} in row {row}, {where}"
    )


def _describe(value: Any) -> str:
    return f"a {type(value).__name__}" if not isinstance(value, str) else repr(value)


def _show(array: Array) -> str:
    return repr(float(array)) if array.ndim == 0 else np.array2string(array, threshold=6)
