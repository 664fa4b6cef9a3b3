"""Argument checks by name, declared once for a family of classes.

Formulas take arrays and do not check them. Only cheap checks are made: whether it is an array, and
of how many dimensions. Data are checked in full by `validation` where they enter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np

from gpattr._core.array import is_tensor
from gpattr.exceptions import InvalidInputError

Check = Callable[[str, Any], Any]  # (name, value), which raises
F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F, checks: Mapping[str, Check]) -> F:
    """Return the function with every argument checked that has a check under its name."""
    parameters = signature(function).parameters.values()
    plan = [
        (i, p.name, checks[p.name], p.default, checks[p.name] in (an_array, some_rows))
        for i, p in enumerate(parameters)
        if p.name in checks
    ]
    if not plan:
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for i, name, check, default, of_rows in plan:
            value = args[i] if i < len(args) else kwargs.get(name, default)
            # Omitted arguments are not checked; Python reports missing ones. Rows pass without a
            # call: they are what formulas are given, many times in each explanation.
            if value is default or (of_rows and type(value) is np.ndarray and value.ndim == 2):
                continue
            check(name, value)
        return function(*args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


class Checked:
    """A mixin that checks the arguments named in ``checks``, in public methods of our subclasses.

    A user's class may call its arguments as it likes.
    """

    checks: ClassVar[Mapping[str, Check]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.partition(".")[0] != "gpattr":
            return
        for name, value in list(vars(cls).items()):
            public = not name.startswith("_") or name in ("__call__", "__getitem__")
            if public and isinstance(value, FunctionType):
                setattr(cls, name, checked(value, cls.checks))
            elif public and isinstance(value, classmethod):
                setattr(cls, name, classmethod(checked(value.__func__, cls.checks)))


def an_array(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` is an array or a tensor."""
    if not (isinstance(value, np.ndarray) or is_tensor(value)):
        raise InvalidInputError(f"{name}: expected an array of numbers, got {_described(value)}")


def some_rows(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` is an array (n, d)."""
    if type(value) is not np.ndarray:
        an_array(name, value)
    if value.ndim != 2:
        raise InvalidInputError(
            f"{name}: expected rows (n, d), got an array of shape {tuple(value.shape)}"
        )


def vectors(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` is an array (..., d)."""
    if type(value) is not np.ndarray:
        an_array(name, value)
    if value.ndim == 0 or value.shape[-1] == 0:
        raise InvalidInputError(
            f"{name}: expected an array (..., d), got one of shape {tuple(value.shape)}"
        )


def arrays(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` is a sequence of arrays."""
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidInputError(f"{name}: expected a list of arrays, got {_described(value)}")
    for part in value:
        an_array(name, part)


def positions(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` is a slice, or integers or booleans."""
    if isinstance(value, slice):
        return
    if type(value) is not np.ndarray and is_tensor(value) and not value.is_floating_point():
        return
    listed = isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1
    none = listed and not isinstance(value, np.ndarray) and not value
    if not listed or not (none or np.asarray(value).dtype.kind in "iub"):
        raise InvalidInputError(
            f"{name}: expected a slice or a list of positions, got {_described(value)}"
        )


def instance(kind: type | tuple[type, ...], what: str) -> Check:
    """Return a check that ``value`` is of this kind, described by ``what``."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, kind):
            raise InvalidInputError(f"{name}: expected {what}, got {_described(value)}")

    return check


def subclass(kind: type, what: str) -> Check:
    """Return a check that ``value`` is a class of this kind, described by ``what``."""

    def check(name: str, value: Any) -> None:
        if not (isinstance(value, type) and issubclass(value, kind)):
            raise InvalidInputError(f"{name}: expected {what}, got {_described(value)}")

    return check


def a_function(name: str, value: Any) -> None:
    """Raise `InvalidInputError` unless ``value`` can be called."""
    if not callable(value):
        raise InvalidInputError(f"{name}: expected a function, got {_described(value)}")


def _described(value: Any) -> str:
    return (
        repr(value)
        if value is None or isinstance(value, (str, bool, int, float))
        else f"a {type(value).__name__}"
    )
