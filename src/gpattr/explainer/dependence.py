"""Partial dependence for an explainer: grids in the user's units, and the result made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.validation import Names, as_vector, check_choice, check_count, check_flag
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explainer.rows import Rows, row_names
from gpattr.explainer.task import Task
from gpattr.explanation.dependence import AVERAGE, INDIVIDUAL, Dependence
from gpattr.explanation.feature_grid import (
    CATEGORY,
    DATE,
    NUMBER,
    FeatureGrid,
    dates_of,
    days,
    labels_of,
)
from gpattr.explanation.grouping import feature_index
from gpattr.operators import Baselines, Marginals, PartialDependence
from gpattr.posteriors import Evaluation, Posterior

CURVE, SIDE = 50, 20  # values of a grid by default: of one feature, and of each of two
MOST_VALUES = 100_000  # of a grid
FEW = 10  # different values of a feature that make a grid by themselves


@dataclass(frozen=True, eq=False)
class Background:
    """Rows as numbers (K, D), their weights (K,) and names; ``seen`` is all that is data (·, D)."""

    rows: Array
    weights: np.ndarray
    names: tuple[str | int, ...]
    seen: np.ndarray


def dependence_of(
    task: Task,
    feature: Any,
    grid: Any,
    background: Any,
    *,
    kind: str,
    centred: bool,
    derivative: bool,
    uncertainty: str,
) -> Dependence:
    """The partial dependence of a posterior on a feature, or on two."""
    task.require_latent("dependence is")
    posterior, rows = task.single, task.reader
    check_choice("kind", kind, (AVERAGE, INDIVIDUAL))
    check_flag("centred", centred)
    check_flag("derivative", derivative)
    over = _background(posterior, rows, background)
    axes, columns, nodes = _axes(rows, feature, grid, over, background)
    if derivative:
        _check_slope(axes, centred)
    if kind == INDIVIDUAL and len(axes) == 2:
        raise InvalidInputError(
            'kind: individual curves are of one feature; use kind="average" for two'
        )
    centre = None
    if centred:
        values, index = np.unique(to_numpy(over.rows)[:, columns], axis=0, return_inverse=True)
        shares = np.bincount(index.reshape(-1), weights=over.weights, minlength=len(values))
        centre = Baselines(values, shares / shares.sum())
    operator = PartialDependence(
        columns,
        nodes,
        Baselines(to_numpy(over.rows), over.weights) if kind == AVERAGE else None,
        n_features=rows.posterior.n_columns,
        centre=centre,
        derivative=derivative,
    )
    evaluation = Evaluation(uncertainty, tolerance=task.evaluation.tolerance)
    shown = over.rows[:1] if kind == AVERAGE else over.rows
    if uncertainty == "cov":
        remedy = 'use fewer values of the grid or fewer rows, or uncertainty="std"'
        check_memory("grid: the covariance", (len(shown), len(nodes), len(nodes)), remedy)
    result = posterior.bind(operator, evaluation).apply(shown)
    return Dependence(
        result.distribution.numpy(),
        axes,
        kind,
        centred,
        derivative,
        len(over.rows),
        task.words,
        result.method,
        to_numpy(result.error),
        None if result.cov_error is None else to_numpy(result.cov_error),
        over.names if kind == INDIVIDUAL else (),
    )


def _background(posterior: Posterior, rows: Rows, background: Any) -> Background:
    """Return the rows to average over: the given ones, or the training inputs."""
    known = posterior.training_inputs
    if background is None:
        if known is None:
            raise InvalidInputError(
                "background: this model does not keep its training inputs; give the rows to average"
                " over"
            )
        n = len(known)
        return Background(known, np.full(n, 1.0 / n), tuple(range(n)), to_numpy(known))
    if isinstance(background, Marginals):
        raise InvalidInputError(
            "background: partial dependence averages over rows, or Baselines(rows, weights), not"
            " over features drawn independently, got Marginals"
        )
    if isinstance(background, Baselines):
        read = _weighted_rows(rows, background)
        found, weights = rows.posterior.rows("background", read.points), to_numpy(read.weights)
        names: tuple[str | int, ...] = tuple(range(len(found)))
    else:
        found = rows.matrix("background", background)
        if not len(found):
            raise InvalidInputError("background: expected at least one row, got none")
        weights, names = np.full(len(found), 1.0 / len(found)), row_names(background, len(found))
    seen = to_numpy(found)
    if known is not None:
        seen = np.concatenate([seen, to_numpy(known)])
    return Background(found, weights, names, seen)


def _weighted_rows(rows: Rows, background: Baselines) -> Baselines:
    """Return rows with weights as numbers; errors name the argument that they came in."""
    try:
        read, _ = rows.baseline(background)
    except InvalidInputError as error:
        raise InvalidInputError(str(error).replace("baseline:", "background:", 1)) from None
    assert isinstance(read, Baselines)
    return read


def _axes(
    rows: Rows, feature: Any, grid: Any, over: Background, background: Any
) -> tuple[tuple[FeatureGrid, ...], list[int], np.ndarray]:
    """Return the grid of each feature, the columns of all, and their values at all nodes."""
    encoder = rows.encoder
    names = rows.names(background) if encoder is None else encoder.names
    chosen = _features(feature, names)
    grids = _grids(grid, len(chosen))
    default = CURVE if len(chosen) == 1 else SIDE
    axes, columns, nodes = [], [], []
    for index, values in zip(chosen, grids, strict=True):
        places = [index] if encoder is None else encoder.places(names[index])
        axis, own = _axis(names[index], places, encoder, values, over, default)
        axes.append(axis)
        columns += places
        nodes.append(own)
    if len(nodes) == 1:
        return tuple(axes), columns, nodes[0]
    first, second = nodes
    mesh = np.hstack([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))])
    return tuple(axes), columns, mesh


def _features(feature: Any, names: Names) -> list[int]:
    """Return the positions of one feature, or of two different ones."""
    listed: list[Any] = list(feature) if np.ndim(feature) == 1 else [feature]
    chosen = [feature_index(one, names) for one in listed]
    if not 1 <= len(chosen) <= 2:
        raise InvalidInputError(f"feature: expected one feature or two, got {len(chosen)}")
    if len(set(chosen)) < len(chosen):
        raise InvalidInputError(
            f"feature: expected two different features, got {names[chosen[0]]!r} twice"
        )
    return chosen


def _grids(grid: Any, count: int) -> list[Any]:
    """Return the grid of each feature, as it was given."""
    if count == 1:
        return [grid]
    if grid is None or isinstance(grid, (int, np.integer)):
        return [grid, grid]
    if not isinstance(grid, (tuple, list)) or len(grid) != 2:
        raise InvalidInputError(
            f"grid: expected a pair of grids, one for each of two features, got {grid!r}"
        )
    return list(grid)


def _axis(
    name: str,
    places: list[int],
    encoder: Encoder | None,
    grid: Any,
    over: Background,
    default: int,
) -> tuple[FeatureGrid, np.ndarray]:
    """Return the grid of one feature, and its values as columns, (G, c)."""
    count = default
    if isinstance(grid, (int, np.integer)) and not isinstance(grid, bool):
        count, grid = check_count("grid", int(grid), most=MOST_VALUES), None
    own, seen = to_numpy(over.rows)[:, places], over.seen[:, places]
    if encoder is not None and name in encoder.categories:
        return _categories(name, encoder, grid, own, seen)
    if encoder is not None and name in encoder.dates:
        return _dates(name, encoder, grid, count, own, seen)
    values = _numbers(name, grid, count, own[:, 0], seen[:, 0])
    margin = _rounding(seen)
    outside = (values < seen.min() - margin) | (values > seen.max() + margin)
    return FeatureGrid(name, NUMBER, values, own[:, 0], outside), values[:, None]


def _rounding(seen: np.ndarray) -> float:
    """Return by how much values may differ that have been through a scaler and back."""
    return 1e-12 * float(np.abs(seen).max()) + 1e-9 * float(np.ptp(seen))


def _numbers(name: str, grid: Any, count: int, data: np.ndarray, seen: np.ndarray) -> np.ndarray:
    if grid is None:
        different = np.unique(seen)
        different = different[np.diff(different, prepend=-np.inf) > _rounding(seen)]
        if len(different) <= min(FEW, count):
            return different
        # A background of one row, or of equal values, has no range of its own.
        across = data if np.ptp(data) > 0 else seen
        return np.linspace(across.min(), across.max(), count)
    if np.ndim(grid) == 0:
        raise InvalidInputError(
            f"grid: expected values of {name!r}, or how many there are, got {grid!r}"
        )
    values = to_numpy(as_vector("grid", grid))
    if not len(values):
        raise InvalidInputError(f"grid: expected values of {name!r}, got none")
    if not (np.diff(values) > 0).all():
        raise InvalidInputError(f"grid: expected increasing values of {name!r}, got {grid!r}")
    return values.astype(float)


def _categories(
    name: str, encoder: Encoder, grid: Any, own: np.ndarray, seen: np.ndarray
) -> tuple[FeatureGrid, np.ndarray]:
    labels = encoder.categories[name]
    if grid is not None and np.ndim(grid) != 1:
        raise InvalidInputError(
            f"grid: expected a list of categories of {name!r}, among {list(labels)}, got {grid!r}"
        )
    chosen = list(labels) if grid is None else list(grid)
    unknown = [label for label in chosen if label not in labels]
    if unknown or not chosen or len(set(chosen)) < len(chosen):
        raise InvalidInputError(
            f"grid: expected different categories of {name!r}, among {list(labels)}, got {chosen}"
        )
    index = [labels.index(label) for label in chosen]
    outside = ~np.isin(index, encoder.seen(name, seen))
    data = labels_of([labels[k] for k in encoder.chosen(name, own)])
    grid = FeatureGrid(name, CATEGORY, labels_of(chosen), data, outside)
    return grid, encoder.code(name)[index]


def _dates(
    name: str, encoder: Encoder, grid: Any, count: int, own: np.ndarray, seen: np.ndarray
) -> tuple[FeatureGrid, np.ndarray]:
    dates = encoder.dates[name]
    data = dates.decode(own)
    if grid is None:
        low, high = data.min().astype(np.int64), data.max().astype(np.int64)
        values = np.unique(np.linspace(low, high, count).astype(np.int64).astype("datetime64[us]"))
        if not dates.timed:
            values = np.unique(values.astype("datetime64[D]")).astype("datetime64[us]")
    else:
        try:
            values = dates_of(grid)
        except (TypeError, ValueError):
            raise InvalidInputError(f"grid: expected dates of {name!r}, got {grid!r}") from None
        if values.ndim != 1 or not len(values) or not (np.diff(days(values)) > 0).all():
            raise InvalidInputError(f"grid: expected increasing dates of {name!r}, got {grid!r}")
    known = dates.decode(seen)
    outside = (values < known.min()) | (values > known.max())
    return FeatureGrid(name, DATE, values, data, outside), dates.encode(values)


def _check_slope(axes: tuple[FeatureGrid, ...], centred: bool) -> None:
    """Refuse slopes where there are none."""
    if len(axes) != 1:
        raise InvalidInputError("derivative: expected one feature, got two")
    if axes[0].kind != NUMBER:
        raise UnsupportedModelError(
            f"derivative: the feature {axes[0].name!r} is not a number, but a {axes[0].kind}, and"
            " has no slope"
        )
    if centred:
        raise InvalidInputError("centred: centring does not change slopes; leave it out")
