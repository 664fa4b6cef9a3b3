"""Counterfactual: the smallest change of a row that brings its prediction past a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

from gpattr._core.frozen import FrozenMapping
from gpattr._core.normal import check_level
from gpattr._core.readable_numbers import readable
from gpattr._core.validation import Names
from gpattr.distributions.marginals import Marginals
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.result import SHOWN, Result, Table

if TYPE_CHECKING:
    import pandas as pd

AT_LEAST, AT_MOST = "at_least", "at_most"


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual(Result):
    """A changed row at which the prediction passes a target with a given probability.

    The condition is P(f ≥ ``target``) ≥ ``level``, or P(f ≤ ``target``) if ``direction`` is
    ``"at_most"``, for the latent function f, free of noise; with ``output="probability"`` the
    target is a class probability. ``found`` says whether it is met. If it is not, this is the
    change with the highest probability that was found.

    ``changes`` are {feature: (old, new)} of the features that change, ``steps`` the same in
    standard units, of which ``distance`` is the length; a change of category is one unit.
    ``probability`` is the condition's probability at the new row, ``probability_before`` at the old
    one. ``means`` and ``stds``, (2,), are the moments of f before and after, and ``marginals`` its
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
            self._set(name, FrozenMapping(vars(self)[name]))

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
        import pandas as pd

        names, known = order(self), attributions(self)
        columns: dict[str, Any] = {
            "old": [self.changes[name][0] for name in names],
            "new": [self.changes[name][1] for name in names],
            "standard_units": [self.steps[name] for name in names],
        }
        if all(name in known for name in names):
            columns["attribution"] = [known[name][0] for name in names]
            if self.explanation.std is not None:
                columns["std"] = [known[name][1] for name in names]
        return pd.DataFrame(columns, index=pd.Index(names, name="feature"))

    def to_dict(self) -> dict[str, Any]:
        """Return the facts of the counterfactual and of its alternatives as JSON values."""
        return self._facts() | {"alternatives": [one._facts() for one in self.alternatives]}

    def plot(self, **options: Any) -> np.ndarray:
        """Draw the changes and the prediction, as `gpattr.plots.counterfactual` does."""
        from gpattr import plots

        return plots.counterfactual(self, **options)

    def _row(self, i: int) -> Any:
        rows = self._rows
        return rows[i] if isinstance(rows, np.ndarray) else rows.iloc[[i]].copy()

    def _facts(self) -> dict[str, Any]:
        known, (before, after) = attributions(self), self.intervals()
        return {
            "found": self.found,
            "quantity": self.quantity,
            "output": self.output,
            "direction": self.direction,
            "target": self.target,
            "level": self.level,
            "probability": self.probability,
            "probability_before": self.probability_before,
            "prediction": self.prediction,
            "prediction_before": self.prediction_before,
            "interval": after.tolist(),
            "interval_before": before.tolist(),
            "interval_level": 0.95,
            "distance": self.distance,
            "features": list(self.features),
            "changes": [
                {
                    "feature": name,
                    "old": _plain(self.changes[name][0]),
                    "new": _plain(self.changes[name][1]),
                    "standard_units": self.steps[name],
                    "attribution": known.get(name, (None, None))[0],
                    "std": known.get(name, (None, None))[1],
                }
                for name in order(self)
            ],
        }

    def _heading(self) -> list[str]:
        return heading(self)

    def _table(self) -> Table | None:
        if not self.changes:
            return None
        known, names = attributions(self), order(self)
        explained = all(name in known for name in names)
        header = ["feature", "from", "to", "standard units"] + ["attribution"] * explained
        lines = []
        for name in names[:SHOWN]:
            old, new = self.changes[name]
            line = [name, shown(old), shown(new), readable(self.steps[name], 3, sign="+")]
            if explained:
                value, std = known[name]
                spread = "" if std is None else f" ± {readable(std, 3)}"
                line.append(readable(value, sign="+") + spread)
            lines.append(line)
        return header, lines

    def _notes(self) -> list[str]:
        notes = [f"and {self.n_changed - SHOWN} more"] if self.n_changed > SHOWN else []
        ends = self.intervals(self.interval_level)
        before, after = (
            f"{readable(value)} [{readable(low)}, {readable(high)}]"
            for value, (low, high) in zip(self.predictions, ends, strict=True)
        )
        sign = "≥" if self.direction == "at_least" else "≤"
        chances = f"P({sign} {readable(self.target)})"
        if not self.changes:
            notes.append(f"prediction {before}, {chances} {_share(self.probability_before)}")
            return notes
        level = readable(100.0 * self.interval_level)
        notes.append(f"prediction {before} → {after} ({level} % intervals)")
        notes.append(f"{chances} {_share(self.probability_before)} → {_share(self.probability)}")
        others = [
            f"{one.n_changed} feature{'s' * (one.n_changed != 1)}, {readable(one.distance, 3)}"
            for one in self.alternatives
            if one.n_changed != self.n_changed
        ]
        return [*notes, *([f"alternatives: {'; '.join(others)}"] if others else [])]


def heading(result: Counterfactual) -> list[str]:
    """Return lines of text that state the question and the result."""
    if not result.found:
        return [
            f"No counterfactual found: {condition(result)} is not reached by changing"
            f" {_listed(result.features)} within bounds",
            f"the highest probability found is {_share(result.probability)},"
            + (f" {_length(result.distance)} away" if result.changes else " at x"),
        ]
    if not result.changes:
        return [f"Counterfactual: {condition(result)} holds for the row as it is"]
    count = f"{result.n_changed} of {len(result.feature_names)} features"
    return [
        f"Counterfactual: {condition(result)}",
        f"change of {count}, {_length(result.distance)}",
    ]


def condition(result: Counterfactual) -> str:
    """Return the condition in words: "predicted price at least 200 with probability 0.95"."""
    side = "at least" if result.direction == "at_least" else "at most"
    return f"{result.quantity} {side} {readable(result.target)} with probability {result.level:g}"


def order(result: Counterfactual) -> list[str]:
    """Return the features that change, the largest change first."""
    return sorted(result.changes, key=lambda name: -abs(result.steps[name]))


def shown(value: Any) -> str:
    """Return a value of a feature as text."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    return readable(float(value), 5) if number and not isinstance(value, bool) else str(value)


def attributions(result: Counterfactual) -> dict[str, tuple[float, float | None]]:
    """Return mean and standard deviation of the attributions of the change, by feature."""
    ex = result.explanation
    std = [None] * ex.shape[1] if ex.std is None else ex.std[0].tolist()
    return dict(zip(ex.feature_names, zip(ex.values[0].tolist(), std, strict=True), strict=True))


def _plain(value: Any) -> Any:
    """Return a value of a feature as a JSON value."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def _length(distance: float) -> str:
    text = readable(distance)
    return f"{text} standard unit" + "s" * (text != "1")


def _share(probability: float) -> str:
    """Return a probability; the last digits count near 0 and 1."""
    near = min(probability, 1.0 - probability)
    if near and near < 1e-3:
        return f"{'' if probability < 0.5 else '1 − '}{near:.1e}"
    return f"{probability:.3f}"


def _listed(names: tuple[str, ...]) -> str:
    few = list(names[:5])
    if len(names) > 5:
        return ", ".join(few) + f" and {len(names) - 5} more"
    return " and ".join([", ".join(few[:-1]), few[-1]]) if len(few) > 1 else "".join(few)
