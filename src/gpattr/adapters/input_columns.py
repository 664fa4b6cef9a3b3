"""What a model sees of its user's columns, and kernels and means of it as such of those columns.

An input u of a model is a column w, a function h(w) of one, or Σₖ tₖwₖ of columns w of 0 and 1 that
say which category a row has. Between categories that is a straight line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.adapters.categories import (
    Hamming,
    Index,
    becomes_squared_exponential,
    linear,
    squared_exponential,
)
from gpattr.adapters.rescaling import mapped
from gpattr.adapters.scalar_maps import ScalarMap, slope, value
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Product, Select, Warped
from gpattr.means import Constant as ConstantMean
from gpattr.means import Function, Mean, Zero
from gpattr.means import Linear as LinearMean


@dataclass(frozen=True, eq=False)
class Column:
    """An input u of a model, given columns w at ``places``.

    u is w itself; with ``maps``, a function of it; with ``table`` (k,), Σₖ tₖwₖ. Where ``jumps``,
    each w says that a code has the value in ``labels``, and only kernels of codes make sense.
    """

    places: tuple[int, ...]
    maps: tuple[ScalarMap, ...] = ()
    table: np.ndarray | None = None
    jumps: bool = False
    labels: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether u = w."""
        return not self.maps and self.table is None and not self.jumps

    def values(self, W: Array) -> Array:
        """Return u, (n,), at rows W (n, d)."""
        if self.table is not None:
            return W[:, list(self.places)] @ namespace(W).asarray(self.table)
        return value(self.maps, W[:, self.places[0]])

    def slopes(self, W: Array) -> Array:
        """Return ∂u/∂w at the places, (n, k)."""
        if self.table is not None:
            return 0.0 * W[:, list(self.places)] + namespace(W).asarray(self.table)
        return slope(self.maps, W[:, self.places[0]])[:, None]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """u(w) of several ``columns``, with its jacobian."""

    columns: tuple[Column, ...]

    exact = True  # derivatives need no comparison with differences, which fail where maps end

    def __call__(self, W: Array) -> Array:
        """Return u, (n, D), at rows W (n, d)."""
        return namespace(W).stack([column.values(W) for column in self.columns], axis=1)

    @property
    def columnwise(self) -> bool:
        """Whether uⱼ depends on wⱼ alone, so that `rates` are all of the jacobian."""
        return all(column.places == (j,) for j, column in enumerate(self.columns))

    def rates(self, W: Array) -> Array:
        """Return ∂uⱼ/∂wⱼ, (n, D), of a map by columns."""
        return namespace(W).concatenate([column.slopes(W) for column in self.columns], axis=1)

    def jacobian(self, W: Array) -> Array:
        """Return ∂uⱼ/∂wᵢ, (n, D, d)."""
        J = namespace(W).zeros((len(W), len(self.columns), W.shape[1]))
        for j, column in enumerate(self.columns):
            J[:, j, list(column.places)] = column.slopes(W)
        return J


def behind(kernel: Kernel, columns: Sequence[Column]) -> Kernel:
    """Return a kernel of inputs u as the same kernel of the columns w.

    Only parts that see a function of a column are warped.
    """

    def translated(part: Kernel, seen: Sequence[int], straight: bool = False) -> Kernel:
        if isinstance(part, Select):
            return translated(part.kernel, [seen[i] for i in part.features], straight)
        if isinstance(part, Product):
            straight = straight or not becomes_squared_exponential(part)
        if part.pointwise:
            return part.map_parts(lambda inner: translated(inner, seen, straight))
        if isinstance(part, Constant):
            return part
        chosen = [columns[i] for i in seen]
        if isinstance(part, Index) and all(column.jumps for column in chosen):
            factor = part.factor(chosen[0].labels)
            return Select(mapped(Linear(), factor.T), list(chosen[0].places))
        if isinstance(part, Hamming):
            return _of_codes(part, chosen, straight)
        if any(column.jumps for column in chosen):
            raise UnsupportedModelError(
                f"kernel: {type(part).__name__} of columns with categories is not supported"
            )
        return _of_columns(part, chosen)

    return translated(kernel, range(len(columns)))


def _of_codes(kernel: Hamming, columns: Sequence[Column], straight: bool) -> Kernel:
    """Return a kernel of codes as one of the columns of 0 and 1 of their categories."""
    if any(not column.jumps and column.table is None for column in columns):
        raise UnsupportedModelError(
            "kernel: CategoricalKernel is supported only of columns with categories"
        )
    widths = np.broadcast_to(kernel.lengthscale, (len(columns),)).tolist()
    pairs = [(list(column.places), width) for column, width in zip(columns, widths, strict=True)]
    return linear(pairs) if straight else squared_exponential(pairs)


def _of_columns(kernel: Kernel, columns: Sequence[Column]) -> Kernel:
    places = [place for column in columns for place in column.places]
    if all(column.plain for column in columns) and len(set(places)) == len(places):
        return Select(kernel, places)
    used = sorted(set(places))
    inner = [
        replace(column, places=tuple(used.index(place) for place in column.places))
        for column in columns
    ]
    phi = ColumnMap(tuple(inner))
    return Select(Warped(kernel, phi, phi.jacobian), used)


def mean_behind(mean: Mean, columns: Sequence[Column], d: int) -> Mean:
    """Return a mean of inputs u as the same mean of d columns w."""
    if isinstance(mean, (Zero, ConstantMean)):
        return mean
    if any(column.jumps for column in columns):
        raise UnsupportedModelError(
            "mean_module: a mean that depends on columns with categories is not supported"
        )
    places = [column.places[0] for column in columns]
    if all(column.plain for column in columns):
        if isinstance(mean, LinearMean):
            coefficients = np.zeros(d)
            np.add.at(coefficients, places, mean.coefficients)
            return LinearMean(coefficients, mean.intercept)
        if places == list(range(d)):
            return mean
    warped = WarpedMean(mean, ColumnMap(tuple(columns)))
    return Function(warped.value, warped.gradient)


@dataclass(frozen=True, eq=False)
class WarpedMean:
    """m(u(w)) with its gradient."""

    mean: Mean
    map: ColumnMap

    def value(self, W: Array) -> Array:
        """Return m, (n,), at rows W (n, d)."""
        return self.mean(self.map(W))

    def gradient(self, W: Array) -> Array:
        """Return ∂m/∂wᵢ, (n, d)."""
        inner = self.mean.gradient(self.map(W))
        return (inner[:, None, :] @ self.map.jacobian(W))[:, 0, :]
