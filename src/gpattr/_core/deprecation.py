"""Renamed names and arguments: the old ones work for a while, and warn.

A deprecation says since which version there is a new name, and in which the old one goes. Warnings
are `FutureWarning`, which Python shows by default: they are meant for everybody who runs the code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from gpattr.exceptions import InvalidInputError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Renamed:
    """An old name, its replacement, and the versions of its deprecation and removal."""

    old: str
    new: str
    since: str
    removal: str

    @property
    def message(self) -> str:
        """The text of the warning."""
        return (
            f"{self.old} is now {self.new}: renamed in gpattr {self.since}; the old name will be"
            f" removed in {self.removal}"
        )

    def warn(self, stacklevel: int = 2) -> None:
        """Warn the caller of the function that calls this one; one level up for each more."""
        warnings.warn(self.message, FutureWarning, stacklevel=stacklevel + 1)


def renamed_argument(old: str, new: str, *, since: str, removal: str) -> Callable[[F], F]:
    """Let a function take an argument by its old name, as a keyword, with a warning.

    The value is passed on under the new name. Giving both is an error.
    """
    rename = Renamed(f"{old}=", f"{new}=", since, removal)

    def decorate(function: F) -> F:
        parameters = signature(function).parameters
        if new not in parameters or old in parameters:
            raise TypeError(f"{function.__qualname__}: {old} cannot be renamed to {new}")
        position = list(parameters).index(new)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                if new in kwargs or len(args) > position:
                    raise InvalidInputError(f"{old}: it is the old name of {new}; give only {new}")
                rename.warn()
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate
