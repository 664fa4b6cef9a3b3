"""Explanation: the frozen result, its questions and its exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from gpattr._core.array import Array, to_numpy
from gpattr._core.frozen import Frozen
from gpattr._core.memory import blocks
from gpattr._core.normal import (
    check_level,
    prob_positive,
    random_generator,
    rank_shares,
    roots,
    share_ties,
    standard_draws,
)
from gpattr._core.validation import Names, check_flag, check_names, check_text, numbers
from gpattr.distributions.marginals import Mixture
from gpattr.exceptions import InvalidIndexError, InvalidInputError, MissingUncertaintyError
from gpattr.explanation import export, joining, storage, text

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gpattr.plots.accessor import Plots

# The named dimensions of every array field; exports, storage and slicing go by them.
DIMENSIONS: dict[str, tuple[str, ...]] = {
    "values": ("row", "feature"),
    "var": ("row", "feature"),
    "cov": ("row", "feature", "feature"),
    "predictions": ("row",),
    "base_values": ("row",),
    "data": ("row", "feature"),
    "baselines": ("row", "feature"),  # ("baseline", "feature") where they are averaged over
    "baseline_weights": ("baseline",),
    "component_weights": ("component",),
    "component_values": ("component", "row", "feature"),
    "component_var": ("component", "row", "feature"),
    "component_cov": ("component", "row", "feature", "feature"),
    "error": ("row",),
    "cov_error": ("row",),
    "delta": ("row",),
}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Frozen):
    """Attributions of n predictions to d features: their joint distribution, row by row.

    ``values`` (n, d) are the mean attributions, ``var`` (n, d) and ``cov`` (n, d, d) their
    uncertainty (None where not asked for). ``predictions`` F(x) and ``base_values`` F(b) are (n,);
    ``data`` (n, d) the rows explained; ``baselines`` (n, d) where their paths start, or (k, d) with
    ``baseline_weights`` (k,) where attributions are averaged over a set.

    The distribution is Gaussian, unless the model is a mixture of K models: then
    ``component_weights`` (K,) and ``component_values``, ``component_var``, ``component_cov``, each
    with K in front, say of which Gaussians; intervals, probabilities and draws are those of the
    mixture.

    ``labels`` are the categories of the rows, {feature: n texts}; the ``data`` of such a feature
    are NaN.

    ``quantity`` says what is explained: the prediction, by its name where that is known, or of
    which class the log odds or the probability.

    The evidence: ``method`` says how the values were computed; ``error`` (n,) bounds the error this
    made, in the units of y, for the model as given (it does not contain the conditioning of the
    model's own fit); ``delta`` (n,) is the completeness gap Σ values − (F(x) − F(b)). A small
    ``delta`` proves nothing about single features where one moment of the closed form was obtained
    from completeness, as on paths longer than two length-scales: rely on ``error``. ``cov_error``
    (n,) bounds the error of each entry of ``cov``, and so of ``var``: that of integration, and that
    of rounding, which is what remains where a posterior variance is the small difference of large
    numbers."""

    values: Array
    predictions: Array
    base_values: Array
    data: Array
    baselines: Array
    feature_names: Names
    error: Array
    delta: Array
    var: Array | None = None
    cov: Array | None = None
    baseline_weights: Array | None = None
    component_weights: Array | None = None
    component_values: Array | None = None
    component_var: Array | None = None
    component_cov: Array | None = None
    baseline_name: str = "given point"
    row_names: tuple[str | int, ...] = ()
    method: str = "closed form"
    quantity: str = "prediction"
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cov_error: Array | None = None

    def __post_init__(self) -> None:
        needed = ("values", "predictions", "base_values", "data", "baselines", "error", "delta")
        arrays = {
            name: _as_array(name, getattr(self, name))
            for name in dict.fromkeys([*needed, *self.dimensions()])
        }
        if arrays["values"].ndim != 2:
            raise InvalidInputError(
                "values: expected an array (rows, features), got the shape"
                f" {arrays['values'].shape}"
            )
        n, d = arrays["values"].shape
        sizes = {"row": n, "feature": d}
        for name, size in (
            ("baseline_weights", "baseline"),
            ("component_weights", "component"),
            ("draws", "draw"),
        ):
            if name in arrays:
                sizes[size] = len(np.atleast_1d(arrays[name]))
        for weights, weighted in (
            ("baseline_weights", "baselines"),
            ("component_weights", "component_values"),
        ):
            if (
                weights in arrays
                and np.shape(arrays.get(weighted, ()))[:1] != arrays[weights].shape
            ):
                raise InvalidInputError(
                    f"{weights}: expected one for each of {weighted}, got the shape"
                    f" {arrays[weights].shape}"
                )
        for name, dimensions in self.dimensions().items():
            array = arrays[name]
            expected = tuple(sizes.get(dimension, 0) for dimension in dimensions)
            if array.shape != expected:
                raise InvalidInputError(f"{name}: expected the shape {expected}, got {array.shape}")
            if array.flags.writeable:  # somebody else may write into it
                array = array.copy()
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(
            self, "feature_names", check_names("feature_names", self.feature_names, d)
        )
        if (
            not isinstance(self.row_names, (list, tuple, np.ndarray))
            or np.ndim(self.row_names) != 1
        ):
            raise InvalidInputError(f"row_names: expected a list of names, got {self.row_names!r}")
        for name in ("baseline_name", "method", "quantity"):
            check_text(name, getattr(self, name))
        labels = tuple(
            int(label) if isinstance(label, np.integer) else label for label in self.row_names
        )
        object.__setattr__(self, "row_names", labels or tuple(range(n)))
        if len(self.row_names) != n:
            raise InvalidInputError(f"row_names: expected {n}, got {len(self.row_names)}")
        if not isinstance(self.labels, Mapping):
            raise InvalidInputError(
                "labels: expected a dictionary {feature: texts}, got a"
                f" {type(self.labels).__name__}"
            )
        for name, texts in self.labels.items():
            if (
                name not in self.feature_names
                or not isinstance(texts, (list, tuple, np.ndarray))
                or len(texts) != n
            ):
                raise InvalidInputError(
                    f"labels: expected {n} texts of a feature, got {texts!r} for {name!r}"
                )
        object.__setattr__(
            self, "labels", {name: tuple(map(str, texts)) for name, texts in self.labels.items()}
        )

    def dimensions(self) -> dict[str, tuple[str, ...]]:
        """Return the named dimensions of every array this explanation holds."""
        held = {name: dims for name, dims in DIMENSIONS.items() if getattr(self, name) is not None}
        if self.baseline_weights is not None:
            held["baselines"] = ("baseline", "feature")
        return held

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Explanation]:
        """Go through the rows, each an explanation of one row."""
        return (self[i] for i in range(len(self)))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features, (n, d)."""
        n, d = self.values.shape
        return n, d

    @property
    def std(self) -> Array | None:
        """The standard deviation of each attribution, (n, d)."""
        return None if self.var is None else np.sqrt(self.var)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (n, d), of the central credible intervals."""
        tail = 0.5 * (1.0 - check_level(level))
        if self.component_weights is not None:
            mixture = self.mixture()
            return mixture.quantile(tail), mixture.quantile(1.0 - tail)
        half = -ndtri(tail) * np.sqrt(self._need("var"))
        return self.values - half, self.values + half

    def mixture(self) -> Mixture:
        """Return the distribution of each attribution by itself, which has a density, a cdf and
        quantiles.
        """
        var = self._need("var")
        if self.component_weights is None:
            return Mixture(np.ones(1), self.values[None], var[None])
        return Mixture(self.component_weights, self.component_values, self.component_var)

    def share_between(self) -> Array:
        """Return the share of each attribution's variance that comes from between the components of
        a mixture, (n, d).

        Where components are models with different hyperparameters, it says how much of the
        uncertainty is not knowing these. It is 0 for a single Gaussian."""
        return self.mixture().between

    def prob_positive(self) -> Array:
        """Return P(attribution > 0), (n, d). An attribution that is surely zero gives ½: no
        evidence for either sign.
        """
        self._need("var")
        return self._averaged(lambda values, var, _: prob_positive(values, var))

    def prob_greater(self, i: str | int, j: str | int) -> Array:
        """Return P(attribution of i > attribution of j) in each row, (n,), from their joint
        distribution.
        """
        self._need("cov")
        a, b = feature_index(i, self.feature_names), feature_index(j, self.feature_names)

        def greater(values: Array, _: Array, C: Array) -> Array:
            var = C[:, a, a] + C[:, b, b] - 2.0 * C[:, a, b]
            return prob_positive(values[:, a] - values[:, b], np.maximum(var, 0.0))

        return self._averaged(greater)

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: Any = 0, absolute: bool = True
    ) -> Array:
        """Return P(feature has rank r), (n, d, d) with the rank last, rank 0 the largest, estimated
        from joint draws.

        Ranks go by absolute size, or by signed value with ``absolute=False``. The same standard
        draws serve every row, so a row's answer does not depend on the others. Features that are
        surely tied share their ranks evenly."""
        check_flag("absolute", absolute)
        normal = standard_draws("n_samples", n_samples, self.shape[1], random_state)
        n, d = self.shape
        self._need("cov")

        def ranks(values: Array, var: Array, C: Array) -> Array:
            result, factors = np.empty((n, d, d)), roots(C)
            for rows in blocks(n, 40.0 * n_samples * d):
                draws = values[rows, None, :] + normal @ factors[rows].transpose(
                    0, 2, 1
                )  # (r, s, d)
                result[rows] = rank_shares(np.abs(draws) if absolute else draws)
            return share_ties(result, np.abs(values) if absolute else values, var)

        return self._averaged(ranks)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Return n draws of all attributions, (n, rows, d); features are joint within a row, rows
        are drawn independently.

        Of a mixture, all rows of a draw are of the same model. (For rows drawn jointly use
        `Posterior.sample`.)"""
        rows, d = self.shape
        generator = random_generator(random_state)
        normal = standard_draws("n", n, rows * d, generator).reshape(n, rows, d)
        self._need("cov")
        draws, taken = np.empty((n, rows, d)), 0
        parts = list(self._parts())
        counts = (
            generator.multinomial(n, [weight for weight, *_ in parts]) if len(parts) > 1 else [n]
        )
        for count, (_, values, _, C) in zip(counts, parts, strict=True):
            here = slice(taken, taken + count)
            draws[here] = values + np.einsum("rij,nrj->nri", roots(C), normal[here])
            taken += count
        return draws if len(parts) == 1 else generator.permutation(draws)

    def group(self, groups: Mapping[str, Iterable[str | int]]) -> Explanation:
        """Return the explanation with each group of features added into one; features not named
        stay as they are.

        Variances and covariances add with all their cross terms, and errors too: the bound is that
        of the largest group. A group stands where its first feature stood; it has no single value,
        so its ``data`` and ``baselines`` are NaN."""
        if not isinstance(groups, Mapping):
            raise InvalidInputError(
                f"groups: expected a dictionary {{name: [features]}}, got a {type(groups).__name__}"
            )
        assigned: dict[int, str] = {}
        for name, members in groups.items():
            listed = (
                isinstance(members, Iterable)
                and not isinstance(members, str)
                and getattr(members, "ndim", 1) > 0
            )
            if not listed or not (members := list(members)):
                raise InvalidInputError(
                    f"groups: expected a list of at least one feature for {name!r}, got {members!r}"
                )
            for member in members:
                index = feature_index(member, self.feature_names)
                if index in assigned:
                    raise InvalidInputError(
                        f"groups: {self.feature_names[index]!r} is in {assigned[index]!r} and in"
                        f" {name!r}"
                    )
                assigned[index] = name
        labels = [assigned.get(i, label) for i, label in enumerate(self.feature_names)]
        names = tuple(dict.fromkeys(labels))
        singles = {label for i, label in enumerate(self.feature_names) if i not in assigned}
        clash = singles & set(groups)
        if clash:
            raise InvalidInputError(
                f"groups: {clash.pop()!r} is also the name of a feature that is not in that group"
            )
        G = np.array(
            [label == name for label in labels for name in names], dtype=np.float64
        ).reshape(len(labels), len(names))
        cov = None if self.cov is None else G.T @ self.cov @ G
        component_cov = None if self.component_cov is None else G.T @ self.component_cov @ G
        if cov is None and self.var is not None and len(names) < len(labels):
            self._need("cov")
        column = [labels.index(name) for name in names]
        blank = np.array([np.nan if name in groups else 0.0 for name in names])
        component_var = _diagonal(component_cov)
        if component_var is None and self.component_var is not None:
            component_var = self.component_var[:, :, column]
        return replace(
            self,
            values=self.values @ G,
            cov=cov,
            var=self.var[:, column] if cov is None and self.var is not None else _diagonal(cov),
            component_values=None if self.component_values is None else self.component_values @ G,
            component_cov=component_cov,
            component_var=component_var,
            data=self.data[:, column] + blank,
            baselines=self.baselines[:, column] + blank,
            feature_names=names,
            error=self.error * max(map(labels.count, names), default=1),
            cov_error=(
                None
                if self.cov_error is None
                else self.cov_error * max(map(labels.count, names), default=1) ** 2
            ),
            labels={name: texts for name, texts in self.labels.items() if name in singles},
            **self._grouped(G),
        )

    def _grouped(self, G: Array) -> dict[str, Array]:
        """Return what else becomes of features (d,) that are added into groups by G, (d, groups)."""
        return {}

    def __getitem__(self, key: Any) -> Explanation:
        """Select rows, or ``[rows, features]``; rows by position, features by name or position.
        Both axes stay.
        """
        rows, features = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if isinstance(rows, str):
            raise InvalidIndexError(
                f"rows: expected positions, got {rows!r}; a feature is chosen by ex[:, {rows!r}]"
            )
        n, d = self.shape
        chosen = {"row": _positions("rows", rows, n), "feature": self._columns(features, d)}
        changes: dict[str, Any] = {}
        for name, dimensions in self.dimensions().items():
            array = getattr(self, name)
            for axis, dimension in enumerate(dimensions):
                if dimension in chosen:
                    array = np.take(array, chosen[dimension], axis=axis)
            changes[name] = array
        names = tuple(self.feature_names[i] for i in chosen["feature"])
        return replace(
            self,
            **changes,
            feature_names=names,
            labels={
                name: tuple(texts[i] for i in chosen["row"])
                for name, texts in self.labels.items()
                if name in names
            },
            row_names=tuple(self.row_names[i] for i in chosen["row"]),
        )

    @staticmethod
    def concatenate(parts: Iterable[Explanation]) -> Explanation:
        """Return explanations by one explainer, such as those of `Explainer.batches`, as one."""
        return joining.concatenate(parts)

    @property
    def plot(self) -> Plots:
        """The pictures of this explanation: ``ex.plot.waterfall(0)``, ``ex.plot.beeswarm()``, …"""
        from gpattr.plots.accessor import Plots

        return Plots(self)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a tidy frame: one line per row and feature, with the credible interval where
        uncertainty is known.
        """
        return export.to_frame(self, level)

    def to_shap(self, level: float = 0.95) -> Any:
        """Return a ``shap.Explanation`` with ``error_std``, ``lower_bounds`` and ``upper_bounds``
        filled in.
        """
        return export.to_shap(self, level)

    def to_xarray(self) -> xr.Dataset:
        """Return an ``xarray.Dataset`` with named dimensions row and feature (and feature_2 for the
        covariance).
        """
        return export.to_xarray(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the explanation to a JSON file; `Explanation.load` gives it back to the last bit."""
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Any:
        """Read what `save` wrote, of several outputs a `MultiOutputExplanation`; a truncated or
        foreign file is refused.
        """
        return storage.load(path)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            _same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]  (equality is by content)

    def __repr__(self) -> str:
        return text.plain(self)

    def _repr_html_(self) -> str:
        return text.html(self)

    def _parts(self) -> Iterator[tuple[float, Any, Any, Any]]:
        """Go through the Gaussians of the mixture: weight, values, var, cov; one, of weight 1,
        where there is no mixture.
        """
        if self.component_weights is None:
            yield 1.0, self.values, self.var, self.cov
            return
        for k, weight in enumerate(self.component_weights.tolist()):
            values, var, cov = (
                None if array is None else array[k]
                for array in (self.component_values, self.component_var, self.component_cov)
            )
            yield weight, values, var, cov

    def _averaged(self, question: Callable[[Any, Any, Any], Array]) -> Array:
        """Return the probabilities that ``question(values, var, cov)`` gives for a Gaussian,
        averaged over the mixture.
        """
        return sum(weight * question(*gaussian) for weight, *gaussian in self._parts())  # pyright: ignore[reportReturnType]

    def _need(self, name: str) -> Array:
        array = getattr(self, name)
        if array is None:
            what, request = (
                ("the covariance between features", "cov")
                if name == "cov"
                else ("variances", "std")
            )
            raise MissingUncertaintyError(
                f"This needs {what}, which the explanation does not hold: explain with"
                f" uncertainty={request!r}"
            )
        return array

    def _columns(self, features: Any, d: int) -> Array:
        if isinstance(features, str):
            features = [features]
        named = [] if isinstance(features, slice) or np.ndim(features) != 1 else list(features)
        if any(isinstance(feature, str) for feature in named):
            features = [feature_index(feature, self.feature_names) for feature in named]
        return _positions("features", features, d)


def _as_array(name: str, value: Any) -> Array:
    """Return an array of float64, the one that is given if it is one."""
    return (
        value
        if isinstance(value, np.ndarray) and value.dtype == np.float64
        else to_numpy(numbers(name, value))
    )


def feature_index(feature: str | int, names: Names) -> int:
    """Return the position of a feature given by name or position."""
    if isinstance(feature, str):
        if feature not in names:
            raise InvalidIndexError(f"feature: expected one of {list(names)}, got {feature!r}")
        return names.index(feature)
    if not isinstance(feature, (int, np.integer)) or isinstance(feature, bool):
        raise InvalidIndexError(f"feature: expected a name or a position, got {feature!r}")
    return int(_positions("feature", feature, len(names))[0])


def _positions(what: str, key: Any, length: int) -> Array:
    try:
        if key is None or isinstance(key, bool):
            raise IndexError
        chosen = np.atleast_1d(
            np.arange(length)[key if isinstance(key, slice) or np.size(key) else slice(0)]
        )
        if chosen.ndim > 1:
            raise IndexError
        return chosen
    except (IndexError, TypeError, ValueError):
        raise InvalidIndexError(
            f"{what}: expected positions below {length}, a slice or a mask, got {key!r}"
        ) from None


def _diagonal(cov: Array | None) -> Array | None:
    return None if cov is None else np.maximum(np.diagonal(cov, axis1=-2, axis2=-1), 0.0)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.array_equal(one, two, equal_nan=True)
    return type(one) is type(two) and bool(one == two)
