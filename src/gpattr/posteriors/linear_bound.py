"""Linear maps of outputs: what stands between a posterior's columns and its user's features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.randomness import RandomLike
from gpattr.operators import AffineMap, Operator
from gpattr.posteriors.bound import Attributions, Bound, Evaluation, gathering


@dataclass(frozen=True, eq=False)
class LinearBound(Bound):
    """Outputs that are sums of those of an ``inner`` bound operator: Gᵀ𝒜 for ``matrix`` G (Q, q).

    Rows go through ``units`` first, if there are any.
    """

    inner: Bound
    operator: Operator
    evaluation: Evaluation
    matrix: Array
    units: AffineMap | None = None

    @property
    def pair_cost(self) -> float:
        return self.inner.pair_cost

    def rows(self, rows: Any) -> LinearBound:
        return replace(self, inner=self.inner.rows(rows), operator=self.operator.rows(rows))

    def apply(self, X: Array) -> Attributions:
        result = self.inner.apply(self._inside(X))
        return result.linear(self.matrix, self.evaluation.uncertainty)

    def mean(self, X: Array) -> Array:
        return self.inner.mean(self._inside(X)) @ self.matrix

    def joint(self, X: Array) -> Array:
        result = self.inner.joint(self._inside(X))
        G, n = self.matrix, len(result)
        Q, q = G.shape
        # By matrix products: an einsum of three factors would multiply all three for every pair.
        half = (result @ G).reshape(n, Q, n * q)
        return (namespace(G).swapaxes(G, 0, 1) @ half).reshape(n, q, n, q)

    def rows_covariance(self, X: Array, gather: Any = None) -> Array:
        outer = gathering(gather, self.matrix.shape[1], X)
        matrix = self.matrix if outer is None else self.matrix @ outer
        return self.inner.rows_covariance(self._inside(X), matrix)

    def covariance_with_values(self, X: Array, candidates: Array, gather: Any = None) -> Array:
        outer = gathering(gather, self.matrix.shape[1], X)
        matrix = self.matrix if outer is None else self.matrix @ outer
        return self.inner.covariance_with_values(self._inside(X), self._inside(candidates), matrix)

    def contributions(self, X: Array) -> Array:
        result = self.inner.contributions(self._inside(X))
        return namespace(result).swapaxes(self.matrix, 0, 1) @ result

    def across(self, X: Array) -> Array:
        inside, G = self.inner.across(self._inside(X)), self.matrix
        return namespace(G).einsum("njokp,ji,kl->niolp", inside, G, G)

    def sample(self, X: Array, n: int, random_state: RandomLike) -> np.ndarray:
        return self.inner.sample(self._inside(X), n, random_state) @ to_numpy(self.matrix)

    def _inside(self, X: Array) -> Array:
        return X if self.units is None else self.units.inside(X)
