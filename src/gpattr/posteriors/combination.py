"""A weighted sum of independent posteriors, as one output of coregionalised ones is.

f = m + Σ_q c_q g_q:      E[𝒜f] = 𝒜m + Σ_q c_q E[𝒜g_q],      Cov[𝒜f] = Σ_q c_q² Cov[𝒜g_q]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpattr import closed_forms
from gpattr._core.array import Array, namespace
from gpattr._core.validation import Names, as_matrix, as_vector, read_only
from gpattr.closed_forms.means import method_of
from gpattr.exceptions import InvalidInputError
from gpattr.means import Expansion, Mean, Zero
from gpattr.operators import Operator
from gpattr.posteriors.base import TOLERANCE, Attributions, Posterior


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CombinationPosterior(Posterior):
    """f = m + Σ_q c_q g_q for independent Gaussian ``posteriors`` g_q, ``coefficients`` c (q,) and
    a known ``mean`` m.
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
        mean.check_features(posteriors[0].n_features)
        values = {"posteriors": posteriors, "coefficients": read_only(coefficients), "mean": mean}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def like(self) -> Array:
        return self.posteriors[0].like

    @property
    def n_features(self) -> int:
        return self.posteriors[0].n_features

    @property
    def feature_names(self) -> Names | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The columns of the frame the models were trained on."""
        return self.posteriors[0].feature_names

    @property
    def reference_points(
        self,
    ) -> Mapping[str, Array]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Those of the first part: all are trained on the same rows."""
        return self.posteriors[0].reference_points

    @property
    def encoder(self) -> Any:
        """What makes rows of a frame with categories, where the model was trained on one."""
        return getattr(self.posteriors[0], "encoder", None)

    @property
    def training_inputs(self) -> Array | None:
        return self.posteriors[0].training_inputs

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        X = self._rows(X)
        if not (return_std or return_cov):
            return self.mean(X) + self._weigh([part.predict(X) for part in self.posteriors])
        parts = [
            part.predict(X, return_std=return_std and not return_cov, return_cov=return_cov)
            for part in self.posteriors
        ]
        mean, spreads = (
            self.mean(X) + self._weigh([part[0] for part in parts]),
            [part[1] for part in parts],
        )
        if return_cov:
            return mean, self._weigh(spreads, power=2)
        return mean, namespace(mean).sqrt(self._weigh([std**2 for std in spreads], power=2))

    def apply(
        self,
        operator: Operator,
        X: Any,
        *,
        uncertainty: str = "cov",
        method: str = "auto",
        n_steps: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> Attributions:
        X = self._rows(X)
        options: dict[str, Any] = {
            "uncertainty": uncertainty,
            "method": method,
            "n_steps": n_steps,
            "tolerance": tolerance,
        }
        return self.combine(
            [part.apply(operator, X, **options) for part in self.posteriors], operator, X
        )

    def combine(self, parts: Sequence[Attributions], operator: Operator, X: Array) -> Attributions:
        """Return the attributions of f from those of its parts."""
        if not isinstance(parts, (list, tuple)) or [type(part) for part in parts] != [
            Attributions
        ] * len(self.posteriors):
            raise InvalidInputError(
                f"parts: expected the attributions of {len(self.posteriors)} posteriors, got"
                f" {parts!r}"
            )
        known, error = closed_forms.attribute_mean(operator, self.mean, X)
        first = parts[0]
        return Attributions(
            mean=known + self._weigh([part.mean for part in parts]),
            var=None if first.var is None else self._weigh([part.var for part in parts], power=2),
            cov=None if first.cov is None else self._weigh([part.cov for part in parts], power=2),
            error=error + self._weigh([part.error for part in parts], size=True),
            cov_error=(
                None
                if first.cov_error is None
                else self._weigh([part.cov_error for part in parts], power=2)
            ),
            method=" + ".join(
                sorted(
                    {name for part in parts for name in part.method.split(" + ")}
                    | method_of(self.mean)
                )
            ),
        )

    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        X = self._rows(X)
        return self._weigh(
            [part.joint(operator, X, method=method, n_steps=n_steps) for part in self.posteriors],
            power=2,
        )

    def rows_covariance(
        self,
        operator: Operator,
        X: Any,
        gather: Any = None,
        *,
        method: str = "auto",
        n_steps: int | None = None,
    ) -> Array:
        """Return the covariance between rows of each feature, or of each column of ``gather``: Σ_q
        c_q² that of g_q.
        """
        X = self._rows(X)
        parts = (
            part.rows_covariance(operator, X, gather, method=method, n_steps=n_steps)
            for part in self.posteriors
        )
        return sum(
            weight**2 * part for weight, part in zip(self.coefficients.tolist(), parts, strict=True)
        )  # pyright: ignore[reportReturnType]

    def contributions(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return the share of each training row, all its targets together, in each mean
        attribution, (n, d, m).
        """
        X = self._rows(X)
        return self._weigh(
            [
                part.contributions(operator, X, method=method, n_steps=n_steps)
                for part in self.posteriors
            ]
        )

    def _weigh(self, parts: Sequence[Any], *, power: int = 1, size: bool = False) -> Array:
        """Return Σ c_q^power parts_q, or Σ |c_q| parts_q."""
        weights = [(abs(c) if size else c**power) for c in self.coefficients.tolist()]
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))  # pyright: ignore[reportReturnType]

    def _rows(self, X: Any) -> Array:
        return as_matrix(
            "X", X, names=self.feature_names, n_features=self.n_features, like=self.like
        )

    def __repr__(self) -> str:
        return f"CombinationPosterior({len(self.posteriors)} × {self.posteriors[0]!r})"


def known_mean(mean: Any) -> Mean:
    """Return a prior mean without uncertain coefficients; zero for None."""
    mean = Zero() if mean is None else mean
    if not isinstance(mean, Mean):
        raise InvalidInputError(f"mean: expected a gpattr mean or None, got {type(mean).__name__}")
    if isinstance(mean, Expansion) and mean.covariance is not None:
        raise InvalidInputError("mean: expected one with known coefficients")
    return mean
