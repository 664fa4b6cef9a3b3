"""Global importance: the mean absolute attribution of each feature, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.array import Array
from gpattr._core.normal import check_level
from gpattr._core.readable_numbers import readable_all
from gpattr._core.validation import Names
from gpattr.explanation.attribution_names import INTEGRATED_GRADIENTS, remark

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Importance:
    """Mean |attribution| over ``n_rows`` rows: its expectation ``values`` (d,) and ``std`` (d,).

    ``samples`` (s, d) are draws of it. ``quantity`` says what the features are important to,
    ``baseline_name`` what attributions are compared with, and ``attribution`` what these are.

    The expectation of |attribution| contains its uncertainty: a feature without effect still has a
    positive importance if the model is uncertain about it. The mean of |``Explanation.values``|
    does not contain it, and is smaller.

    ``values`` are exact and of all rows. The draws are joint ones of all rows and features where
    these are at most 3000 numbers. Beyond that:

    - Each feature is drawn by itself, from its exact covariance between rows. The correlation of
      different features is copied, rank by rank, from joint draws of as many rows
      as make 1500 numbers; of more than 1500 features they are independent.
    - Of more than 300 rows (3000/d where that is more, fewer where there are hundreds of features
      or many baselines, but at least 40) a random sample is drawn: ``n_joint_rows`` of them.
      ``samples`` are then ``values`` plus the deviation of the sample's mean from its own
      expectation, scaled from the variance v of a mean over s rows to that of a mean over all n:
      c(1 − 1/n) + u/n with c = (v − u/s)/(1 − 1/s), where u is the mean variance of one row's
      |attribution|, and c the mean covariance of two rows', at least v/100. The sample tells
      ``std`` to about 1/√s of its size.
    """

    values: Array
    samples: Array
    feature_names: Names
    n_rows: int
    n_joint_rows: int
    quantity: str = "prediction"
    baseline_name: str = ""
    attribution: str = INTEGRATED_GRADIENTS

    @property
    def std(self) -> Array:
        """The posterior standard deviation of each importance, (d,)."""
        return self.samples.std(axis=0, ddof=1)

    @property
    def note(self) -> str:
        """A note if the intervals do not come from all rows: "spread from 300 of 20,000 rows"."""
        return (
            ""
            if self.n_joint_rows == self.n_rows
            else f"spread from {self.n_joint_rows} of {self.n_rows:,} rows"
        )

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (d,), of the central credible interval."""
        tail = 0.5 * (1.0 - check_level(level))
        lower, upper = np.quantile(self.samples, [tail, 1.0 - tail], axis=0)
        return lower, upper

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per feature, most important first."""
        import pandas as pd

        lower, upper = self.interval(level)
        columns = {"importance": self.values, "std": self.std, "lower": lower, "upper": upper}
        frame = pd.DataFrame(columns, index=pd.Index(self.feature_names, name="feature"))
        return frame.sort_values("importance", ascending=False)

    def __repr__(self) -> str:
        order, largest = (
            np.argsort(-self.values, kind="stable"),
            float(self.values.max(initial=0.0)),
        )
        sizes, spreads = (
            readable_all(column, largest=largest) for column in (self.values, self.std)
        )
        width, wide = max(map(len, self.feature_names)), max(map(len, sizes))
        lines = [
            f"  {self.feature_names[i]:<{width}}  {sizes[i]:>{wide}} ± {spreads[i]}" for i in order
        ]
        rows = f"{self.n_rows:,} row" + "s" * (self.n_rows != 1)
        kind = f" ({remark(self.attribution)})" if remark(self.attribution) else ""
        head = f"Importance: expected mean |attribution|{kind} over {rows} ± one standard deviation"
        return "\n".join([head + (f" ({self.note})" if self.note else ""), *lines])
