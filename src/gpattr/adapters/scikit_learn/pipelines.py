"""scikit-learn's wrappers of models: pipelines, transformed targets and searches.

A fitted transformer is a list of columns: each is a feature, or one category of a feature, shifted
and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr.adapters.adapt import adapt
from gpattr.adapters.foreign import with_note
from gpattr.adapters.registry import Adapted
from gpattr.adapters.scikit_learn.models import require_fitted
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.means import Constant
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    MultiOutputPosterior,
    Posterior,
    WrappedOutputs,
)


@dataclass(frozen=True)
class Column:
    """(feature − shift)/scale, or of a category: ([feature is category] − shift)/scale."""

    feature: int
    shift: float = 0.0
    scale: float = 1.0
    category: Any = None
    categories: tuple[Any, ...] | None = None

    def then(self, shift: Any, scale: Any) -> Column:
        """Return the column shifted and scaled once more."""
        return replace(
            self, shift=self.shift + self.scale * float(shift), scale=self.scale * float(scale)
        )


def pipeline(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `Pipeline`'s last step as a function of the first one's inputs."""
    *steps, (_, last) = model.steps
    inner = adapt(last, data=data)
    width = _width(model)
    names = [
        str(name) for name in getattr(model, "feature_names_in_", [f"x{i}" for i in range(width)])
    ]
    columns = [Column(i) for i in range(width)]
    for _, step in steps:
        columns = transformed(step, columns)
    return behind(inner, columns, names, hasattr(model, "feature_names_in_"), model[:-1])


def behind(
    inner: Adapted, columns: Sequence[Column], names: list[str], named: bool, transformer: Any
) -> Adapted:
    """Return an adapted model as a function of the features that its columns are made of.

    It is compared through the model's own transformer.
    """
    features = _Features.of(columns, names, named)

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = features.table(X)
        made: Any = transformer.transform(rows) if len(transformer) else rows
        return inner.predict(
            np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
        )

    return replace(
        inner,
        posterior=features.pulled_back(inner.posterior),
        points=features.points(inner.points),
        predict=predict,
        mixable=inner.mixable and features.encoder is None,
    )


@dataclass(frozen=True)
class _Features:
    """The features of a pipeline, and how the columns that its model sees are made of them.

    Categories are encoded first, if there are any; then column i is (z[source[i]] − shift[i]) /
    scale[i]. Tables have the feature ``names`` as columns if ``named``.
    """

    names: list[str]
    named: bool
    encoder: Encoder | None
    source: list[int]
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, columns: Sequence[Column], names: list[str], named: bool) -> _Features:
        shift = np.array([column.shift for column in columns])
        scale = np.array([column.scale for column in columns])
        categories = {
            names[column.feature]: column.categories for column in columns if column.categories
        }
        if not categories:
            source = [column.feature for column in columns]
            return cls(names, named, None, source, shift, scale)
        unused = frozenset(names) - {names[column.feature] for column in columns}
        encoder = Encoder(tuple(names), categories, named=named, unused=unused)
        places = {key: position for position, key in enumerate(encoder.columns)}
        source = [places[names[column.feature], column.category] for column in columns]
        return cls(names, named, encoder, source, shift, scale)

    @property
    def width(self) -> int:
        """The number of features after encoding."""
        return len(self.names) if self.encoder is None else len(self.encoder.columns)

    def pulled_back(self, posterior: Any) -> Posterior:
        """Return a posterior of columns, of one output or several, as one of features."""
        if not isinstance(posterior, MultiOutputPosterior):
            result: Posterior = self._of_encoded(posterior)
        else:
            outputs = {name: self._of_encoded(part) for name, part in posterior.outputs.items()}
            result = WrappedOutputs(posterior, outputs, next(iter(outputs.values())))
        return result if self.encoder is None else of_features(result, self.encoder)

    def _of_encoded(self, posterior: Any) -> AffinePosterior:
        if self.encoder is None:
            labels = tuple(self.names) if self.named else None
        else:
            labels = self.encoder.encoded_names
        return AffinePosterior(
            posterior,
            self.shift,
            self.scale,
            source=self.source,
            n_features=self.width,
            feature_names=labels,
        )

    def points(self, columns: np.ndarray) -> np.ndarray:
        """Return encoded features that make these columns; those that make none are zero."""
        points = np.zeros((len(columns), self.width))
        points[:, self.source] = self.shift + self.scale * columns
        return points if self.encoder is None else self.encoder.nearest_one_hot(points)

    def table(self, X: np.ndarray) -> Any:
        """Return encoded features as the model's transformer takes them."""
        if self.encoder is None:
            return _frame(X, self.names) if self.named else X
        rows = self.encoder.decode(X)
        return rows if self.named else rows.to_numpy(dtype=object)


def of_features(posterior: Posterior, encoder: Encoder) -> Posterior:
    """Return a posterior of encoded columns, of one output or several, as one of features."""
    if not isinstance(posterior, MultiOutputPosterior):
        return EncodedPosterior(posterior, encoder)
    outputs = {name: EncodedPosterior(part, encoder) for name, part in posterior.outputs.items()}
    return WrappedOutputs(posterior, outputs, next(iter(outputs.values())))


def _frame(X: np.ndarray, names: list[str]) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=names)


def target(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `TransformedTargetRegressor`, in the user's units if affine."""
    require_fitted(model, "regressor_")
    inner = adapt(model.regressor_, data=data)
    several = isinstance(inner.posterior, MultiOutputPosterior)
    width = len(inner.posterior.outputs) if isinstance(inner.posterior, MultiOutputPosterior) else 1
    try:
        columns = transformed(model.transformer_, [Column(i) for i in range(width)])
    except (UnsupportedModelError, ValueError):
        name = type(model.transformer_).__name__
        return replace(
            inner,
            posterior=with_note(
                inner.posterior, f"of the transformed target ({name} is not known to be affine)"
            ),
        )
    # Transformed targets are (y − shift)/scale.
    shift = np.array([column.shift for column in columns])
    scale = np.array([column.scale for column in columns])

    def back(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = inner.predict(X)
        return (
            (shift + scale * mean, scale**2 * var)
            if several
            else (shift[0] + scale[0] * mean, scale[0] ** 2 * var)
        )

    def in_units(posterior: Any, i: int) -> CombinationPosterior:
        return CombinationPosterior([posterior], [float(scale[i])], mean=Constant(float(shift[i])))

    if isinstance(inner.posterior, MultiOutputPosterior):
        if not inner.posterior.independent:
            raise UnsupportedModelError(
                "transformer_: transformed targets of correlated outputs are not supported"
            )
        outputs = {
            name: in_units(output, i)
            for i, (name, output) in enumerate(inner.posterior.outputs.items())
        }
        return replace(inner, posterior=MultiOutputPosterior(outputs), predict=back)
    return replace(inner, posterior=in_units(inner.posterior, 0), predict=back)


def search(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the best estimator of a search."""
    require_fitted(model, "best_estimator_")
    return adapt(model.best_estimator_, data=data)


def transformed(step: Any, columns: Sequence[Column]) -> list[Column]:
    """Return the columns that a fitted transformer makes of these; raise for an unsupported one."""
    if step is None or step == "passthrough":
        return list(columns)
    name = type(step).__name__
    if name not in TRANSFORMERS or type(step).__module__.split(".")[0] != "sklearn":
        raise UnsupportedModelError(
            f"pipeline: {type(step).__module__}.{name} is not supported; supported are"
            f" {', '.join(sorted(TRANSFORMERS))}"
        )
    return TRANSFORMERS[name](step, list(columns))


def _each(columns: list[Column], shifts: Any, scales: Any) -> list[Column]:
    shifts = np.zeros(len(columns)) if shifts is None else np.asarray(shifts)
    scales = np.ones(len(columns)) if scales is None else np.asarray(scales)
    return [
        column.then(shift, scale)
        for column, shift, scale in zip(columns, shifts, scales, strict=True)
    ]


def _standard(step: Any, columns: list[Column]) -> list[Column]:
    return _each(columns, step.mean_ if step.with_mean else None, step.scale_)


def _min_max(step: Any, columns: list[Column]) -> list[Column]:
    if step.clip:
        raise UnsupportedModelError("pipeline: MinMaxScaler(clip=True) is not affine")
    return _each(columns, -step.min_ / step.scale_, 1.0 / step.scale_)


def _robust(step: Any, columns: list[Column]) -> list[Column]:
    return _each(columns, step.center_, step.scale_)


def _max_abs(step: Any, columns: list[Column]) -> list[Column]:
    return _each(columns, None, step.scale_)


def _identity(step: Any, columns: list[Column]) -> list[Column]:
    if step.func is not None:
        raise UnsupportedModelError(
            "pipeline: a FunctionTransformer with a user-defined function is not supported"
        )
    return columns


def _imputer(step: Any, columns: list[Column]) -> list[Column]:
    if not (step.missing_values is None or step.missing_values != step.missing_values):
        raise UnsupportedModelError(
            f"pipeline: a SimpleImputer(missing_values={step.missing_values!r}) is not supported"
        )
    gone = [isinstance(value, float) and np.isnan(value) for value in list(step.statistics_)]
    if step.add_indicator or len(gone) != len(columns) or any(gone):
        raise UnsupportedModelError(
            "pipeline: a SimpleImputer that adds or drops columns is not supported"
        )
    return columns  # rows to explain have no missing values


def _selector(step: Any, columns: list[Column]) -> list[Column]:
    return [columns[i] for i in step.get_support(indices=True)]


def _one_hot(step: Any, columns: list[Column]) -> list[Column]:
    result = []
    dropped = getattr(step, "drop_idx_", None)
    if (
        getattr(step, "min_frequency", None) is not None
        or getattr(step, "max_categories", None) is not None
    ):
        raise UnsupportedModelError(
            "pipeline: a OneHotEncoder that merges infrequent categories is not supported"
        )
    for i, (column, categories) in enumerate(zip(columns, step.categories_, strict=True)):
        if column.categories or (column.shift, column.scale) != (0.0, 1.0):
            raise UnsupportedModelError(
                "pipeline: a OneHotEncoder behind another transformer is not supported"
            )
        skip = None if dropped is None else dropped[i]
        labels = tuple(categories.tolist())
        parts = [replace(column, category=label, categories=labels) for label in labels]
        result += [part for k, part in enumerate(parts) if k != skip]
    return result


def _column_transformer(step: Any, columns: list[Column]) -> list[Column]:
    result: list[Column] = []
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [columns[i] for i in step._transformer_to_input_indices[name]]
        result += transformed(part, chosen) if chosen else []
    return result


def _pipeline(step: Any, columns: list[Column]) -> list[Column]:
    for _, part in step.steps:
        columns = transformed(part, columns)
    return columns


TRANSFORMERS: dict[str, Callable[[Any, list[Column]], list[Column]]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "RobustScaler": _robust,
    "MaxAbsScaler": _max_abs,
    "FunctionTransformer": _identity,
    "SimpleImputer": _imputer,
    "OneHotEncoder": _one_hot,
    "ColumnTransformer": _column_transformer,
    "Pipeline": _pipeline,
    "VarianceThreshold": _selector,
    "SelectKBest": _selector,
    "SelectPercentile": _selector,
    "SelectFromModel": _selector,
    "RFE": _selector,
    "RFECV": _selector,
    "SequentialFeatureSelector": _selector,
}


def _width(model: Any) -> int:
    widths = [step.n_features_in_ for _, step in model.steps if hasattr(step, "n_features_in_")]
    if not widths:
        require_fitted(model, "n_features_in_")
    return int(widths[0])
