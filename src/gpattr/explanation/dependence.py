"""Dependence: a function as one feature, or two, run through their values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import FrozenMapping
from gpattr._core.randomness import RandomLike
from gpattr._core.readable_numbers import readable_all
from gpattr._core.validation import Names
from gpattr.distributions import Distribution, Gaussian
from gpattr.exceptions import (
    InvalidInputError,
    MissingUncertaintyError,
    UnsupportedModelError,
)
from gpattr.explanation.feature_grid import DATE, FeatureGrid
from gpattr.explanation.result import JointResult, RowNames, StoredResult, counted, spread
from gpattr.explanation.storage import KINDS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

AVERAGE, INDIVIDUAL = "average", "individual"
PLAIN = ("kind", "centred", "derivative", "n_background", "quantity", "method")  # in files
FEW = 8  # values of a grid that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Dependence(JointResult, StoredResult):
    """The partial dependence of a prediction on one feature, or two, with its joint posterior.

    ``axes`` has the values of each feature. ``kind`` is ``"average"``, over ``n_background`` rows,
    or ``"individual"``: a curve for each of them, called ``row_names``. ``centred`` curves have
    their own average over the data subtracted; of ``derivative`` curves the values are slopes.

    ``values`` is the mean curve, (G,); (n, G) of individual curves; (G, H) of a surface.
    ``distribution`` is the joint distribution of the G values of each curve, on a surface with the
    second feature running fastest. ``error`` (n,) bounds the method's error of each value, and
    ``cov_error`` (n,) of each (co)variance; there is one of each for an average.

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

    FORMATS = ("gpattr.Dependence",)
    DIMENSIONS = FrozenMapping(error=("row",), cov_error=("row",))

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
    row_names: RowNames = ()

    @property
    def features(self) -> Names:
        """The names of the features that run: one, or two for a surface."""
        return tuple(axis.name for axis in self.axes)

    @property
    def grid(self) -> Any:
        """The values of the feature, (G,); of a surface, a tuple of both features' values."""
        grids = tuple(axis.values for axis in self.axes)
        return grids[0] if len(grids) == 1 else grids

    @property
    def surface(self) -> bool:
        """Whether two features run."""
        return len(self.axes) == 2

    @property
    def outside(self) -> Any:
        """A mask of extrapolated values of the grid, beyond all data: (G,), or both in a tuple."""
        marks = tuple(axis.outside for axis in self.axes)
        return marks[0] if len(marks) == 1 else marks

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

    def sample(self, n: int = 1, random_state: RandomLike = None) -> FloatArray:
        """Return n draws of the curve, (n, G), (n, rows, G) or (n, G, H).

        Every draw is a curve that the data allow. Individual curves of different rows are drawn
        independently.
        """
        self._require_joint("sample")
        draws = self.distribution.sample(n, random_state)
        return draws.reshape(len(draws), *self.values.shape)

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
        import pandas as pd

        places = np.indices([len(axis) for axis in self.axes]).reshape(len(self.axes), -1)
        rows, entries = self.distribution.shape
        columns: dict[str, Any] = {}
        if self.kind == INDIVIDUAL:
            columns["row"] = np.repeat(np.array(self.row_names, dtype=object), entries)
        outside = np.zeros(entries, dtype=bool)
        for axis, place in zip(self.axes, places, strict=True):
            columns[axis.name] = np.tile(axis.values[place], rows)
            outside |= axis.outside[place]
        columns["slope" if self.derivative else "value"] = self.values.ravel()
        columns |= {name: numbers.ravel() for name, numbers in spread(self, level).items()}
        columns["outside"] = np.tile(outside, rows)
        return pd.DataFrame(columns)

    def _content(self) -> dict[str, Any]:
        error, cov_error = (
            None if array is None else documents.encode(array, ("row",))
            for array in (self.error, self.cov_error)
        )
        known = self.distribution
        return {name: vars(self)[name] for name in PLAIN} | {
            "axes": [axis.to_content() for axis in self.axes],
            "row_names": list(self.row_names),
            "error": error,
            "cov_error": cov_error,
            "distribution": type(known).__name__,
            "arrays": {
                name: documents.encode(array, known.arrays[name], compact=True)
                for name, array in known.held().items()
            },
        }

    @classmethod
    def _of_content(cls, content: Any) -> Dependence:
        arrays = {name: documents.decode(array) for name, array in content["arrays"].items()}
        cov_error = content["cov_error"]
        return cls(
            KINDS[content["distribution"]](**arrays).numpy(),
            tuple(FeatureGrid.of_content(axis) for axis in content["axes"]),
            error=documents.decode(content["error"]),
            cov_error=None if cov_error is None else documents.decode(cov_error),
            row_names=tuple(content["row_names"]),
            **{name: content[name] for name in PLAIN},
        )

    def plot(self, **options: Any) -> Axes:
        """Draw it, as `gpattr.plots.dependence` does: a curve, bars of categories or a surface."""
        from gpattr import plots

        return plots.dependence(self, **options)

    def _heading(self) -> list[str]:
        what = self.quantity
        if self.derivative:
            what = f"slope of the {what}"
        elif self.centred:
            what = f"centred {what}"
        over = "average over" if self.kind == AVERAGE else "curves of"
        rows = counted(self.n_background, "row")
        return [f"Dependence on {' and '.join(self.features)}: {what}, {over} {rows}"]

    def _notes(self) -> list[str]:
        """Return some values of the curve, one a line."""
        if self.surface or self.kind == INDIVIDUAL:
            shape = " × ".join(str(len(axis)) for axis in self.axes)
            return [f"{shape} values of {', '.join(self.features)}"]
        axis = self.axes[0]
        places = np.unique(np.linspace(0, len(axis) - 1, min(FEW, len(axis))).round().astype(int))
        labels, sizes = _labels(axis, places), readable_all(self.values[places])
        spreads = [""] * len(places)
        if self.std is not None:
            spreads = [f" ± {text}" for text in readable_all(self.std[places])]
        marks = ["  (outside the data)" if axis.outside[place] else "" for place in places]
        width, wide = max(map(len, labels)), max(map(len, sizes))
        lines = [
            f"{label:>{width}}  {size:>{wide}}{spread}{mark}"
            for label, size, spread, mark in zip(labels, sizes, spreads, marks, strict=True)
        ]
        if len(places) < len(axis):
            lines.append(f"({len(places)} of {len(axis)} values of the grid)")
        return lines

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


def _labels(axis: FeatureGrid, places: Array) -> list[str]:
    if axis.kind == "number":
        return readable_all(axis.values[places])
    if axis.kind == DATE:
        return np.datetime_as_string(axis.values[places], unit="D").tolist()
    return [str(label) for label in axis.values[places]]
