"""The abstract basis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from gpattr._core.arguments import Checked, some_rows
from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.validation import check_text


class Basis(Checked, Frozen, ABC):
    """Functions φ₁ … φₚ of d features, of which f(x) = Σⱼ wⱼ φⱼ(x) is made.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Basis, Monomials
    >>> basis = Monomials([[0, 0], [1, 0], [0, 2]])  # 1, x₁ and x₂²
    >>> isinstance(basis, Basis), len(basis), basis.n_features
    (True, 3, 2)
    """

    checks: ClassVar[Any] = {"X": some_rows, "u": some_rows, "name": check_text}

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of features d."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of functions p."""

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """Return φⱼ at the rows of X, (n, p)."""

    def check_rows(self, name: str, X: Array) -> None:
        """Raise `InvalidInputError` if the basis is not valid at a row of X, argument ``name``."""

    def phase(self, X: Array) -> float:
        """Return the largest argument of a sine or cosine at rows X; ε times it is its error."""
        return 0.0
