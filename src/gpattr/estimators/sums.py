"""Sums over rows that a weight-space model needs: ΦᵀΦ, Φᵀ1, Φᵀy, Σy, Σy².

Rows may come in portions of any size. They are gathered into blocks of a fixed size before they are
added, so the sums do not depend on the portions, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array, add_gram, is_tensor, namespace, product, to_numpy
from gpattr.bases import Fourier

# rows: large enough for matrix products at full speed, small enough for 500 frequencies to take 8
# MB
BLOCK = 1024
BLOCK_ON_GPU = 65536


@dataclass(frozen=True)
class Sums:
    """n rows of a basis Φ (n, p) with targets y: ΦᵀΦ, Φᵀ1, Φᵀy, Σy and Σy².

    ``gram`` is ΦᵀΦ (lower triangle), ``ones`` Φᵀ1, ``cross`` Φᵀy.
    """

    n: int
    gram: Array
    ones: Array
    cross: Array
    target: float
    square: float

    @classmethod
    def empty(cls, p: int, like: Array) -> Sums:
        """Return the sums over no rows."""
        xp = namespace(like)
        gram = xp.zeros((p, p))
        return cls(
            0,
            gram if is_tensor(gram) else np.asfortranarray(gram),
            xp.zeros(p),
            xp.zeros(p),
            0.0,
            0.0,
        )

    def plus(self, F: Array, y: Array, *, in_place: bool) -> Sums:
        """Return the sums with rows F (r, p) and targets y (r,) added, ``in_place`` in ``gram``."""
        gram = self.gram if in_place or is_tensor(self.gram) else self.gram.copy(order="F")
        ones, cross = product(namespace(y).stack([y * 0.0 + 1.0, y]), F)
        return Sums(
            self.n + len(y),
            add_gram(gram, F),
            self.ones + ones,
            self.cross + cross,
            self.target + float(y.sum()),
            self.square + float(y @ y),
        )

    def whole_gram(self) -> Array:
        """Return ΦᵀΦ with both triangles."""
        xp = namespace(self.gram)
        return xp.tril(self.gram) + xp.tril(self.gram, -1).T


def to_content(sums: Sequence[Sums]) -> dict[str, Any]:
    """Return sums over the same rows, of bases of the same size, as JSON values."""
    lower = np.tril_indices(len(sums[0].ones))
    arrays = {
        "gram": (np.stack([to_numpy(part.gram)[lower] for part in sums]), ("component", "entry")),
        "ones": (np.stack([to_numpy(part.ones) for part in sums]), ("component", "function")),
        "cross": (np.stack([to_numpy(part.cross) for part in sums]), ("component", "function")),
    }
    content: dict[str, Any] = {
        name: documents.encode(array, dims, compact=True) for name, (array, dims) in arrays.items()
    }
    return content | {"n": sums[0].n, "target": sums[0].target, "square": sums[0].square}


def from_content(content: Any) -> list[Sums]:
    """Return the sums that `to_content` wrote."""
    gram, ones, cross = (documents.decode(content[name]) for name in ("gram", "ones", "cross"))
    p = ones.shape[1]
    result = []
    for k in range(len(ones)):
        whole = np.zeros((p, p), order="F")
        whole[np.tril_indices(p)] = gram[k]
        result.append(
            Sums(content["n"], whole, ones[k], cross[k], content["target"], content["square"])
        )
    return result


class RowSums:
    """Sums over a stream of rows for several bases, which all see the same rows.

    ``bases_at(origin)`` makes the bases, once the mean of the first block of rows, where their
    waves start, is known. With ``centre_targets`` they are taken relative to the mean of the first
    block, which keeps the digits of their squares.
    """

    def __init__(
        self, bases_at: Callable[[Array], Sequence[Fourier]], *, centre_targets: bool
    ) -> None:
        self.bases_at = bases_at
        self.centre_targets = centre_targets
        self.start: tuple[np.ndarray, float] | None = None  # the origin of inputs, of targets
        self.bases: Sequence[Fourier] = ()
        self.sums: list[Sums] = []
        self.inputs: np.ndarray | None = None  # Σ(x − origin)
        self.rest: tuple[Array, Array] | None = None  # rows that do not fill a block yet
        self.n = 0

    def origin(self, X: Array) -> np.ndarray:
        """Return where waves start, or would if the rows X came now."""
        if self.start is not None:
            return self.start[0]
        return to_numpy((X if self.rest is None else self.rest[0]).mean(axis=0))

    def add(self, X: Array, y: Array) -> None:
        """Add the rows X (r, d) with targets y (r,)."""
        self.n += len(X)
        at, size = 0, BLOCK_ON_GPU if is_tensor(X) and X.device.type != "cpu" else BLOCK
        if self.rest is not None:
            at = min(len(X), size - len(self.rest[0]))
            self.rest = self._joined(X[:at], y[:at])
            if len(self.rest[0]) < size:
                return
            self._consume(*self.rest)
            self.rest = None
        while at + size <= len(X):
            self._consume(X[at : at + size], y[at : at + size])
            at += size
        if at < len(X):
            self.rest = (X[at:] + 0.0, y[at:] + 0.0)  # copies: the caller may reuse its arrays

    def total(self) -> tuple[Sequence[Fourier], list[Sums], float, np.ndarray]:
        """Return bases, sums over all rows, the origin of targets, and the mean of inputs."""
        if self.rest is None:
            assert self.start is not None, "no rows yet"
            assert self.inputs is not None
            return self.bases, self.sums, self.start[1], self.start[0] + self.inputs / self.n
        X, y = self.rest
        start = self.start or self._middle(X, y)
        bases = self.bases if self.start else self.bases_at(start[0])
        sums = self.sums or [Sums.empty(len(basis), X) for basis in bases]
        sums = [
            part.plus(basis(X), y - start[1], in_place=False)
            for part, basis in zip(sums, bases, strict=True)
        ]
        inputs = (0.0 if self.inputs is None else self.inputs) + to_numpy(
            X - namespace(X).asarray(start[0])
        ).sum(axis=0)
        return bases, sums, start[1], start[0] + inputs / self.n

    def restore(
        self, origin: np.ndarray, shift: float, sums: list[Sums], inputs_mean: np.ndarray
    ) -> None:
        """Go on from sums over earlier rows."""
        self.start, self.bases, self.sums, self.n = (
            (origin, shift),
            self.bases_at(origin),
            sums,
            sums[0].n,
        )
        self.inputs = (inputs_mean - origin) * self.n

    def _middle(self, X: Array, y: Array) -> tuple[np.ndarray, float]:
        return to_numpy(X.mean(axis=0)), float(y.mean()) if self.centre_targets else 0.0

    def _joined(self, X: Array, y: Array) -> tuple[Array, Array]:
        assert self.rest is not None
        xp = namespace(X)
        return xp.concatenate([self.rest[0], X]), xp.concatenate([self.rest[1], y])

    def _consume(self, X: Array, y: Array) -> None:
        if self.start is None:
            self.start = self._middle(X, y)
            self.bases = self.bases_at(self.start[0])
            self.sums = [Sums.empty(len(basis), X) for basis in self.bases]
            self.inputs = np.zeros(X.shape[1])
        origin, shift = self.start
        targets = y - shift
        self.inputs = self.inputs + to_numpy(X - namespace(X).asarray(origin)).sum(axis=0)
        self.sums = [
            part.plus(basis(X), targets, in_place=True)
            for part, basis in zip(self.sums, self.bases, strict=True)
        ]
