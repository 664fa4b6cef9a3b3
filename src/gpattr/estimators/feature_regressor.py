"""The base of regressors over a finite basis with a kernel: the search for hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from gpattr.estimators.base import KernelRegressor, check_training
from gpattr.estimators.evidence.marginal_likelihood import NOISE, OPTIONS, maximise
from gpattr.estimators.hyperparameters import trainable
from gpattr.estimators.progress import training_progress
from gpattr.estimators.search_space import NOISE_SHARE, Units, bounds_for, starts_from
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel

K = TypeVar("K", bound=Kernel)


class FeatureRegressor(KernelRegressor):
    """A regressor over a finite basis whose prior comes from a kernel."""

    bounds: Any
    n_restarts: int
    verbose: int

    def _check_search(self) -> None:
        """Raise `InvalidInputError` for invalid options of the search."""
        if self.bounds is not None and not isinstance(self.bounds, Mapping):
            raise InvalidInputError(
                f"bounds: expected a dictionary {{name: (lower, upper)}}, got {self.bounds!r}"
            )
        check_training(self)

    def _search(
        self,
        objective: Callable[[Kernel, float | None], tuple[float, dict[str, Any]]],
        kernel: K,
        known: float | None,
        variance: float,
        n: int,
        generator: Any,
        names: Collection[str] | None = None,
        limits: Mapping[str, np.ndarray] | None = None,
        ftol: float = OPTIONS["ftol"],
    ) -> tuple[K, float]:
        """Return the most likely kernel and noise for n targets of this variance.

        ``names`` are the hyperparameters to learn, all by default. The noise is learned unless it
        is ``known``. ``limits`` (2, size) are bounds by default.
        """
        _check_targets(n, variance)
        start = {
            name: value
            for name, value in trainable(kernel).items()
            if names is None or name in names
        }
        noise = NOISE_SHARE * variance if known is None else None
        start |= {} if noise is None else {NOISE: np.array([noise])}
        given = self.bounds or {}
        if names is not None:  # bounds of what is not learned here
            given = {
                name: ends
                for name, ends in given.items()
                if name in start or name not in trainable(kernel)
            }
        bounds = bounds_for(
            start, Units(np.ones(()), 1.0), given, variance, own_start=self._given_kernel is None
        )
        for name in bounds:
            if limits is not None and name in limits and name not in given:
                bounds[name] = limits[name]
        if bounds:
            starts = starts_from({name: start[name] for name in bounds}, self.n_restarts, generator)
            with training_progress(self.verbose, len(starts), 0.0) as report:
                kernel, noise = maximise(
                    objective, kernel, noise, bounds, starts, report=report, ftol=ftol
                )
        level = known if noise is None else noise
        assert level is not None
        return kernel, level


def _check_targets(n: int, variance: float) -> None:
    if n < 2:
        raise InvalidInputError(
            "X: expected at least 2 rows to learn hyperparameters, got n_samples=1; use"
            " optimize=False"
        )
    if variance == 0:
        raise InvalidInputError(
            "y: expected targets that differ, got one value everywhere; use optimize=False"
        )
