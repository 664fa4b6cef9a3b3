"""Monomials: linear and polynomial models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._array import Array, namespace, to_numpy
from gpattr._validation import as_matrix, as_vector, positive, read_only
from gpattr.bases.base import Basis
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Monomials(Basis):
    """φⱼ(x) = Πᵢ uᵢ^powersⱼᵢ, u = (x − origin)/scale.

    ``powers`` (p, d) are whole numbers, 0 or larger, such as ``PolynomialFeatures.powers_`` of scikit-learn; ``origin`` and
    ``scale`` (d,) are 0 and 1 unless they are given.
    """

    powers: Array
    origin: Array | None = None
    scale: Array | None = None

    def __post_init__(self) -> None:
        powers = to_numpy(as_matrix("powers", self.powers))
        if not ((powers >= 0) & (powers == np.floor(powers))).all():
            raise InvalidInputError("powers: expected whole numbers, 0 or larger")
        d = powers.shape[1]
        object.__setattr__(self, "powers", read_only(powers))
        for name in ("origin", "scale"):
            value = getattr(self, name)
            if value is not None:
                value = read_only(to_numpy(as_vector(name, value, length=d, unit="numbers (one per feature)")))
                object.__setattr__(self, name, value if name == "origin" else positive(name, value))

    @classmethod
    def up_to(cls, degree: int, d: int, *, constant: bool, origin: Array | None = None, scale: Array | None = None) -> Monomials:
        """Return all monomials of d features up to a total degree, in the order of scikit-learn's ``PolynomialFeatures``."""
        from itertools import combinations_with_replacement

        powers = [
            np.bincount(np.array(chosen, dtype=int), minlength=d)
            for total in range(0 if constant else 1, degree + 1)
            for chosen in combinations_with_replacement(range(d), total)
        ]
        return cls(np.array(powers, dtype=np.float64), origin, scale)

    @property
    def n_features(self) -> int:
        return self.powers.shape[1]

    @property
    def degree(self) -> int:
        """The largest total degree."""
        return int(self.powers.sum(axis=1).max())

    def __len__(self) -> int:
        return len(self.powers)

    def __call__(self, X: Array) -> Array:
        return (self.local(X)[:, None, :] ** namespace(X).asarray(self.powers)).prod(-1)

    def local(self, X: Array) -> Array:
        """Return u = (x − origin)/scale, (n, d)."""
        xp = namespace(X)
        X = X if self.origin is None else X - xp.asarray(self.origin)
        return X if self.scale is None else X / xp.asarray(self.scale)

    def gradient(self, X: Array) -> Array:
        """Return ∂φⱼ/∂xᵢ at the rows of X, (n, d, p)."""
        xp = namespace(X)
        powers, u = xp.asarray(self.powers), self.local(X)[:, None, :]
        values = u**powers  # (n, p, d)
        slopes = powers * u ** xp.maximum(powers - 1.0, 0.0)
        if self.scale is not None:
            slopes = slopes / xp.asarray(self.scale)
        columns = []
        for i in range(X.shape[1]):
            others = [k for k in range(X.shape[1]) if k != i]
            columns.append(slopes[:, :, i] * (values[:, :, others].prod(-1) if others else 1.0))
        return xp.stack(columns, axis=1)

    def check_rows(self, name: str, X: Array) -> None:
        with np.errstate(over="ignore"):
            size = self.local(X)
            finite = to_numpy(namespace(X).isfinite(abs(size) ** max(self.degree, 1)).all(axis=1))
        if not finite.all():
            raise InvalidInputError(f"{name}: row {int(finite.argmin())} lies so far out that its powers are not finite")
