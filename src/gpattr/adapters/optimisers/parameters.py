"""Parameters of optimisers: how the columns of their models are made of them.

An optimiser's model sees numbers: scaled, on a logarithmic axis, with categories as codes. Which it
is, is read off values that the optimiser's own transforms return (`number`, `category`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._core.validation import read_only
from gpattr.adapters.columns import Affine, Log, Logit, Maps, inverse, posterior_behind, value
from gpattr.adapters.foreign import with_note
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.posteriors import AffinePosterior, EncodedPosterior, MultiOutputPosterior, Posterior

AFFINE = 1e-9  # of the range of a column: what rounding may leave of a straight line


@dataclass(frozen=True)
class Number:
    """A parameter x between ``low`` and ``high`` whose column is (x − shift)/scale, or maps of x.

    ``column`` None means that the model does not see it. Searched values have ``digits`` after the
    point, 0 for whole numbers, or any number of them; or they are ``steps``.
    """

    name: str
    low: float
    high: float
    column: int | None = None
    shift: float = 0.0
    scale: float = 1.0
    maps: Maps = ()
    digits: int | None = None
    steps: tuple[float, ...] = ()

    @property
    def centre(self) -> float:
        """The middle of the range, on the axis that is searched."""
        ends = np.array([self.low, self.high])
        middle = inverse(self.maps, np.array(value(self.maps, ends).mean()))
        return float(self.searched(np.asarray(middle)))

    def searched(self, values: np.ndarray) -> np.ndarray:
        """Return the searched values nearest to these."""
        if self.steps:
            steps = np.array(self.steps)
            return steps[np.abs(values[..., None] - steps).argmin(axis=-1)]
        return values if self.digits is None else np.round(values, self.digits)


@dataclass(frozen=True)
class Category:
    """A parameter with ``labels``; each has a row of ``codes``, its values of the ``columns``."""

    name: str
    labels: tuple[Any, ...]
    columns: tuple[int, ...] = ()
    codes: tuple[tuple[float, ...], ...] = ()

    @property
    def one_hot(self) -> bool:
        """Whether there is one column of 0 and 1 for each label, or none."""
        return not self.columns or np.array_equal(self.codes, np.eye(len(self.labels)))

    @property
    def encoded(self) -> np.ndarray:
        """The labels as encoded columns, (labels, columns)."""
        return np.eye(len(self.labels)) if self.one_hot else np.array(self.codes)


Parameter = Number | Category


def number(name: str, values: Sequence[float], rows: np.ndarray, **searched: Any) -> Number:
    """Return a number from the model's ``rows`` (k, columns) at increasing ``values`` (k,) of it.

    Everything else is the same in all rows.
    """
    x = np.asarray(values, dtype=np.float64)
    found = Number(name, float(x[0]), float(x[-1]), **searched)
    changed = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    if not len(changed):
        return found
    if len(changed) > 1:
        raise UnsupportedModelError(
            f"model: expected one column of the number {name!r}, found {len(changed)}"
        )
    column = int(changed[0])
    made = rows[:, column]
    axes: list[Maps] = [()]
    axes += [(Log(name),)] if (x > 0).all() else []
    axes += [(Logit(name),)] if (x > 0).all() and (x < 1).all() else []
    for axis in axes:
        raw = value(axis, x)
        scale = float((raw[-1] - raw[0]) / (made[-1] - made[0]))
        shift = float(raw[0] - scale * made[0])
        if np.abs((raw - shift) / scale - made).max() <= AFFINE * np.ptp(made):
            if not axis:
                return replace(found, column=column, shift=shift, scale=scale)
            return replace(found, column=column, maps=(*axis, Affine(shift, scale)))
    raise UnsupportedModelError(
        f"model: its column of {name!r} is neither affine in it nor in its logarithm or logit"
    )


def category(
    name: str, labels: Sequence[Any], rows: np.ndarray, columns: Sequence[int] | None = None
) -> Category:
    """Return a category from the model's ``rows`` (labels, columns), one for each of its labels.

    Its ``columns`` are those that change, unless they are known.
    """
    changed = np.flatnonzero(np.ptp(rows, axis=0) > 0) if columns is None else np.array(columns)
    changed = tuple(changed.tolist())
    codes = tuple(map(tuple, rows[:, list(changed)].tolist()))
    return Category(name, tuple(labels), changed, codes if changed else ())


@dataclass(frozen=True)
class Parameters:
    """The user's parameters, in their order, of a model with ``width`` columns.

    Names that are not ``named`` by the user only number the parameters.
    """

    parameters: tuple[Parameter, ...]
    width: int
    named: bool = True

    def __post_init__(self) -> None:
        columns = [column for parameter in self.parameters for column in _columns(parameter)]
        if sorted(columns) != list(range(self.width)):
            raise UnsupportedModelError(
                f"model: expected each of its {self.width} columns to depend on one parameter of"
                f" {list(self.names)}; columns {_odd(columns, self.width)} depend on none of them,"
                " or on several"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def encoder(self) -> Encoder | None:
        """What makes numbers of a frame of parameters; None if all of them are."""
        categories = [part for part in self.parameters if isinstance(part, Category)]
        if not categories:
            return None
        return Encoder(
            self.names,
            {part.name: part.labels for part in categories},
            named=self.named,
            unused=frozenset(part.name for part in self.parameters if not _columns(part)),
            codes={part.name: part.codes for part in categories if not part.one_hot},
        )

    def posterior(self, posterior: Posterior) -> Posterior:
        """Return a posterior of the model's columns as one of the parameters."""
        if isinstance(posterior, MultiOutputPosterior):
            if not posterior.independent:
                raise UnsupportedModelError(
                    "model: correlated outcomes behind a search space are not supported"
                )
            outputs = {name: self.posterior(part) for name, part in posterior.outputs.items()}
            return MultiOutputPosterior(outputs)
        if posterior.encoder is not None:
            raise UnsupportedModelError(
                "model: categories inside a model behind a search space are not supported"
            )
        numbers = [part for part in self.parameters if isinstance(part, Number)]
        seen = [(part, part.column) for part in numbers if part.column is not None]
        maps = {column: part.maps for part, column in seen if part.maps}
        shift, scale = np.zeros(self.width), np.ones(self.width)
        for part, column in seen:
            shift[column], scale[column] = part.shift, part.scale
        result: Posterior = AffinePosterior(
            posterior_behind(posterior, maps),
            shift,
            scale,
            source=self._source,
            n_features=len(self._places),
            feature_names=self._labels,
        )
        result = result if self.encoder is None else EncodedPosterior(result, self.encoder)
        rounded = [part.name for part, _ in seen if part.steps or part.digits is not None]
        note = f"{', '.join(rounded)} relaxed to all numbers"
        return with_note(result, note) if rounded else result

    @property
    def _labels(self) -> tuple[str, ...] | None:
        if self.encoder is not None:
            return self.encoder.encoded_names
        return self.names if self.named else None

    @cached_property
    def _places(self) -> tuple[tuple[str, int | None], ...]:
        """The encoded columns as (parameter, column of the model)."""
        places: list[tuple[str, int | None]] = []
        for part in self.parameters:
            if isinstance(part, Number):
                places.append((part.name, part.column))
            else:
                columns = part.columns or (None,) * len(part.labels)
                places += [(part.name, column) for column in columns]
        return tuple(places)

    @property
    def _source(self) -> list[int]:
        """The encoded column of each column of the model."""
        place = {column: i for i, (_, column) in enumerate(self._places)}
        return [place[column] for column in range(self.width)]

    def encoded(self, records: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return parameters as encoded columns, (n, columns)."""
        import pandas as pd

        frame = pd.DataFrame({name: [record[name] for record in records] for name in self.names})
        if self.encoder is not None:
            return self.encoder.encode("X", frame)
        return frame.to_numpy(dtype=np.float64)

    def rows_as_records(self, rows: Any) -> list[dict[str, Any]]:
        """Return lists of values, in the order of the parameters, as dictionaries."""
        return [dict(zip(self.names, row, strict=True)) for row in rows]

    def records(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return encoded rows as parameters, whole numbers as such."""
        columns: dict[str, list[Any]] = {}
        for part in self.parameters:
            places = [i for i, (name, _) in enumerate(self._places) if name == part.name]
            values = rows[:, places]
            if isinstance(part, Category):
                assert self.encoder is not None
                chosen = self.encoder.chosen(part.name, values)
                columns[part.name] = [part.labels[k] for k in chosen]
            else:
                values = part.searched(values[:, 0])
                columns[part.name] = [
                    int(value) if part.digits == 0 else float(value) for value in values
                ]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def comparison_rows(self, records: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return encoded rows at which to compare a model: measured ones, and some between them."""
        rows = self.encoded(records)
        mixed = 0.3 * rows + 0.7 * rows[::-1]
        mixed = mixed if self.encoder is None else self.encoder.nearest_one_hot(mixed)
        return self.encoded(self.records(np.concatenate([rows, mixed])))

    def centre(self) -> np.ndarray:
        """Return the middle of the space as encoded columns: of categories, that of their codes."""
        parts = [
            [part.centre] if isinstance(part, Number) else part.encoded.mean(axis=0)
            for part in self.parameters
        ]
        return np.concatenate(parts)

    def completed(self, points: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return points, as encoded columns, with what the model does not see at its centre."""
        unseen = [column is None for _, column in self._places]
        return {name: np.where(unseen, self.centre(), point) for name, point in points.items()}


def rows_of(
    transform: Callable[[list[dict[str, Any]]], np.ndarray],
    base: Mapping[str, Any],
    name: str,
    values: Sequence[Any],
) -> np.ndarray:
    """Return the model's rows (k, columns) where one parameter runs through ``values``."""
    return transform([{**base, name: value} for value in values])


def _columns(parameter: Parameter) -> tuple[int, ...]:
    if isinstance(parameter, Category):
        return parameter.columns
    return () if parameter.column is None else (parameter.column,)


def _odd(columns: Sequence[int], width: int) -> list[int]:
    return [column for column in range(width) if list(columns).count(column) != 1]


def described(
    posterior: Posterior, points: Mapping[str, np.ndarray], target_name: str | None = None
) -> Posterior:
    """Return a posterior that knows reference points, as encoded columns, and what it predicts."""
    result = copy(posterior)
    shown = {name: read_only(point) for name, point in points.items()}
    object.__setattr__(result, "named_points", shown)
    if not isinstance(result, MultiOutputPosterior):
        object.__setattr__(result, "target_name", target_name)
    return result
