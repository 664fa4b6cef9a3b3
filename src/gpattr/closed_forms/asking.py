"""Checks of the arguments of verbs, made where these are exported."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from gpattr._core.arguments import (
    a_function,
    an_array,
    checked,
    instance,
    some_rows,
    subclass,
    vectors,
)
from gpattr._core.validation import check_flag
from gpattr.bases import Basis
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Operator

CHECKS = {
    "op": instance(Operator, "a gpattr operator"),
    "operator": instance(Operator, "a gpattr operator"),
    "op2": instance(Operator, "a gpattr operator"),
    "kernel": instance(Kernel, "a gpattr kernel"),
    "basis": instance(Basis, "a gpattr basis"),
    "mean": instance(Mean, "a gpattr mean"),
    "X": some_rows,
    "X2": some_rows,
    "Z": some_rows,
    "x": vectors,
    "y": vectors,
    "w": an_array,
    "second": check_flag,
}
CLASSES = {
    "operator": subclass(Operator, "a class of operators"),
    "kernel": subclass(Kernel, "a class of kernels"),
    "basis": subclass(Basis, "a class of bases"),
    "mean": subclass(Mean, "a class of means"),
    **dict.fromkeys(
        ("cross", "prior_cov", "between", "cross_dot", "error", "images", "apply"), a_function
    ),
}
F = TypeVar("F", bound=Callable[..., Any])


def asked(function: F) -> F:
    """Return a verb with checked arguments; ``w`` is one weight per row of Z or basis function."""
    form = signature(function)
    names = form.parameters
    checks = CLASSES if function.__name__.startswith("register") else CHECKS
    if "w" not in names:
        return checked(function, checks)
    over = "Z" if "Z" in names else "basis"

    @wraps(function)
    def weighted(*args: Any, **kwargs: Any) -> Any:
        given = form.bind(*args, **kwargs).arguments
        w, expected = given["w"], len(given[over])
        if w.ndim not in (1, 2) or len(w) != expected:
            raise InvalidInputError(
                f"w: expected {expected} weights, one for each of {over}, got the shape"
                f" {tuple(w.shape)}"
            )
        return function(*args, **kwargs)

    return checked(weighted, checks)  # pyright: ignore[reportReturnType]
