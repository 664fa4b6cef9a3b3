"""Positive factors of kernels, one for each player, by their logarithms.

Arrays have the columns of the inputs first, (C, ...), and their other axes broadcast; what comes
back has the players first. Differences of logarithms come from differences of inputs, so that they
keep their digits where a row is close to its baseline.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.kernels import (
    Kernel,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Radial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.kernels.rational_quadratic import GAUSSIAN
from gpattr.operators import Players

TINY = 1e-300


class Logs(NamedTuple):
    """log k(x, z) and log k(b, z) for each player, and half their difference, (p, ...) each."""

    at_row: Array
    at_baseline: Array
    half: Array


@dataclass(frozen=True, eq=False)
class LogFactor(ABC):
    """Factors of a ``kernel`` on some ``columns``, one for each of its ``players``."""

    kernel: Any
    columns: tuple[int, ...]
    owner: tuple[int, ...]  # the player of each column, among all players

    stationary: ClassVar[bool] = True

    @property
    def players(self) -> tuple[int, ...]:
        """The players these factors belong to, in order."""
        return self._grouping.seen

    @cached_property
    def _grouping(self) -> Players:
        return Players(self.owner, 1 + max(self.owner))

    @abstractmethod
    def logs(self, x: Array, z: Array) -> Array:
        """Return log k(x, z), (p, ...), of factors with k(x, x) = 1, for x, z (C, ...)."""

    @abstractmethod
    def pair(self, x: Array, b: Array, z: Array) -> Logs:
        """Return log k(x, z), log k(b, z) and half their difference."""

    def contrast(self, x: Array, b: Array, z: Array) -> tuple[Array, Array]:
        """Return half the difference, (p, ...), and the sum over players of the larger one."""
        logs = self.pair(x, b, z)
        return logs.half, namespace(x).maximum(logs.at_row, logs.at_baseline).sum(axis=0)

    def mixed(self, x: Array, b: Array, y: Array, c: Array) -> Array:
        """Return log k(x, y) − log k(b, y) − log k(x, c) + log k(b, c), (p, ...)."""
        return 2.0 * (self.pair(x, b, y).half - self.pair(x, b, c).half)

    def phase(self, span: Array) -> Array | float:
        """Return by how many ε rounding of a phase changes log k, (n,), over spans (C, n)."""
        return 0.0

    def taken(self, x: Array) -> Array:
        """Return the columns that the kernel sees of inputs (D, ...)."""
        return x if self.columns == tuple(range(len(x))) else x[list(self.columns)]

    def grouped(self, values: Array) -> Array:
        """Return values of columns, (C, ...), added up by player, (p, ...)."""
        members = self._grouping.members
        if len(members) == len(values) and self.owner == tuple(sorted(self.owner)):
            return values
        parts = [values[list(some)].sum(axis=0) for some in members]
        return namespace(values).stack(parts)

    def scaled(self, x: Array, parameter: Any) -> Array:
        """Return one parameter for each column, of a shape that multiplies x (C, ...)."""
        xp = namespace(x)
        each = xp.broadcast_to(xp.asarray(parameter), (len(self.columns),))
        return each.reshape(-1, *[1] * (x.ndim - 1))


class SquaredExponentialFactor(LogFactor):
    """log k = −½ ((x − z)/ℓ)², for each column."""

    def logs(self, x: Array, z: Array) -> Array:
        distance = (x - z) / self.scaled(x, self.kernel.lengthscale)
        distance *= distance
        distance *= -0.5
        return self.grouped(distance)

    def pair(self, x: Array, b: Array, z: Array) -> Logs:
        """Half the difference is −¼ (x − b)((x − z) + (b − z))/ℓ²."""
        inverse = 1.0 / self.scaled(x, self.kernel.lengthscale)
        step = (x - b) * inverse
        row, base = (x - z) * inverse, (b - z) * inverse
        half = row + base
        half *= -0.25 * step
        row *= row
        row *= -0.5
        base *= base
        base *= -0.5
        return Logs(self.grouped(row), self.grouped(base), self.grouped(half))

    def contrast(self, x: Array, b: Array, z: Array) -> tuple[Array, Array]:
        """Half the difference is −¼ (x − b)((x − z) + (b − z))/ℓ², the larger value the nearer's.

        It holds where every column is a player.
        """
        if len(self.players) < len(self.columns):
            return super().contrast(x, b, z)
        inverse = 1.0 / self.scaled(x, self.kernel.lengthscale)
        row, base = x - z, (b - z) * inverse
        row *= inverse
        near = namespace(x).minimum(abs(row), abs(base))
        near *= near
        row += base
        row *= -0.25 * ((x - b) * inverse)
        return self.grouped(row), -0.5 * near.sum(axis=0)

    def mixed(self, x: Array, b: Array, y: Array, c: Array) -> Array:
        """The mixed difference is (x − b)(y − c)/ℓ²."""
        inverse = 1.0 / self.scaled(x, self.kernel.lengthscale)
        return self.grouped((x - b) * inverse * ((y - c) * inverse))


class PeriodicFactor(LogFactor):
    """log k = −2 sin²(π(x − z)/P)/ℓ², for each column."""

    def _scales(self, x: Array) -> tuple[Array, Array]:
        rate = math.pi / self.scaled(x, self.kernel.period)
        return rate, 1.0 / self.scaled(x, self.kernel.lengthscale)

    def phase(self, span: Array) -> Array:
        """log k changes by at most 2/ℓ² times a change of the phase π(x − z)/P."""
        rate, inverse = self._scales(span)
        return (4.0 * rate * span * inverse * inverse).sum(axis=0)

    def logs(self, x: Array, z: Array) -> Array:
        rate, inverse = self._scales(x)
        return self.grouped(-2.0 * (namespace(x).sin(rate * (x - z)) * inverse) ** 2)

    def pair(self, x: Array, b: Array, z: Array) -> Logs:
        """Half the difference is −sin(π(x − b)/P) sin(π((x − z) + (b − z))/P)/ℓ²."""
        xp, (rate, inverse) = namespace(x), self._scales(x)
        turn = xp.sin(rate * (x - b)) * inverse
        half = -turn * (xp.sin(rate * ((x - z) + (b - z))) * inverse)
        return Logs(self.logs(x, z), self.logs(b, z), self.grouped(half))


class RadialFactor(LogFactor):
    """log g(r) of a radial kernel all of whose columns are one player's."""

    def _squared(self, x: Array, z: Array) -> Array:
        difference = (x - z) / self.scaled(x, self.kernel.lengthscale)
        return (difference * difference).sum(axis=0)

    def logs(self, x: Array, z: Array) -> Array:
        return LOG_PROFILES[type(self.kernel)][0](self.kernel, self._squared(x, z))[None]

    def pair(self, x: Array, b: Array, z: Array) -> Logs:
        inverse = 1.0 / self.scaled(x, self.kernel.lengthscale)
        log, half_difference = LOG_PROFILES[type(self.kernel)]
        row, base = self._squared(x, z), self._squared(b, z)
        change = ((x - b) * inverse * (((x - z) + (b - z)) * inverse)).sum(axis=0)
        xp, size = namespace(row), row + base
        at_row, at_base = log(self.kernel, row), log(self.kernel, base)
        # Logarithms that differ by much lose nothing in their difference.
        close = abs(change) < 0.1 * (1.0 + size)
        near = half_difference(self.kernel, row, base, xp.where(close, change, 0.0 * change))
        half = xp.where(close, near, 0.5 * (at_row - at_base))
        return Logs(at_row[None], at_base[None], half[None])


def _distances(row: Array, base: Array, change: Array, order: float) -> tuple[Array, Array]:
    """Return √(2ν)(r_x − r_b) and √(2ν)r_b from squared distances and their difference."""
    xp, root = namespace(row), math.sqrt(2.0 * order)
    r, s = xp.sqrt(row), xp.sqrt(base)
    return root * change / xp.maximum(r + s, TINY), root * s


def _log1p_less(x: Array) -> Array:
    """Return log(1 + x) − x without cancellation where x is small."""
    xp = namespace(x)
    small = abs(x) < 0.05
    near = xp.where(small, x, 0.0 * x)
    series = 0.0 * near
    for k in range(14, 1, -1):
        series = near * series + (-1.0) ** (k + 1) / k
    return xp.where(small, near * near * series, xp.log1p(xp.where(small, 0.0 * x, x)) - x)


def _log_matern12(kernel: Matern12, r2: Array) -> Array:
    return -namespace(r2).sqrt(r2)


def _half_matern12(kernel: Matern12, row: Array, base: Array, change: Array) -> Array:
    return -0.5 * _distances(row, base, change, 0.5)[0]


def _log_matern32(kernel: Matern32, r2: Array) -> Array:
    return _log1p_less(namespace(r2).sqrt(3.0 * r2))


def _half_matern32(kernel: Matern32, row: Array, base: Array, change: Array) -> Array:
    g, t = _distances(row, base, change, 1.5)
    return 0.5 * (_log1p_less(g / (1.0 + t)) - g * (t / (1.0 + t)))


def _log_matern52(kernel: Matern52, r2: Array) -> Array:
    s = namespace(r2).sqrt(5.0 * r2)
    third = s * s / 3.0
    return _log1p_less(s + third) + third


def _half_matern52(kernel: Matern52, row: Array, base: Array, change: Array) -> Array:
    g, t = _distances(row, base, change, 2.5)
    whole = 1.0 + t + t * t / 3.0
    rise = g * ((1.0 + (2.0 * t + g) / 3.0) / whole)
    return 0.5 * (_log1p_less(rise) + g * ((g - t - t * t) / (3.0 * whole)))


def _log_matern(kernel: Matern, r2: Array) -> Array:
    xp = namespace(r2)
    return xp.log(xp.maximum(kernel.profile(r2), TINY))


def _half_matern(kernel: Matern, row: Array, base: Array, change: Array) -> Array:
    return 0.5 * (_log_matern(kernel, row) - _log_matern(kernel, base))


def _log_rational_quadratic(kernel: RationalQuadratic, r2: Array) -> Array:
    if kernel.alpha > GAUSSIAN:
        return -0.5 * r2
    return -kernel.alpha * namespace(r2).log1p(r2 / (2.0 * kernel.alpha))


def _half_rational_quadratic(
    kernel: RationalQuadratic, row: Array, base: Array, change: Array
) -> Array:
    if kernel.alpha > GAUSSIAN:
        return -0.25 * change
    return -0.5 * kernel.alpha * namespace(row).log1p(change / (2.0 * kernel.alpha + base))


# log g as a function of r², and ½(log g(r_x) − log g(r_b)) of r_x², r_b² and their difference.
LOG_PROFILES: dict[type[Radial], tuple[Callable[..., Array], Callable[..., Array]]] = {
    Matern12: (_log_matern12, _half_matern12),
    Matern32: (_log_matern32, _half_matern32),
    Matern52: (_log_matern52, _half_matern52),
    Matern: (_log_matern, _half_matern),
    RationalQuadratic: (_log_rational_quadratic, _half_rational_quadratic),
}
BY_COLUMN: dict[type[Kernel], type[LogFactor]] = {
    SquaredExponential: SquaredExponentialFactor,
    Periodic: PeriodicFactor,
}


def factor_of(kernel: Kernel, columns: tuple[int, ...], players: Players) -> LogFactor | None:
    """Return a kernel of some columns as factors of players; None where it is no such product."""
    owner = tuple(players.owner[column] for column in columns)
    if isinstance(kernel, RationalQuadratic) and kernel.alpha > GAUSSIAN:
        kernel = SquaredExponential(kernel.lengthscale, kernel.variance)
    kind = BY_COLUMN.get(type(kernel))
    if kind is None and type(kernel) in LOG_PROFILES and len(set(owner)) == 1:
        kind = RadialFactor
    return None if kind is None else kind(kernel, columns, owner)


def variance_of(kernel: Any) -> float:
    """Return σ² of a kernel whose factors have k(x, x) = 1."""
    return float(np.asarray(kernel.variance))
