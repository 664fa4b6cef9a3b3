"""Sines and cosines: the basis of random-feature models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr._core.validation import as_matrix, as_vector, read_only
from gpattr.bases.base import Basis
from gpattr.exceptions import InvalidInputError
from gpattr.special.trigonometric import sin_cos

DIGITLESS = 2.0**52  # a larger phase has no digit after the point: its sine is noise


@dataclass(frozen=True, eq=False)
class Fourier(Basis):
    """φ(x) = [sin(vₘ·(x − o)), cos(vₘ·(x − o))], m = 1 … M: first all sines, then all cosines.

    ``frequencies`` (M, d) are the vectors vₘ; ``origin`` o (d,), 0 unless it is given, belongs in
    the middle of the data, so that phases stay small and keep their digits.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Fourier
    >>> Fourier([[1.0], [2.0]])(np.zeros((1, 1)))  # two sines, two cosines
    array([[0., 0., 1., 1.]])
    """

    frequencies: Array
    origin: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "frequencies", read_only(to_numpy(as_matrix("frequencies", self.frequencies)))
        )
        if self.origin is not None:
            origin = as_vector(
                "origin", self.origin, length=self.n_features, unit="numbers (one per feature)"
            )
            object.__setattr__(self, "origin", read_only(to_numpy(origin)))

    @property
    def n_features(self) -> int:
        return self.frequencies.shape[1]

    def __len__(self) -> int:
        return 2 * len(self.frequencies)

    def __call__(self, X: Array) -> Array:
        return sin_cos(self.phases(X))

    def phases(self, X: Array) -> Array:
        """Return vₘ·(x − o), (n, M)."""
        xp = namespace(X)
        return product(
            X if self.origin is None else X - xp.asarray(self.origin),
            xp.asarray(self.frequencies).T,
        )

    def phase(self, X: Array) -> float:
        xp = namespace(X)
        size = abs(X if self.origin is None else X - xp.asarray(self.origin))
        return float(
            xp.max(product(size, xp.max(abs(xp.asarray(self.frequencies)), axis=0)), axis=0)
        )

    def check_rows(self, name: str, X: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if self.phase(X) < DIGITLESS:
                return
            sizes = to_numpy(namespace(X).max(abs(self.phases(X)), axis=1))
        if not (sizes < DIGITLESS).all():
            raise InvalidInputError(
                f"{name}: row {int(sizes.argmax())} lies so far out that float64 cannot tell where"
                " in its period a wave is"
            )
