"""Shapley values of features that take their values from a row or from a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gpattr._core.arguments import an_array, instance, positions, some_rows
from gpattr._core.array import Array, namespace
from gpattr._core.validation import beside
from gpattr.exceptions import InvalidInputError
from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Reference, Sites, check_batches
from gpattr.operators.baselines import Baselines, points_of
from gpattr.operators.marginals import Marginals
from gpattr.operators.players import MOST_PLAYERS, Players, as_players
from gpattr.operators.spans import Spans

a_players = instance(Players, "gpattr Players, such as Players.single(d)")


@dataclass(frozen=True, eq=False)
class Coalitions(Spans):
    """All points whose ``players`` are at the row, ``stop`` (n, D), or at the baseline, ``start``.

    The baseline is (n, D), or one for all (1, D). With ``weights`` (K,) it is drawn instead:
    every player independently of the others from the rows of ``start`` (K, D).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import Coalitions, Players
    >>> sites = Coalitions(np.zeros((1, 3)), np.ones((4, 3)), Players((0, 1, 1), 2))
    >>> sites.shape
    (4, 3)
    """

    checks: ClassVar[Any] = Spans.checks | {"members": some_rows}

    players: Players
    weights: Array | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        a_players("players", self.players)
        if self.weights is not None:
            an_array("weights", self.weights)
            if tuple(self.weights.shape) != self.start.shape[:1]:
                raise InvalidInputError(
                    f"weights: expected one for each of {self.start.shape[0]} rows of start, got"
                    f" the shape {tuple(self.weights.shape)}"
                )

    @property
    def shared_start(self) -> bool:
        """Whether all rows are compared with the same baseline, or with draws of one."""
        return self.weights is not None or super().shared_start

    def __getitem__(self, rows: Any) -> Self:
        start = self.start if self.shared_start else self.start[rows]
        return type(self)(start, self.stop[rows], self.players, self.weights)

    @classmethod
    def stack(cls, batches: Sequence[Coalitions]) -> Self:
        check_batches(cls, batches)
        first, xp = batches[0], namespace(batches[0].stop)
        stop = xp.concatenate([sites.stop for sites in batches])
        if first.weights is not None:  # there is one batch: marginals are a single term
            return cls(first.start, stop, first.players, first.weights)
        starts = [xp.broadcast_to(sites.start, sites.shape) for sites in batches]
        return cls(xp.concatenate(starts), stop, first.players)

    def select(self, features: Array) -> Self:
        return type(self)(
            self.start[:, features],
            self.stop[:, features],
            self.players.select(features),
            self.weights,
        )

    @property
    def moving(self) -> Array:
        """A mask of players that differ from the baseline, (n, players), of 0 and 1."""
        xp, (n, _) = namespace(self.stop), self.shape
        result = xp.zeros((n, self.players.count))
        if self.weights is None:
            changed = self.step != 0
        else:  # drawn: only where all draws are equal to the row does nothing change
            low, high = xp.min(self.start, axis=0), xp.max(self.start, axis=0)
            changed = (self.stop != low) | (self.stop != high)
        for player, columns in zip(self.players.seen, self.players.members, strict=True):
            result[:, player] = (changed[:, list(columns)].sum(axis=1) > 0) * 1.0
        return result

    def corners(self, members: Array) -> Array:
        """Return the points of coalitions ``members`` (c, players) of 0 and 1, (n, c, D)."""
        if members.shape[1] != self.players.count:
            raise InvalidInputError(
                f"members: expected one column for each of {self.players.count} players, got"
                f" {members.shape[1]}"
            )
        xp = namespace(self.stop)
        inside = xp.asarray(members)[:, list(self.players.owner)] > 0.5
        start = xp.broadcast_to(self.start, self.shape)
        return xp.where(inside[None], self.stop[:, None, :], start[:, None, :])


class Shapley(Operator):
    """φᵢf(x) = Σ_S |S|!(d−|S|−1)!/d! (f(x_{S∪i}, b) − f(x_S, b)), over all S without i.

    Features in S have the values of the row x, the others the baseline b's: one point (d,), one per
    row (n, d), `Baselines` (averaged over a background set, as SHAP's interventional values), or
    `Marginals` (features drawn independently).

    ``players`` gives the player of each column, counted from 0, where several columns move
    together; there is one output per player. By default each column is a player.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.Shapley([0.0, 0.0])
    >>> model.posterior_.apply(operator, [[1.0, 2.0]]).distribution.mean.round(2)
    array([[ 1., -4.]])
    """

    checks: ClassVar[Any] = Operator.checks | {"features": positions}
    methods = ("auto", "exact", "permutations")
    vanishes_on_constants = True
    dummy = True
    absolute_weight = 2.0  # the largest sum of absolute weights that an output gives to coalitions

    def __init__(self, baseline: Any, players: Any = None) -> None:
        self.points, self.weights, self.per_row = points_of(baseline)
        self.independent = isinstance(baseline, Marginals)
        d = self.points.shape[1]
        if not d:
            raise InvalidInputError("baseline: expected at least one column, got none")
        self.players = Players.single(d) if players is None else as_players("players", players)
        if len(self.players.owner) != d:
            raise InvalidInputError(
                f"players: expected one for each of {d} columns, got {len(self.players.owner)}"
            )

    def sizes(self, d: int) -> tuple[int, ...]:
        return (self.players.count,)

    @property
    def reference(self) -> Reference | None:
        weights = np.ones(1) if self.weights is None else self.weights
        return Reference(self.points, weights, self.per_row, self.independent)

    def why_inexact(self) -> str:
        return (
            f", and coalitions are enumerated for at most {MOST_PLAYERS} players, of which there"
            f" are {len(self.players.seen)}"
        )

    def _replaced(self, points: Array, players: Players) -> Self:
        """Return the same operator with other baselines and players."""
        baseline: Any = points if self.per_row else points[0]
        if self.weights is not None:
            baseline = (Marginals if self.independent else Baselines)(points, self.weights)
        return self._with_players(baseline, players)

    def _with_players(self, baseline: Any, players: Players) -> Self:
        """Return the same operator for another baseline and other players."""
        return type(self)(baseline, players)

    def select(self, features: Sequence[int]) -> Self:
        """Return the operator for functions of these columns only; its outputs stay."""
        return self._replaced(self.points[:, list(features)], self.players.select(features))

    def encoded(self, encoding: Array) -> Self:
        """Return the operator whose players are features, unless it has players of its own."""
        if not self.players.singles:
            return self
        owner = [int(row.argmax()) for row in encoding]
        return self._replaced(self.points, Players(tuple(owner), encoding.shape[1]))

    def gather(self, encoding: Array) -> Array:
        return namespace(encoding).eye(self.players.count)

    def in_units(self, units: AffineMap) -> Self:
        return self._replaced(units.inside(self.points), self.players.select(units.source))

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return the identity: Shapley values do not depend on units."""
        return namespace(like).eye(self.players.count)

    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        n, d = X.shape
        points = beside("baseline", self.points, X)
        if self.points.shape[1] != d:
            raise InvalidInputError(f"baseline: expected {d} columns, got {self.points.shape[1]}")
        if self.per_row and len(self.points) != n:
            raise InvalidInputError(
                f"baseline: expected one row per row of X ({n}), got {len(self.points)}"
            )
        if self.weights is None:
            return [(1.0, Coalitions(points, X, self.players))]
        weights = beside("baseline", self.weights, X)
        if self.independent:
            return [(1.0, Coalitions(points, X, self.players, weights))]
        return [
            (float(w), Coalitions(b[None, :], X, self.players))
            for w, b in zip(weights, points, strict=True)
            if w > 0
        ]

    def rows(self, rows: Any) -> Self:
        return self._replaced(self.points[rows], self.players) if self.per_row else self


class Expectation(Shapley):
    """The mean of f over a product of marginals, E f(b): one number, the same at every row.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> expectation = gpattr.operators.Expectation(gpattr.Marginals(X))
    >>> model.posterior_.apply(expectation, X[:1]).distribution.mean.shape
    (1, 1)
    """

    axes = ()
    methods = ("auto", "exact")
    vanishes_on_constants = False

    def sizes(self, d: int) -> tuple[int, ...]:
        return ()

    @property
    def reference(self) -> None:
        return None

    def gather(self, encoding: Array) -> Array:
        return namespace(encoding).eye(1)

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        return namespace(like).eye(1)
