"""Partial dependence: the average of a function with some of its inputs held fixed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from gpattr._core.arguments import an_array, positions, some_rows
from gpattr._core.array import Array, namespace
from gpattr._core.validation import as_matrix, as_vector, beside, check_count, read_only
from gpattr.exceptions import InvalidInputError
from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Sites, check_batches
from gpattr.operators.baselines import Baselines


@dataclass(frozen=True, eq=False)
class Curves(Sites):
    """Rows (n, D) whose ``columns`` run through ``nodes`` (L, c): f(node, xₙ in other columns).

    With a ``background`` (K, D) the other columns are averaged over its rows, with ``weights``
    (K,), and every row has the same curve. ``combine`` (G, L) makes outputs of the values at nodes,
    where these are not the outputs themselves but differences: its rows add up to zero. With a
    ``direction`` (c,) the curve shows the derivative along it.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import Curves
    >>> sites = Curves(np.zeros((2, 3)), columns=(0,), nodes=np.linspace(0.0, 1.0, 5)[:, None])
    >>> sites.shape
    (2, 3)
    """

    checks: ClassVar[Any] = Sites.checks | {
        "at": some_rows,
        "values": an_array,
        "axis": partial(check_count, least=0, most=1),
    }

    X: Array
    columns: tuple[int, ...]
    nodes: Array
    combine: Array | None = None
    direction: Array | None = None
    background: Array | None = None
    weights: Array | None = None

    def __post_init__(self) -> None:
        some_rows("X", self.X)
        positions("columns", self.columns)
        some_rows("nodes", self.nodes)
        given = {
            "combine": self.combine,
            "direction": self.direction,
            "background": self.background,
            "weights": self.weights,
        }
        for name, array in given.items():
            if array is not None:
                an_array(name, array)
        L, c = self.nodes.shape
        if c != len(self.columns):
            raise InvalidInputError(
                f"nodes: expected {len(self.columns)} columns, got the shape {(L, c)}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.X.shape
        return n, d

    @property
    def like(self) -> Array:
        return self.X

    @property
    def rest(self) -> tuple[int, ...]:
        """The columns that keep the values of rows."""
        return tuple(j for j in range(self.X.shape[1]) if j not in self.columns)

    @property
    def others(self) -> tuple[Array, Array]:
        """The rows over which curves are averaged, (K, D), and their weights, (K,)."""
        if self.background is None or self.weights is None:
            raise InvalidInputError("background: individual curves have none")
        return self.background, self.weights

    def __getitem__(self, rows: Any) -> Self:
        return replace(self, X=self.X[rows])

    @classmethod
    def stack(cls, batches: Sequence[Curves]) -> Self:
        check_batches(cls, batches)
        first, xp = batches[0], namespace(batches[0].X)
        X = xp.concatenate([sites.X for sites in batches])
        parts = (first.columns, first.nodes, first.combine, first.direction)
        return cls(X, *parts, first.background, first.weights)

    def select(self, features: Array) -> Self:
        kept = [int(j) for j in features]
        seen = [place for place, j in enumerate(kept) if j in self.columns]
        own = [self.columns.index(kept[place]) for place in seen]
        return replace(
            self,
            X=self.X[:, kept],
            columns=tuple(seen),
            nodes=self.nodes[:, own],
            direction=None if self.direction is None else self.direction[own],
            background=None if self.background is None else self.background[:, kept],
        )

    def points(self, at: Array) -> Array:
        """Return rows ``at`` (r, D) with every node in turn, (r, L, D)."""
        r, D = at.shape
        if self.X.shape[1] != D:
            raise InvalidInputError(f"at: expected rows of {self.X.shape[1]} columns, got {D}")
        points = namespace(at).zeros((r, len(self.nodes), D)) + at[:, None, :]
        if self.columns:
            points[:, :, list(self.columns)] = self.nodes
        return points

    def combined(self, values: Array, axis: int = 0) -> Array:
        """Return the outputs for values at nodes, which run along the axis 0 or 1."""
        L = values.shape[axis] if values.ndim > axis else 0
        if len(self.nodes) != L:
            raise InvalidInputError(
                f"values: expected one for each of {len(self.nodes)} nodes, got {L}"
            )
        if self.combine is None:
            return values
        # Less the values at one node, so that nothing is left of a constant.
        if axis == 1:
            return self.combine @ (values - values[:, -1:])
        shape = values.shape[1:]
        return (self.combine @ (values - values[-1:]).reshape(L, -1)).reshape(-1, *shape)

    def sizes(self, values: Array) -> Array:
        """Return bounds of |outputs| before anything cancels, (...), for |values| (L, ...)."""
        largest = namespace(values).max(abs(values), axis=0)
        return largest if self.combine is None else 2.0 * largest


class PartialDependence(Operator):
    """𝒜_g f = Σₖ wₖ f(grid_g in ``features``, xᵏ in the others): a curve, or a surface.

    ``features`` are the positions of columns, ``grid`` (G, c) their values, ``background`` rows
    (K, d) or `Baselines` (rows with weights). The curve is the same at every row. Without a
    background each row x, of ``n_features`` columns, has a curve of its own, f(grid_g, x in the
    others).

    ``centre`` subtracts the average of the curve over values (k, c), given as rows or `Baselines`.
    With ``derivative`` it is the slope of the curve, of one column, or along the direction (c,)
    that is given.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> curve = gpattr.operators.PartialDependence([0], [[0.0], [1.0]], X)
    >>> mean = model.posterior_.apply(curve, X[:1]).distribution.mean[0]
    >>> round(float(mean[1] - mean[0]), 2)
    1.0
    """

    axes = ("grid",)

    def __init__(
        self,
        features: Sequence[int],
        grid: Any,
        background: Any = None,
        *,
        n_features: int | None = None,
        centre: Any = None,
        derivative: Any = False,
    ) -> None:
        positions("features", features)
        self.features = tuple(int(j) for j in features)
        if len(set(self.features)) < len(self.features):
            raise InvalidInputError(f"features: expected different ones, got {self.features}")
        self.grid = self._nodes("grid", grid)
        self.background = None if background is None else _weighted("background", background)
        self.centre = None if centre is None else _weighted("centre", centre)
        if self.centre is not None:
            self._nodes("centre", self.centre[0])
        self.direction = self._direction(derivative)
        self.width = self._width(n_features)

    def _width(self, n_features: int | None) -> int:
        """Return the number of columns, checked."""
        if self.background is not None:
            n_features = self.background[0].shape[1]
        if n_features is None:
            raise InvalidInputError(
                "n_features: expected the number of columns where there is no background"
            )
        if any(not 0 <= j < n_features for j in self.features):
            raise InvalidInputError(
                f"features: expected positions below {n_features}, got {self.features}"
            )
        return int(n_features)

    def _nodes(self, name: str, values: Any) -> Array:
        """Return values of the features, (G, c)."""
        c = len(self.features)
        if c == 0:  # a posterior that does not depend on the features
            return values
        return read_only(as_matrix(name, values, n_features=c))

    def _direction(self, derivative: Any) -> Array | None:
        if derivative is False or derivative is None:
            return None
        if derivative is not True:
            return as_vector("derivative", derivative, length=len(self.features))
        if len(self.features) != 1:
            raise InvalidInputError(
                f"derivative: expected one feature, or a direction, got {len(self.features)}"
            )
        return np.ones(1)

    @property
    def vanishes_on_constants(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether constants have no curve: slopes and centred curves."""
        return self.centre is not None or self.direction is not None

    @property
    def coordinates(self) -> dict[str, Sequence[float]]:
        if self.grid.shape[1] != 1:
            return {}
        return {"grid": [float(value) for value in self.grid[:, 0]]}

    def sizes(self, d: int) -> tuple[int, ...]:
        return (len(self.grid),)

    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        if X.shape[1] != self.width:
            raise InvalidInputError(f"X: expected {self.width} columns, got {X.shape[1]}")
        xp, G = namespace(X), len(self.grid)
        nodes, combine, background, weights = beside("grid", self.grid, X), None, None, None
        if self.centre is not None and self.direction is None:
            values, shares = (beside("centre", part, X) for part in self.centre)
            nodes = xp.concatenate([nodes, values])
            combine = xp.concatenate([xp.eye(G), xp.zeros((G, len(shares))) - shares], axis=1)
        if self.background is not None:
            background, weights = (beside("background", part, X) for part in self.background)
        direction = None if self.direction is None else beside("grid", self.direction, X)
        sites = Curves(X, self.features, nodes, combine, direction, background, weights)
        return [(1.0, sites)]

    def in_units(self, units: AffineMap) -> PartialDependence:
        """Return the operator of g; a feature that feeds several inputs moves all of them."""
        seen = [place for place, j in enumerate(units.source) if j in self.features]
        own = [self.features.index(units.source[place]) for place in seen]
        inside = AffineMap(
            units.shift[seen], units.scale[seen], tuple(own), max(1, len(self.features))
        )

        def values(part: Array) -> Array:
            return inside.inside(part) if seen else part[:, :0]

        result = copy(self)
        result.features, result.grid = tuple(seen), values(self.grid)
        result.width = len(units.source)
        if self.background is not None:
            result.background = (units.inside(self.background[0]), self.background[1])
        if self.centre is not None:
            result.centre = (values(self.centre[0]), self.centre[1])
        if self.direction is not None:
            result.direction = self.direction[own] / inside.scale
        return result

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return the identity: the grid stays as it is, and the operator inside has the units."""
        return namespace(like).eye(len(self.grid))


def _weighted(name: str, rows: Any) -> tuple[Array, Array]:
    """Return rows (k, ·) and their weights (k,)."""
    if isinstance(rows, Baselines):
        return rows.points, rows.weights
    points = read_only(as_matrix(name, rows))
    return points, np.full(len(points), 1.0 / len(points))
