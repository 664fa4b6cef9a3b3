"""Integrated Hessians: how pairs of features act together along the straight path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import some_rows
from gpattr._core.array import Array
from gpattr._core.validation import check_count
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Reference, Sites
from gpattr.operators.baselines import Baselines
from gpattr.operators.integrated_gradients import IntegratedGradients
from gpattr.operators.pairs import (
    Pairs,
    all_pairs,
    check_pairs,
    labels_of,
    pairs_needed,
    sums_of_pairs,
)

NO_JUMPS = (
    "jumps: integrated Hessians need values in between, which categories do not have; use"
    ' attribution="shapley", which has interactions of categories'
)


class IntegratedHessians(Operator):
    """Γᵢⱼf(x): the integrated gradients, for feature j, of the integrated gradient of feature i.

        Γᵢⱼ = (xᵢ − bᵢ)(xⱼ − bⱼ)∫₀¹(−s ln s) ∂ᵢ∂ⱼf ds + δᵢⱼ(xᵢ − bᵢ)∫₀¹(−ln s) ∂ᵢf ds

    with derivatives at b + s(x − b). Γ is symmetric, its rows add up to the integrated gradients
    and all of it to f(x) − f(b). There is one output for each pair i ≤ j, in the order of the upper
    triangle, or for each of ``pairs``.

    ``baseline`` b is one point (d,), one per row (n, d), or `Baselines`, as for
    `IntegratedGradients`. Categories that jump, at the positions ``jumps``, are not supported.
    (Janizek, Sturmfels and Lee 2021.)

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.IntegratedHessians([0.0, 0.0])
    >>> mean = model.posterior_.apply(operator, X[:1]).distribution.mean
    >>> mean.shape  # of the pairs (0, 0), (0, 1) and (1, 1)
    (1, 3)
    """

    checks: ClassVar[Any] = Operator.checks | {"d": check_count, "points": some_rows}
    axes = ("pair",)
    vanishes_on_constants = True

    def __init__(
        self,
        baseline: Any,
        jumps: Sequence[int] = (),
        *,
        pairs: Any = None,
    ) -> None:
        self.gradients = IntegratedGradients(baseline, jumps)
        if self.gradients.jumps:
            raise UnsupportedModelError(NO_JUMPS)
        self.pairs = check_pairs("pairs", pairs, self.points.shape[1])
        self.of_features: Pairs | None = None  # pairs of features, from pairs of columns

    @property
    def points(self) -> Array:
        """The baselines, (k, d)."""
        return self.gradients.points

    @property
    def reference(self) -> Reference:
        """The reference of rows: the whole symmetric matrix adds up to the difference."""
        return self.gradients.reference

    def pairs_for(self, d: int) -> list[tuple[int, int]]:
        """Return the pairs of d features, in the order of the outputs."""
        return list(all_pairs(d) if self.pairs is None else self.pairs)

    def sizes(self, d: int) -> tuple[int, ...]:
        return (d * (d + 1) // 2 if self.pairs is None else len(self.pairs),)

    @property
    def coordinates(self) -> Mapping[str, Sequence[str | float]]:
        """The labels "i,j" of the pairs."""
        return {"pair": labels_of(tuple(self.pairs_for(self.points.shape[1])))}

    def replaced(self, points: Array, pairs: Pairs | None) -> IntegratedHessians:
        """Return the operator with other baselines and pairs."""
        own = self.gradients
        baseline: Any = points if own.per_row else points[0]
        if own.weights is not None:
            baseline = Baselines(points, own.weights)
        return IntegratedHessians(baseline, pairs=pairs)

    def encoded(self, encoding: Array) -> IntegratedHessians:
        """Return the operator for the pairs of columns that make up the pairs of features."""
        if self.pairs is None:
            return self
        # Baselines are columns already, and chosen pairs are positions of features.
        inner = self.replaced(self.points, pairs_needed(encoding, self.pairs))
        inner.of_features = self.pairs
        return inner

    def gather(self, encoding: Array) -> Array:
        """Return Γ[i, j] = Σ Γ[a, b] over the columns a of feature i and b of feature j."""
        if self.pairs is not None and self.of_features is None:
            return self.encoded(encoding).gather(encoding)
        D, d = encoding.shape
        features = self.of_features or all_pairs(d)
        return sums_of_pairs(encoding, tuple(self.pairs_for(D)), features)

    def in_units(self, units: AffineMap) -> IntegratedHessians:
        points, pairs = units.inside(self.points), self.pairs
        needed = None if pairs is None else pairs_needed(units.feeds(np.zeros(1)), pairs)
        return self.replaced(points, needed)

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return Γ[i, j] = Σ Γ[a, b] over the inputs a that feature i feeds, and b of feature j."""
        feeds = units.feeds(like)
        D, d = feeds.shape
        pairs = self.pairs
        inner = all_pairs(D) if pairs is None else pairs_needed(units.feeds(np.zeros(1)), pairs)
        return sums_of_pairs(feeds, inner, tuple(self.pairs_for(d)))

    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        if self.pairs is not None and max(j for _, j in self.pairs) >= X.shape[1]:
            raise InvalidInputError(
                f"pairs: expected positions below {X.shape[1]}, got {list(self.pairs)}"
            )
        return self.gradients.terms(X)

    def rows(self, rows: Any) -> IntegratedHessians:
        if not self.gradients.per_row:
            return self
        some = self.replaced(self.points[rows], self.pairs)
        some.of_features = self.of_features
        return some
