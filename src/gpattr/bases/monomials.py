"""Monomials: linear and polynomial models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.validation import (
    as_matrix,
    as_vector,
    check_count,
    check_flag,
    positive,
    read_only,
)
from gpattr.bases.base import Basis
from gpattr.exceptions import InvalidInputError

LARGEST = 10**6  # features or degree; more monomials than this are never counted


@dataclass(frozen=True, eq=False)
class Monomials(Basis):
    """φⱼ(x) = Πᵢ uᵢ^powersⱼᵢ, u = (x − origin)/scale.

    ``powers`` (p, d) are whole numbers, 0 or larger, such as ``PolynomialFeatures.powers_`` of
    scikit-learn; ``origin`` and ``scale`` (d,) are 0 and 1 unless they are given.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Monomials
    >>> Monomials([[1, 0], [1, 2]])(np.array([[2.0, 3.0]]))  # x₁ and x₁x₂²
    array([[ 2., 18.]])
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
                value = read_only(
                    to_numpy(as_vector(name, value, length=d, unit="numbers (one per feature)"))
                )
                object.__setattr__(self, name, value if name == "origin" else positive(name, value))

    @classmethod
    def up_to(
        cls,
        degree: int,
        d: int,
        *,
        constant: bool,
        origin: Array | None = None,
        scale: Array | None = None,
    ) -> Monomials:
        """Return all monomials of d features up to a total degree, in scikit-learn's order."""
        from itertools import combinations_with_replacement

        degree, d = (
            check_count("degree", degree, least=0 if check_flag("constant", constant) else 1),
            check_count("d", d),
        )
        for name, number in (("degree", degree), ("d", d)):
            if number > LARGEST:
                raise InvalidInputError(
                    f"{name}: expected an integer of {LARGEST} or less, got {number}"
                )
        p = math.comb(d + degree, degree)
        check_memory(
            f"degree: the {p} monomials of d={d} features",
            (p, d),
            "use a lower degree, or fewer features",
        )
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
        factors = self._factors(self.local(X))
        result = factors[0]
        for factor in factors[1:]:
            result = result * factor
        return result

    def _factors(self, u: Array) -> list[Array]:
        """Return the coordinates, (n, p) each, whose product is the monomial, padded with 1."""
        xp = namespace(u)
        u = xp.concatenate([u, xp.zeros((len(u), 1)) + 1.0], axis=1)
        return [u[:, places] for places in self.factor_places]

    @cached_property
    def factor_places(self) -> list[list[int]]:
        """For every factor, the feature it is, (p,); d where there is none."""
        d, degree = self.n_features, max(self.degree, 1)
        rows = [np.repeat(np.arange(d), powers.astype(int)).tolist() for powers in self.powers]
        return [[row[k] if k < len(row) else d for row in rows] for k in range(degree)]

    def local(self, X: Array) -> Array:
        """Return u = (x − origin)/scale, (n, d)."""
        xp = namespace(X)
        X = X if self.origin is None else X - xp.asarray(self.origin)
        return X if self.scale is None else X / xp.asarray(self.scale)

    def gradient(self, X: Array) -> Array:
        """Return ∂φⱼ/∂xᵢ at the rows of X, (n, d, p)."""
        return self.local_gradient(self.local(X))

    def local_gradient(self, u: Array) -> Array:
        """Return ∂φⱼ/∂xᵢ, (n, d, p), at local coordinates u (n, d), by the product rule."""
        xp = namespace(u)
        n, d, p = len(u), self.n_features, len(self)
        factors = self._factors(u)
        before, after = [xp.zeros((n, p)) + 1.0], [xp.zeros((n, p)) + 1.0]
        for first, last in zip(factors[:-1], factors[:0:-1], strict=True):
            before.append(before[-1] * first)
            after.append(after[-1] * last)
        result = xp.zeros((n, d + 1, p))  # the last is 1, for missing factors
        for places, left, right in zip(self.factor_places, before, reversed(after), strict=True):
            result[:, places, list(range(p))] += left * right
        result = result[:, :d]
        return result if self.scale is None else result / xp.asarray(self.scale)[:, None]

    def check_rows(self, name: str, X: Array) -> None:
        with np.errstate(over="ignore"):
            size = self.local(X)
            # Variances square it.
            finite = to_numpy(
                namespace(X).isfinite(abs(size) ** (2 * max(self.degree, 1))).all(axis=1)
            )
        if not finite.all():
            raise InvalidInputError(
                f"{name}: row {int(finite.argmin())} lies so far out that its powers are not finite"
            )
