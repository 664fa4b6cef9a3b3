"""Sums over rows, by segments of a fixed number of rows that are joined in a tree.

Both depend on the number of rows only: rows that are in memory, come in chunks or lie in the
partitions of a Dask collection are summed in the same order. A weight-space model needs ΦᵀΦ, Φᵀ1,
Φᵀy, Σy and Σy²; its rows are gathered into blocks of a fixed size before they are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array, add_gram, is_tensor, namespace, product, to_numpy
from gpattr.bases import Fourier

SEGMENT = 32768  # rows
FAN_IN = 8  # sums that are joined one after the other, before their result is one of the next eight
# rows: large enough for matrix products at full speed, small enough for 500 frequencies to take 8
# MB
BLOCK = 1024
BLOCK_ON_GPU = 65536

Start = tuple[np.ndarray, float]  # the origin of inputs, of targets
T = TypeVar("T")


def segments(n: int) -> Iterator[slice]:
    """Yield the segments of n rows; the last one may be shorter."""
    for start in range(0, n, SEGMENT):
        yield slice(start, min(start + SEGMENT, n))


class Tree:
    """Sums joined as they come: one is kept for each level, and how many it was made of."""

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self.join = join
        self.levels: list[tuple[Any, int]] = []

    def add(self, part: Any) -> None:
        """Join the next part."""
        self.levels = self._with(part)

    def total(self, *last: Any) -> Any:
        """Return the sum of all parts, with a last one if it is given."""
        levels = self._with(*last) if last else self.levels
        carried: list[Any] = []
        for value, count in levels:
            if count:
                carried = [self.join(value, carried[0])] if carried else [value]
        return carried[0]

    def _with(self, part: Any) -> list[tuple[Any, int]]:
        levels = list(self.levels)
        for i in range(len(levels) + 1):
            value, count = levels[i] if i < len(levels) else (None, 0)
            value, count = (self.join(value, part), count + 1) if count else (part, 1)
            full = count == FAN_IN
            levels[i : i + 1] = [(None, 0) if full else (value, count)]
            if not full:
                break
            part = value
        return levels


def joined(join: Callable[[T, T], T], parts: Iterable[T]) -> T:
    """Return the sum of parts, at least one, in the order of the tree."""
    tree = Tree(join)
    for part in parts:
        tree.add(part)
    return tree.total()


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

    def joined(self, other: Sums) -> Sums:
        """Return the sums over the rows of both."""
        return Sums(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(self))
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


@dataclass(frozen=True)
class Totals:
    """Sums of several bases over the same rows, and ``inputs``, Σ(x − origin)."""

    sums: list[Sums]
    inputs: np.ndarray

    def plus(
        self, bases: Sequence[Fourier], start: Start, X: Array, y: Array, *, in_place: bool = True
    ) -> Totals:
        """Return the totals with a block of rows added, ``in_place`` in the matrices."""
        origin, shift = start
        targets = y - shift
        sums = [
            part.plus(basis(X), targets, in_place=in_place)
            for part, basis in zip(self.sums, bases, strict=True)
        ]
        inputs = to_numpy((X - namespace(X).asarray(origin)).sum(axis=0))
        return Totals(sums, self.inputs + inputs)

    def joined(self, other: Totals) -> Totals:
        """Return the totals over the rows of both."""
        pairs = zip(self.sums, other.sums, strict=True)
        return Totals([one.joined(two) for one, two in pairs], self.inputs + other.inputs)

    @classmethod
    def empty(cls, bases: Sequence[Fourier], like: Array) -> Totals:
        """Return the totals over no rows; ``like`` is an array (r, d)."""
        return cls([Sums.empty(len(basis), like) for basis in bases], np.zeros(like.shape[1]))


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
        self.start: Start | None = None
        self.bases: Sequence[Fourier] = ()
        self.whole = Tree(Totals.joined)  # segments that are full
        self.segment: Totals | None = None  # one that is not
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
        start, bases, last = self.start, self.bases, self.segment
        if self.rest is not None:
            X, y = self.rest
            start = start or self.middle(X, y)
            bases = bases or self.bases_at(start[0])
            last = (last or Totals.empty(bases, X)).plus(bases, start, X, y, in_place=False)
        assert start is not None, "no rows yet"
        whole = self.whole.total() if last is None else self.whole.total(last)
        return bases, whole.sums, start[1], start[0] + whole.inputs / self.n

    def restore(
        self, origin: np.ndarray, shift: float, sums: list[Sums], inputs_mean: np.ndarray
    ) -> None:
        """Go on from sums over earlier rows."""
        self.start, self.bases, self.n = (origin, shift), self.bases_at(origin), sums[0].n
        self.whole.add(Totals(sums, (inputs_mean - origin) * self.n))

    def middle(self, X: Array, y: Array) -> Start:
        """Return the origins of inputs and targets if these rows are the first block."""
        return to_numpy(X.mean(axis=0)), float(y.mean()) if self.centre_targets else 0.0

    def _joined(self, X: Array, y: Array) -> tuple[Array, Array]:
        assert self.rest is not None
        xp = namespace(X)
        return xp.concatenate([self.rest[0], X]), xp.concatenate([self.rest[1], y])

    def _consume(self, X: Array, y: Array) -> None:
        if self.start is None:
            self.start = self.middle(X, y)
            self.bases = self.bases_at(self.start[0])
        if self.segment is None:
            self.segment = Totals.empty(self.bases, X)
        self.segment = self.segment.plus(self.bases, self.start, X, y)
        if self.segment.sums[0].n >= SEGMENT:
            self.whole.add(self.segment)
            self.segment = None
