"""Random-feature regression on Dask: sums over rows, in the blocks of the stream, by a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr.bases import Fourier
from gpattr.estimators.distributed.rows import DaskRows, Segment, note_features
from gpattr.estimators.evidence.random_features import FrequencyEvidence, Linear, WaveEvidence
from gpattr.estimators.inducing import default_number
from gpattr.estimators.random_feature_stream import Stream, check_size
from gpattr.estimators.sums import BLOCK, Start, Sums, Totals
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Radial

Waves = tuple[Sequence[Fourier], Start]


def stream_on_dask(model: Any, X: Any, y: Any) -> Stream:
    """Return the state of a random-feature model after all rows of Dask collections X and y."""
    rows = DaskRows.of(X, y, verbose=model.verbose)
    note_features(model, X)
    size = rows.moments.size
    check_size(float(size[-1]))
    stream = model._begin(rows, rows.names, default_number(rows.n), learn=model.optimize is True)
    origin, shift = start = stream.rows.middle(*rows.take(slice(BLOCK)))
    waves = stream.bases_at(origin), start
    totals = rows.reduce(_totals, waves, Totals.joined, "sums over rows")
    stream.rows.restore(origin, shift, totals.sums, origin + totals.inputs / rows.n)
    stream.median = rows.median
    return stream


def _totals(waves: Waves, segment: Segment) -> Totals:
    (bases, start), (first, X, y) = waves, segment
    try:
        bases[0].check_rows("X", X)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} (counted from row {first})") from None
    totals = Totals.empty(bases, X)
    for at in range(0, len(X), BLOCK):
        some = slice(at, at + BLOCK)
        totals = totals.plus(bases, start, X[some], y[some])
    return totals


@dataclass(frozen=True)
class DaskFrequencyEvidence(WaveEvidence):
    """log p(y) for rows of Dask collections; ``centres`` belong to inputs and targets."""

    rows: DaskRows
    centres: tuple[np.ndarray, float]
    draws: Array
    noise: float | None
    free_mean: bool

    def sums(self, kernel: Radial) -> Sums:
        return self.rows.reduce(_frequency_sums, (self._local, kernel), Sums.joined)

    def pulls(self, kernel: Radial, fit: Linear) -> Array:
        return self.rows.reduce(_pulls, (self._local, kernel, fit), np.add)

    @property
    def _local(self) -> tuple[Any, ...]:
        return self.centres, self.draws, self.noise, self.free_mean


def _here(local: tuple[Any, ...], segment: Segment) -> FrequencyEvidence:
    (middle, level), *rest = local
    return FrequencyEvidence(segment[1] - middle, segment[2] - level, *rest)


def _frequency_sums(value: tuple[Any, ...], segment: Segment) -> Sums:
    local, kernel = value
    return _here(local, segment).sums(kernel)


def _pulls(value: tuple[Any, ...], segment: Segment) -> Array:
    local, kernel, fit = value
    return _here(local, segment).pulls(kernel, fit)
