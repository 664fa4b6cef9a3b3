"""Integrated gradients along the straight path from a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpattr._core.arguments import an_array
from gpattr._core.array import Array, is_tensor, namespace
from gpattr._core.validation import beside
from gpattr.exceptions import InvalidInputError
from gpattr.operators.affine_map import AffineMap
from gpattr.operators.base import Operator, Reference, Sites, check_batches
from gpattr.operators.baselines import Baselines, points_of
from gpattr.operators.marginals import Marginals
from gpattr.operators.spans import Spans

NO_MARGINALS = (
    "baseline: integrated gradients follow straight paths, which features drawn independently do"
    ' not have; use attribution="shapley", or Baselines(rows) with integrated gradients'
)


@dataclass(frozen=True, eq=False)
class Paths(Spans):
    """Straight paths from ``start``, (n, d) or one for all (1, d), to ``stop``, (n, d).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import Paths
    >>> Paths(np.zeros((1, 2)), np.ones((1, 2))).at(np.array([0.0, 0.5]))[:, 0]
    array([[0. , 0. ],
           [0.5, 0.5]])
    """

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.start if self.shared_start else self.start[rows], self.stop[rows])

    @classmethod
    def stack(cls, batches: Sequence[Paths]) -> Self:
        check_batches(cls, batches)
        xp = namespace(batches[0].stop)
        starts = [xp.broadcast_to(paths.start, paths.shape) for paths in batches]
        return cls(xp.concatenate(starts), xp.concatenate([paths.stop for paths in batches]))

    def select(self, features: Array) -> Self:
        return type(self)(self.start[:, features], self.stop[:, features])

    def at(self, t: Array) -> Array:
        """Return the points b + t(x − b), (T, n, d), for t in [0, 1]; exact at both ends."""
        if not (isinstance(t, (list, np.ndarray)) or is_tensor(t)) or np.ndim(t) != 1:
            raise InvalidInputError(f"t: expected a list of numbers, (T,), got {t!r}")
        xp = namespace(self.stop)
        t = xp.asarray(t)[:, None, None]
        return xp.where(t < 0.5, self.start + t * self.step, self.stop - (1.0 - t) * self.step)

    def along(self, t: Array) -> Array:
        """Return b + t(x − b), (n, ..., d), for each path's own t, (n, ...); exact at both ends."""
        an_array("t", t)
        if t.ndim == 0 or len(t) != len(self.stop):
            raise InvalidInputError(
                f"t: expected numbers ({len(self.stop)}, ...), one row a path, got the shape"
                f" {tuple(t.shape)}"
            )
        xp = namespace(self.stop)
        shape = (len(t), *[1] * (t.ndim - 1), self.stop.shape[1])
        start, stop = (
            xp.broadcast_to(self.start, self.shape).reshape(shape),
            self.stop.reshape(shape),
        )
        t, step = t[..., None], stop - start
        return xp.where(t < 0.5, start + t * step, stop - (1.0 - t) * step)


class IntegratedGradients(Operator):
    """𝒜ᵢf(x) = (xᵢ − bᵢ) ∫₀¹ ∂f/∂xᵢ(b + t(x − b)) dt.

    ``baseline`` b is one point (d,), one per row (n, d), or `Baselines`: a weighted set, over which
    𝒜 is averaged.

    Features at the positions ``jumps`` have no values in between (they encode categories): all of
    them move first and the others after, or the others first, and 𝒜 is the average of both. So
    completeness holds, and reversing the path reverses the signs.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.IntegratedGradients([0.0, 0.0])
    >>> model.posterior_.apply(operator, [[1.0, 2.0]]).distribution.mean.round(2)
    array([[ 1., -4.]])
    """

    methods = ("auto", "exact", "quadrature", "right", "trapezoid", "simpson", "gauss_legendre")
    vanishes_on_constants = True
    dummy = True
    additive = True

    def __init__(self, baseline: Any, jumps: Sequence[int] = ()) -> None:
        self._jumps = _positions(jumps)
        if isinstance(baseline, Marginals):
            raise InvalidInputError(NO_MARGINALS)
        self.points, self.weights, self.per_row = points_of(baseline)

    @property
    def jumps(self) -> tuple[int, ...]:
        return self._jumps

    @property
    def reference(self) -> Reference:
        weights = np.ones(1) if self.weights is None else self.weights
        return Reference(self.points, weights, self.per_row)

    def in_units(self, units: AffineMap) -> IntegratedGradients:
        points = units.inside(self.points)
        jumps = [j for j, feature in enumerate(units.source) if feature in self.jumps]
        if self.weights is not None:
            return IntegratedGradients(Baselines(points, self.weights), jumps)
        return IntegratedGradients(points if self.per_row else points[0], jumps)

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return which feature feeds which input: attributions do not depend on units."""
        return units.feeds(like)

    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        n, d = X.shape
        points = beside("baseline", self.points, X)
        if self.points.shape[1] != d:
            raise InvalidInputError(f"baseline: expected {d} columns, got {self.points.shape[1]}")
        if self.jumps and self.jumps[-1] >= d:
            raise InvalidInputError(f"jumps: expected positions below {d}, got {list(self.jumps)}")
        if self.per_row:
            if len(self.points) != n:
                raise InvalidInputError(
                    f"baseline: expected one row per row of X ({n}), got {len(self.points)}"
                )
            return self._pieces(1.0, points, X)
        weights = np.ones(1) if self.weights is None else self.weights
        parts = zip(weights, points, strict=True)
        return [piece for w, b in parts if w > 0 for piece in self._pieces(float(w), b[None, :], X)]

    def _pieces(self, weight: float, start: Array, stop: Array) -> list[tuple[float, Sites]]:
        """Return straight pieces from start, (n, d) or (1, d), to stop, (n, d), with weights."""
        if not self.jumps:
            return [(weight, Paths(start, stop))]
        xp, columns = namespace(stop), list(self.jumps)
        start = xp.broadcast_to(start, stop.shape)
        early, late = (
            start + 0.0,
            stop + 0.0,
        )  # where the jump leads at once, and where it is still to come
        early[:, columns], late[:, columns] = stop[:, columns], start[:, columns]
        pieces = ((start, early), (early, stop), (start, late), (late, stop))
        return [(0.5 * weight, Paths(a, b)) for a, b in pieces]

    def rows(self, rows: Any) -> IntegratedGradients:
        return IntegratedGradients(self.points[rows], self.jumps) if self.per_row else self


def _positions(jumps: Any) -> tuple[int, ...]:
    """Return positions of features, each once, in order."""
    whole = (int, np.integer)
    if (
        isinstance(jumps, (str, bytes))
        or not isinstance(jumps, (Sequence, np.ndarray))
        or np.ndim(jumps) != 1
    ):
        raise InvalidInputError(f"jumps: expected positions of features, got {jumps!r}")
    if not all(
        isinstance(place, whole) and not isinstance(place, bool) and place >= 0 for place in jumps
    ):
        raise InvalidInputError(
            f"jumps: expected positions of features, counted from 0, got {list(jumps)}"
        )
    return tuple(sorted({int(place) for place in jumps}))
