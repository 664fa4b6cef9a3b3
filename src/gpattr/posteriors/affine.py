"""A posterior behind scalers and selections: f(x) = g(u), uⱼ = (x_source(j) − shiftⱼ)/scaleⱼ.

The operator gives its form for g and maps outputs back. A straight path in x is straight in u, and
integrated gradients do not depend on units: 𝒜ᵢf is the sum of 𝒜ⱼg over the inputs j of g that
feature i feeds; a feature that feeds none has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._core.arguments import positions
from gpattr._core.array import Array, is_tensor, to_numpy
from gpattr._core.validation import (
    Names,
    as_vector,
    beside,
    check_count,
    check_names,
    read_only,
)
from gpattr.exceptions import InvalidInputError
from gpattr.operators import AffineMap, Operator
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.bound import Bound, Evaluation
from gpattr.posteriors.wrapper import LinearBound, WrapperPosterior, check_wrapped


@dataclass(frozen=True, eq=False, init=False, repr=False)
class AffinePosterior(WrapperPosterior):
    """f(x) = g((x[source] − ``shift``)/``scale``) for the ``posterior`` of g.

    Shift and scale are in the units of x. ``source`` (D,) are the positions of the features of x,
    of which there are ``n_features``, that the inputs of g come from: all in their order by
    default.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> scaled = gpattr.posteriors.AffinePosterior(model.posterior_, [0.0, 0.0], scale=[100.0, 1.0])
    >>> scaled.predict([[100.0, 0.0]]).round(2)
    array([1.])
    """

    posterior: Posterior
    shift: Array
    scale: Array
    source: tuple[int, ...]
    width: int

    def __init__(
        self,
        posterior: Posterior,
        shift: Any,
        scale: Any,
        *,
        source: Sequence[int] | None = None,
        n_features: int | None = None,
        feature_names: Names | None = None,
    ) -> None:
        check_wrapped(posterior)
        D = posterior.n_features
        d = D if n_features is None else check_count("n_features", n_features)
        if source is not None:
            positions("source", source)
        source = tuple(range(D)) if source is None else tuple(int(j) for j in source)
        if len(source) != D or not all(0 <= j < d for j in source):
            raise InvalidInputError(
                f"source: expected {D} positions below {d} (n_features), got {list(source)}"
            )
        unit = "numbers (one per input of the posterior)"
        scale = read_only(as_vector("scale", scale, length=D, unit=unit))
        if (scale == 0).any():
            raise InvalidInputError("scale: expected numbers other than 0")
        names = None if feature_names is None else check_names("feature_names", feature_names, d)
        values = {
            "posterior": posterior,
            "shift": read_only(as_vector("shift", shift, length=D, unit=unit)),
            "scale": scale,
            "source": source,
            "width": d,
            "feature_names": names,
            "label": posterior.label,
            "note": posterior.note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def units(self) -> AffineMap:
        """The map from x to u."""
        return AffineMap(self.shift, self.scale, self.source, self.width)

    @property
    def n_features(self) -> int:
        return self.width

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The inner posterior's points, in the units of x; a feature it does not see is at 0."""
        points = self.posterior.reference_points
        return {name: self.units.outside(point[None, :])[0] for name, point in points.items()}

    @property
    def training_inputs(self) -> Array | None:
        inner = self.posterior.training_inputs
        return None if inner is None else self.units.outside(inner)

    def around(self, posterior: Posterior) -> AffinePosterior:
        return AffinePosterior(
            posterior,
            self.shift,
            self.scale,
            source=self.source,
            n_features=self.width,
            feature_names=self.feature_names,
        )

    def _inside(self, X: Array) -> Array:
        return self.units.inside(X)

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        inside, G = operator.in_units(self.units), operator.pull_back(self.units, self.like)
        G = _checked_matrix(operator, G, inside.size(len(self.source)), self.width, self.like)
        needed = evaluation
        if evaluation.uncertainty == "std" and ((G != 0).sum(axis=0) > 1).any():
            needed = replace(evaluation, uncertainty="cov")  # sums need what lies between
        inner = self.posterior.bind(inside, needed)
        return LinearBound(inner, operator, evaluation, G, self.units)

    def require_jets(self) -> None:
        self.posterior.require_jets()

    def path_lengths(self, start: Array, stop: Array) -> Array:
        return self.posterior.path_lengths(self.units.inside(start), self.units.inside(stop))

    def slopes(self, X: Array) -> tuple[np.ndarray, ...]:
        mean, var, gradient, cov = self.posterior.slopes(self.units.inside(X))
        G = self.units.jacobian(gradient)
        return mean, var, gradient @ G, cov @ G

    def rounding_of_variance(self, X: Array) -> Array:
        return self.posterior.rounding_of_variance(self.units.inside(X))

    def increments(
        self,
        start: Array,
        stop: Array,
        gathering: Array | None,
        nodes: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        r, J, d = start.shape
        start, stop = (
            self.units.inside(ends.reshape(-1, d)).reshape(r, J, -1) for ends in (start, stop)
        )
        feeds = to_numpy(self.units.feeds(start))
        G = feeds if gathering is None else feeds @ gathering
        return self.posterior.increments(start, stop, G, nodes, weights)

    def __repr__(self) -> str:
        return f"AffinePosterior({self.posterior!r})"


def _checked_matrix(operator: Operator, G: Any, Q: int, d: int, like: Array) -> Array:
    """Return the matrix of `pull_back`, (Q, q), beside ``like``; refuse other shapes."""
    expected = (Q, operator.size(d))
    known = isinstance(G, np.ndarray) or is_tensor(G)
    if not known or tuple(G.shape) != expected:
        raise InvalidInputError(
            f"{type(operator).__name__}: expected an array of shape {expected} from `pull_back`,"
            f" got {tuple(G.shape) if known else repr(G)}"
        )
    return beside("pull_back", G, like)
