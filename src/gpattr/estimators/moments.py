"""Means and spreads of columns, joined from parts of the rows (Chan, Golub and LeVeque 1983).

    m = m₁ + δ n₂/n,   S = S₁ + S₂ + δ² n₁n₂/n,   δ = m₂ − m₁,   std = (S/n)^½

Squares are those of values over the largest absolute value of their column, which stay in range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.estimators.search_space import CONSTANT, Units


@dataclass(frozen=True)
class Moments:
    """n rows: ``mean``, ``size`` = max |x|, ``square`` = S/size², and the range of each column."""

    n: int
    mean: np.ndarray
    size: np.ndarray
    square: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Return the moments of rows (n, d)."""
        xp = namespace(rows)
        size = xp.max(abs(rows), axis=0)
        even = rows / _divisor(size)
        square = ((even - even.mean(axis=0)) ** 2).sum(axis=0)
        found = rows.mean(axis=0), size, square, xp.min(rows, axis=0), xp.max(rows, axis=0)
        return cls(len(rows), *map(to_numpy, found))

    def joined(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        n, size = self.n + other.n, np.maximum(self.size, other.size)
        unit = _divisor(size)
        apart = other.mean / unit - self.mean / unit
        square = (
            self.square * (self.size / unit) ** 2
            + other.square * (other.size / unit) ** 2
            + apart**2 * (self.n * other.n / n)
        )
        mean = self.mean + apart * (other.n / n) * size
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Moments(n, mean, size, square, low, high)

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of each column, exactly 0 for a constant column."""
        std = np.sqrt(self.square / self.n)
        return np.where(std > CONSTANT, std, 0.0) * self.size

    def units(self) -> Units:
        """Return standard deviations as units; the last column is that of the targets."""
        std = self.std
        return Units.of_std(std[:-1], float(std[-1]) or 1.0)


def _divisor(size: Array) -> Array:
    return namespace(size).where(size > 0, size, 1.0)
