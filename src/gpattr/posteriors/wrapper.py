"""Wrappers: posteriors of g as posteriors of f(x) = g(u(x)), and sums of g's outputs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.randomness import RandomLike
from gpattr.exceptions import InvalidInputError
from gpattr.operators import AffineMap, Operator
from gpattr.posteriors.base import Posterior, check_single
from gpattr.posteriors.bound import Attributions, Bound, Evaluation, gathering


class WrapperPosterior(Posterior):
    """f(x) = g(u(x)) for the ``posterior`` of g, a function of numeric columns."""

    posterior: Posterior

    @property
    def like(self) -> Array:
        return self.posterior.like

    @property
    def inner(self) -> tuple[Posterior, ...]:
        return (self.posterior,)

    @property
    def link(self) -> str | None:
        return self.posterior.link

    @property
    def components(self) -> tuple[tuple[float, Posterior], ...]:
        parts = self.posterior.components
        if len(parts) == 1:
            return ((1.0, self),)
        return tuple((weight, self.around(part)) for weight, part in parts)

    def _inside(self, X: Array) -> Array:
        """Rows as g takes them, u(x)."""
        return X

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        return self.posterior.moments(self._inside(X), return_std=return_std, return_cov=return_cov)

    def values_variance(self, X: Array) -> Array:
        return self.posterior.values_variance(self._inside(X))

    def values_covariance(self, X: Array, points: Array) -> Array:
        rows = self._inside(X)
        others = rows if points is X else self._inside(points)
        return self.posterior.values_covariance(rows, others)

    def conditioned(self, X: Array, y: Array, noise: Any) -> WrapperPosterior:
        return self.around(self.posterior.conditioned(self._inside(X), y, noise))

    @property
    def noise_variance(self) -> float | None:
        return self.posterior.noise_variance

    @abstractmethod
    def around(self, posterior: Posterior) -> WrapperPosterior:
        """Return the same wrapper around another posterior."""


def check_wrapped(posterior: Posterior) -> None:
    """Raise `InvalidInputError` unless this is a posterior of one output and numeric columns."""
    check_single("posterior", posterior)
    if posterior.encoder is not None:
        raise InvalidInputError(
            "posterior: expected a gpattr posterior of numeric columns, got a"
            f" {type(posterior).__name__}"
        )


@dataclass(frozen=True, eq=False)
class LinearBound(Bound):
    """Sums of the outputs of an ``inner`` bound operator: Gᵀ𝒜 for ``matrix`` G (Q, q).

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
