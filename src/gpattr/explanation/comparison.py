"""Comparison: the differences between two explanations of the same rows, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import Frozen
from gpattr._core.normal import check_level, prob_opposite
from gpattr._core.validation import Names
from gpattr.distributions import Gaussian
from gpattr.distributions.base import read_only
from gpattr.exceptions import MissingUncertaintyError
from gpattr.explanation import comparison_export
from gpattr.explanation.explanation import Explanation

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
class Comparison(Frozen):
    """Differences, the ``second`` explanation less the ``first``, of n rows and d features.

    ``distribution`` is that of the differences, normal with their mean and variance. ``dependence``
    says what it rests on, and so does ``assumption``, in words:

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "distribution", self.distribution.numpy())
        if self.covariance is not None:
            object.__setattr__(self, "covariance", read_only(self.covariance))

    @property
    def values(self) -> FloatArray:
        """The mean differences, second less first, (n, d)."""
        return self.distribution.mean

    @property
    def std(self) -> FloatArray | None:
        """The standard deviation of each difference, (n, d)."""
        return None if self.distribution.var is None else np.sqrt(self.distribution.var)

    @property
    def feature_names(self) -> Names:
        """The names of the features."""
        return self.first.feature_names

    @property
    def row_names(self) -> tuple[str | int, ...]:
        """The names of the rows."""
        return self.first.row_names

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and of features, (n, d)."""
        return self.first.shape

    @property
    def assumption(self) -> str:
        """What is assumed of the two explanations together, in words."""
        return ASSUMPTIONS[self.dependence]

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends, each (n, d), of the central credible intervals."""
        return self.distribution.interval(level)

    def prob_positive(self) -> FloatArray:
        """Return P(difference > 0), (n, d): that an attribution has grown."""
        return self.distribution.prob_positive()

    def prob_sign_changed(self) -> FloatArray:
        """Return P(the two attributions have opposite signs), (n, d).

        What is exactly zero has no sign, and so none that changes.
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
        return comparison_export.to_frame(self, level)

    def plot(self, row: int | None = None, **options: Any) -> Axes:
        """Draw one row, as `gpattr.plots.comparison` does."""
        from gpattr import plots

        return plots.comparison(self, row, **options)

    def __repr__(self) -> str:
        return comparison_export.plain(self)

    def _repr_html_(self) -> str:
        return comparison_export.html(self)
