"""Rows to train on, wherever they are: the interface that estimators need.

`RowsInMemory` holds arrays; `distributed.rows.DaskRows` answers by passes over the
partitions of Dask collections.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr.estimators.evidence.random_features import FrequencyEvidence, WaveEvidence
from gpattr.estimators.evidence.sparse_bound import CollapsedBound, SparseObjective
from gpattr.estimators.search_space import CONSTANT, Units
from gpattr.estimators.sums import joined, segments

Scale = tuple[Any, Any, float]  # the middle of inputs, and the units of inputs and targets

SHUFFLED = 10**6  # rows up to which a sample is the beginning of a permutation of all of them


@dataclass(frozen=True)
class Moments:
    """n rows: ``mean``, ``size`` = max |x|, ``square`` = S/size², and the range of each column.

    Parts of the rows are joined (Chan, Golub and LeVeque 1983):

        m = m₁ + δ n₂/n,   S = S₁ + S₂ + δ² n₁n₂/n,   δ = m₂ − m₁,   std = (S/n)^½

    Squares are taken of values over the largest absolute value of their column, which stay in
    range.
    """

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
        """Return standard deviations as units; the last column holds the targets'."""
        std = self.std
        return Units.of_std(std[:-1], float(std[-1]) or 1.0)


def _divisor(size: Array) -> Array:
    return namespace(size).where(size > 0, size, 1.0)


class TrainingRows(Protocol):
    """n rows of d features with their targets."""

    @property
    def n(self) -> int: ...

    @property
    def d(self) -> int: ...

    def units(self) -> Units:
        """Return the standard deviations of features and targets."""
        ...

    def mean(self) -> Array:
        """Return the mean of the inputs, (d,)."""
        ...

    def target_mean(self) -> float:
        """Return the mean of the targets."""
        ...

    def target_std(self, unit: float = 1.0) -> float:
        """Return the standard deviation of the targets in this unit, 0 if they are all equal."""
        ...

    def targets_differ(self) -> bool:
        """Return whether there is more than one value of the targets."""
        ...

    def take(self, which: Any) -> tuple[Array, Array]:
        """Return the rows of these numbers, or of a slice, and their targets."""
        ...

    def bound(self, scale: Scale, noise: Any, free_mean: bool, jitter: float) -> CollapsedBound:
        """Return the bound of sparse regression on these rows; ``noise`` (n,) is known, or None."""
        ...

    def evidence(
        self,
        centres: tuple[Array, float],
        draws: np.ndarray,
        noise: float | None,
        free_mean: bool,
    ) -> WaveEvidence:
        """Return the evidence of random features; ``centres`` belong to inputs and targets."""
        ...


class ByMoments:
    """Answers that follow from the moments of inputs and targets."""

    moments: Any  # `Moments` of the columns of inputs, then of the targets

    def units(self) -> Units:
        return self.moments.units()

    def mean(self) -> Array:
        return self.moments.mean[:-1]

    def target_mean(self) -> float:
        return float(self.moments.mean[-1])

    def target_std(self, unit: float = 1.0) -> float:
        return float(self.moments.std[-1]) / unit

    def targets_differ(self) -> bool:
        return bool(self.moments.low[-1] < self.moments.high[-1])


@dataclass(frozen=True)
class RowsInMemory(ByMoments):
    """Rows X (n, d) and targets y (n,) in arrays."""

    X: Array
    y: Array

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    @cached_property
    def moments(self) -> Moments:
        """Means and spreads of the columns of inputs, and of the targets."""
        xp = namespace(self.X)
        return joined(
            Moments.joined,
            (
                Moments.of(xp.concatenate([self.X[some], self.y[some][:, None]], axis=1))
                for some in segments(self.n)
            ),
        )

    def mean(self) -> Array:
        return namespace(self.X).asarray(super().mean())

    def take(self, which: Any) -> tuple[Array, Array]:
        return self.X[which], self.y[which]

    def bound(self, scale: Scale, noise: Any, free_mean: bool, jitter: float) -> CollapsedBound:
        middle, std, unit = scale
        return SparseObjective((self.X - middle) / std, self.y / unit, noise, free_mean, jitter)

    def evidence(
        self,
        centres: tuple[Array, float],
        draws: np.ndarray,
        noise: float | None,
        free_mean: bool,
    ) -> WaveEvidence:
        return FrequencyEvidence(self.X - centres[0], self.y - centres[1], draws, noise, free_mean)


def drawn(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    """Return the numbers of k of n rows, in random order and in bounded memory."""
    if n <= SHUFFLED:
        return generator.permutation(n)[:k]
    return generator.choice(n, k, replace=False)
