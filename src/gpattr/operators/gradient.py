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
    """The rows of ``X``, (n, d)."""

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
    """𝒜ᵢf(x) = ∂f/∂xᵢ(x)."""

    vanishes_on_constants = True
    dummy = True

    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        return [(1.0, Points(X))]

    def in_units(self, units: AffineMap) -> Gradient:
        return self

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return the chain rule: the rates ∂uⱼ/∂xᵢ."""
        return units.jacobian(like)
