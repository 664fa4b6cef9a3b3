"""Next measurements: the expected information of each candidate about attributions.

A measurement of f at x* with noise variance τ² leaves an attribution A with the variance s² − Δ²,
whatever its outcome:

    Δ² = c²/(v + τ²),      c = Cov[A, f(x*)],   v = Var f(x*)

For a mixture of models it is an average over outcomes (`possible_outcomes`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import EPS, Array, FloatArray, to_numpy
from gpattr._core.frozen import Frozen, FrozenMapping
from gpattr._core.normal import check_level
from gpattr._core.readable_numbers import readable, readable_all
from gpattr._core.validation import Names, check_count
from gpattr.distributions.base import read_only
from gpattr.explanation import sign_certainty
from gpattr.explanation.possible_outcomes import PossibleOutcomes
from gpattr.explanation.result import (
    INTEGRATED_GRADIENTS,
    SHOWN,
    Result,
    RowNames,
    Table,
    remark,
)

if TYPE_CHECKING:
    import pandas as pd

    from gpattr.posteriors import Posterior

TOGETHER = 4000  # candidates of which one joint covariance is formed: 128 MB
LEVEL = 0.95  # of certainty, in the table
KNOWN = 64 * EPS  # of a variance: what other measurements leave of it below is rounding


@dataclass(frozen=True, eq=False, repr=False)
class NextMeasurement(Result):
    """Effects of one measurement at each of c candidates on attributions at n rows.

    Numbers are exact and known beforehand. For a mixture of models, whose weights the outcome
    changes, they are averages over the outcomes that the models expect, and ``outcomes`` has each
    model's numbers. ``feature`` is the feature whose attributions are meant; for None all d are,
    and arrays that are said to be (n,) or (c, n) here have the features as a last axis.

    ``covariance`` (c, n, k) is between the k attributions and the function at the candidates,
    ``value_variance`` (c,) the variance of the function there, and ``noise`` (c,) the noise
    variance. ``means`` and ``variances`` (n, k) describe the attributions now. ``quantity`` names
    the explained quantity, ``posterior`` and ``points`` are the model and the candidates as it
    takes them.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> measurement = explainer.measure_next([[0.0, 0.0], [3.0, 0.0]], [[2.0, 2.0]])
    >>> measurement.best().positions, measurement.total_reduction.shape
    ((1,), (2,))
    """

    DIMENSIONS = FrozenMapping(
        covariance=("candidate", "row", "feature"),
        value_variance=("candidate",),
        noise=("candidate",),
        means=("row", "feature"),
        variances=("row", "feature"),
    )

    posterior: Posterior
    points: Array
    covariance: FloatArray
    value_variance: FloatArray
    noise: FloatArray
    means: FloatArray
    variances: FloatArray
    feature: str | None
    feature_names: Names
    candidate_names: RowNames
    row_names: RowNames
    quantity: str = "prediction"
    baseline_name: str = ""
    attribution: str = INTEGRATED_GRADIENTS
    outcomes: PossibleOutcomes | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.covariance)

    @cached_property
    def reduction_by_feature(self) -> FloatArray:
        """The reduction of the variance of each attribution, Δ², (c, n, k)."""
        if self.outcomes is not None:
            return read_only(np.minimum(self.outcomes.reductions(), self.variances))
        return read_only(
            reductions(self.covariance, self.value_variance + self.noise, self.variances)
        )

    @property
    def variance_reduction(self) -> FloatArray:
        """The reduction of the variance at each row, (c, n); summed over all k features."""
        return self.reduction_by_feature.sum(axis=2)

    @property
    def total_reduction(self) -> FloatArray:
        """The reduction of the variance, summed over rows and features, (c,)."""
        return self.reduction_by_feature.sum(axis=(1, 2))

    @property
    def values(self) -> FloatArray:
        """The mean of the attributions now, (n,)."""
        return self._shown(self.means)

    @property
    def variance(self) -> FloatArray:
        """The variance of the attributions now, (n,)."""
        return self._shown(self.variances)

    @property
    def std(self) -> FloatArray:
        """The standard deviation of the attributions now, (n,)."""
        return np.sqrt(self.variance)

    @property
    def std_after(self) -> FloatArray:
        """The standard deviation after the measurement, (c, n).

        It does not depend on the outcome; for a mixture it is the root of the mean variance.
        """
        return self._shown(np.sqrt(self.variances - self.reduction_by_feature))

    @property
    def sign_certainty(self) -> FloatArray:
        """The certainty of the sign now, max(P(> 0), P(< 0)), (n,)."""
        if self.outcomes is not None:
            positive = self.outcomes.prob_positive()
            return self._shown(np.maximum(positive, 1.0 - positive))
        return self._shown(sign_certainty.sign_certainty(self.means, np.sqrt(self.variances)))

    @property
    def expected_sign_certainty(self) -> FloatArray:
        """The expected certainty of the sign, averaged over outcomes of the measurement, (c, n)."""
        if self.outcomes is not None:
            return self._shown(self.outcomes.expected_sign_certainty())
        return self._shown(sign_certainty.expected_sign_certainty(*self._moves))

    def prob_settled(self, level: float = 0.95) -> FloatArray:
        """Return the chance that the sign will be certain to more than ``level``, (c, n)."""
        check_level(level)
        if self.outcomes is not None:
            return self._shown(self.outcomes.prob_settled(level))
        return self._shown(sign_certainty.prob_settled(*self._moves, level))

    def best(self, q: int = 1) -> MeasurementBatch:
        """Return q candidates to be measured together, chosen one after the other.

        Each takes the most from the variance, summed over rows and features, that earlier
        candidates leave. No candidate is chosen twice. In a mixture, each model expects its own
        predictions at earlier candidates, and weights stay as they are.
        """
        check_count("q", q, most=len(self))
        if self.outcomes is not None:
            return self._best_of_mixture(q)
        cov, var, left = self.covariance, self.value_variance, self.variances
        loads, chosen, gains = np.empty((0, len(self))), [], []
        between = self._between if q > 1 else None
        for _ in range(q):
            falls = reductions(cov, var + self.noise, left)
            gain = falls.sum(axis=(1, 2))
            gain[chosen] = -1.0
            best = int(gain.argmax())
            chosen.append(best)
            gains.append(gain[best])
            left = left - falls[best]
            total = var[best] + self.noise[best]
            if between is not None and total > 0:
                load = (between(best) - loads[:, best] @ loads) / np.sqrt(total)
                loads = np.vstack([loads, load])
                # What is left within rounding is known, and covaries with nothing.
                var = var - load**2
                var = np.where(var > KNOWN * self.value_variance, var, 0.0)
                cov = cov - load[:, None, None] * (cov[best] / np.sqrt(total))
                cov = np.where(var[:, None, None] > 0, cov, 0.0)
        names = tuple(self.candidate_names[i] for i in chosen)
        return MeasurementBatch(tuple(chosen), names, np.array(gains), self._shown(np.sqrt(left)))

    def _best_of_mixture(self, q: int) -> MeasurementBatch:
        outcomes, left, chosen, gains = self.outcomes, self.variances, [], []
        assert outcomes is not None
        loads: list[FloatArray] = []
        for _ in range(q):
            falls = np.minimum(outcomes.reductions() if chosen else self.reduction_by_feature, left)
            gain = falls.sum(axis=(1, 2))
            gain[chosen] = -1.0
            best = int(gain.argmax())
            chosen.append(best)
            gains.append(gain[best])
            left = left - falls[best]
            if len(chosen) < q:
                between = self._between_by_model(best)
                for load in loads:
                    between = between - load[:, [best]] * load
                loads.append(between * outcomes.inverse_std(best)[:, None])
                outcomes = outcomes.after(best, between)
        names = tuple(self.candidate_names[i] for i in chosen)
        return MeasurementBatch(tuple(chosen), names, np.array(gains), self._shown(np.sqrt(left)))

    def _between_by_model(self, i: int) -> FloatArray:
        """Return the covariances of the function at one candidate and at all, (K, c)."""
        points = self.points
        return np.stack(
            [
                to_numpy(part.values_covariance(points[[i]], points))[0]
                for _, part in self.posterior.components
            ]
        )

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return one line for each candidate, the largest reduction first.

        Its columns are the reduction of the variance summed over rows and features, its share of
        that variance, the expected certainty of the sign and the chance that it will be above
        ``level``, both averaged over rows and features.
        """
        import pandas as pd

        index = pd.Index(list(self.candidate_names), name="candidate")
        frame = pd.DataFrame(self._columns(level), index=index)
        return frame.sort_values("variance_reduction", ascending=False, kind="stable")

    def plot(self, **options: Any) -> Any:
        """Draw it, as `gpattr.plots.measure_next` does."""
        from gpattr import plots

        return plots.measure_next(self, **options)

    def _columns(self, level: float) -> dict[str, Array]:
        """Return the table's columns, one entry for each candidate, (c,) each."""
        reduction, total = self.total_reduction, self.variances.sum()

        def average(numbers: Array) -> Array:
            return numbers.reshape(len(self), -1).mean(axis=1)

        return {
            "variance_reduction": reduction,
            "share": reduction / total if total > 0 else 0.0 * reduction,
            "expected_sign_certainty": average(self.expected_sign_certainty),
            "prob_settled": average(self.prob_settled(level)),
        }

    def _heading(self) -> list[str]:
        c = len(self)
        baseline = f"baseline: {self.baseline_name}" if self.baseline_name else ""
        kind = "; ".join(filter(None, (remark(self.attribution), baseline)))
        low, high = (readable(level) for level in (self.noise.min(), self.noise.max()))
        noise = f"noise variance {low}" + ("" if low == high else f" to {high}")
        certain = float(np.mean(self.sign_certainty))
        return [
            f"Next measurement of the {self.quantity}: {c:,} candidate{'s' * (c != 1)} for"
            f" {subject(self)}",
            "; ".join(filter(None, (kind, noise))),
            f"variance now {readable(float(self.variances.sum()))}, sign certain to {certain:.3f}"
            + (" on average" if self.means.size != 1 else ""),
        ]

    def _table(self) -> Table:
        of = self._columns(LEVEL)
        order = np.argsort(-of["variance_reduction"], kind="stable")[:SHOWN]
        header = ["candidate", "reduction", "share", "sign then", f"P(sign > {LEVEL:g})"]
        sizes = readable_all(of["variance_reduction"][order])
        return header, [
            [
                str(self.candidate_names[i]),
                size,
                f"{of['share'][i]:.1%}",
                f"{of['expected_sign_certainty'][i]:.3f}",
                f"{of['prob_settled'][i]:.3f}",
            ]
            for i, size in zip(order, sizes, strict=True)
        ]

    def _notes(self) -> list[str]:
        hidden = len(self) - SHOWN
        return [f"… and {hidden:,} smaller"] if hidden > 0 else []

    @property
    def _between(self) -> Callable[[int], Array]:
        """The covariances of the function at one candidate and at all, (c,), by position."""
        covariance, points = self.posterior.values_covariance, self.points
        if len(self) <= TOGETHER:
            return to_numpy(covariance(points, points)).__getitem__
        return lambda i: to_numpy(covariance(points[[i]], points))[0]

    @property
    def _moves(self) -> tuple[Array, Array, Array]:
        """The attributions' means and standard deviations, and Δ."""
        return self.means, np.sqrt(self.variances), np.sqrt(self.reduction_by_feature)

    def _shown(self, numbers: Array) -> Array:
        """Return numbers without their last axis where they are of one feature."""
        return numbers if self.feature is None else numbers[..., 0]


@dataclass(frozen=True, eq=False)
class MeasurementBatch(Frozen):
    """Candidates to be measured together: their ``positions`` and ``names``, best first.

    ``variance_reduction`` (q,) is what each takes from the variance, summed over rows and features,
    beyond those before it; ``std_after`` (n,) is the standard deviation of the attributions after
    all q, with the features as a last axis if all are meant.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> explainer = gpattr.Explainer(model, baseline="zeros")
    >>> measurement = explainer.measure_next([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]], [[2.0, 2.0]])
    >>> measurement.best(2).positions
    (1, 2)
    """

    positions: tuple[int, ...]
    names: RowNames
    variance_reduction: FloatArray
    std_after: FloatArray = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("variance_reduction", "std_after"):
            object.__setattr__(self, name, read_only(getattr(self, name)))


def subject(found: NextMeasurement) -> str:
    """Return whose variance it is: "the attribution of bmi at 3 rows"."""
    n, d = len(found.row_names), len(found.feature_names)
    what = f"of {found.feature}" if found.feature is not None else f"of {d} features"
    plural = "s" * (n * (1 if found.feature is not None else d) != 1)
    name = found.row_names[0]
    rows = f"{n:,} rows" if n > 1 else f"row {name}" if isinstance(name, int) else name
    return f"the attribution{plural} {what} at {rows}"


def reductions(covariance: Array, total: Array, variance: Array) -> Array:
    """Return Δ² = c²/(v + τ²), (c, n, k), for ``total`` v + τ², (c,), and variances s², (n, k).

    It is no more than s², and 0 where v + τ² is: a known value tells nothing new.
    """
    scale = np.divide(1.0, np.sqrt(total), out=np.zeros_like(total), where=total > 0)
    return np.minimum((covariance * scale[:, None, None]) ** 2, variance)
