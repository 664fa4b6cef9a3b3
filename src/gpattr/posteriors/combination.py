"""A weighted sum of independent posteriors, as one output of coregionalised ones is.

f = m + Σ_q c_q g_q:      E[𝒜f] = 𝒜m + Σ_q c_q E[𝒜g_q],      Cov[𝒜f] = Σ_q c_q² Cov[𝒜g_q]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.validation import as_vector, read_only
from gpattr.closed_forms.resolution import mean_formulas_for
from gpattr.closed_forms.table import MeanFormulas
from gpattr.closed_forms.verbs import apply_to_mean, weighted_mean
from gpattr.distributions import Gaussian
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.means import Expansion, Mean, Zero
from gpattr.operators import Gradient, Operator
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.bound import Attributions, Bound, Evaluation


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CombinationPosterior(Posterior):
    """f = m + Σ_q c_q g_q of independent Gaussian ``posteriors`` g_q with ``coefficients`` c (q,).

    The ``mean`` m is known.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor(hyperparameters="optimal").fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> doubled = gpattr.posteriors.CombinationPosterior([model.posterior_], [2.0])
    >>> doubled.predict([[1.0, 0.0]]).round(2)
    array([2.])
    """

    posteriors: tuple[Posterior, ...]
    coefficients: Array
    mean: Mean

    def __init__(
        self, posteriors: Sequence[Posterior], coefficients: Any, *, mean: Mean | None = None
    ) -> None:
        mean = known_mean(mean)
        posteriors = tuple(posteriors) if isinstance(posteriors, Sequence) else ()
        if not posteriors or not all(
            isinstance(part, Posterior) and len(part.components) == 1 for part in posteriors
        ):
            raise InvalidInputError(
                "posteriors: expected at least one Gaussian gpattr posterior, and nothing else"
            )
        for part in posteriors:
            if (part.n_features, part.feature_names) != (
                posteriors[0].n_features,
                posteriors[0].feature_names,
            ):
                raise InvalidInputError("posteriors: expected models of the same features")
        coefficients = as_vector(
            "coefficients", coefficients, length=len(posteriors), unit="numbers (one per posterior)"
        )
        mean.check_features(posteriors[0].n_columns)
        values = {
            "posteriors": posteriors,
            "coefficients": read_only(coefficients),
            "mean": mean,
            "feature_names": posteriors[0].feature_names,
            "encoder": posteriors[0].encoder,
            "note": posteriors[0].note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def like(self) -> Array:
        return self.posteriors[0].like

    @property
    def n_features(self) -> int:
        return self.posteriors[0].n_features

    @property
    def n_columns(self) -> int:
        return self.posteriors[0].n_columns

    @property
    def in_columns(self) -> Posterior:
        if self.encoder is None:
            return self
        parts = [part.in_columns for part in self.posteriors]
        return CombinationPosterior(parts, self.coefficients, mean=self.mean)

    @property
    def inner(self) -> tuple[Posterior, ...]:
        return self.posteriors

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The first part's points: all parts are trained on the same rows."""
        return self.posteriors[0].reference_points

    @property
    def training_inputs(self) -> Array | None:
        return self.posteriors[0].training_inputs

    def rows(self, name: str, X: Any) -> Array:
        return self.posteriors[0].rows(name, X)

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        if not (return_std or return_cov):
            return self.mean(X) + self.weigh([part.moments(X) for part in self.posteriors])
        std = return_std and not return_cov
        parts = [part.moments(X, return_std=std, return_cov=return_cov) for part in self.posteriors]
        mean = self.mean(X) + self.weigh([part[0] for part in parts])
        if return_cov:
            return mean, self.weigh([part[1] for part in parts], power=2)
        variance = self.weigh([part[1] ** 2 for part in parts], power=2)
        return mean, namespace(mean).sqrt(variance)

    def require_jets(self) -> None:
        for part in self.posteriors:
            part.require_jets()

    def path_lengths(self, start: Array, stop: Array) -> Array:
        lengths = [part.path_lengths(start, stop) for part in self.posteriors]
        return reduce(namespace(lengths[0]).maximum, lengths)

    def slopes(self, X: Array) -> tuple[np.ndarray, ...]:
        parts = [part.slopes(X) for part in self.posteriors]
        mean, var, gradient, cov = (
            self.weigh([part[i] for part in parts], power=1 + i % 2) for i in range(4)
        )
        slope = to_numpy(apply_to_mean(Gradient(), self.mean, X).value)
        return mean + to_numpy(self.mean(X)), var, gradient + slope, cov

    def rounding_of_variance(self, X: Array) -> Array:
        return self.weigh([part.rounding_of_variance(X) for part in self.posteriors], power=2)

    @property
    def noise_variance(self) -> float | None:
        """The only part's noise variance, in the units of f; None where there are several."""
        inner = self.posteriors[0].noise_variance if len(self.posteriors) == 1 else None
        return None if inner is None else float(self.coefficients[0]) ** 2 * inner

    def values_variance(self, X: Array) -> Array:
        return self.weigh([part.values_variance(X) for part in self.posteriors], power=2)

    def values_covariance(self, X: Array, points: Array) -> Array:
        parts = [part.values_covariance(X, points) for part in self.posteriors]
        return self.weigh(parts, power=2)

    def conditioned(self, X: Array, y: Array, noise: Any) -> CombinationPosterior:
        """Return it given more measurements, for one part: (y − m)/c is measured of it."""
        if len(self.posteriors) != 1:
            raise UnsupportedModelError(
                f"CombinationPosterior: a measurement of a sum makes its {len(self.posteriors)}"
                " parts dependent, which are independent here"
            )
        c = float(self.coefficients[0])
        if c == 0:
            raise UnsupportedModelError(
                "CombinationPosterior: with the coefficient 0 a measurement says nothing about its"
                " part"
            )
        inner = None if noise is None else noise / c**2
        part = self.posteriors[0].conditioned(X, (y - self.mean(X)) / c, inner)
        return CombinationPosterior([part], self.coefficients, mean=self.mean)

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        return self.bind_to([part.bind(operator, evaluation) for part in self.posteriors])

    def bind_to(self, parts: Sequence[Bound]) -> CombinationBound:
        """Return an operator bound to this posterior, given the same bound to its parts."""
        if not isinstance(parts, (list, tuple)) or len(parts) != len(self.posteriors):
            raise InvalidInputError(
                f"parts: expected {len(self.posteriors)} bound operators, got {parts!r}"
            )
        first = parts[0]
        known = mean_formulas_for(first.operator, self.mean, first.evaluation.method)
        return CombinationBound(self, tuple(parts), first.operator, first.evaluation, known)

    def weigh(self, parts: Sequence[Any], *, power: int = 1, size: bool = False) -> Array:
        """Return Σ c_q^power parts_q, or Σ |c_q| parts_q."""
        weights = [(abs(c) if size else c**power) for c in self.coefficients.tolist()]
        return reduce(add, (weight * part for weight, part in zip(weights, parts, strict=True)))

    def __repr__(self) -> str:
        return f"CombinationPosterior({len(self.posteriors)} × {self.posteriors[0]!r})"


@dataclass(frozen=True, eq=False)
class CombinationBound(Bound):
    """An operator bound to a `CombinationPosterior`: to its ``parts``, and to its mean."""

    posterior: CombinationPosterior
    parts: tuple[Bound, ...]
    operator: Operator
    evaluation: Evaluation
    mean_formulas: MeanFormulas | None

    def rows(self, rows: Any) -> CombinationBound:
        parts = tuple(part.rows(rows) for part in self.parts)
        return replace(self, parts=parts, operator=self.operator.rows(rows))

    def apply(self, X: Array) -> Attributions:
        return self.combine([part.apply(X) for part in self.parts], X)

    def combine(self, parts: Sequence[Attributions], X: Array) -> Attributions:
        """Return the attributions of f from its parts' attributions."""
        weigh, first = self.posterior.weigh, parts[0]
        mean = weigh([part.mean for part in parts])
        error = weigh([part.error for part in parts], size=True)
        names = {name for part in parts for name in part.method.split(" + ")}
        if self.mean_formulas is not None:
            known, bound = weighted_mean(self.mean_formulas, self.operator, X)
            encoder = self.posterior.encoder
            if encoder is not None:
                G = self.operator.gather(namespace(X).asarray(encoder.gathering))
                known, bound = known @ G, bound * float(abs(G).sum(axis=0).max())
            mean, error = known + mean, bound + error
            names |= self.mean_formulas.methods
        distribution = Gaussian(
            mean + 0.0,
            None if first.var is None else weigh([part.var for part in parts], power=2),
            None if first.cov is None else weigh([part.cov for part in parts], power=2),
        )
        cov_error = None
        if first.cov_error is not None:
            cov_error = weigh([part.cov_error for part in parts], power=2)
        return Attributions(distribution, error, " + ".join(sorted(names)), cov_error)

    def joint(self, X: Array) -> Array:
        return self.posterior.weigh([part.joint(X) for part in self.parts], power=2)

    def rows_covariance(self, X: Array, gather: Any = None) -> Array:
        parts = (part.rows_covariance(X, gather) for part in self.parts)
        weights = self.posterior.coefficients.tolist()
        return reduce(add, (c**2 * part for c, part in zip(weights, parts, strict=True)))

    def covariance_with_values(self, X: Array, candidates: Array, gather: Any = None) -> Array:
        parts = [part.covariance_with_values(X, candidates, gather) for part in self.parts]
        return self.posterior.weigh(parts, power=2)

    def contributions(self, X: Array) -> Array:
        """Return the share of each training row, all its targets together, in each mean."""
        return self.posterior.weigh([part.contributions(X) for part in self.parts])


def known_mean(mean: Any) -> Mean:
    """Return a prior mean without uncertain coefficients; zero for None."""
    mean = Zero() if mean is None else mean
    if not isinstance(mean, Mean):
        raise InvalidInputError(f"mean: expected a gpattr mean or None, got {type(mean).__name__}")
    if isinstance(mean, Expansion) and mean.covariance is not None:
        raise InvalidInputError("mean: expected one with known coefficients")
    return mean
