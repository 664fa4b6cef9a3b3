"""Explanation: the immutable result, with summaries, probabilities and exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import FrozenMapping
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import Names, check_names, check_text
from gpattr.distributions import Distribution, Marginals
from gpattr.distributions.base import as_array, read_only
from gpattr.distributions.positions import positions
from gpattr.exceptions import InvalidIndexError, InvalidInputError
from gpattr.explanation import exports, joining, storage, text
from gpattr.explanation.axes import (
    FEATURE,
    FEATURES,
    Labels,
    across,
    check_axes,
    check_coordinates,
    entries_of,
)
from gpattr.explanation.grouping import (
    feature_index,
    feature_positions,
    group_matrix,
    group_names,
)
from gpattr.explanation.result import (
    INTEGRATED_GRADIENTS,
    Dimensions,
    JointResult,
    RowNames,
    StoredResult,
    Table,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gpattr.plots.accessor import Plots

OPTIONAL = ("baseline_weights", "cov_error", "draw_error")
LABELS = ("labels", "baseline_labels")
# What the arrays of a distribution are called here.
NAMES = {
    "mean": "values",
    "var": "var",
    "cov": "cov",
    "weights": "component_weights",
    "means": "component_values",
    "variances": "component_var",
    "covs": "component_cov",
    "draws": "draws",
}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(JointResult, StoredResult):
    """Attributions of n predictions to d features: their joint distribution, row by row.

    ``distribution`` is the distribution of each row's numbers, a `Gaussian`, a `Mixture` of models,
    `Draws` or a `Point`. ``axes`` name the dimensions of these numbers: ("feature",) for
    attributions, ("feature", "feature") for pairs of features, ("grid",) for points of a curve, ()
    for one number a row. ``coordinates`` are the labels of axes other than "feature". The shapes
    below are for ("feature",); other axes stand in the place of d.

    ``values`` (n, d) are the mean attributions, ``var`` (n, d) and ``cov`` (n, d, d) their
    uncertainty (None where not requested). ``predictions`` F(x) and ``base_values`` F(b) are (n,);
    ``data`` (n, d) the rows explained; ``baselines`` (n, d) where their paths start, or (k, d) with
    ``baseline_weights`` (k,) where attributions are averaged over a set. Base values, baselines and
    ``delta`` are NaN where nothing is compared with a baseline.

    ``labels`` are the categories of the rows, {feature: n texts}; the ``data`` of such a feature
    are NaN. ``baseline_labels`` are the categories of the baselines, where these are single points
    with one category each. ``quantity`` names the explained quantity: the prediction, by its name
    where that is known, or the class whose log odds or probability it is. ``attribution`` names the
    kind of values: integrated gradients, Shapley values, or a user's operator.

    The evidence: ``method`` is how the values were computed; ``error`` (n,) bounds the error this
    made, in the units of y, for the model as given (it does not contain the conditioning of the
    model's own fit); ``delta`` (n,) is the completeness gap Σ values − (F(x) − F(b)). A small
    ``delta`` proves nothing about single features where one moment of the closed form was obtained
    from completeness, as on paths longer than two length-scales: rely on ``error``. ``cov_error``
    (n,) bounds the error of each entry of ``cov``, and so of ``var``: the error of integration and
    of rounding, which is what remains where a posterior variance is the small difference of large
    numbers; where covariances come from draws, as of deep Gaussian processes, it is three standard
    errors. ``draw_error`` (n,), of draws, is the root mean square error of their own integrals.
    ``marked`` (n,) are rows that could not be explained: see ``errors`` of `Explainer`.

    ``parts`` are explanations whose values add up to these: "exploit" and "explore", for the
    attributions of a confidence bound or of an improvement by the mean and by the uncertainty.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
    >>> ex.values.round(2)
    array([[ 1.,  0.],
           [ 1., -4.]])
    >>> ex.std.shape, ex.cov.shape
    ((2, 2), (2, 2, 2))
    >>> ex[1].feature_names
    ('x0', 'x1')
    """

    FORMATS = ("gpattr.Explanation", "gpattr.MultiOutputExplanation")
    DIMENSIONS = FrozenMapping(
        predictions=("row",),
        base_values=("row",),
        data=("row", FEATURE),
        baselines=("row", FEATURE),  # ("baseline", "feature") where they are averaged over
        baseline_weights=("baseline",),
        error=("row",),
        cov_error=("row",),
        draw_error=("row",),
        delta=("row",),
    )

    distribution: Distribution
    predictions: FloatArray
    base_values: FloatArray
    data: FloatArray
    baselines: FloatArray
    feature_names: Names
    error: FloatArray
    delta: FloatArray
    cov_error: FloatArray | None = None
    draw_error: FloatArray | None = None
    baseline_weights: FloatArray | None = None
    baseline_name: str = "given point"
    row_names: RowNames = ()
    method: str = "closed form"
    quantity: str = "prediction"
    attribution: str = INTEGRATED_GRADIENTS
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    baseline_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    axes: tuple[str, ...] = FEATURES
    coordinates: Mapping[str, Labels] = field(default_factory=dict)
    parts: Mapping[str, Explanation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, Distribution):
            raise InvalidInputError(
                "distribution: expected one of gpattr.distributions, such as a Gaussian, got a"
                f" {type(self.distribution).__name__}"
            )
        for name in ("baseline_name", "method", "quantity", "attribution"):
            check_text(name, vars(self)[name])
        self._set("distribution", self.distribution.numpy())
        self._check_arrays()
        n, d = self.data.shape
        self._set("feature_names", check_names("feature_names", self.feature_names, d))
        self._set("axes", check_axes(self.axes))
        q = self.distribution.shape[1]
        self._set("coordinates", check_coordinates(self.axes, self.coordinates, d, q))
        self._set("row_names", _check_row_names(self.row_names, n))
        for name in LABELS:
            self._set(name, _check_labels(name, vars(self)[name], self.feature_names, n))
        self._set("parts", _check_parts(self.parts, self.shape, self.feature_names))

    def _check_arrays(self) -> None:
        n, given = self.distribution.shape[0], vars(self)
        arrays = {
            name: as_array(name, given[name])
            for name in self.DIMENSIONS
            if name not in OPTIONAL or given[name] is not None
        }
        if arrays["data"].ndim != 2:
            raise InvalidInputError(
                f"data: expected an array (rows, features), got the shape {arrays['data'].shape}"
            )
        sizes = {"row": n, FEATURE: arrays["data"].shape[1]}
        weights = arrays.get("baseline_weights")
        if weights is not None:
            if weights.ndim != 1 or weights.shape != arrays["baselines"].shape[:1]:
                raise InvalidInputError(
                    "baseline_weights: expected one for each of baselines, got the shape"
                    f" {weights.shape}"
                )
            sizes["baseline"] = len(weights)
        for name, array in arrays.items():
            dimensions = self._dimensions_of(name)
            expected = tuple(sizes[dimension] for dimension in dimensions)
            if tuple(array.shape) != expected:
                raise InvalidInputError(
                    f"{name}: expected the shape {expected}, got {tuple(array.shape)}"
                )
            self._set(name, read_only(array))

    def _dimensions_of(self, name: str) -> Dimensions:
        """Return the dimensions of an array beside the distribution."""
        averaged = name == "baselines" and self.baseline_weights is not None
        return ("baseline", FEATURE) if averaged else self.DIMENSIONS[name]

    def arrays(self) -> dict[str, tuple[Dimensions, FloatArray]]:
        """Return every array this explanation holds, by name, with its named dimensions.

        Examples
        --------
        >>> dimensions, array = ex.arrays()["cov"]
        >>> dimensions, array.shape
        (('row', 'feature', 'feature'), (2, 2, 2))
        """
        found: dict[str, tuple[Dimensions, Array]] = {}
        for name, array in self.distribution.held().items():
            dimensions = self.distribution.arrays[name]
            expanded = [self.axes if dim == "entry" else (dim,) for dim in dimensions]
            shaped = self._in_axes(array, dimensions)
            found[NAMES[name]] = (tuple(dim for part in expanded for dim in part), shaped)
        for name in self.DIMENSIONS:
            if vars(self)[name] is not None:
                found[name] = (self._dimensions_of(name), vars(self)[name])
        return found

    def dimensions(self) -> dict[str, Dimensions]:
        """Return the named dimensions of every array this explanation holds.

        Examples
        --------
        >>> ex.dimensions()["values"]
        ('row', 'feature')
        """
        return {name: dimensions for name, (dimensions, _) in self.arrays().items()}

    def __len__(self) -> int:
        return self.distribution.shape[0]

    def __iter__(self) -> Iterator[Explanation]:
        """Go through the rows, each an explanation of one row."""
        return (self[i] for i in range(len(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and the sizes of the axes, (n, d)."""
        return (len(self), *self._sizes)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(labels) for labels in self.axis_labels())

    def axis_labels(self) -> list[Labels]:
        """Return the labels along each axis: the names of the features, or coordinates.

        Examples
        --------
        >>> ex.axis_labels()
        [('x0', 'x1')]
        """
        return [
            self.feature_names if axis == FEATURE else self.coordinates[axis] for axis in self.axes
        ]

    @property
    def cov(self) -> FloatArray | None:
        """The covariance between the attributions of each row, (n, d, d)."""
        cov = self.distribution.cov
        return None if cov is None else self._in_axes(cov, ("row", "entry", "entry"))

    @property
    def marked(self) -> np.ndarray:
        """A mask of the rows without attributions, or spread, that reach the tolerance, (n,)."""
        known = self.distribution
        unknown = np.isnan(known.mean).any(axis=1)
        return unknown if known.var is None else unknown | np.isnan(known.var).any(axis=1)

    @property
    def component_weights(self) -> FloatArray | None:
        """The weights of the models in a mixture, (K,)."""
        return self._array("weights")

    @property
    def component_values(self) -> FloatArray | None:
        """The mean attributions of each model in a mixture, (K, n, d)."""
        return self._array("means")

    @property
    def component_var(self) -> FloatArray | None:
        """The variances of each model in a mixture, (K, n, d)."""
        return self._array("variances")

    @property
    def component_cov(self) -> FloatArray | None:
        """The covariances of each model in a mixture, (K, n, d, d)."""
        return self._array("covs")

    @property
    def draws(self) -> FloatArray | None:
        """The draws by which a distribution is known, (S, n, d)."""
        return self._array("draws")

    def standard_error(self) -> FloatArray:
        """Return the standard error of the mean of the draws, (n, d).

        The draws agree with ``values`` to about this.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(30, random_state=0)
        >>> model = gpattr.GPClassifier().fit(X, y)
        >>> ex = gpattr.Explainer(model, output="probability", n_draws=100)(X[:1])
        >>> bool((ex.standard_error() < 0.1).all())
        True
        """
        return self._asked(lambda known: known.standard_error())

    def interval_error(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the standard errors, of draws, of both ends of the interval, each (n, d).

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(30, random_state=0)
        >>> model = gpattr.GPClassifier().fit(X, y)
        >>> ex = gpattr.Explainer(model, output="probability", n_draws=100)(X[:1])
        >>> lower_error, upper_error = ex.interval_error()
        >>> lower_error.shape
        (1, 2)
        """
        return self._asked(lambda known: known.interval_error(level))

    def mixture(self) -> Marginals:
        """Return the distribution of each attribution by itself: density, cdf and quantiles.

        Examples
        --------
        >>> marginals = ex.mixture()
        >>> marginals.quantile(0.5).round(2)
        array([[ 1.,  0.],
               [ 1., -4.]])
        """
        flat = self.distribution.marginals()
        means, variances = (part.reshape(-1, *self.shape) for part in (flat.means, flat.variances))
        return Marginals(flat.weights, means, variances)

    def share_between(self) -> FloatArray:
        """Return the share of each variance from between the models of a mixture, (n, d).

        Where the models have different hyperparameters, it is how much of the uncertainty comes
        from not knowing these. It is 0 for a single Gaussian.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - np.abs(X[:, 1]))
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
        >>> share = ex.share_between()
        >>> share.shape, bool(0.0 < share.max() < 1.0)
        ((2, 2), True)
        """
        return self._asked(lambda known: known.shares_between())

    def prob_greater(self, i: str | int, j: str | int) -> FloatArray:
        """Return P(attribution of i > attribution of j) in each row, (n,).

        Examples
        --------
        >>> ex.prob_greater("x0", "x1").round(2)
        array([1., 1.])
        """
        self.require_features("prob_greater")
        a, b = feature_index(i, self.feature_names), feature_index(j, self.feature_names)
        return self.distribution.prob_greater(a, b)

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> FloatArray:
        """Return P(feature has rank r), (n, d, d) with the rank last, rank 0 the largest.

        They are estimated from joint draws. Ranks go by absolute size, or by signed value with
        ``absolute=False``. The same standard draws serve every row, so a row's answer does not
        depend on the others. Exact ties share their ranks evenly.

        Examples
        --------
        >>> ex.rank_probabilities()[0].round(2)
        array([[1., 0.],
               [0., 1.]])
        """
        self.require_features("rank_probabilities")
        return self.distribution.rank_probabilities(n_samples, random_state, absolute)

    def sample(self, n: int = 1, random_state: RandomLike = None) -> FloatArray:
        """Return n draws of all attributions, (n, rows, d), joint within a row.

        Rows are drawn independently, but all rows of a draw from a mixture are of the same model.
        (For rows drawn jointly use `Posterior.sample`.)

        Examples
        --------
        >>> ex.sample(100, random_state=0).shape
        (100, 2, 2)
        """
        draws = self.distribution.sample(n, random_state)
        return draws.reshape(len(draws), *self.shape)

    def group(self, groups: Mapping[str, Iterable[str | int]]) -> Explanation:
        """Return the explanation with each group of features added into one.

        Features that are not named stay as they are. Variances and covariances add with all their
        cross terms, and errors too: the bound is the largest group's. A group stands where its
        first feature stood; it has no single value, so its ``data`` and ``baselines`` are NaN.

        Examples
        --------
        >>> ex.group({"both": ["x0", "x1"]}).values.round(2)
        array([[ 1.],
               [-3.]])
        """
        labels = group_names(groups, self.feature_names)
        names = tuple(dict.fromkeys(labels))
        column = [labels.index(name) for name in names]
        blank = np.array([np.nan if name in groups else 0.0 for name in names])
        times = self.axes.count(FEATURE)
        largest = max(map(labels.count, names), default=1) ** times
        grouped = self.distribution
        if times:
            grouped = grouped.linear(across(group_matrix(labels), self.axes, self._sizes))
        return replace(
            self,
            distribution=grouped,
            data=self.data[:, column] + blank,
            baselines=self.baselines[:, column] + blank,
            feature_names=names,
            error=self.error * largest,
            cov_error=None if self.cov_error is None else self.cov_error * largest**2,
            **self._labels_of([name for name in names if name not in groups], range(len(self))),
            parts={name: part.group(groups) for name, part in self.parts.items()},
        )

    def __getitem__(self, key: Any) -> Explanation:
        """Select rows, or ``[rows, features]``, along every axis called "feature".

        Rows are given by position, features by name or position. All axes stay.

        Examples
        --------
        >>> ex[0].shape, ex[:, "x1"].values.shape
        ((1, 2), (2, 1))
        """
        rows, features = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if isinstance(rows, str):
            raise InvalidIndexError(
                f"rows: expected positions, got {rows!r}; a feature is chosen by ex[:, {rows!r}]"
            )
        chosen = {
            "row": positions("rows", rows, len(self)),
            FEATURE: feature_positions(features, self.feature_names),
        }
        changes: dict[str, Any] = {}
        for name in self.DIMENSIONS:
            array = vars(self)[name]
            if array is not None:
                for axis, dimension in enumerate(self._dimensions_of(name)):
                    if dimension in chosen:
                        array = np.take(array, chosen[dimension], axis=axis)
                changes[name] = array
        entries = entries_of(chosen[FEATURE], self.axes, self._sizes)
        names = tuple(self.feature_names[i] for i in chosen[FEATURE])
        return replace(
            self,
            **changes,
            distribution=self.distribution.select(chosen["row"], entries),
            feature_names=names,
            **self._labels_of(names, chosen["row"]),
            row_names=tuple(self.row_names[i] for i in chosen["row"]),
            parts={name: part[key] for name, part in self.parts.items()},
        )

    @staticmethod
    def concatenate(parts: Iterable[Explanation]) -> Explanation:
        """Return explanations by one explainer, such as `Explainer.batches` yields, as one.

        Examples
        --------
        >>> parts = explainer.batches(X, batch_size=12)
        >>> gpattr.Explanation.concatenate(parts).shape
        (30, 2)
        """
        return joining.concatenate(parts)

    @property
    def plot(self) -> Plots:
        """The pictures of this explanation: ``ex.plot.waterfall(0)``, ``ex.plot.beeswarm()``, …"""
        from gpattr.plots.accessor import Plots

        return Plots(self)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a tidy frame: one line per row and feature, with credible intervals if known.

        Examples
        --------
        >>> ex.to_frame()[["row", "feature", "attribution"]].round(2)
           row feature  attribution
        0    0      x0          1.0
        1    0      x1          0.0
        2    1      x0          1.0
        3    1      x1         -4.0
        """
        return exports.to_frame(self, level)

    def to_shap(self, level: float = 0.95) -> Any:
        """Return a ``shap.Explanation`` with standard deviations and the ends of the intervals.

        They are its ``error_std``, ``lower_bounds`` and ``upper_bounds``.

        Examples
        --------
        >>> ex.to_shap().values.round(2)
        array([[ 1.,  0.],
               [ 1., -4.]])
        """
        self.require_features("to_shap")
        return exports.to_shap(self, self, level)

    def to_xarray(
        self, n_samples: int | None = None, n_chains: int = 4, random_state: RandomLike = 0
    ) -> xr.Dataset:
        """Return an ``xarray.Dataset`` whose dimensions are row and the axes.

        Axes that repeat are numbered: the covariance has the dimensions feature and feature_2. With
        ``n_samples`` it is one that ArviZ opens: its variable is ``attribution`` (chain, draw, row,
        feature), of ``n_chains`` chains with that many independent draws each, and all other arrays
        are coordinates.

        Examples
        --------
        >>> import numpy as np
        >>> import gpattr
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> model = gpattr.GPRegressor(hyperparameters="optimal").fit(X, X[:, 0] - X[:, 1] ** 2)
        >>> explainer = gpattr.Explainer(model, baseline="zeros")
        >>> ex = explainer([[1.0, 0.0], [1.0, -2.0]])
        >>> dict(ex.to_xarray().sizes)
        {'row': 2, 'feature': 2, 'feature_2': 2}
        """
        return exports.to_xarray(self, n_samples, n_chains, random_state)

    def to_interpret(self, name: str | None = None) -> Any:
        """Return an explanation that InterpretML shows: ``interpret.show(ex.to_interpret())``.

        Bars have error bars of one standard deviation; ``name`` is its name in InterpretML's list.

        Examples
        --------
        >>> ex.to_interpret("my model").name
        'my model'
        """
        self.require_features("to_interpret")
        if name is not None:
            check_text("name", name)
        return exports.to_interpret(self, name)

    def _content(self) -> dict[str, Any]:
        return storage.content_of(self)

    @classmethod
    def _of_content(cls, content: Any) -> Any:
        return storage.build(content)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Any:
        """Read a file written by `save`; of several outputs it is a `MultiOutputExplanation`.

        A truncated or foreign file is refused.

        Examples
        --------
        >>> ex.save("explanation.json")
        >>> gpattr.Explanation.load("explanation.json").shape
        (2, 2)
        """
        return super().load(path)

    def require_features(self, name: str) -> None:
        """Raise `InvalidInputError`, in the name of a method, unless features are the only axis.

        Examples
        --------
        >>> ex.require_features("my_plot")  # raises nothing: the only axis is "feature"
        """
        if self.axes != FEATURES:
            raise InvalidInputError(
                f"{name}: expected an explanation with the axes {FEATURES}, got {self.axes}"
            )

    def _heading(self) -> list[str]:
        return text.heading(self)

    def _table(self) -> Table:
        return text.table(self)

    def _notes(self) -> list[str]:
        return text.notes(self)

    def _labels_of(self, names: Iterable[str], rows: Iterable[int]) -> dict[str, Any]:
        """Return both kinds of labels, of some features in some rows."""
        rows = list(rows)
        return {
            field: {
                name: tuple(vars(self)[field][name][i] for i in rows)
                for name in names
                if name in vars(self)[field]
            }
            for field in LABELS
        }

    def _array(self, name: str) -> Array | None:
        """Return an array of the distribution in the shape of the axes; None if it has none."""
        array = self.distribution.held().get(name)
        return None if array is None else self._in_axes(array, self.distribution.arrays[name])

    def _shaped(self, numbers: Array) -> Array:
        return self._in_axes(numbers, ("row", "entry"))

    def _in_axes(self, array: Array, dimensions: Dimensions) -> Array:
        """Return an array of flat entries with the axes in the place of each."""
        if len(self.axes) == 1:
            return array
        sizes = [
            self._sizes if dimension == "entry" else (size,)
            for dimension, size in zip(dimensions, array.shape, strict=True)
        ]
        return array.reshape([size for part in sizes for size in part])


def _check_row_names(names: Any, n: int) -> RowNames:
    if not isinstance(names, (list, tuple, np.ndarray)) or np.ndim(names) != 1:
        raise InvalidInputError(f"row_names: expected a list of names, got {names!r}")
    found = tuple(int(name) if isinstance(name, np.integer) else name for name in names)
    found = found or tuple(range(n))
    if len(found) != n:
        raise InvalidInputError(f"row_names: expected {n}, got {len(found)}")
    return found


def _check_labels(field: str, labels: Any, features: Names, n: int) -> dict[str, tuple[str, ...]]:
    if not isinstance(labels, Mapping):
        raise InvalidInputError(
            f"{field}: expected a dictionary {{feature: texts}}, got a {type(labels).__name__}"
        )
    for name, texts in labels.items():
        listed = isinstance(texts, (list, tuple, np.ndarray))
        if name not in features or not listed or len(texts) != n:
            raise InvalidInputError(
                f"{field}: expected {n} texts of a feature, got {texts!r} for {name!r}"
            )
    return {name: tuple(map(str, texts)) for name, texts in labels.items()}


def _check_parts(parts: Any, shape: tuple[int, ...], features: Names) -> dict[str, Explanation]:
    if not isinstance(parts, Mapping):
        raise InvalidInputError(
            f"parts: expected a dictionary {{name: explanation}}, got a {type(parts).__name__}"
        )
    for name, part in parts.items():
        same = isinstance(part, Explanation) and (part.shape, part.feature_names) == (
            shape,
            features,
        )
        if not isinstance(name, str) or not same:
            raise InvalidInputError(
                f"parts: expected explanations of the same rows and features, got {part!r} for"
                f" {name!r}"
            )
    return FrozenMapping(parts)
