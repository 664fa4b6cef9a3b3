"""A distribution of baselines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.validation import Names, as_matrix, as_vector, column_names, read_only
from gpattr.exceptions import InvalidInputError


class Baselines(Frozen):
    """Weighted points (k, d) as one baseline: attributions are averaged over them, exactly.

    ``weights`` (k,) are not negative and sum to one; equal weights by default. Points in a frame
    keep their column names.
    """

    def __init__(self, points: Any, weights: Any = None) -> None:
        self._keep("points", points, weights)

    def _keep(self, name: str, points: Any, weights: Any) -> None:
        """Check points, given by this name, and weights, and keep them."""
        self.points: Array = read_only(as_matrix(name, points))
        self.feature_names: Names | None = column_names(points)
        k = len(self.points)
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

    def __repr__(self) -> str:
        k, d = self.points.shape
        equal = (
            "equal weights"
            if np.ptp(self.weights) == 0
            else f"weights {self.weights.min():.3g} to {self.weights.max():.3g}"
        )
        return f"Baselines({k} points × {d} features, {equal})"
