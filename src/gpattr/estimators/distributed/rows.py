"""Rows of Dask collections to train on, in the segments in which rows in memory are summed.

Partitions are cut and joined into segments, and every sum over rows is a tree over segments.
Results therefore do not depend on the partitions, nor on which worker computed what, or had to
compute it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from sklearn.utils.validation import validate_data

from gpattr._core.array import Array
from gpattr.estimators.distributed.cluster import computed, each, joined, kept, once
from gpattr.estimators.distributed.collections import Parts, parts_of
from gpattr.estimators.distributed.medians import medians
from gpattr.estimators.evidence.random_features import WaveEvidence
from gpattr.estimators.evidence.sparse_bound import CollapsedBound
from gpattr.estimators.sums import SEGMENT, segments
from gpattr.estimators.training_rows import ByMoments, Moments, Scale
from gpattr.means import Mean

Segment = tuple[int, np.ndarray, np.ndarray]  # the number of the first row, rows, targets


class DaskRows(ByMoments):
    """n rows of d features with their targets, less the prior mean, in ``segments``."""

    def __init__(self, inputs: Parts, segments: list[Delayed], verbose: int) -> None:
        self.n, self.d, self.names = inputs.n, inputs.width, inputs.names
        self.segments, self.verbose = segments, verbose

    @classmethod
    def of(cls, X: Any, y: Any, mean: Mean | None = None, verbose: int = 0) -> DaskRows:
        """Return the rows of Dask collections X and y, checked in a pass over all of them."""
        inputs, targets = parts_of(X, y, verbose)
        prior = once(mean)
        nodes = [
            delayed(_segment, pure=False)(
                some.start,
                inputs.between(some.start, some.stop),
                targets.between(some.start, some.stop),
                prior,
            )
            for some in segments(inputs.n)
        ]
        return cls(inputs, kept(nodes, 8.0 * inputs.n * (inputs.width + 1)), verbose)

    def reduce(
        self,
        function: Callable[[Any, Segment], Any],
        value: Any,
        join: Callable[[Any, Any], Any],
        what: str = "",
    ) -> Any:
        """Return function(value, segment) joined over all segments.

        ``what`` is what a line of progress calls it, if there is to be one.
        """
        parts = each(function, value, self.segments)
        return computed(joined(join, parts), parts=parts, verbose=self.verbose, what=what)

    @cached_property
    def moments(self) -> Moments:
        """Means and spreads of the columns of inputs, and of the targets."""
        return self.reduce(_moments, None, Moments.joined, "means and scales")

    @cached_property
    def median(self) -> np.ndarray:
        """The median of the inputs, (d,), exact over all rows."""
        return medians(self)

    def take(self, which: Any) -> tuple[np.ndarray, np.ndarray]:
        index = np.arange(*which.indices(self.n)) if isinstance(which, slice) else which
        if not len(index):
            return np.empty((0, self.d)), np.empty(0)
        order = np.argsort(index, kind="stable")
        numbers = index[order] // SEGMENT
        needed = np.unique(numbers)
        local = [index[order][numbers == k] - k * SEGMENT for k in needed]
        parts = [
            delayed(_picked, pure=False)(self.segments[k], some)
            for k, some in zip(needed, local, strict=True)
        ]
        found = computed(joined(_stacked, parts))
        X, y = np.empty((len(index), self.d)), np.empty(len(index))
        X[order], y[order] = found
        return X, y

    def bound(self, scale: Scale, noise: Any, free_mean: bool, jitter: float) -> CollapsedBound:
        from gpattr.estimators.distributed.sparse import DaskBound

        known = None if noise is None else float(noise[0])
        return DaskBound(self, scale, known, free_mean, jitter)

    def evidence(
        self,
        centres: tuple[Array, float],
        draws: np.ndarray,
        noise: float | None,
        free_mean: bool,
    ) -> WaveEvidence:
        from gpattr.estimators.distributed.random_features import DaskFrequencyEvidence

        return DaskFrequencyEvidence(self, centres, draws, noise, free_mean)


def note_features(model: Any, X: Any) -> None:
    """Store the number of features, and their names, as scikit-learn does."""
    empty: Any = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    validate_data(model, empty, skip_check_array=True)


def _segment(
    start: int, inputs: Sequence[np.ndarray], targets: Sequence[np.ndarray], mean: Mean | None
) -> Segment:
    X, y = np.concatenate(inputs), np.concatenate(targets)[:, 0]
    return start, X, y if mean is None else y - mean(X)


def _moments(_: None, segment: Segment) -> Moments:
    return Moments.of(np.column_stack(segment[1:]))


def _picked(segment: Segment, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return segment[1][index], segment[2][index]


def _stacked(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
