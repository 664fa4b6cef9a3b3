"""Dependence: what a function does as one feature, or two, run through their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import Frozen
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import Names, read_only
from gpattr.distributions import Distribution, Gaussian
from gpattr.exceptions import (
    InvalidInputError,
    MissingUncertaintyError,
    UnsupportedModelError,
)
from gpattr.explanation import dependence_export
from gpattr.explanation.feature_grid import FeatureGrid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

AVERAGE, INDIVIDUAL = "average", "individual"


@dataclass(frozen=True, eq=False, repr=False)
class Dependence(Frozen):
    """The partial dependence of a prediction on one feature, or two, with its joint posterior.

    ``axes`` has the values of each feature. ``kind`` is ``"average"``, over ``n_background`` rows,
    or ``"individual"``: a curve for each of them, called ``row_names``. ``centred`` curves have
    their own average over the data subtracted; of ``derivative`` curves the values are slopes.

    ``distribution`` is the joint distribution of the G values of each curve, that of a surface with
    its second feature running fastest. ``error`` (n,) bounds what the method left out of each
    value, and ``cov_error`` (n,) of each (co)variance; there is one of each for an average.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> curve = explainer.dependence("x1", grid=[0.0, 1.0, 2.0], centred=True)
    >>> curve.values.round(2)
    array([ 0.72, -0.28, -3.28])
    >>> curve.std.shape
    (3,)
    """

    distribution: Distribution
    axes: tuple[FeatureGrid, ...]
    kind: str
    centred: bool
    derivative: bool
    n_background: int
    quantity: str
    method: str
    error: FloatArray
    cov_error: FloatArray | None = None
    row_names: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", read_only(self.error))
        if self.cov_error is not None:
            object.__setattr__(self, "cov_error", read_only(self.cov_error))

    @property
    def features(self) -> Names:
        """The names of the features that run: one, or two for a surface."""
        return tuple(axis.name for axis in self.axes)

    @property
    def grid(self) -> Any:
        """The values of the feature, (G,); of a surface, those of both features in a tuple."""
        grids = tuple(axis.values for axis in self.axes)
        return grids[0] if len(grids) == 1 else grids

    @property
    def surface(self) -> bool:
        """Whether two features run."""
        return len(self.axes) == 2

    @property
    def outside(self) -> Any:
        """Which values of the grid are extrapolation, beyond all data: (G,), or both in a tuple."""
        marks = tuple(axis.outside for axis in self.axes)
        return marks[0] if len(marks) == 1 else marks

    @property
    def values(self) -> FloatArray:
        """The mean curve, (G,); (n, G) of individual curves; (G, H) of a surface."""
        return self._shaped(self.distribution.mean)

    @property
    def std(self) -> FloatArray | None:
        """The standard deviation of each value, in the shape of ``values``."""
        var = self.distribution.var
        return None if var is None else self._shaped(np.sqrt(var))

    @property
    def cov(self) -> FloatArray | None:
        """The covariance along the curve, (G, G), (n, G, G) or (G, H, G, H)."""
        cov = self.distribution.cov
        if cov is None:
            return None
        shape = self._shape
        return (
            cov.reshape(-1, *shape, *shape) if self.kind == INDIVIDUAL else cov.reshape(*shape * 2)
        )

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of the credible interval of each value."""
        lower, upper = self.distribution.interval(level)
        return self._shaped(lower), self._shaped(upper)

    def sample(self, n: int = 1, random_state: RandomLike = None) -> FloatArray:
        """Return n draws of the curve, (n, G), (n, rows, G) or (n, G, H).

        Every draw is a curve that the data allow. Individual curves of different rows are drawn
        independently.
        """
        self._require_joint("sample")
        draws = self.distribution.sample(n, random_state)
        return draws.reshape(len(draws), *self.values.shape)

    def prob_positive(self) -> FloatArray:
        """Return P(value > 0), in the shape of ``values``: of a slope, that the curve rises."""
        return self._shaped(self.distribution.prob_positive())

    def prob_increasing(self, start: Any = None, stop: Any = None) -> Any:
        """Return P(the curve is higher at ``stop`` than at ``start``); (n,) of individual curves.

        They are values of the feature, by default the ends of the grid. Between values of the grid
        the curve is interpolated linearly.
        """
        if self.surface:
            raise UnsupportedModelError("prob_increasing: expected a curve of one feature")
        if self.derivative:
            raise UnsupportedModelError(
                "prob_increasing: these are slopes; prob_positive() is the probability of a rise"
            )
        self._require_joint("prob_increasing")
        axis = self.axes[0]
        first, last = axis.values[0], axis.values[-1]
        rise = axis.position("stop", last if stop is None else stop)
        rise = rise - axis.position("start", first if start is None else start)
        result = self.distribution.linear(rise[:, None]).prob_positive()[:, 0]
        return result if self.kind == INDIVIDUAL else float(result[0])

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a tidy frame: one line for each value of the grid (and row, if individual).

        Its columns are the features, value and, if known, std, lower and upper; and ``outside``
        for extrapolation.
        """
        return dependence_export.to_frame(self, level)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file that `save` writes, as JSON values."""
        return dependence_export.to_dict(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file; `Dependence.load` restores it to the last bit."""
        dependence_export.save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Dependence:
        """Read what `save` wrote; a truncated or foreign file is refused."""
        return dependence_export.load(path)

    def plot(self, **options: Any) -> Axes:
        """Draw it, as `gpattr.plots.dependence` does: a curve, bars of categories or a surface."""
        from gpattr import plots

        return plots.dependence(self, **options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dependence):
            return NotImplemented
        return self.distribution == other.distribution and self._facts() == other._facts()

    def _facts(self) -> dict[str, Any]:
        return dependence_export.facts(self)

    def __repr__(self) -> str:
        return dependence_export.plain(self)

    def _require_joint(self, what: str) -> None:
        if isinstance(self.distribution, Gaussian) and self.distribution.cov is None:
            raise MissingUncertaintyError(
                f'{what}: needs the covariance along the curve; ask for it with uncertainty="cov"'
            )

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)

    def _shaped(self, numbers: Array) -> Array:
        shape = (len(numbers), *self._shape) if self.kind == INDIVIDUAL else self._shape
        if math.prod(shape) != numbers.size:
            raise InvalidInputError(
                f"distribution: expected {math.prod(shape)} numbers, got {numbers.size}"
            )
        return numbers.reshape(shape)
