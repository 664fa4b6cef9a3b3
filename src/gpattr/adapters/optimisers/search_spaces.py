"""Search spaces of optimisers: a user's parameters, and a model's columns for them.

An optimiser encodes categories, selects and scales columns, and its model may do so once more. What
is seen of a row in the end is found by asking: one parameter at a time takes other values, and the
columns that move are its own. A number must move them linearly, or its logarithm or logit must; a
category is a row of numbers for each label, between which integrated gradients follow a straight
line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy as shallow_copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import read_only
from gpattr.adapters.columns import (
    Affine,
    Log,
    Logit,
    Maps,
    as_affine,
    inverse,
    of_features,
    posterior_behind,
    value,
)
from gpattr.adapters.foreign import FLOAT32, side_by_side, with_note
from gpattr.adapters.registry import Adapted
from gpattr.encoders import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.posteriors import MultiOutputPosterior, Posterior

SAME = 1e-9  # relative difference of columns that are one and the same
STRAIGHT = 1e-6  # of the range of a column: what rounding may leave of a straight line
PROBES = 7  # values at which a number is tried


@dataclass(frozen=True)
class Parameter:
    """A parameter that a user searches: a number among ``values``, or one of ``labels``.

    Of numbers in an interval, which are not ``discrete``, the values are both ends and some
    between. Searched numbers may have ``digits`` after the point, 0 for whole numbers. In the
    centre of the space the labels ``active`` share the parameter, by default all. One with both
    values and labels is a number if the model's columns allow it.
    """

    name: str
    values: tuple[float, ...] = ()
    labels: tuple[Any, ...] | None = None
    active: tuple[Any, ...] | None = None
    discrete: bool = False
    digits: int | None = None

    @property
    def probes(self) -> tuple[Any, ...]:
        """Values that tell which columns are the parameter's own."""
        if self.labels is not None:
            return self.labels
        ordered = sorted(set(self.values))
        if len(ordered) == 1:
            ordered.append(ordered[0] + max(abs(ordered[0]), 1.0))
        chosen = np.linspace(0, len(ordered) - 1, min(len(ordered), PROBES)).round().astype(int)
        return tuple(ordered[i] for i in chosen)

    @property
    def relaxed(self) -> bool:
        """Whether the model takes more numbers than are searched."""
        return self.discrete or self.digits is not None

    def searched(self, values: np.ndarray) -> np.ndarray:
        """Return the searched numbers nearest to these."""
        if self.discrete:
            known = np.array(self.values, dtype=np.float64)
            return known[np.abs(values[..., None] - known).argmin(axis=-1)]
        return values if self.digits is None else np.round(values, self.digits)

    def centre(self, maps: Maps) -> float:
        """Return the middle of the range, on the axis that is searched."""
        ends = np.array([min(self.values), max(self.values)], dtype=np.float64)
        middle = inverse(maps, np.array(value(maps, ends).mean()))
        return float(self.searched(np.asarray(middle)))


def interval(name: str, low: float, high: float) -> Parameter:
    """Return a parameter that can be any number from ``low`` to ``high``."""
    return Parameter(name, (low, 0.5 * (low + high), high))


@dataclass(frozen=True)
class ColumnSource:
    """Origin of a column: maps of an encoded column of a parameter."""

    parameter: str
    position: int
    maps: Maps = ()


@dataclass
class Codes:
    """The columns by which the labels of categories are encoded, as models need them."""

    parameters: Mapping[str, Parameter]
    columns: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def place(self, name: str, values: np.ndarray) -> ColumnSource:
        """Return the column of a category that has these values, one for each label.

        Encoded columns go from 0 to 1, so that models that scale them differently share them.
        """
        low, high = float(values.min()), float(values.max())
        scale = high - low or 1.0
        column, known = (values - low) / scale, self.columns.setdefault(name, [])
        same = [k for k, other in enumerate(known) if np.abs(column - other).max() <= SAME]
        position = same[0] if same else len(known)
        if not same:
            known.append(column)
        return ColumnSource(name, position, (Affine(-low / scale, 1.0 / scale),))

    def encoder(self, *, named: bool) -> Encoder | None:
        """Return the encoder of all parameters; None if all are numbers."""
        labels = {
            name: parameter.labels
            for name, parameter in self.parameters.items()
            if parameter.labels is not None
        }
        codes = {}
        for name, columns in self.columns.items():
            matrix, count = np.column_stack(columns), len(labels[name])
            if matrix.shape == (count, count) and (matrix == np.eye(count)).all():
                continue
            if len(np.unique(matrix, axis=0)) < count:  # the model cannot tell some labels apart
                matrix = np.column_stack([matrix, np.linspace(0.0, 1.0, count)])
            codes[name] = matrix
        if not labels:
            return None
        unused = frozenset(labels) - set(self.columns)
        return Encoder(tuple(self.parameters), labels, named=named, unused=unused, codes=codes)


@dataclass(frozen=True)
class Probes:
    """A model's columns, (rows, width), as one parameter at a time takes the ``asked`` values."""

    parameters: Mapping[str, Parameter]
    asked: Mapping[str, tuple[Any, ...]]
    seen: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, parameters: Sequence[Parameter], seen: Callable[[Any], np.ndarray]) -> Probes:
        """Return the columns ``seen`` for the parameters' own probes."""
        import pandas as pd

        asked = {part.name: part.probes for part in parameters}
        start = {name: values[0] for name, values in asked.items()}
        frames = [
            pd.DataFrame([{**start, name: value} for value in values])
            for name, values in asked.items()
        ]
        rows = seen(pd.concat(frames, ignore_index=True))
        parts = np.split(rows, np.cumsum([len(frame) for frame in frames])[:-1])
        space = {part.name: part for part in parameters}
        return cls(space, asked, dict(zip(space, parts, strict=True)))

    @property
    def width(self) -> int:
        """The number of columns that the model sees."""
        return next(iter(self.seen.values())).shape[1]

    def moves(self, name: str, j: int) -> bool:
        """Return whether a parameter changes a column."""
        size = max(float(np.abs(part[:, j]).max()) for part in self.seen.values())
        return bool(np.ptp(self.seen[name][:, j]) > SAME * max(size, 1e-300))

    def owner(self, j: int) -> str:
        """Return the parameter that a column is made of; raise if there is not exactly one."""
        owners = [name for name in self.seen if self.moves(name, j)]
        owners = owners or [name for name, values in self.asked.items() if len(values) == 1][:1]
        if len(owners) != 1:
            made = " and ".join(map(repr, owners)) if owners else "none"
            raise UnsupportedModelError(
                f"model: column {j} of what its kernel sees is made of {made} of the parameters;"
                " only columns of one parameter each are supported, not features engineered from"
                " several"
            )
        return owners[0]

    def values(self, j: int) -> np.ndarray:
        """Return a column at all probes of its parameter."""
        return self.seen[self.owner(j)][:, j]

    def source(self, j: int, codes: Codes) -> ColumnSource:
        """Return where a column comes from."""
        name = self.owner(j)
        if self.parameters[name].labels is not None:
            return codes.place(name, self.values(j))
        maps = self._axis(name, j)
        if maps is None:
            raise UnsupportedModelError(
                f"input_transform: the model sees {name!r} through a function that is not linear,"
                " nor is it of its logarithm or logit"
            )
        return ColumnSource(name, 0, maps)

    def straight(self, name: str) -> bool:
        """Return whether a parameter can be a number: it changes one column at most, on an axis."""
        moved = [j for j in range(self.width) if self.moves(name, j)]
        return not moved or (len(moved) == 1 and self._axis(name, moved[0]) is not None)

    def _axis(self, name: str, j: int) -> Maps | None:
        """Return the maps of a number that a column is; None if it is neither of those known."""
        x, made = np.array(self.asked[name], dtype=np.float64), self.seen[name][:, j]
        if not (np.diff(x) > 0).all():
            return None
        axes: list[Maps] = [()]
        axes += [(Log(name, searched=True),)] if (x > 0).all() else []
        axes += [(Logit(name),)] if (x > 0).all() and (x < 1).all() else []
        for axis in axes:
            raw = value(axis, x)
            slope = (made[-1] - made[0]) / (raw[-1] - raw[0])
            off = made - (made[0] + slope * (raw - raw[0]))
            if slope and np.abs(off).max() <= STRAIGHT * np.ptp(made):
                return *axis, Affine(float(raw[0] - made[0] / slope), float(1.0 / slope))
        return None


@dataclass(frozen=True)
class Surrogate:
    """A model of an optimiser, of the targets ``names``.

    ``seen`` turns a frame in the user's parameters into the model's rows (n, D); ``predict`` gives
    its own mean and variance for such a frame. ``located`` is the posterior of columns, and where
    these come from, given what is seen of the parameters.
    """

    names: tuple[str, ...]
    seen: Callable[[Any], np.ndarray]
    predict: Callable[[Any], tuple[np.ndarray, np.ndarray]]
    located: Callable[[Probes, Codes], tuple[Posterior, list[ColumnSource]]]


def by_columns(
    posterior: Posterior,
) -> Callable[[Probes, Codes], tuple[Posterior, list[ColumnSource]]]:
    """Return the posterior of all that is seen, and where its columns come from."""

    def located(probes: Probes, codes: Codes) -> tuple[Posterior, list[ColumnSource]]:
        if posterior.encoder is not None:
            raise UnsupportedModelError(
                "model: categories inside a model behind a search space are not supported"
            )
        return posterior, [probes.source(j, codes) for j in range(probes.width)]

    return located


def explained(
    parameters: Sequence[Parameter],
    surrogates: Sequence[Surrogate],
    *,
    rows: Any = None,
    best: Any = None,
    target_names: Mapping[str, str | None] | None = None,
    named: bool = True,
    centred: bool = True,
    anywhere: bool = False,
) -> Adapted:
    """Return the models of an optimiser as functions of the user's parameters.

    ``rows`` is the frame of all that was measured, ``best`` a frame with the best row of it;
    ``target_names`` are targets with their units, by output. Parameters that are not ``named`` are
    columns of an array, and of spaces that are not ``centred`` the bounds are not known. Models
    that predict ``anywhere`` take numbers that are not searched.
    """
    tried = [Probes.of(parameters, surrogate.seen) for surrogate in surrogates]
    space = {part.name: part for part in parameters}
    for name, part in space.items():
        if part.values and part.labels and all(probes.straight(name) for probes in tried):
            space[name] = replace(part, labels=None)
    codes = Codes(space)
    located = [
        surrogate.located(replace(probes, parameters=space), codes)
        for surrogate, probes in zip(surrogates, tried, strict=True)
    ]
    encoder = codes.encoder(named=named)
    finished = [
        _behind(posterior, sources, space, encoder, named) for posterior, sources in located
    ]
    outputs = {
        name: output
        for surrogate, posterior in zip(surrogates, finished, strict=True)
        for name, output in zip(surrogate.names, posterior.outputs.values(), strict=True)
    }
    result: Any = finished[0] if len(finished) == 1 else MultiOutputPosterior(outputs)
    if isinstance(result, MultiOutputPosterior):
        result = result.with_outputs(outputs)
    sources = [source for _, own in located for source in own]
    found = {source.parameter for source in sources}
    relaxed = [name for name, part in space.items() if part.relaxed and (anywhere or name in found)]
    if relaxed:
        result = with_note(result, f"{', '.join(relaxed)} relaxed to all numbers")
    table = _Table(space, encoder, anywhere)
    points = table.points(rows, result)
    axes = {source.parameter: source.maps for source in sources}
    targets = [(target_names or {}).get(name, name) for name in outputs]
    named_points = table.named_points(axes if centred else None, rows, best)
    result = _named(result, named_points, targets)

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        frame = table.frame(X)
        answers = [surrogate.predict(frame) for surrogate in surrogates]
        return side_by_side(answers)

    single = any(FLOAT32 in output.note for output in outputs.values())
    accuracy = float(np.finfo(np.float32 if single else np.float64).eps)
    return Adapted(result, predict, points, accuracy, mixable=anywhere and encoder is None)


def _behind(
    posterior: Posterior,
    sources: Sequence[ColumnSource],
    space: Mapping[str, Parameter],
    encoder: Encoder | None,
    named: bool,
) -> Posterior:
    """Return a posterior of columns as a function of the user's parameters."""
    scales = [as_affine(source.maps) for source in sources]
    curved = {j: source.maps for j, source in enumerate(sources) if scales[j] is None}
    names = list(space)
    places = [
        names.index(source.parameter)
        if encoder is None
        else encoder.places(source.parameter)[source.position]
        for source in sources
    ]
    shift = [0.0 if scale is None else scale.shift for scale in scales]
    scale = [1.0 if scale is None else scale.scale for scale in scales]
    inner = posterior_behind(posterior, curved)
    return of_features(inner, places, shift, scale, names, encoder, named=named)


@dataclass(frozen=True)
class _Table:
    """The user's frames, and the rows of numbers that a posterior takes."""

    space: Mapping[str, Parameter]
    encoder: Encoder | None
    anywhere: bool

    def frame(self, X: np.ndarray) -> Any:
        """Return rows of numbers as a frame in the user's parameters."""
        import pandas as pd

        names = list(self.space)
        frame = pd.DataFrame(X, columns=names) if self.encoder is None else self.encoder.decode(X)
        if self.anywhere:
            return frame
        for name, part in self.space.items():
            if part.labels is None and part.relaxed:
                frame[name] = part.searched(frame[name].to_numpy())
                frame = frame.astype({name: int}) if part.digits == 0 else frame
        return frame

    def encoded(self, frame: Any) -> np.ndarray:
        """Return a frame as rows of numbers."""
        frame = frame[list(self.space)]
        if self.encoder is not None:
            return self.encoder.encode("measurements", frame)
        return frame.to_numpy(dtype=np.float64)

    def points(self, rows: Any, posterior: Posterior) -> np.ndarray:
        """Return rows at which to compare the model: training rows, and numbers between them."""
        if rows is not None and len(rows):
            points = self.encoded(rows)
        else:
            known = posterior.training_inputs
            points = np.zeros((1, posterior.n_columns)) if known is None else to_numpy(known)
        if self.encoder is None and self.anywhere:
            return points
        points = np.concatenate([points, 0.3 * points + 0.7 * points[::-1]])
        points = points if self.encoder is None else self.encoder.nearest_one_hot(points)
        return points if self.anywhere else self.encoded(self.frame(points))

    def named_points(
        self, axes: Mapping[str, Maps] | None, rows: Any, best: Any
    ) -> dict[str, np.ndarray]:
        """Return points that can serve as baselines, by name; the centre on ``axes``."""
        points = {} if axes is None else {"centre": np.concatenate(list(self._centre(axes)))}
        if best is not None:
            points["best"] = self.encoded(best)[0]
        if rows is not None and len(rows):
            every = self.encoded(rows)
            points |= {"mean": every.mean(axis=0), "median": np.median(every, axis=0)}
        return points

    def _centre(self, axes: Mapping[str, Maps]) -> Iterator[Any]:
        for name, part in self.space.items():
            if part.labels is None:
                yield [part.centre(axes.get(name, ()))]
                continue
            assert self.encoder is not None
            active = part.labels if part.active is None else part.active
            yield self.encoder.code(name)[[part.labels.index(label) for label in active]].mean(
                axis=0
            )


def _named(posterior: Any, points: Mapping[str, Array], targets: Sequence[str | None]) -> Any:
    """Return a posterior with its reference points and the names of its outputs."""
    if isinstance(posterior, MultiOutputPosterior):
        pairs = zip(posterior.outputs.items(), targets, strict=True)
        posterior = posterior.with_outputs(
            {name: _named(output, points, [target]) for (name, output), target in pairs}
        )
    else:
        posterior = shallow_copy(posterior)
        object.__setattr__(posterior, "target_name", targets[0])
    shown = {key: read_only(np.asarray(point, dtype=np.float64)) for key, point in points.items()}
    object.__setattr__(posterior, "named_points", shown)
    return posterior
