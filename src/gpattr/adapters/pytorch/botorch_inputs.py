"""Inputs of BoTorch's models: from rows as users write them to a model's columns.

Affine transforms are an `AffinePosterior` around the model's own inputs, where closed forms apply.
Logarithms and warped columns are in the kernel, and paths are straight in the user's units.
Categories are encoded as columns of 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import to_numpy
from gpattr._core.validation import as_vector
from gpattr.adapters.columns import Affine, Column, as_affine, kernel_behind, mean_behind
from gpattr.adapters.foreign import on_host, with_note
from gpattr.adapters.kernels import columns_of_codes
from gpattr.adapters.pytorch.botorch_transforms import (
    Atom,
    Seen,
    TransformChain,
    chain,
    raw_rows,
    read,
    seen_rows,
)
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.posteriors import AffinePosterior, EncodedPosterior, Posterior

ROUNDED = "columns that the model rounds are exact at whole numbers and straight lines between them"
CODE_DIGITS = 6  # of codes, which scaling changes in the last places


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """The map from rows to a model's inputs: encoded, then scaled, then ``columns`` of the result.

    w = (v − ``shift``)/``scale`` for encoded rows v. ``rows`` are the training rows, encoded, and
    ``inputs`` what the model sees in them.
    """

    reading: TransformChain
    atoms: tuple[Atom, ...]
    columns: tuple[Column, ...]
    shift: np.ndarray
    scale: np.ndarray
    rows: np.ndarray
    inputs: np.ndarray
    encoder: Encoder | None
    width: int  # of raw rows

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel of the model's inputs as a kernel of w."""
        return kernel if self._same else kernel_behind(kernel, self.columns)

    def mean(self, mean: Mean) -> Mean:
        """Return a mean of the model's inputs as a mean of w."""
        return mean if self._same else mean_behind(mean, self.columns, len(self.shift))

    @property
    def _same(self) -> bool:
        places = [column.places for column in self.columns]
        return places == [(i,) for i in range(len(self.shift))] and all(
            column.plain for column in self.columns
        )

    def inside(self, U: np.ndarray) -> np.ndarray:
        """Return w for training inputs U that the model sees, (n, D)."""
        rows = self.rows if U.shape == self.inputs.shape and (self.inputs == U).all() else None
        return (
            (self._encoded(self._inverse(U)) if rows is None else rows) - self.shift
        ) / self.scale

    def around(self, posterior: Posterior) -> Posterior:
        """Return the posterior of w as a posterior of the user's rows."""
        result: Posterior = AffinePosterior(posterior, self.shift, self.scale)
        if self.encoder is not None:
            result = EncodedPosterior(result, self.encoder)
        return with_note(result, ROUNDED) if self.reading.whole else result

    @property
    def mixable(self) -> bool:
        """Whether the model can be compared anywhere between and beyond its data."""
        bounded = any(
            not isinstance(part, Affine) for seen in self.reading.seen for part in seen.maps
        )
        return self.encoder is None and not self.reading.whole and not bounded

    @property
    def points(self) -> np.ndarray:
        """Return the rows at which to compare the model: training rows, and rows between them."""
        if self.mixable:
            return self.rows
        between = 0.3 * self.rows + 0.7 * self.rows[::-1]
        if self.encoder is not None:
            between = self.encoder.nearest_one_hot(between)
        for whole in self.reading.whole:
            between = self._encoded(whole(self._raw(between)))
        return np.concatenate([self.rows, between])

    def tensor(self, points: np.ndarray, model: Any) -> Any:
        """Return encoded rows as the model takes them."""
        return as_tensor(self._raw(points), model)

    def _raw(self, rows: np.ndarray) -> np.ndarray:
        """Return encoded rows as the model takes them."""
        if self.encoder is None:
            return rows
        frame = self.encoder.decode(rows)
        raw = np.zeros((len(rows), self.width))
        for name, atom in zip(self.encoder.names, self.atoms, strict=True):
            values = frame[name].to_numpy(dtype=np.float64)
            if len(atom.raw) == 1:
                raw[:, atom.raw[0]] = values
            else:
                raw[:, list(atom.raw)] = values[:, None] == np.arange(len(atom.raw))
        return raw

    def _encoded(self, raw: np.ndarray) -> np.ndarray:
        return encoded_rows(raw, self.atoms, self.encoder)

    def _inverse(self, U: np.ndarray) -> np.ndarray:
        return raw_rows(U, self.reading, self.width)


def as_tensor(rows: np.ndarray, model: Any) -> Any:
    """Return rows as a tensor where a model is."""
    import torch

    return torch.tensor(rows, device=next(model.parameters()).device)


def encoded_rows(raw: np.ndarray, atoms: Sequence[Atom], encoder: Encoder | None) -> np.ndarray:
    """Return rows as the model takes them, (n, width), with a column for each category."""
    if encoder is None:
        return raw
    parts = [raw[:, list(atom.raw)] for atom in atoms]
    columns = [part.argmax(axis=1) if part.shape[1] > 1 else part[:, 0] for part in parts]
    rows = np.stack(columns, axis=1)
    coded = [i for i, name in enumerate(encoder.names) if name in encoder.categories]
    rows[:, coded] = np.round(rows[:, coded], CODE_DIGITS)
    return encoder.encode("train_X", rows)


def inputs_of(
    model: Any,
    U: np.ndarray,
    kernel: Kernel | None = None,
    categories: Mapping[int, Sequence[float]] | None = None,
    raw: np.ndarray | None = None,
    task: int | None = None,
) -> ModelInputs:
    """Return the map from rows to the inputs of a copy of a model in evaluation mode.

    ``U`` (n, D) are its training inputs as it sees them, ``raw`` as they were given, where that is
    known; ``kernel`` says which columns are codes of categories, and ``categories`` adds codes to
    the data's, {column: codes}. The input ``task``, a column as it is, is left out.
    """
    width, filtered = _width(model, U.shape[1])
    if raw is None:
        raw = _original(model)
    if raw is not None and (raw.shape[1] == width or (filtered and raw.shape[1] > width)):
        width = raw.shape[1]
    else:  # they were given as the model sees them
        raw = None
    reading = read(model, width)
    if len(reading.seen) != U.shape[1]:
        raise UnsupportedModelError(
            f"input_transform: expected one that makes {U.shape[1]} columns of {width}, got one"
            f" that makes {len(reading.seen)}"
        )
    if raw is None or not _same_rows(raw, U, reading):
        raw = raw_rows(U, reading, width)
    if task is not None:
        reading, raw, U = _without(task, reading, raw, U)
        width -= 1
    codes = _codes(kernel, reading, categories or {}, raw)
    reading = replace(
        reading,
        seen=tuple(
            replace(seen, atom=codes.get(seen.atom.raw, seen.atom)) for seen in reading.seen
        ),
    )
    atoms = _atoms(reading, width)
    encoder = _encoder(atoms, jump=bool(codes) or _of_codes(kernel, reading))
    places = _places(atoms, encoder)
    columns, shift, scale = _scaled(reading, places, frozenset(codes))
    rows = encoded_rows(raw, atoms, encoder)
    return ModelInputs(reading, atoms, columns, shift, scale, rows, U, encoder, width)


def _width(model: Any, D: int) -> tuple[int, bool]:
    """Return the number of raw columns of which transforms make D, and whether it may be larger."""
    filtered = False
    for part in reversed(list(chain(getattr(model, "input_transform", None)))):
        if type(part).__name__ == "FilterFeatures":
            D, filtered = int(part.feature_indices.max()) + 1, True
        elif type(part).__name__ == "NumericToCategoricalEncoding":
            D = len(part.numerical_idx) + len(part.ordinal_idx)
        elif type(part).__name__ == "OneHotToNumeric":
            D += sum(size - 1 for size in part.categorical_features.values())
    return D, filtered


def _without(
    task: int, reading: TransformChain, raw: np.ndarray, U: np.ndarray
) -> tuple[TransformChain, np.ndarray, np.ndarray]:
    """Return the inputs without the column that says the task."""
    column = reading.seen[task]
    if as_affine(column.maps) != Affine(0.0, 1.0) or column.table is not None:
        raise UnsupportedModelError("input_transform: expected the task as it is, not transformed")
    at = column.atom.raw[0]

    def moved(places: Sequence[int]) -> tuple[int, ...]:
        return tuple(place - (place > at) for place in places)

    seen = tuple(
        replace(other, atom=replace(other.atom, raw=moved(other.atom.raw)))
        for j, other in enumerate(reading.seen)
        if j != task
    )
    whole = tuple(replace(part, places=moved(part.places)) for part in reading.whole)
    return TransformChain(seen, whole), np.delete(raw, at, axis=1), np.delete(U, task, axis=1)


def task_place(model: Any, task: int) -> int:
    """Return the raw column that a model sees as its task."""
    given, (width, _) = _original(model), _width(model, model.train_inputs[0].shape[-1])
    return read(model, width if given is None else given.shape[1]).seen[task].atom.raw[0]


def _original(model: Any) -> np.ndarray | None:
    """Return the training rows as they were given; None if there is no transform of them."""
    given = getattr(model, "_original_train_inputs", None)
    if given is None or not getattr(model, "_has_transformed_inputs", False):
        return None
    rows = on_host(given).astype(np.float64)
    return rows if rows.ndim == 2 else rows.reshape(-1, *rows.shape[-2:])[0]


def _same_rows(raw: np.ndarray, U: np.ndarray, reading: TransformChain) -> bool:
    """Return whether a model sees its training rows as it would see new ones."""
    if len(raw) != len(U):
        return False
    straight = replace(reading, whole=())
    try:
        seen = seen_rows(raw, straight)
    except (InvalidInputError, IndexError):
        return False
    return bool(np.allclose(seen, U, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(U).max()))))


def _of_codes(kernel: Kernel | None, reading: TransformChain) -> bool:
    return kernel is not None and bool(columns_of_codes(kernel, range(len(reading.seen))))


def _codes(
    kernel: Kernel | None, reading: TransformChain, categories: Any, raw: np.ndarray
) -> dict[tuple[int, ...], Atom]:
    """Return the columns of which a kernel sees codes only, with their labels."""
    D = len(reading.seen)
    found = set() if kernel is None else columns_of_codes(kernel, range(D))
    coded = sorted({reading.seen[j].atom.raw[0] for j in found if reading.seen[j].table is None})
    given = _given_codes(categories, coded, raw.shape[1])
    atoms = {}
    for i in coded:
        more = np.round(given.get(i, np.zeros(0)), CODE_DIGITS)
        labels = np.union1d(np.round(raw[:, i], CODE_DIGITS), more).tolist()
        whole = tuple(int(code) if code == int(code) else code for code in labels)
        atoms[(i,)] = Atom((i,), whole)
    return atoms


def _given_codes(categories: Any, codes: list[int], d: int) -> dict[int, np.ndarray]:
    """Return the codes that the user gives, {column: codes}."""
    if not isinstance(categories, Mapping):
        raise InvalidInputError(f"categories: expected {{column: codes}}, got {categories!r}")
    given: dict[int, np.ndarray] = {}
    for column, values in categories.items():
        whole = (
            isinstance(column, (int, np.integer))
            and not isinstance(column, bool)
            and -d <= column < d
        )
        place = int(column) % d if whole else -1
        if place not in codes or place in given:
            raise InvalidInputError(
                f"categories: expected columns with categories, of {codes}, each once, got"
                f" {list(categories)}"
            )
        given[place] = to_numpy(as_vector(f"categories[{column}]", values))
    return given


def _atoms(reading: TransformChain, width: int) -> tuple[Atom, ...]:
    """Return the user's columns in their order, including the columns that the model drops."""
    found = {seen.atom.raw: seen.atom for seen in reading.seen}
    used = {i for raw in found for i in raw}
    atoms = [*found.values(), *(Atom((i,)) for i in range(width) if i not in used)]
    return tuple(sorted(atoms, key=lambda atom: atom.raw))


def _encoder(atoms: Sequence[Atom], *, jump: bool) -> Encoder | None:
    names = tuple(f"x{i}" for i in range(len(atoms)))
    categories = {
        name: atom.labels
        for name, atom in zip(names, atoms, strict=True)
        if atom.labels is not None
    }
    if not categories:
        return None
    return Encoder(names, categories, as_one_feature=jump, named=False)


def _places(atoms: Sequence[Atom], encoder: Encoder | None) -> dict[tuple[int, ...], list[int]]:
    """Return the encoded columns of each of the user's columns."""
    if encoder is None:
        return {atom.raw: [i] for i, atom in enumerate(atoms)}
    pairs = zip(atoms, encoder.names, strict=True)
    return {atom.raw: encoder.places(name) for atom, name in pairs}


def _scaled(
    reading: TransformChain,
    places: Mapping[tuple[int, ...], list[int]],
    jumping: frozenset[tuple[int, ...]],
) -> tuple[tuple[Column, ...], np.ndarray, np.ndarray]:
    """Return the model's inputs as columns w = (v − shift)/scale, and shift and scale.

    Where one input alone is affine in a column, w is that input.
    """
    d = sum(map(len, places.values()))
    shift, scale, columns = np.zeros(d), np.ones(d), []
    wanted = [_only_place(seen, places[seen.atom.raw]) for seen in reading.seen]
    for seen, want in zip(reading.seen, wanted, strict=True):
        at = tuple(places[seen.atom.raw])
        if seen.atom.raw in jumping:
            columns.append(Column(at, jumps=True, labels=seen.atom.labels or ()))
        elif want is not None and sum(w is not None and w[0] == want[0] for w in wanted) == 1:
            place, affine = want
            shift[place], scale[place] = affine.shift, affine.scale
            columns.append(Column((place,)))
        else:
            columns.append(Column(at, seen.maps, seen.table))
    return tuple(columns), shift, scale


def _only_place(seen: Seen, places: Sequence[int]) -> tuple[int, Affine] | None:
    """Return the encoded column in which an input is affine, and how; None if there is none.

    An entry of a table is, where it has one value for one label and another for all others.
    """
    if seen.table is None:
        affine = as_affine(seen.maps)
        return None if affine is None or len(places) > 1 else (places[0], affine)
    for k in np.argsort(-seen.table).tolist():
        place, others = places[k], np.delete(seen.table, k)
        if (others == others[0]).all() and others[0] != seen.table[k]:
            step = float(seen.table[k] - others[0])
            return place, Affine(-float(others[0]) / step, 1.0 / step)
    return None
