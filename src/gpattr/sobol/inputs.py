"""Distributions of inputs: uniform, normal or empirical, independent from feature to feature.

`read_inputs` reads what users give: rows, distributions, or both by feature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gpattr._core.array import Array, to_numpy
from gpattr._core.frozen import Frozen
from gpattr._core.validation import Names, is_frame, is_series, numbers, read_only, unlabelled
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explainer.rows import Rows
from gpattr.explanation.grouping import feature_index, group_names
from gpattr.operators import AffineMap
from gpattr.posteriors import Posterior
from gpattr.special.quadrature import gauss_legendre

LEAST, MOST = 2.0**-53, 1.0 - 2.0**-53  # quantiles of unbounded distributions at 0 and 1
EXPECTED = (
    "rows, gpattr.Uniform(low, high), gpattr.Normal(mean, std), or a dictionary"
    " {feature: Uniform, Normal or values}"
)


class Distribution(Frozen, ABC):
    """The distribution of one feature, which may consist of several columns drawn together."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of columns."""

    @abstractmethod
    def nodes(self, count: int) -> tuple[Array, Array]:
        """Return nodes (K, width) and weights (K,) of a quadrature rule with sum 1."""

    @abstractmethod
    def quantiles(self, u: Array) -> Array:
        """Return values (n, width) for levels u (n,) in [0, 1]; uniform levels give draws."""

    @abstractmethod
    def mapped(self, columns: Sequence[int], shift: Array, scale: Array) -> Distribution | None:
        """Return the distribution of (x[columns] − shift)/scale; None for no columns."""


class _OneColumn(Distribution):
    """A distribution of one column with two parameters, of a family closed under affine maps."""

    @property
    def width(self) -> int:
        return 1

    @abstractmethod
    def each(self, d: int) -> tuple[Distribution, ...]:
        """Return the distributions of d features; parameters are scalars or have one entry each."""

    @abstractmethod
    def _moved(self, shift: float, scale: float) -> Distribution:
        """Return the distribution of (x − shift)/scale."""

    def mapped(self, columns: Sequence[int], shift: Array, scale: Array) -> Distribution | None:
        if not len(columns):
            return None
        if len(columns) > 1:
            return Tied(self, read_only(shift), read_only(scale))
        return self._moved(float(shift[0]), float(scale[0]))


@dataclass(frozen=True, eq=False)
class Uniform(_OneColumn):
    """A uniform distribution between ``low`` and ``high``: numbers, or arrays, one per feature.

    Parameters
    ----------
    low, high : float or array (d,)
        The ends, in the units of the features.

    Examples
    --------
    >>> import gpattr
    >>> gpattr.Uniform([0.0, -1.0], [1.0, 1.0])
    Uniform(low=array([ 0., -1.]), high=array([1., 1.]))
    """

    low: float | Array
    high: float | Array

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, _parameter(name, vars(self)[name]))
        _same_length("high", self.high, "low", self.low)
        with np.errstate(over="ignore"):
            width = np.subtract(self.high, self.low)
        if not (width > 0).all():
            raise InvalidInputError(
                f"high: expected a number larger than low = {self.low}, got {self.high}"
            )
        if not np.isfinite(width).all():
            raise InvalidInputError(
                f"high: expected a finite distance from low = {self.low}, got {self.high}"
            )

    def each(self, d: int) -> tuple[Distribution, ...]:
        pairs = _spread(d, low=self.low, high=self.high)
        return tuple(Uniform(low, high) for low, high in pairs)

    def nodes(self, count: int) -> tuple[Array, Array]:
        t, w = gauss_legendre(count)
        return (self.low + (self.high - self.low) * t)[:, None], w

    def quantiles(self, u: Array) -> Array:
        return (self.low + (self.high - self.low) * u)[:, None]

    def _moved(self, shift: float, scale: float) -> Distribution:
        ends = ((self.low - shift) / scale, (self.high - shift) / scale)
        return Uniform(min(ends), max(ends))


@dataclass(frozen=True, eq=False)
class Normal(_OneColumn):
    """A normal distribution with ``mean`` and ``std``: numbers, or arrays, one per feature.

    Parameters
    ----------
    mean, std : float or array (d,)
        Mean and standard deviation, in the units of the features.

    Examples
    --------
    >>> import gpattr
    >>> gpattr.Normal(0.0, [1.0, 2.0])
    Normal(mean=0.0, std=array([1., 2.]))
    """

    mean: float | Array
    std: float | Array

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, _parameter(name, vars(self)[name]))
        _same_length("std", self.std, "mean", self.mean)
        if not np.all(np.greater(self.std, 0)):
            raise InvalidInputError(f"std: expected numbers larger than 0, got {self.std}")

    def each(self, d: int) -> tuple[Distribution, ...]:
        pairs = _spread(d, mean=self.mean, std=self.std)
        return tuple(Normal(mean, std) for mean, std in pairs)

    def nodes(self, count: int) -> tuple[Array, Array]:
        t, w = np.polynomial.hermite_e.hermegauss(count)
        return (self.mean + self.std * t)[:, None], w / w.sum()

    def quantiles(self, u: Array) -> Array:
        return (self.mean + self.std * ndtri(np.clip(u, LEAST, MOST)))[:, None]

    def _moved(self, shift: float, scale: float) -> Distribution:
        return Normal((self.mean - shift) / scale, self.std / abs(scale))


@dataclass(frozen=True, eq=False, init=False)
class Empirical(Distribution):
    """The distribution that puts ``weights`` (K,) with sum 1 on the rows of ``values`` (K, c).

    Weights are equal by default; rows that occur more than once are put together, in order.
    """

    values: Array
    weights: Array

    def __init__(self, values: Any, weights: Any = None) -> None:
        values = np.asarray(to_numpy(values), dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        K = len(values)
        weights = np.full(K, 1.0 / K) if weights is None else np.asarray(to_numpy(weights))
        values, place = np.unique(values, axis=0, return_inverse=True)
        weights = np.bincount(place.ravel(), weights=weights, minlength=len(values))
        object.__setattr__(self, "values", read_only(values))
        object.__setattr__(self, "weights", read_only(weights / weights.sum()))

    @property
    def width(self) -> int:
        return self.values.shape[1]

    def nodes(self, count: int) -> tuple[Array, Array]:
        """Return the values themselves, whatever the count."""
        return self.values, self.weights

    def quantiles(self, u: Array) -> Array:
        levels = np.cumsum(self.weights)
        return self.values[np.minimum(np.searchsorted(levels, u, "right"), len(levels) - 1)]

    def mapped(self, columns: Sequence[int], shift: Array, scale: Array) -> Distribution | None:
        if not len(columns):
            return None
        return Empirical((self.values[:, list(columns)] - shift) / scale, self.weights)


@dataclass(frozen=True, eq=False)
class Tied(Distribution):
    """Columns (x − ``shift``)/``scale`` of one variable x with the distribution ``base``."""

    base: Distribution
    shift: Array
    scale: Array

    @property
    def width(self) -> int:
        return len(self.shift)

    def nodes(self, count: int) -> tuple[Array, Array]:
        values, weights = self.base.nodes(count)
        return (values - self.shift) / self.scale, weights

    def quantiles(self, u: Array) -> Array:
        return (self.base.quantiles(u) - self.shift) / self.scale

    def mapped(self, columns: Sequence[int], shift: Array, scale: Array) -> Distribution | None:
        if not len(columns):
            return None
        some = list(columns)
        inner_shift = self.shift[some] + self.scale[some] * shift
        return Tied(self.base, read_only(inner_shift), read_only(self.scale[some] * scale))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Independent ``distributions`` of features, which belong to players.

    Each has its ``columns`` of rows with ``n_columns`` columns, none where the model does not see
    the feature. ``owner`` is the player of each: features of one player are still independent.
    """

    distributions: tuple[Distribution, ...]
    columns: tuple[tuple[int, ...], ...]
    owner: tuple[int, ...]
    n_players: int
    n_columns: int

    @classmethod
    def single(cls, distributions: Sequence[Distribution]) -> Inputs:
        """Return inputs in which every distribution is a player, with the columns in order."""
        ends = np.cumsum([0, *(part.width for part in distributions)]).tolist()
        columns = tuple(tuple(range(low, high)) for low, high in pairwise(ends))
        P = len(columns)
        return cls(tuple(distributions), columns, tuple(range(P)), P, ends[-1])

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the distributions of each player."""
        return tuple(
            tuple(i for i, owner in enumerate(self.owner) if owner == player)
            for player in range(self.n_players)
        )

    def in_units(self, units: AffineMap) -> Inputs:
        """Return the same inputs as seen behind a map to other units and columns."""
        source, shift, scale = list(units.source), to_numpy(units.shift), to_numpy(units.scale)
        parts = []
        for distribution, columns, owner in zip(
            self.distributions, self.columns, self.owner, strict=True
        ):
            new = [j for j, column in enumerate(source) if column in columns]
            places = [columns.index(source[j]) for j in new]
            mapped = distribution.mapped(places, shift[new], scale[new])
            if mapped is not None:
                parts.append((mapped, tuple(new), owner))
        distributions, columns, owner = zip(*parts, strict=True) if parts else ((), (), ())
        return Inputs(distributions, columns, owner, self.n_players, len(source))

    def columns_of(self, player: int) -> tuple[int, ...]:
        """Return the columns of a player, in the order of its nodes."""
        return tuple(column for i in self.members[player] for column in self.columns[i])

    def nodes(self, player: int, count: int) -> tuple[Array, Array]:
        """Return nodes (K, columns of the player) and weights (K,): a product over its features."""
        rules = [self.distributions[i].nodes(count) for i in self.members[player]]
        if not rules:
            return np.zeros((1, 0)), np.ones(1)
        places = np.array(list(product(*(range(len(weights)) for _, weights in rules))))
        values = np.hstack([rule[0][places[:, i]] for i, rule in enumerate(rules)])
        return values, np.prod([rule[1][places[:, i]] for i, rule in enumerate(rules)], axis=0)

    def rows(self, levels: Array) -> Array:
        """Return rows (n, n_columns) for levels (n, number of distributions) in [0, 1]."""
        X = np.zeros((len(levels), self.n_columns))
        for i, (distribution, columns) in enumerate(
            zip(self.distributions, self.columns, strict=True)
        ):
            X[:, list(columns)] = distribution.quantiles(levels[:, i])
        return X

    def points(self, n: int, generator: np.random.Generator) -> Array:
        """Return n quasi-random rows, (n, n_columns), by scrambled Sobol' points."""
        return self.rows(sobol_points(n, len(self.distributions), generator))


def sobol_points(n: int, d: int, generator: np.random.Generator) -> Array:
    """Return the first n of a scrambled Sobol' sequence in d dimensions, (n, d)."""
    if d == 0:
        return np.zeros((n, 0))
    options: dict[str, Any] = {"seed": int(generator.integers(2**63))}  # `rng` in newer SciPy
    whole = 2 ** max(0, n - 1).bit_length()  # a power of two: the balance of the sequence
    return qmc.Sobol(d, **options).random(whole)[:n]


def _parameter(name: str, value: Any) -> float | Array:
    """Return one finite number, or a read-only vector of such."""
    array = np.asarray(to_numpy(unlabelled(name, value)), dtype=np.float64)
    if array.ndim > 1 or not array.size or not np.isfinite(array).all():
        raise InvalidInputError(
            f"{name}: expected a finite number or one per feature, got {value!r}"
        )
    return read_only(array) if array.ndim else float(array)


def _same_length(name: str, value: Any, other_name: str, other: Any) -> None:
    """Raise `InvalidInputError` if both are vectors of different lengths."""
    if np.ndim(value) and np.ndim(other) and len(value) != len(other):
        raise InvalidInputError(
            f"{name}: expected as many entries as {other_name} ({len(other)}), got {len(value)}"
        )


def _spread(d: int, **parameters: Any) -> list[tuple[float, float]]:
    """Return d pairs of two parameters, each one number or d."""
    for name, value in parameters.items():
        if np.ndim(value) and len(value) != d:
            raise InvalidInputError(
                f"{name}: expected one number or {d} (one per feature), got {len(value)}"
            )
    one, two = (np.broadcast_to(value, (d,)).tolist() for value in parameters.values())
    return list(zip(one, two, strict=True))


@dataclass(frozen=True, eq=False)
class InputsReading:
    """The distribution of the ``inputs``, the names of its ``players``, and it in words."""

    inputs: Inputs
    players: Names
    words: str


def read_inputs(
    posterior: Posterior,
    inputs: Any,
    groups: Mapping[str, Any] | None,
    feature_names: Sequence[str] | None,
) -> InputsReading:
    """Return independent inputs of a posterior with one output."""
    rows = Rows(posterior, feature_names, inputs if is_frame(inputs) else None)
    names = rows.features(inputs)
    features = Features(rows, names, columns_of(rows.encoder, len(names)))
    found, words = features.distributions(inputs)
    labels = list(names) if groups is None else group_names(groups, names, "groups")
    players = tuple(dict.fromkeys(labels))
    owner = tuple(players.index(label) for label in labels)
    read = Inputs(found, features.columns, owner, len(players), posterior.n_columns)
    return InputsReading(read, players, words)


def columns_of(encoder: Encoder | None, d: int) -> tuple[tuple[int, ...], ...]:
    """Return the columns of each feature that a posterior sees."""
    if encoder is None:
        return tuple((j,) for j in range(d))
    return tuple(tuple(np.flatnonzero(column).tolist()) for column in encoder.gathering.T)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of a model by name, with the ``columns`` of each, and how rows are read."""

    rows: Rows
    names: Names
    columns: tuple[tuple[int, ...], ...]

    def distributions(self, inputs: Any) -> tuple[tuple[Distribution, ...], str]:
        """Return one distribution for each feature, and all of them in words."""
        if inputs is None:
            X = self._training_rows("inputs")
            return self._marginals(X), f"independent draws from {len(X):,} training rows"
        if isinstance(inputs, (Uniform, Normal)):
            for place, name in enumerate(self.names):
                self._require_number("inputs", place, name)
            kind = "uniform" if isinstance(inputs, Uniform) else "normal"
            return inputs.each(len(self.names)), f"{kind} inputs"
        if isinstance(inputs, Mapping):
            return self._by_feature(inputs), "inputs with given distributions"
        no_rows = isinstance(inputs, (str, Distribution)) or np.ndim(inputs) == 0
        if is_series(inputs) or (no_rows and not is_frame(inputs)):
            raise InvalidInputError(f"inputs: expected {EXPECTED}, got a {type(inputs).__name__}")
        X = to_numpy(self.rows.matrix("inputs", inputs))
        if len(X) < 2:
            raise InvalidInputError(
                "inputs: expected at least two rows, got one: nothing varies, and there is no"
                " variance to share out"
            )
        return self._marginals(X), f"independent draws from {len(X):,} rows"

    def _marginals(self, X: Array) -> tuple[Distribution, ...]:
        return tuple(Empirical(X[:, list(columns)]) for columns in self.columns)

    def _training_rows(self, argument: str, feature: str | None = None) -> Array:
        X = self.rows.posterior.training_inputs
        if X is None:
            which = "" if feature is None else f" for the feature {feature!r}"
            raise InvalidInputError(
                f"{argument}: this model does not keep its training rows; give a"
                f" distribution{which}: {EXPECTED}"
            )
        return to_numpy(X)

    def _by_feature(self, inputs: Mapping[Any, Any]) -> tuple[Distribution, ...]:
        given: dict[int, Distribution] = {}
        for key, value in inputs.items():
            try:
                place = feature_index(key, self.names)
            except InvalidIndexError as error:
                raise InvalidIndexError(f"inputs: {error}") from None
            if place in given:
                raise InvalidInputError(
                    f"inputs: expected each feature once, got {self.names[place]!r} twice"
                )
            given[place] = self._one(f"inputs[{key!r}]", place, value)
        found = []
        for place, name in enumerate(self.names):
            if place not in given:
                X = self._training_rows("inputs", name)
                given[place] = Empirical(X[:, list(self.columns[place])])
            found.append(given[place])
        return tuple(found)

    def _one(self, argument: str, place: int, value: Any) -> Distribution:
        """Return the distribution of one feature."""
        name = self.names[place]
        if isinstance(value, (Uniform, Normal)):
            self._require_number(argument, place, name)
            try:
                return value.each(1)[0]
            except InvalidInputError as error:
                raise InvalidInputError(f"{argument}: {error}") from None
        if isinstance(value, str) or is_frame(value) or np.ndim(value) != 1:
            shown = repr(value) if np.ndim(value) == 0 else f"the shape {np.shape(value)}"
            raise InvalidInputError(
                f"{argument}: expected gpattr.Uniform, gpattr.Normal or a list of values, got"
                f" {shown}"
            )
        if not len(value):
            raise InvalidInputError(f"{argument}: expected at least one value, got none")
        if self._encoded(place):
            return Empirical(self._encode(argument, place, value))
        array = to_numpy(numbers(argument, value))
        if not np.isfinite(array).all():
            raise InvalidInputError(
                f"{argument}: expected finite numbers, got {float(array[~np.isfinite(array)][0])}"
            )
        return Empirical(array)

    def _encoded(self, place: int) -> bool:
        return self.rows.encoder is not None and self.names[place] in self.rows.encoder.groups

    def _require_number(self, argument: str, place: int, name: str) -> None:
        """Refuse a distribution of numbers for categories and dates."""
        if self._encoded(place):
            encoder = self.rows.encoder
            assert encoder is not None
            kind = "dates" if name in encoder.dates else "categories"
            raise InvalidInputError(
                f"{argument}: expected rows or values for the feature {name!r}, which has"
                f" {kind}, got a distribution of numbers; give"
                f" inputs={{{name!r}: [{kind}, …], …}}"
            )

    def _encode(self, argument: str, place: int, values: Any) -> Array:
        """Return categories or dates as encoded columns, (n, columns of the feature)."""
        import pandas as pd

        encoder, name = self.rows.encoder, self.names[place]
        assert encoder is not None
        if name not in encoder.names:
            raise InvalidInputError(
                f"{argument}: several columns of categories make up the feature {name!r}; give"
                " rows as inputs"
            )
        n = len(values)
        # The other columns need values that can be encoded, whatever they are.
        columns: dict[str, Any] = {}
        for other in encoder.names:
            labels = encoder.categories.get(other)
            date = pd.Timestamp("2000-01-01") if other in encoder.dates else None
            columns[other] = [labels[0] if labels else 0.0 if date is None else date] * n
        column = np.asarray(values) if name in encoder.dates else np.asarray(values, dtype=object)
        columns[name] = pd.Series(column).to_numpy()
        encoded = encoder.encode(argument, pd.DataFrame(columns))
        return to_numpy(encoded)[:, list(self.columns[place])]
