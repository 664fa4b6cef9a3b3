"""Sparse regression on Dask: the bound and its derivatives, each by one reduction over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import LinAlgError, product
from gpattr.estimators.distributed.collections import width_of
from gpattr.estimators.distributed.rows import DaskRows, Segment, note_features
from gpattr.estimators.evidence.sparse_bound import (
    BoundSums,
    CollapsedBound,
    Pull,
    SparseObjective,
    added,
)
from gpattr.estimators.training_rows import Scale
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Kernel
from gpattr.means import Constant
from gpattr.posteriors import SparsePosterior


def fit_on_dask(model: Any, X: Any, y: Any, noise: Any) -> Any:
    """Train a `SparseGPRegressor` on Dask collections X and y."""
    from gpattr.estimators.sparse_gp_regressor import SAMPLED, missed_share, named

    if noise is not None:
        raise InvalidInputError(
            "noise: expected None with Dask collections; one variance for all rows is"
            " noise_variance="
        )
    prior_mean, known = model._prior(np.empty((0, width_of(X))), None)
    mean = prior_mean if model.mean is prior_mean else None
    rows = DaskRows.of(X, y, mean, model.verbose)
    note_features(model, X)
    kernel, Z, level, centre, jitter = model._learn(rows, known)
    level = float(level)
    bound = DaskBound(rows, (0.0, 1.0, 1.0), None, False, jitter, centre, "posterior")
    try:
        state = bound.at(kernel, level, Z.ravel())
    except LinAlgError:
        raise NotPositiveDefiniteError(
            "kernel: the covariance of the inducing inputs is singular to rounding"
        ) from None
    posterior = SparsePosterior(
        kernel,
        Z if rows.names is None else named(Z, rows.names),
        product(state.R, state.half),
        q_root=state.R,
        whitened=True,
        mean=Constant(centre) if model.mean == "constant" else prior_mean,
        jitter=jitter,
        reference_points={"mean": rows.mean(), "median": rows.median},
        bound=state.value,
    )
    every = max(1, rows.n // SAMPLED)
    some = rows.take(slice(0, every * SAMPLED, every))[0]
    return model._become(posterior, level, jitter, missed_share(posterior, some))


@dataclass(frozen=True)
class DaskBound(CollapsedBound):
    """F for rows of Dask collections; ``scale`` takes them to the units of training.

    ``centre`` is a known constant mean, ``what`` the name of a pass where its progress is shown.
    """

    rows: DaskRows
    scale: Scale
    noise: float | None
    free_mean: bool
    jitter: float
    centre: float = 0.0
    what: str = ""

    @property
    def d(self) -> int:
        return self.rows.d

    def sums(self, kernel: Kernel, noise: float | None, Z: np.ndarray, L: np.ndarray) -> BoundSums:
        value = self._local, kernel, noise, Z, L
        return self.rows.reduce(_sums, value, BoundSums.joined, self.what)

    def slopes(self, kernel: Kernel, noise: float | None, pull: Pull) -> dict[str, Any]:
        return self.rows.reduce(_slopes, (self._local, kernel, noise, pull), added)

    @property
    def _local(self) -> tuple[Any, ...]:
        return self.scale, self.centre, self.noise, self.free_mean, self.jitter


def _here(local: tuple[Any, ...], segment: Segment) -> SparseObjective:
    (middle, std, unit), centre, *rest = local
    return SparseObjective((segment[1] - middle) / std, (segment[2] - centre) / unit, *rest)


def _sums(value: tuple[Any, ...], segment: Segment) -> BoundSums:
    local, kernel, noise, Z, L = value
    return _here(local, segment).sums(kernel, noise, Z, L)


def _slopes(value: tuple[Any, ...], segment: Segment) -> dict[str, Any]:
    local, kernel, noise, pull = value
    return _here(local, segment).slopes(kernel, noise, pull)
