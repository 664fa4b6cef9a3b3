"""Comparison: the differences between two explanations of the same rows, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import FrozenMapping
from gpattr._core.normal import check_level, prob_opposite
from gpattr._core.readable_numbers import readable_all
from gpattr._core.validation import Names
from gpattr.distributions import Gaussian
from gpattr.exceptions import MissingUncertaintyError
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.result import (
    SHOWN,
    Forwarded,
    JointResult,
    RowNames,
    Table,
    counted,
    long_frame,
    spread,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

INDEPENDENT, EXACT, UNKNOWN, KNOWN = "independent", "exact", "unknown", "known"
# What is assumed of the two together, in words.
ASSUMPTIONS = {
    INDEPENDENT: "the two are taken as independent, as those of separate models: variances add",
    EXACT: "both are of one function: exact, with the covariance between the two",
    UNKNOWN: "both seem to be of one function, and the covariance between the two is not known:"
    " standard deviations are upper bounds, and probabilities that a sign changed lower bounds",
    KNOWN: "both are known without uncertainty, and so are their differences",
}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(JointResult):
    """Differences, the ``second`` explanation less the ``first``, of n rows and d features.

    ``distribution`` is the differences' distribution, normal with their mean and variance.
    ``dependence`` names the assumption, and so does ``assumption``, in words:

    - ``"independent"``: the explanations are of separate models. Variances add.
    - ``"exact"``: both are of the same function, at two baselines, and ``covariance`` (n, d) is the
      covariance between the two attributions of each feature.
    - ``"unknown"``: both are of the same function, but only the explanations are known. The
      standard deviation of a difference is at most the sum of the two, which is the one given; the
      probability that a sign changed is at least |P₁(> 0) − P₂(> 0)|, which is the one given.
    - ``"known"``: both are of a quantity of a model, such as its standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> mean, zeros = gpattr.Explainer(model), gpattr.Explainer(model, baseline="zeros")
    >>> comparison = gpattr.compare(mean, zeros, [[1.0, 1.0]])
    >>> comparison.dependence, comparison.values.shape
    ('exact', (1, 2))
    """

    first: Explanation
    second: Explanation
    distribution: Gaussian
    dependence: str
    covariance: FloatArray | None = None

    DIMENSIONS = FrozenMapping(covariance=("row", "feature"))
    feature_names = Forwarded[Names]("first.feature_names", "The names of the features.")
    row_names = Forwarded[RowNames]("first.row_names", "The names of the rows.")
    shape = Forwarded[tuple[int, ...]]("first.shape", "The number of rows and of features, (n, d).")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("distribution", self.distribution.numpy())

    @property
    def assumption(self) -> str:
        """The assumption about the two explanations together, in words."""
        return ASSUMPTIONS[self.dependence]

    def prob_sign_changed(self) -> FloatArray:
        """Return P(the two attributions have opposite signs), (n, d).

        An exact zero has no sign, and so none that changes.
        """
        one, two = self.first, self.second
        if one.var is None or two.var is None:
            raise MissingUncertaintyError(
                "prob_sign_changed: needs the uncertainty of both explanations; ask for it with"
                ' uncertainty="std"'
            )
        positive, then = one.prob_positive(), two.prob_positive()
        zero = (one.values == 0) & (one.var == 0) | (two.values == 0) & (two.var == 0)
        if self.dependence == UNKNOWN:
            chance = np.abs(positive - then)
        elif self.covariance is None:
            chance = positive * (1.0 - then) + (1.0 - positive) * then
        else:
            pairs = (one.values, one.var), (two.values, two.var)
            chance = prob_opposite(*pairs[0], *pairs[1], self.covariance)
        return np.where(zero, 0.0, np.clip(chance, 0.0, 1.0))

    def sign_changed(self, level: float = 0.95) -> Array:
        """Return where a sign changed with a probability of ``level`` or more, (n, d).

        Without uncertainty, it is where the signs of the values differ.
        """
        check_level(level)
        if self.first.var is None or self.second.var is None:
            return self.first.values * self.second.values < 0
        return self.prob_sign_changed() >= level

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line per row and feature.

        Its columns are row, feature, first, second, difference and, if known, std, lower, upper and
        prob_sign_changed; and sign_changed.
        """
        changed = self.sign_changed(level)
        columns = {"first": self.first.values, "second": self.second.values}
        columns |= {"difference": self.values} | spread(self, level)
        if self.std is not None:
            columns["prob_sign_changed"] = self.prob_sign_changed()
        columns["sign_changed"] = changed
        return long_frame({"row": self.row_names, "feature": self.feature_names}, columns)

    def plot(self, row: int | None = None, **options: Any) -> Axes:
        """Draw one row, as `gpattr.plots.comparison` does."""
        from gpattr import plots

        return plots.comparison(self, row, **options)

    def _heading(self) -> list[str]:
        n, d = self.shape
        first, second = self.first, self.second
        what = "" if first.quantity == "prediction" else f" of the {first.quantity}"
        size = f"{counted(n, 'row')} × {counted(d, 'feature')}"
        lines = [f"Comparison{what}: {size}, second less first"]
        if first.baseline_name != second.baseline_name:
            lines.append(f"baselines: {first.baseline_name}, then {second.baseline_name}")
        return [*lines, self.assumption]

    def _table(self) -> Table:
        """Return the only row feature by feature, or summaries over rows."""
        values, std = self.values, self.std
        order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:SHOWN]
        names = [self.feature_names[i] for i in order]
        changed = self.sign_changed()[:, order]
        if len(values) == 1:
            header = ["feature", "first", "second", "difference"]
            parts = [self.first.values[0, order], self.second.values[0, order]]
            parts.append(values[0, order])
        else:
            header = ["feature", "mean difference", "mean |difference|"]
            parts = [values.mean(axis=0)[order], np.abs(values).mean(axis=0)[order]]
        if std is not None:
            header.append("std" if len(values) == 1 else "mean std")
            parts.append(std.mean(axis=0)[order])
        largest = max(float(np.abs(part).max(initial=0.0)) for part in parts)
        cells = [readable_all(part, largest=largest) for part in parts]
        if len(values) > 1:
            header.append("signs that changed")
            cells.append([f"{count}" for count in changed.sum(axis=0)])
        elif std is None:
            header.append("sign changed")
            cells.append(["yes" if each else "no" for each in changed[0]])
        else:
            header.append("P(sign changed)")
            cells.append([f"{chance:.3f}" for chance in self.prob_sign_changed()[0, order]])
        return header, [list(line) for line in zip(names, *cells, strict=True)]

    def _notes(self) -> list[str]:
        hidden = self.shape[1] - SHOWN
        notes = [f"and {hidden} more features"] if hidden > 0 else []
        if self.dependence == "unknown":
            notes.append("(gpattr.compare(explainer_a, explainer_b, X) knows it)")
        return notes
