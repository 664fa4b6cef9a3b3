"""Automatic derivatives of kernels and means written in JAX that have no translation.

They are computed in float64 whatever JAX is set to, for a fixed number of rows at a time: compiling
takes longer than anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr.adapters.differentiated import Differentiated
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Linear, Warped
from gpattr.means import Function

SIZE = 2**10  # rows at a time, to which fewer are filled up


def in_double(tree: Any) -> Any:
    """Return a module with all its numbers in float64."""

    def doubled(leaf: Any) -> Any:
        inexact = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact)
        return jnp.asarray(leaf, dtype=jnp.float64) if inexact else leaf

    with jax.enable_x64(True):
        return jax.tree_util.tree_map(doubled, tree)


def kernel_of(
    name: str, function: Callable[[Any, Any], Any], lengthscale: float | None = None
) -> Differentiated:
    """Return a kernel from its function of two points, (d,) each."""

    def value(x: Any, y: Any) -> Any:
        return jnp.reshape(function(x, y), ())

    slope = jax.value_and_grad(value)

    def jet(x: Any, y: Any) -> Any:
        twice = jax.jacfwd(lambda y: (slope(x, y),) * 2, has_aux=True)
        (right, mixed), (k, left) = twice(y)
        return k, left, right, mixed

    first, both = (_Batched(f"kernel: {name}", part) for part in (slope, jet))

    def matrix(X: Array, Z: Array) -> Array:
        n, m = len(X), len(Z)
        i, j = np.divmod(np.arange(n * m), m)
        return first(to_numpy(X)[i], to_numpy(Z)[j])[0].reshape(n, m)

    def derivatives(x: Array, y: Array, second: bool) -> tuple[Array, ...]:
        return (both if second else first)(to_numpy(x), to_numpy(y))

    def variances(X: Array) -> Array:
        return first(to_numpy(X), to_numpy(X))[0]

    return Differentiated(name, matrix, variances, derivatives, lengthscale)


def features_of(name: str, function: Callable[[Any], Any]) -> Warped:
    """Return φ(x)·φ(x') from a function of one point, (d,) to (D,)."""
    values, slopes = (
        _Batched(f"kernel: {name}", part) for part in (function, jax.jacfwd(function))
    )
    return Warped(Linear(), lambda X: values(X)[0], lambda X: slopes(X)[0])


def mean_of(name: str, function: Callable[[Any], Any]) -> Function:
    """Return a mean from its function of one point, (d,)."""

    def value(x: Any) -> Any:
        return jnp.reshape(function(x), ())

    values, slopes = (_Batched(f"mean_function: {name}", part) for part in (value, jax.grad(value)))
    return Function(lambda X: values(X)[0], lambda X: slopes(X)[0])


class _Batched:
    """A function of points, compiled for rows of points; numbers in float64 in and out."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.compiled = name, jax.jit(jax.vmap(function))

    def __call__(self, *rows: np.ndarray) -> tuple[np.ndarray, ...]:
        starts = range(0, len(rows[0]), SIZE)
        parts = [self._at([row[at : at + SIZE] for row in rows]) for at in starts]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _at(self, rows: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        n = len(rows[0])
        filled = [np.concatenate([row, np.repeat(row[-1:], SIZE - n, axis=0)]) for row in rows]
        try:
            with jax.enable_x64(True):
                result = self.compiled(*map(jnp.asarray, filled))
                return tuple(
                    np.array(part, dtype=np.float64)[:n]
                    for part in jax.tree_util.tree_leaves(result)
                )
        except Exception as error:  # name the kernel, whatever its code raises
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnsupportedModelError(
                f"{self.name} is not supported: it fails, or has no derivatives: {reason}"
            ) from error
