"""Several bases side by side, each on some of the features: additive models."""

from __future__ import annotations

from dataclasses import dataclass

from gpattr._core.array import Array, namespace
from gpattr._core.validation import check_count
from gpattr.bases.base import Basis
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Combined(Basis):
    """The functions of all parts, each on its columns: f(x) = Σ_parts f_part(x[columns_part]).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Combined, Monomials
    >>> squares = Monomials([[1], [2]])
    >>> basis = Combined((squares, squares), ((0,), (2,)), width=3)  # of the features 0 and 2
    >>> basis(np.array([[2.0, 5.0, 3.0]]))
    array([[2., 4., 3., 9.]])
    """

    parts: tuple[Basis, ...]
    columns: tuple[tuple[int, ...], ...]
    width: int

    def __post_init__(self) -> None:
        width = check_count("width", self.width)
        if not isinstance(self.parts, (list, tuple)):
            raise InvalidInputError(
                f"parts: expected a list of gpattr bases, got a {type(self.parts).__name__}"
            )
        try:
            columns = tuple(
                tuple(check_count("columns", i, least=0) for i in some) for some in self.columns
            )
        except TypeError:
            raise InvalidInputError(
                f"columns: expected a list of positions for each part, got {self.columns!r}"
            ) from None
        for name, value in {"parts": tuple(self.parts), "columns": columns, "width": width}.items():
            object.__setattr__(self, name, value)
        if not self.parts or len(self.parts) != len(self.columns):
            raise InvalidInputError(
                f"columns: expected one list for each of {len(self.parts)} parts, got"
                f" {len(self.columns)}"
            )
        for part, columns in zip(self.parts, self.columns, strict=True):
            if not isinstance(part, Basis):
                raise InvalidInputError(
                    f"parts: expected gpattr bases, got a {type(part).__name__}"
                )
            if (
                len(columns) != part.n_features
                or len(set(columns)) != len(columns)
                or not all(0 <= i < self.width for i in columns)
            ):
                raise InvalidInputError(
                    f"columns: expected {part.n_features} different positions below {self.width}"
                    f" (the width), got {columns}"
                )

    @property
    def n_features(self) -> int:
        return self.width

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __call__(self, X: Array) -> Array:
        values = [
            part(X[:, list(some)]) for part, some in zip(self.parts, self.columns, strict=True)
        ]
        return namespace(X).concatenate(values, axis=1)

    def check_rows(self, name: str, X: Array) -> None:
        for part, some in zip(self.parts, self.columns, strict=True):
            part.check_rows(name, X[:, list(some)])

    def phase(self, X: Array) -> float:
        return max(
            part.phase(X[:, list(some)])
            for part, some in zip(self.parts, self.columns, strict=True)
        )
