"""Inputs of Sobol indices as users give them: rows, distributions, or both by feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import Names, is_frame, is_series, numbers
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explainer.rows import Rows
from gpattr.explanation.grouping import feature_index, group_names
from gpattr.posteriors import Posterior
from gpattr.sobol.inputs import Distribution, Empirical, Inputs, Normal, Uniform

EXPECTED = (
    "rows, gpattr.Uniform(low, high), gpattr.Normal(mean, std), or a dictionary"
    " {feature: Uniform, Normal or values}"
)


@dataclass(frozen=True, eq=False)
class Reading:
    """The distribution of the ``inputs``, the names of its ``players``, and it in words."""

    inputs: Inputs
    players: Names
    words: str


def read_inputs(
    posterior: Posterior,
    inputs: Any,
    groups: Mapping[str, Any] | None,
    feature_names: Sequence[str] | None,
) -> Reading:
    """Return independent inputs of a posterior with one output."""
    rows = Rows(posterior, feature_names, inputs if is_frame(inputs) else None)
    names = rows.features(inputs)
    features = Features(rows, names, columns_of(rows.encoder, len(names)))
    found, words = features.distributions(inputs)
    labels = list(names) if groups is None else group_names(groups, names, "groups")
    players = tuple(dict.fromkeys(labels))
    owner = tuple(players.index(label) for label in labels)
    read = Inputs(found, features.columns, owner, len(players), posterior.n_columns)
    return Reading(read, players, words)


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
