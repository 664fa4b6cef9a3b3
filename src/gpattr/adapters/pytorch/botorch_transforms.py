"""BoTorch's input transforms as they are read: a model's view of its user's columns.

Logarithms and warpings are maps of one column. Encoded categories are tables by label. Rounded
columns are taken as they are: that is exact at whole numbers, and a straight line between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr.adapters.columns import (
    LOG_10,
    Affine,
    Inverse,
    Kumaraswamy,
    Log,
    ScalarMap,
    inverse,
    value,
)
from gpattr.adapters.foreign import on_host
from gpattr.adapters.pytorch.kernels import number
from gpattr.exceptions import UnsupportedModelError


@dataclass(frozen=True)
class Atom:
    """A column of the user: the column ``raw`` of the model's data, or with ``labels`` a category.

    A category may have several columns of 0 and 1 there, one for each label.
    """

    raw: tuple[int, ...]
    labels: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class Seen:
    """A model's view of one column: ``maps`` of an atom, or a ``table`` by its label."""

    atom: Atom
    maps: tuple[ScalarMap, ...] = ()
    table: np.ndarray | None = None

    def then(self, part: ScalarMap) -> Seen:
        """Return the column after another map."""
        if self.table is not None:
            return replace(self, table=part.value(self.table))
        return replace(self, maps=(*self.maps, part))


@dataclass(frozen=True, eq=False)
class Whole:
    """Columns of an atom each that a model discretises after ``maps``.

    One column is rounded; of several, columns of 0 and 1, the largest is 1.
    """

    places: tuple[int, ...]
    maps: tuple[tuple[ScalarMap, ...], ...]

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return raw rows at which the model sees the given ones."""
        rows = rows.copy()
        pairs = list(zip(self.places, self.maps, strict=True))
        seen = np.stack([value(maps, rows[:, place]) for place, maps in pairs], axis=1)
        best = np.eye(len(pairs))[seen.argmax(axis=1)] if len(pairs) > 1 else np.round(seen)
        for k, (place, maps) in enumerate(pairs):
            rows[:, place] = inverse(maps, best[:, k])
        return rows


@dataclass(frozen=True, eq=False)
class TransformChain:
    """A chain of transforms as it was read: the model's columns, and the columns it rounds."""

    seen: tuple[Seen, ...]
    whole: tuple[Whole, ...] = ()


def read(model: Any, d: int) -> TransformChain:
    """Return a model's transforms of d raw columns; refuse transforms that are not supported."""
    reading = TransformChain(tuple(Seen(Atom((i,))) for i in range(d)))
    for part in chain(getattr(model, "input_transform", None)):
        name = type(part).__name__
        if name not in TRANSFORMS or not type(part).__module__.startswith("botorch."):
            raise UnsupportedModelError(
                f"input_transform: {name} is not supported{REASONS.get(name, '')}; supported are"
                f" {', '.join(TRANSFORMS)}"
            )
        if len(getattr(part, "batch_shape", ())) and name == "Warp":
            raise UnsupportedModelError("input_transform: a batch of Warp is not supported")
        reading = TRANSFORMS[name](part, reading)
    return reading


def chain(transform: Any) -> Iterator[Any]:
    """Yield the transforms of rows to predict at, in their order."""
    if type(transform).__name__ == "ChainedInputTransform":
        for part in transform.values():
            yield from chain(part)
    elif transform is not None and transform.transform_on_eval:
        yield transform


def _at(part: Any, reading: TransformChain) -> list[int]:
    """Return the columns that a transform acts on."""
    at = getattr(part, "indices", None)
    return list(range(len(reading.seen))) if at is None else [int(i) for i in on_host(at)]


def _each(
    part: Any, reading: TransformChain, make: Callable[[int, int], Sequence[ScalarMap]]
) -> TransformChain:
    """Return the chain after maps of columns: ``make`` takes a place among them and a column."""
    seen = list(reading.seen)
    for k, j in enumerate(_at(part, reading)):
        maps = list(make(k, j))
        for step in [Inverse(step) for step in reversed(maps)] if part.reverse else maps:
            seen[j] = seen[j].then(step)
    return replace(reading, seen=tuple(seen))


def _affine(part: Any, reading: TransformChain) -> TransformChain:
    width = len(_at(part, reading))
    shift, scale = (
        np.broadcast_to(number(tensor, 1, None), (width,)).tolist()
        for tensor in (part.offset, part.coefficient)
    )
    return _each(part, reading, lambda k, j: [Affine(shift[k], scale[k])])


def _log10(part: Any, reading: TransformChain) -> TransformChain:
    def make(k: int, j: int) -> list[ScalarMap]:
        return [Log(f"x{reading.seen[j].atom.raw[0]}"), Affine(0.0, LOG_10)]

    return _each(part, reading, make)


def _warp(part: Any, reading: TransformChain) -> TransformChain:
    within = part._normalize
    shift, scale = (number(tensor, 1, None) for tensor in (within.offset, within.coefficient))
    b, a = (number(tensor, 1, None) for tensor in (part.concentration0, part.concentration1))

    def make(k: int, j: int) -> list[ScalarMap]:
        warping = Kumaraswamy(float(a[k]), float(b[k]), float(part._eps))
        return [Affine(float(shift[k]), float(scale[k])), warping]

    return _each(part, reading, make)


def _round(part: Any, reading: TransformChain) -> TransformChain:
    seen, whole = list(reading.seen), list(reading.whole)

    for j in (int(i) for i in on_host(part.integer_indices)):
        table = seen[j].table
        if table is None:
            whole.append(Whole(seen[j].atom.raw, (seen[j].maps,)))
        else:
            seen[j] = replace(seen[j], table=np.round(table))
    for start, size in part.categorical_features.items():
        group = [seen[j] for j in range(start, start + size)]
        if not all(column.table is None for column in group):
            raise UnsupportedModelError(
                "input_transform: Round of encoded categories is not supported"
            )
        places = tuple(column.atom.raw[0] for column in group)
        whole.append(Whole(places, tuple(column.maps for column in group)))
    return TransformChain(tuple(seen), tuple(whole))


def _filter(part: Any, reading: TransformChain) -> TransformChain:
    kept = [int(i) for i in on_host(part.feature_indices)]
    return replace(reading, seen=tuple(reading.seen[j] for j in kept))


def _encode(part: Any, reading: TransformChain) -> TransformChain:
    """Return the chain after codes 0, 1, … are replaced by the vectors of their categories."""
    import torch

    seen: list[Seen] = []
    for j, column in enumerate(reading.seen):
        if j not in part.categorical_features:
            seen.append(column)
            continue
        size = int(part.categorical_features[j])
        _require_untouched(part, column)
        with torch.no_grad():
            vectors = to_numpy(part.encoders[j](torch.arange(size)).double())
        atom = Atom(column.atom.raw, tuple(range(size)))
        seen += [Seen(atom, table=vectors[:, k].copy()) for k in range(vectors.shape[1])]
    return replace(reading, seen=tuple(seen))


def _decode(part: Any, reading: TransformChain) -> TransformChain:
    """Return the chain after codes 0, 1, … replace columns of 0 and 1."""
    seen: list[Seen] = []
    inside = {
        j: start
        for start, size in part.categorical_features.items()
        for j in range(start, start + size)
    }
    for j, column in enumerate(reading.seen):
        if j not in inside:
            seen.append(column)
            continue
        _require_untouched(part, column)
        if inside[j] == j:
            size = int(part.categorical_features[j])
            raw = tuple(reading.seen[i].atom.raw[0] for i in range(j, j + size))
            atom = Atom(raw, tuple(range(size)))
            seen.append(Seen(atom, table=np.arange(float(size))))
    return replace(reading, seen=tuple(seen))


def _require_untouched(part: Any, column: Seen) -> None:
    if column.maps or column.table is not None:
        raise UnsupportedModelError(
            f"input_transform: {type(part).__name__} of a column that is transformed before is not"
            " supported"
        )


TRANSFORMS: dict[str, Callable[[Any, TransformChain], TransformChain]] = {
    "Normalize": _affine,
    "InputStandardize": _affine,
    "AffineInputTransform": _affine,
    "Log10": _log10,
    "Warp": _warp,
    "Round": _round,
    "FilterFeatures": _filter,
    "NumericToCategoricalEncoding": _encode,
    "OneHotToNumeric": _decode,
}
REASONS = {
    "AppendFeatures": ", since it makes several rows of one",
    "InputPerturbation": ", since it makes several rows of one",
    "LearnedFeatureImputation": ", since what it fills in depends on the task",
}


def raw_rows(U: np.ndarray, reading: TransformChain, width: int) -> np.ndarray:
    """Return rows as the model takes them, (n, width), that it sees as U; dropped columns are 0."""
    raw = np.zeros((len(U), width))
    tables: dict[Atom, list[int]] = {}
    for j, seen in enumerate(reading.seen):
        if seen.table is None:
            raw[:, seen.atom.raw[0]] = inverse(seen.maps, U[:, j])
        else:
            tables.setdefault(seen.atom, []).append(j)
    for atom, places in tables.items():
        rows = np.stack([_table(reading.seen[j]) for j in places], axis=1)
        label = ((U[:, None, places] - rows) ** 2).sum(axis=2).argmin(axis=1)
        raw[:, list(atom.raw)] = (
            label[:, None] if len(atom.raw) == 1 else np.eye(len(atom.raw))[label]
        )
    return raw


def seen_rows(raw: np.ndarray, reading: TransformChain) -> np.ndarray:
    """Return the model's transformed rows for raw rows."""
    for whole in reading.whole:
        raw = whole(raw)
    columns = []
    for seen in reading.seen:
        at = raw[:, list(seen.atom.raw)]
        if seen.table is None:
            columns.append(value(seen.maps, at[:, 0]))
        else:
            label = at[:, 0].astype(int) if at.shape[1] == 1 else at.argmax(axis=1)
            columns.append(seen.table[label])
    return np.stack(columns, axis=1)


def _table(seen: Seen) -> np.ndarray:
    assert seen.table is not None
    return seen.table
