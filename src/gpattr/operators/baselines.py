"""A distribution of baselines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.validation import (
    Names,
    NotNumericError,
    as_matrix,
    as_vector,
    column_names,
    numbers,
    read_only,
)
from gpattr.exceptions import InvalidInputError


def points_of(baseline: Any) -> tuple[Array, Array | None, bool]:
    """Return the points (k, d) of a baseline, their weights, and whether there is one per row."""
    if isinstance(baseline, Baselines):
        return baseline.points, baseline.weights, False
    if numbers("baseline", baseline).ndim == 2:
        return as_matrix("baseline", baseline), None, True
    return as_vector("baseline", baseline)[None, :], None, False


class Baselines(Frozen):
    """Weighted points (k, d) as one baseline: attributions are averaged over them, exactly.

    Parameters
    ----------
    points : array or frame (k, d)
        Points in a frame keep their column names. A frame may have categories and dates, if the
        model was trained on such a frame.
    weights : array (k,), optional
        Not negative, and with the sum one; equal by default.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> background = gpattr.Baselines([[0.0, 0.0], [0.0, 1.0]], weights=[0.5, 0.5])
    >>> gpattr.Explainer(model, background)([[1.0, 1.0]]).values.round(2)
    array([[ 1. , -0.5]])
    """

    def __init__(self, points: ArrayLike, weights: ArrayLike | None = None) -> None:
        self._keep("points", points, weights)

    def _keep(self, name: str, points: Any, weights: Any) -> None:
        """Check points, given by this name, and weights, and keep them."""
        self.feature_names: Names | None = column_names(points)
        self.frame: Any = None  # where it has columns that are not numbers
        self._points: Array | NotNumericError
        try:
            self._points = read_only(as_matrix(name, points))
        except NotNumericError as error:
            if not len(points):
                raise InvalidInputError(f"{name}: expected at least one row, got none") from None
            self.frame, self._points = points[list(points.columns)], error
        k = len(points)
        if weights is None:
            weights = np.full(k, 1.0 / k)
        weights = as_vector("weights", weights, length=k, unit="weights (one per baseline)")
        if (weights < 0).any():
            raise InvalidInputError(
                f"weights: expected no negative weight, got {weights.min()} at position"
                f" {weights.argmin()}"
            )
        total = math.fsum(weights)
        if abs(total - 1.0) > 1e-8:
            raise InvalidInputError(
                f"weights: expected weights that sum to 1, got a sum of {total:.12g}; divide them"
                " by it"
            )
        self.weights: Array = read_only(weights / total)

    @property
    def points(self) -> Array:
        """The points, (k, d); columns that are not numbers need the encoder of a model."""
        if isinstance(self._points, NotNumericError):
            raise self._points
        return self._points

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        k, d = (self.points if self.frame is None else self.frame).shape
        equal = (
            "equal weights"
            if np.ptp(self.weights) == 0
            else f"weights {self.weights.min():.3g} to {self.weights.max():.3g}"
        )
        return f"Baselines({k} points × {d} features, {equal})"
