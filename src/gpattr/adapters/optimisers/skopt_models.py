"""scikit-optimize: results and optimisers in the user's own dimensions, and their models.

The models see a transformed space: normalised numbers, logarithms, categories of 0 and 1. A result
knows how it was made; a model alone is explained in the columns that it sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpattr.adapters.adapt import adapt
from gpattr.adapters.foreign import side_by_side, with_note
from gpattr.adapters.optimisers.search_spaces import (
    PROBES,
    Parameter,
    Surrogate,
    by_columns,
    explained,
)
from gpattr.adapters.registry import Adapted, find_adapter
from gpattr.adapters.scikit_learn.models import regressor as sklearn_regressor
from gpattr.adapters.scikit_learn.models import require_fitted
from gpattr.exceptions import NotFittedError, UnsupportedModelError
from gpattr.posteriors import MultiOutputPosterior, Posterior

HAMMING = "categories relaxed to squared exponentials of columns of 0 and 1"


def regressor(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of scikit-optimize's `GaussianProcessRegressor`.

    After fitting, the `WhiteKernel` in its kernel has no variance: ``noise_`` has it, in the units
    of the normalised targets.
    """
    require_fitted(model, "X_train_")
    noisy = copy(model)
    noisy.alpha = np.asarray(model.alpha) + (model.noise_ or 0.0)
    result = sklearn_regressor(noisy)
    if "HammingKernel" not in repr(model.kernel_):
        return result
    if not np.isin(model.X_train_, (0.0, 1.0)).all():
        raise UnsupportedModelError(
            "kernel: only a HammingKernel of columns of 0 and 1 is supported, as of one-hot encoded"
            " categories"
        )
    posterior = with_note(result.posterior, HAMMING)
    return replace(result, posterior=posterior, mixable=False)


def result(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the last model of an `OptimizeResult`, in its space's dimensions."""
    if "space" not in model or "models" not in model:
        raise UnsupportedModelError(
            "model: expected a result of scikit-optimize, such as that of gp_minimize, with `space`"
            f" and `models`, got an OptimizeResult with {sorted(model)}"
        )
    return _optimised(model.space, model.models, model.x_iters, model.func_vals)


def optimizer(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the last model of an `Optimizer`, in its space's dimensions."""
    return _optimised(model.space, model.models, model.Xi, model.yi)


def _optimised(space: Any, models: Any, X: Sequence[Any], y: Any) -> Adapted:
    import pandas as pd

    if not models:
        raise NotFittedError(
            f"model: no surrogate was fitted to these {len(X)} points, which were drawn without"
            " one; measure more than n_initial_points"
        )
    inner, names = _surrogate(models[-1]), _names(space)

    def seen(frame: Any) -> np.ndarray:
        values = frame[names].to_numpy(dtype=object).tolist()
        return np.asarray(space.transform(values), dtype=np.float64)

    rows = pd.DataFrame(list(X), columns=names)
    objective = np.asarray(y, dtype=np.float64).reshape(len(X), -1)[:, 0]
    outputs = OUTCOMES[: len(inner.posterior.outputs)]
    return explained(
        [_parameter(*pair) for pair in zip(names, space.dimensions, strict=True)],
        [
            Surrogate(
                outputs,
                seen,
                lambda frame: inner.predict(seen(frame)),
                by_columns(inner.posterior),
            )
        ],
        rows=rows,
        best=rows.iloc[[int(objective.argmin())]],
        target_names=dict.fromkeys(outputs),
    )


def _names(space: Any) -> list[str]:
    """Return the names of the dimensions: X_0, X_1, … where the user has not named them."""
    names = [str(name) for name in space.dimension_names]
    if len(set(names)) < len(names):
        raise UnsupportedModelError(f"space: expected dimensions with different names, got {names}")
    return names


def _surrogate(model: Any) -> Adapted:
    """Return a surrogate as a posterior of the columns that it sees."""
    if type(model).__name__ == "MultiOutputRegressor":  # of value and time, for EIps and PIps
        parts = [_surrogate(part) for part in model.estimators_]
        posteriors: dict[str, Posterior] = {
            name: part.posterior for name, part in zip(OUTCOMES, parts, strict=True)
        }

        def predict(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return side_by_side(part.predict(points) for part in parts)

        return replace(parts[0], posterior=MultiOutputPosterior(posteriors), predict=predict)
    if find_adapter(model) is None:
        raise UnsupportedModelError(
            f"models: the surrogate is a {type(model).__name__}, which is no Gaussian process;"
            ' use gp_minimize, or Optimizer(…, base_estimator="GP")'
        )
    return adapt(model)


OUTCOMES = ("objective", "log time")


def _parameter(name: str, dimension: Any) -> Parameter:
    kind = type(dimension).__name__
    if kind == "Categorical":
        return Parameter(name, labels=tuple(dimension.categories))
    if kind not in ("Real", "Integer"):
        raise UnsupportedModelError(f"space: a {kind} dimension is not supported")
    values = np.linspace(float(dimension.low), float(dimension.high), PROBES)
    if kind == "Integer" and dimension.prior != "log-uniform":  # of which the others are rounded
        values = np.unique(np.round(values)).astype(int)
    return Parameter(name, tuple(values.tolist()), digits=0 if kind == "Integer" else None)
