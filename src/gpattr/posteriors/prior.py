"""A prior and inputs that fit together."""

from __future__ import annotations

from typing import Any

from gpattr._core.array import Array
from gpattr._core.validation import Names, as_matrix, column_names, read_only
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.kernels.categorical import in_polynomials
from gpattr.kernels.white import fold_white
from gpattr.means import Mean, Zero


def smooth_prior(
    kernel: Any, mean: Any, name: str, inputs: Any
) -> tuple[Kernel, Mean, Array, Names | None]:
    """Return kernel, mean, the inputs ``name`` and their column names; refuse White parts."""
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"kernel: expected a gpattr kernel, got {type(kernel).__name__}")
    names = column_names(inputs)
    Z = read_only(as_matrix(name, inputs))
    kernel.check_features(Z.shape[1])
    mean = checked_mean(mean, Z.shape[1])
    kernel.check_derivatives(Z)
    smooth, white = fold_white(kernel, Z)
    if smooth is None or (white != 0).any():
        raise InvalidInputError("kernel: White is noise and no part of the function; leave it out")
    return in_polynomials(kernel), mean, Z, names


def checked_mean(mean: Any, d: int) -> Mean:
    """Return a mean that can act on d features; zero for None."""
    mean = Zero() if mean is None else mean
    if not isinstance(mean, Mean):
        raise InvalidInputError(
            f"mean: expected a gpattr mean or None, got {type(mean).__name__};"
            " gpattr.means.Constant(value) is a constant"
        )
    mean.check_features(d)
    return mean
