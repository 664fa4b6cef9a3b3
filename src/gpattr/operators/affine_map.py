"""Affine maps of inputs: scalers and selections, uⱼ = (x_source(j) − shiftⱼ)/scaleⱼ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpattr._core.arguments import Checked, an_array, positions, some_rows
from gpattr._core.array import Array, namespace
from gpattr._core.validation import check_count


@dataclass(frozen=True, eq=False)
class AffineMap(Checked):
    """u(x) = (x[source] − ``shift``)/``scale``; shift and scale are in the units of x.

    ``source`` (D,) are the positions of the features of x, of which there are ``n_features``.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import AffineMap
    >>> scaled = AffineMap(np.array([1.0]), np.array([2.0]), source=(1,), n_features=2)
    >>> scaled.inside(np.array([[0.0, 5.0]]))
    array([[2.]])
    """

    checks: ClassVar[Any] = {"X": some_rows, "U": some_rows, "like": an_array}

    shift: Array
    scale: Array
    source: tuple[int, ...]
    n_features: int

    def __post_init__(self) -> None:
        for name, value in (("shift", self.shift), ("scale", self.scale)):
            an_array(name, value)
        positions("source", self.source)
        check_count("n_features", self.n_features)

    def inside(self, X: Array) -> Array:
        """Return rows (n, d) in the units of u, (n, D)."""
        shift, scale = self._units(X)
        return (X[:, list(self.source)] - shift) / scale

    def outside(self, U: Array) -> Array:
        """Return rows (n, D) in the units of x, (n, d); features that feed no input are 0."""
        xp, (shift, scale) = namespace(U), self._units(U)
        X = xp.zeros((len(U), self.n_features))
        X[:, list(self.source)] = shift + scale * U
        return X

    def jacobian(self, like: Array) -> Array:
        """Return the rates ∂uⱼ/∂xᵢ, (D, d)."""
        xp = namespace(like)
        rates = xp.zeros((len(self.source), self.n_features))
        rates[xp.arange(len(self.source)), list(self.source)] = 1.0 / self._units(like)[1]
        return rates

    def feeds(self, like: Array) -> Array:
        """Return which feature feeds which input, (D, d), as 0 and 1."""
        return namespace(like).asarray((self.jacobian(like) != 0) * 1.0)

    def _units(self, like: Array) -> tuple[Array, Array]:
        xp = namespace(like)
        return xp.asarray(self.shift), xp.asarray(self.scale)
