"""The abstract operator, and the sites it acts on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from gpattr._core.arguments import Checked, positions, some_rows
from gpattr._core.array import Array
from gpattr.exceptions import InvalidInputError


class Sites(Checked, ABC):
    """Where elementary functionals act: points for a gradient, paths for integrated gradients. One
    site per row.
    """

    checks: ClassVar[Any] = {"rows": positions, "features": positions}

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of sites and of features, (n, d)."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Self:
        """Return the sites of these rows (a slice or an index array)."""

    @classmethod
    @abstractmethod
    def stack(cls, batches: Sequence[Any]) -> Self:
        """Return the sites of several batches, one after the other."""

    @abstractmethod
    def select(self, features: Array) -> Self:
        """Return the sites as a kernel sees them that looks at these features only."""


def check_batches(kind: type[Sites], batches: Any) -> None:
    """Raise `InvalidInputError` unless these are batches of sites of one kind."""
    if (
        not isinstance(batches, (list, tuple))
        or not batches
        or not all(isinstance(batch, kind) for batch in batches)
    ):
        raise InvalidInputError(f"batches: expected a list of {kind.__name__}, got {batches!r}")


class Operator(Checked, ABC):
    """A linear map from functions f to d numbers at every row: 𝒜ᵢf(xₙ), i = 1…d."""

    checks: ClassVar[Any] = {"X": some_rows, "rows": positions}

    @abstractmethod
    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        """Return weights and sites such that 𝒜f(xₙ) is the weighted sum of the elementary
        functionals there.
        """

    @abstractmethod
    def rows(self, rows: Any) -> Operator:
        """Return the operator for these rows of X only (a slice or an index array)."""
