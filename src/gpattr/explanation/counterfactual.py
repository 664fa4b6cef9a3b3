"""Counterfactual: the smallest change of a row that brings its prediction past a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

from gpattr._core.frozen import Frozen, FrozenMapping
from gpattr._core.normal import check_level
from gpattr._core.validation import Names
from gpattr.distributions.marginals import Marginals
from gpattr.explanation import counterfactual_export
from gpattr.explanation.explanation import Explanation

if TYPE_CHECKING:
    import pandas as pd

AT_LEAST, AT_MOST = "at_least", "at_most"


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual(Frozen):
    """A changed row at which the prediction passes a target with a given probability.

    The condition is P(f ≥ ``target``) ≥ ``level``, or P(f ≤ ``target``) if ``direction`` is
    ``"at_most"``, for the latent function f, free of noise; with ``output="probability"`` the
    target is a class probability. ``found`` says whether it is met. If it is not, this is the
    change with the highest probability that was found.

    ``changes`` are {feature: (old, new)} of the features that change, ``steps`` the same in
    standard units, of which ``distance`` is the length; a change of category is one unit.
    ``probability`` is that of the condition at the new row, ``probability_before`` that at the old
    one. ``means`` and ``stds``, (2,), are those of f before and after, and ``marginals`` its
    distributions if these are mixtures; ``predictions`` (2,) are the predictions. ``explanation``
    attributes the change of the prediction to the features: the new row is explained with the old
    one as its baseline.

    ``alternatives`` has, by number of features, the nearest change with that many, as far as more
    features bring it closer; this one is among them.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> found = explainer.counterfactual([0.0, 0.0], target=1.0)
    >>> {name: round(new, 1) for name, (old, new) in found.changes.items()}
    {'x0': 1.0}
    >>> found.probability >= 0.95
    True
    """

    found: bool
    changes: Mapping[str, tuple[Any, Any]]
    steps: Mapping[str, float]
    distance: float
    target: float
    level: float
    direction: str
    probability: float
    probability_before: float
    means: np.ndarray
    stds: np.ndarray
    predictions: np.ndarray
    explanation: Explanation
    feature_names: Names
    features: Names
    quantity: str
    output: str
    _rows: Any
    alternatives: tuple[Counterfactual, ...] = ()
    marginals: Marginals | None = None

    def __post_init__(self) -> None:
        for name in ("changes", "steps"):
            object.__setattr__(self, name, FrozenMapping(vars(self)[name]))

    @property
    def x(self) -> Any:
        """The row as it is: a frame with one row, or an array (d,) where there are no names."""
        return self._row(0)

    @property
    def counterfactual(self) -> Any:
        """The changed row, of the same kind as ``x``."""
        return self._row(1)

    @property
    def prediction(self) -> float:
        """The prediction at the changed row."""
        return float(self.predictions[1])

    @property
    def prediction_before(self) -> float:
        """The prediction at the row as it is."""
        return float(self.predictions[0])

    @property
    def interval_level(self) -> float:
        """The level of intervals that leave 1 − ``level`` on either side, as the condition does.

        One end of such an interval touches the target after the change of least length. It is 0.95
        for a ``level`` of ½ or below.
        """
        return 2.0 * self.level - 1.0 if self.level > 0.5 else 0.95

    @property
    def n_changed(self) -> int:
        """The number of features that change."""
        return len(self.changes)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the central credible interval of the prediction at the changed row."""
        lower, upper = self.intervals(level)[1]
        return float(lower), float(upper)

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Return the central credible intervals before and after, (2, 2), lower ends first."""
        tail = 0.5 * (1.0 - check_level(level))
        half = -ndtri(tail) * self.stds
        ends = np.column_stack([self.means - half, self.means + half])
        if self.marginals is not None:
            ends = np.column_stack(
                [self.marginals.quantile(tail), self.marginals.quantile(1.0 - tail)]
            )
        return expit(ends) if self.output == "probability" else ends

    def to_frame(self) -> pd.DataFrame:
        """Return one line for each feature that changes, the largest change first.

        Its columns are old, new, standard_units and, if features are explained one by one, the
        attribution of the change and its std.
        """
        return counterfactual_export.to_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return its facts as JSON values, those of the alternatives among them."""
        return counterfactual_export.to_dict(self)

    def plot(self, **options: Any) -> np.ndarray:
        """Draw the changes and the prediction, as `gpattr.plots.counterfactual` does."""
        from gpattr import plots

        return plots.counterfactual(self, **options)

    def __repr__(self) -> str:
        return counterfactual_export.plain(self)

    def _repr_html_(self) -> str:
        return counterfactual_export.html(self)

    def _row(self, i: int) -> Any:
        rows = self._rows
        return rows[i] if isinstance(rows, np.ndarray) else rows.iloc[[i]].copy()
