"""Gaussian weights over a finite basis: linear, polynomial, random-feature and Hilbert-space
models.

    f(x) = m(x) + φ(x)ᵀw,     w ~ N(μ, S):      E[𝒜f] = 𝒜m + (𝒜φ)ᵀμ,      Cov[𝒜f, 𝒜'f] = (𝒜φ)ᵀ S (𝒜'φ)

S stays factored, S = RRᵀ or S⁻¹ = LLᵀ: variances are sums of squares, and nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr import closed_forms
from gpattr._core.array import (
    EPS,
    Array,
    is_tensor,
    namespace,
    outer_products,
    product,
    solve_lower_rows,
    to_numpy,
)
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import standard_draws
from gpattr._core.validation import (
    Names,
    as_matrix,
    as_vector,
    beside,
    check_choice,
    check_names,
    positive_scalar,
    read_only,
)
from gpattr.bases import Basis
from gpattr.closed_forms.features import method_name
from gpattr.closed_forms.means import method_of
from gpattr.exceptions import InvalidInputError, NoClosedFormError
from gpattr.means import Mean, Zero
from gpattr.operators import Operator
from gpattr.posteriors.base import (
    TOLERANCE,
    UNCERTAINTY,
    Attributions,
    Posterior,
    covariance,
    gathering,
    require_covariance_room,
    rows_covariance_of,
)
from gpattr.posteriors.matrices import matrix, root_of

WELL_CONDITIONED = 1e3  # where rounding of the weights is no more than that of their sum


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WeightSpacePosterior(Posterior):
    """f(x) = m(x) + φ(x)ᵀw with w ~ N(``weights``, S), over the functions φ of ``basis``.

    S is given as ``covariance`` (p, p), symmetric and positive semi-definite, or by a factor, which
    keeps more digits: ``root`` R (p, r) with S = RRᵀ, or ``precision_factor`` L, lower triangular
    with S⁻¹ = LLᵀ. ``mean`` is a known prior mean. ``feature_names`` are the columns of the frame
    it was trained on, ``reference_points`` points that can serve as baselines, such as ``{"mean": …}`` of
    the training inputs. ``condition`` is the condition number of what the root and the weights were
    computed from: rounding is amplified by it."""

    basis: Basis
    weights: Array
    mean: Mean
    feature_names: Names | None
    reference_points: Mapping[str, Array]
    root: Array | None
    precision_factor: Array | None
    condition: float

    def __init__(
        self,
        basis: Basis,
        weights: Any,
        covariance: Any = None,
        *,
        root: Any = None,
        precision_factor: Any = None,
        mean: Mean | None = None,
        feature_names: Names | None = None,
        reference_points: Mapping[str, Any] | None = None,
        condition: float = 1.0,
    ) -> None:
        positive_scalar("condition", condition)
        if not isinstance(basis, Basis):
            raise InvalidInputError(f"basis: expected a gpattr basis, got {type(basis).__name__}")
        mean = Zero() if mean is None else mean
        if not isinstance(mean, Mean):
            raise InvalidInputError(
                f"mean: expected a gpattr mean or None, got {type(mean).__name__}"
            )
        d, p = basis.n_features, len(basis)
        mean.check_features(d)
        weights = read_only(
            as_vector("weights", weights, length=p, unit="weights (one per function of the basis)")
        )
        if sum(given is not None for given in (covariance, root, precision_factor)) != 1:
            raise InvalidInputError(
                "covariance: expected exactly one of covariance, root and precision_factor"
            )
        factor = None
        if covariance is not None:
            root = namespace(weights).asarray(
                root_of("covariance", to_numpy(matrix("covariance", covariance, p, p)))
            )
        elif root is not None:
            root = beside("root", matrix("root", root, p, None), weights)
        else:
            factor = beside(
                "precision_factor", matrix("precision_factor", precision_factor, p, p), weights
            )
            if not (factor.diagonal() > 0).all() or namespace(factor).triu(factor, 1).any():
                raise InvalidInputError(
                    "precision_factor: expected a lower triangular matrix with a positive diagonal"
                )
            factor = (
                factor if is_tensor(factor) else np.asfortranarray(factor)
            )  # columns are what BLAS reads
        for part in (root, factor):
            if part is not None and not is_tensor(part):
                part.flags.writeable = False
        if reference_points is not None and not isinstance(reference_points, Mapping):
            raise InvalidInputError(
                "reference_points: expected a dictionary {name: point}, got a"
                f" {type(reference_points).__name__}"
            )
        points = {
            name: read_only(as_vector(f"reference_points[{name!r}]", x, length=d))
            for name, x in (reference_points or {}).items()
        }
        names = None if feature_names is None else check_names("feature_names", feature_names, d)
        state: dict[str, Any] = {
            "condition": float(condition),
            "basis": basis,
            "weights": weights,
            "mean": mean,
            "feature_names": names,
            "reference_points": points,
        }
        for name, value in (state | {"root": root, "precision_factor": factor}).items():
            object.__setattr__(self, name, value)

    @property
    def like(self) -> Array:
        return self.weights

    @property
    def n_features(self) -> int:
        return self.basis.n_features

    @property
    def covariance(self) -> Array:
        """The covariance S of the weights, (p, p)."""
        half = self._half(namespace(self.weights).eye(len(self.basis)))
        return covariance(outer_products(half))

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the latent function at X, (n,); with its standard deviation (n,) or
        covariance (n, n) if asked.
        """
        X = self._rows(X)
        xp, n, p = namespace(X), len(X), len(self.basis)
        mean, var = self.mean(X) + 0.0, xp.empty(n)
        half = None
        if return_cov:
            check_memory(
                "The covariance of the predictions",
                (n, max(n, p)),
                "use return_std=True, or fewer rows",
                copies=2,
            )
            half = xp.empty((n, self._rank))
        for rows in blocks(n, 32.0 * p, X):
            values = self.basis(X[rows])
            mean[rows] += product(values, self.weights)
            if half is not None:
                half[rows] = self._half(values)
            elif return_std:
                var[rows] = (self._half(values) ** 2).sum(axis=1)
        if half is not None:
            return mean, covariance(outer_products(half))
        return (mean, xp.sqrt(var)) if return_std else mean

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
        check_choice("uncertainty", uncertainty, UNCERTAINTY)
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        X = self._rows(X)
        xp = namespace(X)
        n, d = X.shape
        p = len(self.basis)
        if method == "exact" and method_of(self.mean):
            raise NoClosedFormError(
                f'method: "exact" was asked for, but the prior mean {type(self.mean).__name__} has'
                " no closed form"
            )
        if uncertainty == "cov":
            require_covariance_room(n, d)
        mean, error = closed_forms.attribute_mean(operator, self.mean, X)
        var = xp.empty((n, d)) if uncertainty != "none" else None
        cov = xp.empty((n, d, d)) if uncertainty == "cov" else None
        cov_error = xp.zeros(n) if uncertainty != "none" else None
        exact = method in ("auto", "exact")
        terms = len(operator.rows(slice(1)).terms(X[:1]))
        formed = var is not None or not exact or self.condition > WELL_CONDITIONED
        length = float((self.weights**2).sum()) ** 0.5
        for rows in blocks(n, 24.0 * p * (d if formed else 1) * min(terms, 2), X):
            part, here = operator.rows(rows), X[rows]
            value, bound = closed_forms.weighted_features(part, self.basis, here, self.weights)
            if formed:
                F = closed_forms.features(part, self.basis, here, **options)  # (r, d, p)
                if not exact:
                    by_rule = product(F, self.weights)
                    value, bound = by_rule, bound + xp.max(abs(by_rule - value), axis=1)
                bound = bound + EPS * self.condition * length * xp.sqrt(
                    xp.max((F * F).sum(axis=2), axis=1)
                )
                if var is not None and cov_error is not None:
                    V = self._half(F.reshape(-1, p)).reshape(*F.shape[:2], -1)
                    if not exact:
                        U = self._half(
                            closed_forms.features(part, self.basis, here).reshape(-1, p)
                        ).reshape(V.shape)
                        lengths = xp.sqrt(xp.max((V * V).sum(axis=2), axis=1)) + xp.sqrt(
                            xp.max((U * U).sum(axis=2), axis=1)
                        )
                        cov_error[rows] = lengths * xp.sqrt(
                            xp.max(((U - V) ** 2).sum(axis=2), axis=1)
                        )
                    if cov is not None:
                        cov[rows] = covariance(outer_products(V))
                        var[rows] = xp.diagonal(cov[rows], axis1=1, axis2=2)
                    else:
                        V *= V
                        var[rows] = V.sum(axis=2)
                    cov_error[rows] += self._rounding * xp.max(var[rows], axis=1)
            mean[rows] += value
            error[rows] += bound
        mean = mean + 0.0  # −0.0 becomes 0.0
        error = error + EPS * xp.max(abs(mean), axis=1)
        names = " + ".join(sorted({method_name(method, n_steps)} | method_of(self.mean)))
        return Attributions(mean, var, cov, error, names, cov_error=cov_error)

    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        X = self._rows(X)
        n, d = X.shape
        p = len(self.basis)
        check_memory(
            "The joint covariance of the attributions",
            (n, d, n, d),
            "use fewer rows, say a random sample",
            copies=2,
        )
        check_memory(
            "The attributions of the basis", (n, d, p), "use fewer rows, say a random sample"
        )
        V = namespace(X).empty((n * d, self._rank))
        for rows in blocks(n, 24.0 * d * p, X):
            F = closed_forms.features(
                operator.rows(rows), self.basis, X[rows], method=method, n_steps=n_steps
            )
            V[rows.start * d : rows.stop * d] = self._half(F.reshape(-1, p))
        return covariance(outer_products(V)).reshape(n, d, n, d)

    def rows_covariance(
        self,
        operator: Operator,
        X: Any,
        gather: Any = None,
        *,
        method: str = "auto",
        n_steps: int | None = None,
    ) -> Array:
        """Return the covariance between rows of each feature, or of each column of ``gather``:
        VᵢVᵢᵀ, by blocks of features.
        """
        X = self._rows(X)
        xp, (n, d), p = namespace(X), X.shape, len(self.basis)
        G = gathering(gather, X)
        result = rows_covariance_of(n, d, G, X)
        # Twice the working memory: for each block of features those of the basis are evaluated
        # again.
        for some in blocks(len(result), 4.0 * n * self._rank, X):
            V = xp.empty((some.stop - some.start, n, self._rank))
            for rows in blocks(n, 24.0 * d * p, X):
                F = closed_forms.features(
                    operator.rows(rows), self.basis, X[rows], method=method, n_steps=n_steps
                )
                F = F[:, some] + 0.0 if G is None else xp.swapaxes(G[:, some], 0, 1) @ F
                V[:, rows] = xp.swapaxes(
                    self._half(F.reshape(-1, p)).reshape(*F.shape[:2], -1), 0, 1
                )
            result[some] = V @ xp.swapaxes(V, 1, 2)
        return covariance(result)

    def sample(
        self, operator: Operator, X: Any, n: int = 1, *, random_state: Any = None
    ) -> np.ndarray:
        """Return n draws of the operator's values at all rows of X together, (n, rows, d): those of
        n draws of the weights.
        """
        X = self._rows(X)
        xp = namespace(X)
        half = self._half(xp.eye(len(self.basis)))
        normal = xp.asarray(standard_draws("n", n, half.shape[1], random_state))
        weights = (self.weights + product(normal, half.T)).T  # (p, n)
        check_memory("The draws", (n, *X.shape), "use fewer draws or rows")
        mean, _ = closed_forms.attribute_mean(operator, self.mean, X)
        draws = np.empty((n, *X.shape))
        for rows in blocks(len(X), 24.0 * X.shape[1] * len(self.basis), X):
            values = product(
                closed_forms.features(operator.rows(rows), self.basis, X[rows]), weights
            )  # (r, d, n)
            draws[:, rows] = np.moveaxis(to_numpy(values + mean[rows][:, :, None]), 2, 0)
        return draws

    def _rows(self, X: Any) -> Array:
        X = as_matrix(
            "X", X, names=self.feature_names, n_features=self.n_features, like=self.weights
        )
        self.basis.check_rows("X", X)
        return X

    @property
    def _rounding(self) -> float:
        """What rounding makes of a variance, relative to it, and of a mean, relative to the lengths
        of functions and weights.
        """
        spread = self.condition
        if self.precision_factor is not None:
            pivots = self.precision_factor.diagonal()
            spread = float(pivots.max() / pivots.min())
        return EPS * (64.0 + 4.0 * len(self.basis) ** 0.5) * spread

    @property
    def _rank(self) -> int:
        return len(self.basis) if self.root is None else self.root.shape[1]

    def _half(self, F: Array) -> Array:
        """Return V (r, ·) with VVᵀ = FSFᵀ for F (r, p), in place of F where it can."""
        if self.precision_factor is not None:
            return solve_lower_rows(self.precision_factor, F)
        return product(F, self.root)

    def __repr__(self) -> str:
        kind = type(self.basis).__name__
        return (
            f"WeightSpacePosterior({len(self.basis)} functions of {self.n_features} features,"
            f" basis={kind})"
        )
