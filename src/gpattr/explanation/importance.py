"""Global importance: of each feature over the rows of a table, with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.array import FloatArray
from gpattr._core.frozen import FrozenMapping
from gpattr._core.normal import check_level
from gpattr._core.readable_numbers import readable_all
from gpattr._core.validation import Names
from gpattr.explanation.result import INTEGRATED_GRADIENTS, Result, counted, remark

if TYPE_CHECKING:
    import pandas as pd

MEASURES = {"absolute": "mean |attribution|", "variance": "variance of the attribution"}


@dataclass(frozen=True, eq=False, repr=False)
class Importance(Result):
    """Importance over ``n_rows`` rows: its expectation ``values`` (d,) and ``std`` (d,).

    ``by`` names the measure, and so does ``measure``, in words: ``"absolute"`` for the mean
    |attribution|, ``"variance"`` for the variance of the attribution over the rows, in squared
    units. ``samples`` (s, d) are draws of it. ``quantity`` names the explained quantity,
    ``baseline_name`` the baseline of attributions, and ``attribution`` their kind. ``groups`` names
    the features whose attributions were added up.

    The expectation of |attribution| contains its uncertainty: a feature without effect still has a
    positive importance if the model is uncertain about it. The mean of |``Explanation.values``|
    does not contain it, and is smaller. It is the same for the variance, of which only what rows
    do not share counts: a shift of all attributions of a feature leaves it unchanged.

    ``values`` are exact and of all rows. The draws are joint ones of all rows and features where
    these are at most 3000 numbers. Beyond that:

    - Each feature is drawn by itself, from its exact covariance between rows. The correlation of
      different features is copied, rank by rank, from joint draws of as many rows
      as make 1500 numbers; of more than 1500 features they are independent.
    - Of more than 300 rows (3000/d where that is more, fewer where there are hundreds of features
      or many baselines, but at least 40) a random sample is drawn: ``n_joint_rows`` of them.
      ``samples`` are then ``values`` plus the deviation of the sample's importance from its own
      expectation, scaled from the variance v over s rows to that over all n. For the mean
      |attribution| this is c(1 − 1/n) + u/n with c = (v − u/s)/(1 − 1/s), where u is the mean
      variance of one row's |attribution|, and c the mean covariance of two rows', at least v/100.
      For the variance it is an unbiased estimate for a quadratic form; ``values`` are then
      estimates too, of which only the mean covariance of two rows comes from the sample. Estimates
      are corrected by the means over all rows of the expectation and variance of each row.

    ``std`` is the standard deviation of ``samples``, or of their exact distribution where it is
    known (``by="variance"``), or estimated as above. ``std_error`` (d,) is its standard error,
    which the choice of rows and the number of draws leave, zero where it is exact; ``error`` (d,)
    is the same for ``values``. A few rows far from all others may be missing in the sample; errors
    are then large, or, rarely, too small.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> importance = explainer.importance(X)
    >>> importance.feature_names, importance.values.round(1)
    (('x0', 'x1'), array([0.8, 0.7]))
    >>> importance.to_frame().columns.tolist()
    ['importance', 'std', 'lower', 'upper']
    """

    DIMENSIONS = FrozenMapping(
        dict.fromkeys(("values", "std", "std_error", "error"), ("feature",)),
        samples=("draw", "feature"),
    )

    values: FloatArray
    samples: FloatArray
    feature_names: Names
    n_rows: int
    n_joint_rows: int
    std: FloatArray
    std_error: FloatArray
    error: FloatArray
    by: str = "absolute"
    groups: Mapping[str, Names] | None = None
    quantity: str = "prediction"
    baseline_name: str = ""
    attribution: str = INTEGRATED_GRADIENTS

    @property
    def measure(self) -> str:
        """The name of the measure: "mean |attribution|" or "variance of the attribution"."""
        return MEASURES[self.by]

    @property
    def note(self) -> str:
        """A note if the intervals do not come from all rows: "spread from 300 of 20,000 rows"."""
        return (
            ""
            if self.n_joint_rows == self.n_rows
            else f"spread from {self.n_joint_rows} of {self.n_rows:,} rows"
        )

    @property
    def groups_note(self) -> str:
        """A note of the features added up, "" if there are none: "acidity = pH + citric acid"."""
        parts = (self.groups or {}).items()
        return "; ".join(f"{name} = {' + '.join(features)}" for name, features in parts)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends, each (d,), of the central credible interval."""
        tail = 0.5 * (1.0 - check_level(level))
        lower, upper = np.quantile(self.samples, [tail, 1.0 - tail], axis=0)
        return lower, upper

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per feature or group, most important first."""
        import pandas as pd

        lower, upper = self.interval(level)
        columns = {"importance": self.values, "std": self.std, "lower": lower, "upper": upper}
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.sort_values("importance", ascending=False)

    def _heading(self) -> list[str]:
        kind = f" ({remark(self.attribution)})" if remark(self.attribution) else ""
        rows = f"{kind} over {counted(self.n_rows, 'row')} ± one standard deviation"
        note = f" ({self.note})" if self.note else ""
        return [f"Importance: expected {self.measure}{rows}{note}"]

    def _notes(self) -> list[str]:
        """Return one line for each feature, and the groups."""
        largest = float(self.values.max(initial=0.0))
        sizes, spreads = (readable_all(part, largest=largest) for part in (self.values, self.std))
        width, wide = max(map(len, self.feature_names)), max(map(len, sizes))
        lines = [
            f"{self.feature_names[i]:<{width}}  {sizes[i]:>{wide}} ± {spreads[i]}"
            for i in np.argsort(-self.values, kind="stable")
        ]
        return [*lines, *([f"({self.groups_note})"] if self.groups else [])]
