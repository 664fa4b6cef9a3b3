"""Rows to train on, wherever they are: what estimators ask of them.

`RowsInMemory` holds arrays; `distributed.rows.DaskRows` answers by passes over the
partitions of Dask collections.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.estimators.evidence.random_features import FrequencyEvidence, WaveEvidence
from gpattr.estimators.evidence.sparse_bound import CollapsedBound, SparseObjective
from gpattr.estimators.moments import Moments
from gpattr.estimators.search_space import Units
from gpattr.estimators.segments import joined, segments

Scale = tuple[Any, Any, float]  # the middle of inputs, and the units of inputs and targets

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
        """Return the evidence of random features; ``centres`` are those of inputs and targets."""
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
