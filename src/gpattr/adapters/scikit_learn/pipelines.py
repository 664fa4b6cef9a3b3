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
from gpattr.adapters.columns import of_features
from gpattr.adapters.foreign import with_columns, with_note
from gpattr.adapters.registry import Adapted
from gpattr.adapters.scikit_learn.models import require_fitted
from gpattr.encoders.encoder import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.means import Constant
from gpattr.posteriors import (
    CombinationPosterior,
    MultiOutputPosterior,
)


@dataclass(frozen=True)
class FeatureColumn:
    """(feature − shift)/scale, or of a category: ([feature is category] − shift)/scale."""

    feature: int
    shift: float = 0.0
    scale: float = 1.0
    category: Any = None
    categories: tuple[Any, ...] | None = None

    def then(self, shift: Any, scale: Any) -> FeatureColumn:
        """Return the column shifted and scaled once more."""
        return replace(
            self, shift=self.shift + self.scale * float(shift), scale=self.scale * float(scale)
        )


def pipeline(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `Pipeline`'s last step as a function of the first one's inputs.

    It is compared through the model's own transformers.
    """
    *steps, (_, last) = model.steps
    inner, transformer = adapt(last, data=data), model[:-1]
    first = next(step for _, step in model.steps if step is not None and step != "passthrough")
    named, width = hasattr(first, "feature_names_in_"), _width(model)
    own = first.feature_names_in_ if named else [f"x{i}" for i in range(width)]
    names, columns = list(map(str, own)), [FeatureColumn(i) for i in range(width)]
    for _, step in steps:
        columns = transformed(step, columns)
    encoder = _encoder(columns, names, named)
    encoded = [(name, None) for name in names] if encoder is None else encoder.columns
    source = [encoded.index((names[column.feature], column.category)) for column in columns]
    shift, scale = (
        np.array([getattr(column, part) for column in columns]) for part in ("shift", "scale")
    )

    def table(X: np.ndarray) -> Any:
        """Return encoded features as the transformers take them."""
        if encoder is not None:
            rows = encoder.decode(X)
            return rows if named else rows.to_numpy(dtype=object)
        return with_columns(X, first)

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        made: Any = transformer.transform(table(X)) if len(transformer) else table(X)
        made = made.toarray() if hasattr(made, "toarray") else made
        return inner.predict(np.asarray(made, dtype=np.float64))

    points = np.zeros((len(inner.points), len(encoded)))  # of features that the model does not see
    points[:, source] = shift + scale * inner.points
    return replace(
        inner,
        posterior=of_features(inner.posterior, source, shift, scale, names, encoder, named=named),
        points=points if encoder is None else encoder.nearest_one_hot(points),
        predict=predict,
        mixable=inner.mixable and encoder is None,
    )


def _encoder(columns: Sequence[FeatureColumn], names: list[str], named: bool) -> Encoder | None:
    """Return the encoder of the categories among the features; None if there are none."""
    categories = {
        names[column.feature]: column.categories for column in columns if column.categories
    }
    unused = frozenset(names) - {names[column.feature] for column in columns}
    return Encoder(tuple(names), categories, named=named, unused=unused) if categories else None


def target(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `TransformedTargetRegressor`, in the user's units if affine."""
    require_fitted(model, "regressor_")
    inner = adapt(model.regressor_, data=data)
    parts = inner.posterior.outputs
    try:
        columns = transformed(model.transformer_, [FeatureColumn(i) for i in range(len(parts))])
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
        return shift + scale * mean, scale**2 * var

    def in_units(posterior: Any, i: int) -> CombinationPosterior:
        return CombinationPosterior([posterior], [float(scale[i])], mean=Constant(float(shift[i])))

    if isinstance(inner.posterior, MultiOutputPosterior):
        if not inner.posterior.independent:
            raise UnsupportedModelError(
                "transformer_: transformed targets of correlated outputs are not supported"
            )
        outputs = {name: in_units(output, i) for i, (name, output) in enumerate(parts.items())}
        return replace(inner, posterior=MultiOutputPosterior(outputs), predict=back)
    return replace(inner, posterior=in_units(inner.posterior, 0), predict=back)


def search(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the best estimator of a search."""
    require_fitted(model, "best_estimator_")
    return adapt(model.best_estimator_, data=data)


def transformed(step: Any, columns: Sequence[FeatureColumn]) -> list[FeatureColumn]:
    """Return a fitted transformer's columns for these columns; raise for an unsupported one."""
    if step is None or step == "passthrough":
        return list(columns)
    name = type(step).__name__
    if name not in TRANSFORMERS or type(step).__module__.split(".")[0] != "sklearn":
        raise UnsupportedModelError(
            f"pipeline: {type(step).__module__}.{name} is not supported; supported are"
            f" {', '.join(sorted(TRANSFORMERS))}"
        )
    return TRANSFORMERS[name](step, list(columns))


def _each(columns: list[FeatureColumn], shifts: Any, scales: Any) -> list[FeatureColumn]:
    shifts = np.zeros(len(columns)) if shifts is None else np.asarray(shifts)
    scales = np.ones(len(columns)) if scales is None else np.asarray(scales)
    return [
        column.then(shift, scale)
        for column, shift, scale in zip(columns, shifts, scales, strict=True)
    ]


def _standard(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    return _each(columns, step.mean_ if step.with_mean else None, step.scale_)


def _min_max(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    if step.clip:
        raise UnsupportedModelError("pipeline: MinMaxScaler(clip=True) is not affine")
    return _each(columns, -step.min_ / step.scale_, 1.0 / step.scale_)


def _robust(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    return _each(columns, step.center_, step.scale_)


def _max_abs(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    return _each(columns, None, step.scale_)


def _identity(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    if step.func is not None:
        raise UnsupportedModelError(
            "pipeline: a FunctionTransformer with a user-defined function is not supported"
        )
    return columns


def _imputer(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
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


def _selector(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    return [columns[i] for i in step.get_support(indices=True)]


def _one_hot(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
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


def _column_transformer(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    result: list[FeatureColumn] = []
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [columns[i] for i in step._transformer_to_input_indices[name]]
        result += transformed(part, chosen) if chosen else []
    return result


def _pipeline(step: Any, columns: list[FeatureColumn]) -> list[FeatureColumn]:
    for _, part in step.steps:
        columns = transformed(part, columns)
    return columns


TRANSFORMERS: dict[str, Callable[[Any, list[FeatureColumn]], list[FeatureColumn]]] = {
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
