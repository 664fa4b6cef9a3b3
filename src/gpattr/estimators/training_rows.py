"""Rows to train on, wherever they are: what estimators ask of them.

`RowsInMemory` holds arrays; `distributed.DaskRows` answers the same questions by passes over the
partitions of Dask collections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpattr._core.array import Array
from gpattr.estimators.search_space import Units, std_of

SHUFFLED = 10**6  # rows up to which a sample is the beginning of a permutation of all of them


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


@dataclass(frozen=True)
class RowsInMemory:
    """Rows X (n, d) and targets y (n,) in arrays."""

    X: Array
    y: Array

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        return self.X.shape[1]

    def units(self) -> Units:
        return Units.of_data(self.X, self.y)

    def mean(self) -> Array:
        return self.X.mean(axis=0)

    def target_mean(self) -> float:
        return float(self.y.mean())

    def target_std(self, unit: float = 1.0) -> float:
        return float(std_of((self.y / unit)[:, None])[0])

    def targets_differ(self) -> bool:
        return float(self.y.max()) != float(self.y.min())

    def take(self, which: Any) -> tuple[Array, Array]:
        return self.X[which], self.y[which]


def drawn(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    """Return the numbers of k of n rows, in random order and in bounded memory."""
    if n <= SHUFFLED:
        return generator.permutation(n)[:k]
    return generator.choice(n, k, replace=False)
