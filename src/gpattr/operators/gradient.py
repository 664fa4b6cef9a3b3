"""The gradient of a function at a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from gpattr._core.arguments import some_rows
from gpattr._core.array import Array, namespace
from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Sites, check_batches


@dataclass(frozen=True, eq=False)
class Points(Sites):
    """The rows of ``X``, (n, d).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import Points
    >>> Points(np.zeros((4, 2))).shape
    (4, 2)
    """

    X: Array

    def __post_init__(self) -> None:
        some_rows("X", self.X)

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.X.shape
        return n, d

    @property
    def like(self) -> Array:
        return self.X

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.X[rows])

    @classmethod
    def stack(cls, batches: Sequence[Points]) -> Self:
        check_batches(cls, batches)
        xp = namespace(batches[0].X)
        return cls(xp.concatenate([points.X for points in batches]))

    def select(self, features: Array) -> Self:
        return type(self)(self.X[:, features])


@dataclass(frozen=True)
class Gradient(Operator):
    """𝒜ᵢf(x) = ∂f/∂xᵢ(x).

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> gradient = gpattr.operators.Gradient()
    >>> gpattr.Explainer(model, attribution=gradient)([[0.0, 1.0]]).values.round(1)
    array([[ 1., -2.]])
    """

    vanishes_on_constants = True
    dummy = True

    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        return [(1.0, Points(X))]

    def in_units(self, units: AffineMap) -> Gradient:
        return self

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return the chain rule: the rates ∂uⱼ/∂xᵢ."""
        return units.jacobian(like)
