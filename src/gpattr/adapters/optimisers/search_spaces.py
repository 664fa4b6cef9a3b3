"""Search spaces of optimisers: a user's parameters, and the columns that a model makes of them.

An optimiser encodes categories, selects and scales columns, and its BoTorch model does so once
more. What the kernel sees of a row in the end is found by asking: one parameter at a time takes
other values, and the columns that move are its own. A number must move them linearly; a category is
a row of numbers for each label, between which integrated gradients follow a straight line. Columns
of codes, which a kernel only compares, are replaced by columns that have something in between: one
for each label (`Hamming`), or a factor of the covariance between labels (`Index`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy as shallow_copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import read_only
from gpattr.adapters.adapt import adapt
from gpattr.adapters.foreign import FLOAT32, beside, on_host, with_note
from gpattr.adapters.kernels import Hamming, Index, columns_of_codes, hamming_as_lines
from gpattr.adapters.pytorch.botorch_models import in_units, outcome_units, untransformed
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double, noise_of
from gpattr.adapters.pytorch.kernels import called, mean_of
from gpattr.adapters.pytorch.predictions import exact_moments
from gpattr.adapters.registry import Adapted
from gpattr.adapters.scikit_learn.pipelines import of_features
from gpattr.encoders import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Select
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import (
    AffinePosterior,
    ExactPosterior,
    MultiOutputPosterior,
    Posterior,
    WrappedOutputs,
)

SAME = 1e-9  # relative difference of columns that are one and the same


@dataclass(frozen=True)
class Parameter:
    """A parameter that a user searches: a number among ``values``, or one of ``labels``.

    Of numbers in an interval, which are not ``discrete``, the values are both ends and the middle.
    In the centre of the space the labels ``active`` share the parameter, by default all.
    """

    name: str
    values: tuple[float, ...] = ()
    labels: tuple[Any, ...] | None = None
    active: tuple[Any, ...] | None = None
    discrete: bool = False

    @property
    def probes(self) -> tuple[Any, ...]:
        """Values that tell which columns are the parameter's own."""
        if self.labels is not None:
            return self.labels
        ordered = sorted(set(self.values))
        if len(ordered) == 1:
            ordered.append(ordered[0] + max(abs(ordered[0]), 1.0))
        return tuple(dict.fromkeys((ordered[0], ordered[len(ordered) // 2], ordered[-1])))

    @property
    def centre(self) -> float:
        """The number in the middle of the range, or the value next to it."""
        middle = 0.5 * (min(self.values) + max(self.values))
        return min(self.values, key=lambda value: abs(value - middle))


def interval(name: str, low: float, high: float) -> Parameter:
    """Return a parameter that can be any number from ``low`` to ``high``."""
    return Parameter(name, (low, 0.5 * (low + high), high))


@dataclass(frozen=True)
class Modelled:
    """A BoTorch ``model`` of an optimiser, of the targets ``names``.

    ``columns`` makes of a frame in the user's parameters the rows (n, D) that ``model.posterior``
    takes.
    """

    names: tuple[str, ...]
    model: Any
    columns: Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class _Column:
    """A column that a kernel sees: (z − shift)/scale of a parameter's encoded column z."""

    parameter: str
    position: int
    shift: float
    scale: float


@dataclass
class _Codes:
    """The columns by which the labels of categories are encoded, as models need them."""

    parameters: Mapping[str, Parameter]
    columns: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def place(self, name: str, values: np.ndarray) -> _Column:
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
        return _Column(name, position, -low / scale, 1.0 / scale)

    def encoder(self) -> Encoder | None:
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
        return Encoder(tuple(self.parameters), labels, codes=codes) if labels else None


def explained(
    parameters: Sequence[Parameter],
    models: Sequence[Modelled],
    *,
    rows: Any = None,
    best: Any = None,
    target_names: Mapping[str, str] | None = None,
) -> Adapted:
    """Return the models of an optimiser as functions of the user's parameters.

    ``rows`` is the frame of all that was measured, ``best`` a frame with the best row of it;
    ``target_names`` are targets with their units, by output.
    """
    space = {parameter.name: parameter for parameter in parameters}
    codes = _Codes(space)
    parts = [_Part.of(modelled, codes) for modelled in models]
    encoder = codes.encoder()
    finished = [part.behind(list(space), encoder) for part in parts]
    outputs = {
        name: output
        for modelled, posterior in zip(models, finished, strict=True)
        for name, output in zip(modelled.names, posterior.outputs.values(), strict=True)
    }
    if len(models) == 1:
        result: Any = finished[0]
        if isinstance(result, MultiOutputPosterior):
            result = result.with_outputs(outputs)
    else:
        result = MultiOutputPosterior(outputs)
    discrete = ", ".join(parameter.name for parameter in parameters if parameter.discrete)
    if discrete:
        result = with_note(result, f"{discrete} relaxed to all numbers")
    table = _Table(tuple(space), encoder)
    points = table.points(rows, result)
    targets = [(target_names or {}).get(name, name) for name in outputs]
    result = _named(result, table.named(space, rows, best), targets)

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        frame = table.frame(X)
        answers = [part.predict(frame) for part in parts]
        mean, var = (
            np.concatenate([answer[i].reshape(len(X), -1) for answer in answers], axis=1)
            for i in (0, 1)
        )
        return (mean, var) if result.several_outputs else (mean[:, 0], var[:, 0])

    single = any(FLOAT32 in output.note for output in outputs.values())
    accuracy = float(np.finfo(np.float32 if single else np.float64).eps)
    return Adapted(result, predict, points, accuracy, mixable=encoder is None)


@dataclass(frozen=True)
class _Part:
    """One model of an optimiser: the posterior of what its kernel sees, and what that is."""

    posterior: Posterior
    columns: tuple[_Column, ...]
    predict: Callable[[Any], tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, modelled: Modelled, codes: _Codes) -> _Part:
        import torch

        bare = copy_of(modelled.model)
        device = next(bare.parameters()).device
        transform = getattr(bare, "input_transform", None)
        if transform is not None:
            del bare.input_transform  # training rows in evaluation mode are what the kernel sees

        def seen(frame: Any) -> np.ndarray:
            rows = torch.tensor(np.array(modelled.columns(frame), dtype=np.float64), device=device)
            with torch.no_grad():
                return on_host(rows if transform is None else transform(rows))

        def of_codes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return untransformed(bare, torch.tensor(rows, device=device), exact_moments)

        probed = _Probes.of(codes.parameters, seen)
        kernel = _kernel_of_codes(bare)
        if kernel is None:
            columns = tuple(probed.column(j, codes) for j in range(probed.width))
            inner = adapt(bare)
            posterior, predict = inner.posterior, inner.predict
        else:
            layout = _Layout(probed, codes)
            posterior = _exact(bare, layout.translated(kernel, range(probed.width)), layout)
            columns, predict = tuple(layout.columns), of_codes
        posterior = in_double(posterior, modelled.model)
        return cls(posterior, columns, lambda frame: predict(seen(frame)))

    def behind(self, names: list[str], encoder: Encoder | None) -> Posterior:
        """Return the posterior as a function of the user's parameters."""

        def place(column: _Column) -> int:
            if encoder is None:
                return names.index(column.parameter)
            return encoder.places(column.parameter)[column.position]

        labels = tuple(names) if encoder is None else encoder.encoded_names
        units: dict[str, Any] = {
            "source": [place(column) for column in self.columns],
            "n_features": len(labels),
            "feature_names": labels,
        }
        shift = [column.shift for column in self.columns]
        scale = [column.scale for column in self.columns]
        if not isinstance(self.posterior, MultiOutputPosterior):
            result: Posterior = AffinePosterior(self.posterior, shift, scale, **units)
        else:
            outputs = {
                name: AffinePosterior(output, shift, scale, **units)
                for name, output in self.posterior.outputs.items()
            }
            result = WrappedOutputs(self.posterior, outputs, next(iter(outputs.values())))
        return result if encoder is None else of_features(result, encoder)


@dataclass(frozen=True)
class _Probes:
    """What a model sees, (rows, width), where one parameter at a time takes other values."""

    parameters: Mapping[str, Parameter]
    seen: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, parameters: Mapping[str, Parameter], seen: Callable[[Any], np.ndarray]) -> _Probes:
        import pandas as pd

        start = {name: parameter.probes[0] for name, parameter in parameters.items()}
        frames = [
            pd.DataFrame(
                {other: [value] * len(parameter.probes) for other, value in start.items()}
            ).assign(**{name: list(parameter.probes)})
            for name, parameter in parameters.items()
        ]
        rows = seen(pd.concat(frames, ignore_index=True))
        stops = np.cumsum([len(frame) for frame in frames])[:-1]
        return cls(parameters, dict(zip(parameters, np.split(rows, stops), strict=True)))

    @property
    def width(self) -> int:
        return next(iter(self.seen.values())).shape[1]

    def owner(self, j: int) -> str:
        """Return the parameter that a column is made of; raise if there is not exactly one."""
        size = max(float(np.abs(part[:, j]).max()) for part in self.seen.values())
        owners = [
            name
            for name, part in self.seen.items()
            if np.ptp(part[:, j]) > SAME * max(size, 1e-300)
        ]
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

    def column(self, j: int, codes: _Codes) -> _Column:
        """Return where a column comes from."""
        name = self.owner(j)
        values, parameter = self.values(j), self.parameters[name]
        if parameter.labels is not None:
            return codes.place(name, values)
        probes = np.array(parameter.probes)
        slope = (values[-1] - values[0]) / (probes[-1] - probes[0])
        off = values - (values[0] + slope * (probes - probes[0]))
        if np.abs(off).max() > 1e-6 * np.ptp(values):
            raise UnsupportedModelError(
                f"input_transform: the model sees {name!r} through a function that is not linear,"
                " which is not supported for optimisers"
            )
        return _Column(name, 0, float(probes[0] - values[0] / slope), float(1.0 / slope))


@dataclass
class _Layout:
    """The columns of a kernel some of whose columns are codes, which it only compares."""

    probes: _Probes
    codes: _Codes
    columns: list[_Column] = field(default_factory=list)
    makers: list[Callable[[np.ndarray], np.ndarray]] = field(default_factory=list)
    known: dict[Any, int] = field(default_factory=dict)

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows that the model sees, (n, D), as rows of these columns."""
        return np.column_stack([make(X) for make in self.makers])

    def translated(self, part: Kernel, seen: Sequence[int]) -> Kernel:
        """Return a kernel of the columns that the model sees as one of these columns."""
        if isinstance(part, Select):
            return self.translated(part.kernel, [seen[i] for i in part.features])
        if part.pointwise:
            return part.map_parts(lambda inner: self.translated(inner, seen))
        if isinstance(part, Constant):
            return part
        if isinstance(part, Index):
            codes, known = self.probes.values(seen[0]), len(part.covariance)
            if not (codes.min() >= 0 and codes.max() < known):
                name = self.probes.owner(seen[0])
                raise UnsupportedModelError(
                    f"model: it knows {known} tasks, and the parameter {name!r} has"
                    f" {len(codes)}; tasks that are not in the data are not supported"
                )
            factor = part.factor(codes)
            return Select(Linear(), self._made(seen[0], factor.T, id(part)))
        if isinstance(part, Hamming):
            widths = np.broadcast_to(part.lengthscale, (len(seen),)).tolist()
            # Between two labels the function is then between its values at both; that of a squared
            # exponential of these columns would be unknown there.
            return hamming_as_lines(
                [(self.hot(j), width) for j, width in zip(seen, widths, strict=True)]
            )
        return Select(part, [self._seen(j) for j in seen])

    def hot(self, j: int) -> list[int]:
        """Return the places of columns of 0 and 1, one for each label of a column of codes."""
        return self._made(j, np.eye(len(self.probes.values(j))), "hot")

    def _seen(self, j: int) -> int:
        """Return the place of a column that is taken as it is."""
        if (j, None) not in self.known:
            self._add((j, None), self.probes.column(j, self.codes), lambda X: X[:, j])
        return self.known[j, None]

    def _made(self, j: int, made: np.ndarray, key: Any) -> list[int]:
        """Return the places of columns, (columns, labels), that stand for a column of codes."""
        name, codes = self.probes.owner(j), self.probes.values(j)

        def label(X: np.ndarray) -> np.ndarray:
            return np.abs(X[:, [j]] - codes).argmin(axis=1)

        places = []
        for k, values in enumerate(made):
            if (j, key, k) not in self.known:
                column = self.codes.place(name, values)
                self._add((j, key, k), column, lambda X, values=values: values[label(X)])
            places.append(self.known[j, key, k])
        return places

    def _add(self, key: Any, column: _Column, make: Callable[[np.ndarray], np.ndarray]) -> None:
        self.known[key] = len(self.columns)
        self.columns.append(column)
        self.makers.append(make)


def _kernel_of_codes(model: Any) -> Kernel | None:
    """Return the kernel of a model that compares codes of categories; None for other models."""
    if not hasattr(model, "covar_module"):
        return None
    d = model.train_inputs[0].shape[-1]
    try:
        kernel = called(model.covar_module, d)
    except UnsupportedModelError:
        return None
    one = model.train_targets.ndim == 1
    return kernel if one and columns_of_codes(kernel, range(d)) else None


def _exact(model: Any, kernel: Kernel, layout: _Layout) -> Posterior:
    """Return the posterior of a `SingleTaskGP` or `MultiTaskGP` of the columns of a layout."""
    X, y = map(on_host, (model.train_inputs[0], model.train_targets))
    mean = _mean(model, layout)
    inner = ExactPosterior(
        kernel,
        beside(layout.rows(X), model.train_targets),
        beside(y, model.train_targets),
        noise=noise_of(model, None),
        mean=mean,
    )
    return in_units(inner, outcome_units(model, 1), 0)


def _mean(model: Any, layout: _Layout) -> Mean:
    """Return a constant prior mean, or one constant for each task: linear in columns of 0 and 1."""
    module, d = model.mean_module, layout.probes.width
    bases = [mean_of(base, d) for base in getattr(module, "base_means", [module])]
    if not all(isinstance(base, (ConstantMean, Zero)) for base in bases):
        raise UnsupportedModelError(
            f"mean_module: a {type(module).__name__} of columns with categories is not supported"
        )
    if len(bases) == 1:
        return bases[0]
    places = layout.hot(int(model._task_feature) % d)
    weights = np.zeros(len(layout.columns))
    weights[places] = [float(base(np.zeros((1, d)))[0]) for base in bases]
    return LinearMean(weights, 0.0)


@dataclass(frozen=True)
class _Table:
    """The user's frames, and the rows of numbers that a posterior takes."""

    names: tuple[str, ...]
    encoder: Encoder | None

    def frame(self, X: np.ndarray) -> Any:
        """Return rows of numbers as a frame in the user's parameters."""
        import pandas as pd

        if self.encoder is not None:
            return self.encoder.decode(X)
        return pd.DataFrame(X, columns=list(self.names))

    def encoded(self, frame: Any) -> np.ndarray:
        """Return a frame as rows of numbers."""
        if self.encoder is not None:
            return self.encoder.encode("measurements", frame[list(self.names)])
        return frame[list(self.names)].to_numpy(dtype=np.float64)

    def points(self, rows: Any, posterior: Posterior) -> np.ndarray:
        """Return rows at which to compare the model: training rows, and numbers between them."""
        if rows is not None and len(rows):
            points = self.encoded(rows)
        else:
            known = posterior.training_inputs
            points = np.zeros((1, posterior.n_columns)) if known is None else to_numpy(known)
        if self.encoder is None:
            return points
        between = 0.3 * points + 0.7 * points[::-1]
        return self.encoder.nearest_one_hot(np.concatenate([points, between]))

    def named(self, space: Mapping[str, Parameter], rows: Any, best: Any) -> dict[str, np.ndarray]:
        """Return points that can serve as baselines, by name."""
        centres = []
        for name, parameter in space.items():
            if parameter.labels is None:
                centres.append([parameter.centre])
                continue
            assert self.encoder is not None
            active = parameter.labels if parameter.active is None else parameter.active
            positions = [parameter.labels.index(label) for label in active]
            centres.append(self.encoder.code(name)[positions].mean(axis=0))
        points = {"centre": np.concatenate(centres)}
        if best is not None:
            points["best"] = self.encoded(best)[0]
        if rows is not None and len(rows):
            every = self.encoded(rows)
            points |= {"mean": every.mean(axis=0), "median": np.median(every, axis=0)}
        return points


def _named(posterior: Any, points: Mapping[str, Array], targets: Sequence[str]) -> Any:
    """Return a posterior that knows its reference points, and what its outputs are called."""
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
