"""Gaussian weights over a finite basis, such as monomials, random features or eigenfunctions.

    f(x) = m(x) + φ(x)ᵀw,      w ~ N(μ, S)
    E[𝒜f] = 𝒜m + (𝒜φ)ᵀμ,      Cov[𝒜f, 𝒜'f] = (𝒜φ)ᵀ S (𝒜'φ)

S stays factored, S = RRᵀ or S⁻¹ = LLᵀ: variances are sums of squares, and nothing is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpattr._core.array import (
    EPS,
    Array,
    is_tensor,
    namespace,
    outer_products,
    product,
    solve_lower_rows,
    solve_upper,
    to_numpy,
)
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import standard_draws
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import (
    Names,
    as_vector,
    beside,
    check_names,
    finite_scalar,
    positive_scalar,
    read_only,
)
from gpattr.bases import Basis
from gpattr.closed_forms.resolution import basis_formulas_for, mean_formulas_for
from gpattr.closed_forms.table import BasisFormulas, MeanFormulas
from gpattr.closed_forms.verbs import apply_to_mean, weighted_basis, weighted_images, weighted_mean
from gpattr.distributions import Gaussian
from gpattr.exceptions import InvalidInputError
from gpattr.means import Mean
from gpattr.operators import Gradient, Operator
from gpattr.posteriors.base import Posterior, checked_points
from gpattr.posteriors.bound import (
    Attributions,
    Bound,
    Evaluation,
    check_covariance_memory,
    check_joint_memory,
    covariance,
    gathering,
    rows_covariance_of,
    values_covariance_of,
)
from gpattr.posteriors.given import checked_mean, matrix, noise_at, root_of, updated_root

WELL_CONDITIONED = 1e3  # where rounding of the weights is no more than rounding of their sum


@dataclass(frozen=True, eq=False, init=False, repr=False)
class WeightSpacePosterior(Posterior):
    """f(x) = m(x) + φ(x)ᵀw with w ~ N(``weights``, S), over the functions φ of ``basis``.

    S is given as ``covariance`` (p, p), symmetric and positive semi-definite, or by a factor, which
    keeps more digits: ``root`` R (p, r) with S = RRᵀ, or ``precision_factor`` L, lower triangular
    with S⁻¹ = LLᵀ. ``mean`` is a known prior mean. ``feature_names`` are the columns of the frame
    it was trained on, ``reference_points`` points that can serve as baselines, such as
    ``{"mean": …}`` of the training inputs. ``condition`` is the condition number of the matrix
    behind the root and the weights: rounding is amplified by it. ``weights_error`` is a bound on
    the length of the error of the weights beyond that.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Monomials
    >>> from gpattr.posteriors import WeightSpacePosterior
    >>> basis = Monomials([[1, 0], [1, 1]])  # x₁ and x₁x₂
    >>> posterior = WeightSpacePosterior(basis, weights=[1.0, 2.0], covariance=0.1 * np.eye(2))
    >>> posterior.predict([[1.0, 1.0]])
    array([3.])
    """

    basis: Basis
    weights: Array
    mean: Mean
    points: Mapping[str, Array]
    root: Array | None
    precision_factor: Array | None
    condition: float
    weights_error: float

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
        weights_error: float = 0.0,
    ) -> None:
        positive_scalar("condition", condition)
        if finite_scalar("weights_error", weights_error) < 0:
            raise InvalidInputError(f"weights_error: expected 0 or more, got {weights_error}")
        if not isinstance(basis, Basis):
            raise InvalidInputError(f"basis: expected a gpattr basis, got {type(basis).__name__}")
        d, p = basis.n_features, len(basis)
        mean = checked_mean(mean, d)
        weights = read_only(
            as_vector("weights", weights, length=p, unit="weights (one per function of the basis)")
        )
        root, factor = _factored(covariance, root, precision_factor, weights)
        points = checked_points(reference_points, d)
        names = None if feature_names is None else check_names("feature_names", feature_names, d)
        state: dict[str, Any] = {
            "condition": float(condition),
            "weights_error": float(weights_error),
            "basis": basis,
            "weights": weights,
            "mean": mean,
            "feature_names": names,
            "points": points,
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
        half = self.half(namespace(self.weights).eye(len(self.basis)))
        return covariance(outer_products(half))

    @property
    def reference_points(self) -> Mapping[str, Array]:
        return self.points

    @property
    def condition_number(self) -> float:
        return self.condition

    def rows(self, name: str, X: Any) -> Array:
        X = super().rows(name, X)
        self.basis.check_rows(name, X)
        return X

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        self.basis.check_rows("X", X)
        xp, n, p = namespace(X), len(X), len(self.basis)
        mean, var = self.mean(X) + 0.0, xp.empty(n)
        half = None
        if return_cov:
            remedy = "use return_std=True, or fewer rows"
            check_memory("The covariance of the predictions", (n, max(n, p)), remedy, copies=2)
            half = xp.empty((n, self.rank))
        for rows in blocks(n, 32.0 * p, X):
            values = self.basis(X[rows])
            mean[rows] += product(values, self.weights)
            if half is not None:
                half[rows] = self.half(values)
            elif return_std:
                var[rows] = (self.half(values) ** 2).sum(axis=1)
        if half is not None:
            return mean, covariance(outer_products(half))
        return (mean, xp.sqrt(var)) if return_std else mean

    def require_jets(self) -> None:
        basis_formulas_for(Gradient(), self.basis)

    def path_lengths(self, start: Array, stop: Array) -> Array:
        """Return half-waves, of the fastest function of the basis, in place of length-scales."""
        xp = namespace(self.like)
        ends = xp.concatenate([self.rows("X", start), self.rows("X", stop)])
        return xp.full(len(start), self.basis.phase(ends) / math.pi)

    def slopes(self, X: Array) -> tuple[np.ndarray, ...]:
        X = self.rows("X", X)
        (n, d), p, xp = X.shape, len(self.basis), namespace(X)
        mean, var, gradient, cov = xp.empty(n), xp.empty(n), xp.empty((n, d)), xp.empty((n, d))
        formulas = basis_formulas_for(Gradient(), self.basis)
        for rows in blocks(n, 24.0 * p * (d + 2), X):
            x = X[rows]
            values, images = self.basis(x), weighted_images(formulas, Gradient(), x, p)
            mean[rows] = self.mean(x) + product(values, self.weights)
            slope = apply_to_mean(Gradient(), self.mean, x).value
            gradient[rows] = slope + product(images, self.weights)
            half = self.half(values)
            var[rows] = (half * half).sum(axis=1)
            cov[rows] = (images @ self._other_half(half)[:, :, None])[:, :, 0]
        return to_numpy(mean), to_numpy(var), to_numpy(gradient), to_numpy(cov)

    def values_variance(self, X: Array) -> Array:
        xp, p, var = namespace(X), len(self.basis), namespace(X).empty(len(X))
        spread = float((self.half(xp.eye(p)) ** 2).sum())
        for rows in blocks(len(X), 32.0 * p, X):
            values = self.basis(X[rows])
            rounding = (8.0 * EPS) ** 2 * p * spread * (values**2).sum(axis=1)
            found = (self.half(values) ** 2).sum(axis=1)
            var[rows] = xp.where(found > rounding, found, 0.0)
        return var

    def values_covariance(self, X: Array, points: Array) -> Array:
        return product(self.half(self.basis(X)), self.half(self.basis(points)).T)

    def conditioned(self, X: Array, y: Array, noise: Any) -> WeightSpacePosterior:
        """Return the posterior given more measurements: an update of the root of S for each."""
        noise = noise_at(self, noise, X)
        root = self.half(namespace(X).eye(len(self.basis)))
        weights, known = self.weights, self.mean(X)
        for phi, value, level in zip(self.basis(X), y - known, noise, strict=True):
            residual = float(value - phi @ weights)
            root, shift = updated_root(root, product(phi, root), float(level), residual)
            weights = weights + shift
        return WeightSpacePosterior(
            self.basis,
            weights,
            root=root,
            mean=self.mean,
            feature_names=self.feature_names,
            reference_points=self.points,
            condition=max(self.condition, self._pivot_ratio),
            weights_error=self.weights_error,
        )

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        exact = basis_formulas_for(operator, self.basis)
        mean = mean_formulas_for(operator, self.mean, evaluation.method)
        method, n_steps = evaluation.method, evaluation.n_steps
        chosen = exact if evaluation.exact else None
        chosen = chosen or basis_formulas_for(operator, self.basis, method, n_steps)
        return WeightSpaceBound(self, operator, evaluation, exact, chosen, mean)

    @property
    def ill_conditioned(self) -> bool:
        """Whether rounding of the weights is more than rounding of their sum."""
        length = float((self.weights**2).sum()) ** 0.5
        return max(self.condition, self.weights_error / (EPS * length or 1.0)) > WELL_CONDITIONED

    @property
    def rounding(self) -> float:
        """The rounding of a variance, relative to the variance.

        Of a mean it is relative to the lengths of functions and weights.
        """
        ratio = self.condition if self.precision_factor is None else self._pivot_ratio
        return EPS * (64.0 + 4.0 * len(self.basis) ** 0.5) * ratio

    @property
    def _pivot_ratio(self) -> float:
        """The ratio of the largest to the smallest pivot of L; 1 where S is given by its root."""
        if self.precision_factor is None:
            return 1.0
        pivots = self.precision_factor.diagonal()
        return float(pivots.max() / pivots.min())

    @property
    def rank(self) -> int:
        """The number of columns of the root of S."""
        return len(self.basis) if self.root is None else self.root.shape[1]

    def half(self, F: Array) -> Array:
        """Return V (r, ·) with VVᵀ = FSFᵀ for F (r, p), in place of F where it can."""
        if self.precision_factor is not None:
            return solve_lower_rows(self.precision_factor, F)
        return product(F, self.root)

    def _other_half(self, V: Array) -> Array:
        """Return FS, (r, p), for V = `half` of F."""
        if self.precision_factor is not None:
            return solve_upper(self.precision_factor, V.T).T
        assert self.root is not None
        return product(V, self.root.T)

    def __repr__(self) -> str:
        kind = type(self.basis).__name__
        size = f"{len(self.basis)} functions of {self.n_features} features"
        return f"WeightSpacePosterior({size}, basis={kind})"


def _factored(
    covariance: Any, root: Any, precision_factor: Any, weights: Array
) -> tuple[Array | None, Array | None]:
    """Return R with S = RRᵀ, or L with S⁻¹ = LLᵀ, of the covariance S of the weights."""
    if sum(given is not None for given in (covariance, root, precision_factor)) != 1:
        raise InvalidInputError(
            "covariance: expected exactly one of covariance, root and precision_factor"
        )
    p, factor = len(weights), None
    if covariance is not None:
        S = to_numpy(matrix("covariance", covariance, p, p))
        root = namespace(weights).asarray(root_of("covariance", S))
    elif root is not None:
        root = beside("root", matrix("root", root, p, None), weights)
    else:
        given = matrix("precision_factor", precision_factor, p, p)
        factor = beside("precision_factor", given, weights)
        if not (factor.diagonal() > 0).all() or namespace(factor).triu(factor, 1).any():
            raise InvalidInputError(
                "precision_factor: expected a lower triangular matrix with a positive diagonal"
            )
        # BLAS reads columns.
        factor = factor if is_tensor(factor) else np.asfortranarray(factor)
    for part in (root, factor):
        if part is not None and not is_tensor(part):
            part.flags.writeable = False
    return root, factor


@dataclass(frozen=True, eq=False)
class WeightSpaceBound(Bound):
    """An operator bound to a `WeightSpacePosterior`.

    ``exact`` are the closed forms for its basis, ``chosen`` the formulas of the evaluation.
    """

    posterior: WeightSpacePosterior
    operator: Operator
    evaluation: Evaluation
    exact: BasisFormulas
    chosen: BasisFormulas
    mean_formulas: MeanFormulas | None

    def rows(self, rows: Any) -> WeightSpaceBound:
        return replace(self, operator=self.operator.rows(rows))

    def apply(self, X: Array) -> Attributions:
        posterior, xp = self.posterior, namespace(X)
        n, q, p = len(X), self.operator.size(X.shape[1]), len(posterior.basis)
        posterior.basis.check_rows("X", X)
        uncertainty, exact = self.evaluation.uncertainty, self.evaluation.exact
        if uncertainty == "cov":
            check_covariance_memory(n, q)
        mean, error = weighted_mean(self.mean_formulas, self.operator, X)
        var = xp.empty((n, q)) if uncertainty != "none" else None
        cov = xp.empty((n, q, q)) if uncertainty == "cov" else None
        cov_error = None if var is None else xp.zeros(n)
        terms = len(self.operator.rows(slice(1)).terms(X[:1]))
        formed = var is not None or not exact or posterior.ill_conditioned
        for rows in blocks(n, 24.0 * p * (q if formed else 1) * min(terms, 2), X):
            operator, here = self.operator.rows(rows), X[rows]
            value, bound = weighted_basis(
                self.exact, operator, posterior.basis, here, posterior.weights
            )
            if formed:
                F = weighted_images(self.chosen, operator, here, p)  # (r, q, p)
                value, bound = self._by_images(F, value, bound)
                if var is not None and cov_error is not None:
                    block, var[rows], cov_error[rows] = self._covariances(operator, here, F)
                    if cov is not None:
                        cov[rows] = block
            mean[rows] += value
            error[rows] += bound
        mean = mean + 0.0  # −0.0 becomes 0.0
        error = error + EPS * xp.max(abs(mean), axis=1)
        return Attributions(Gaussian(mean, var, cov), error, self.method, cov_error)

    @property
    def method(self) -> str:
        """The method of the outputs, in words."""
        of_mean = frozenset() if self.mean_formulas is None else self.mean_formulas.methods
        return " + ".join(sorted({self.chosen.method} | of_mean))

    def _by_images(self, F: Array, value: Array, bound: Array) -> tuple[Array, Array]:
        """Return the mean by the chosen formulas, and a bound on its error."""
        posterior, xp = self.posterior, namespace(F)
        if not self.evaluation.exact:
            by_rule = product(F, posterior.weights)
            value, bound = by_rule, bound + xp.max(abs(by_rule - value), axis=1)
        length = float((posterior.weights**2).sum()) ** 0.5
        longest = xp.sqrt(xp.max((F * F).sum(axis=2), axis=1))
        relative = EPS * posterior.condition * length
        return value, bound + (relative + posterior.weights_error) * longest

    def _covariances(
        self, operator: Operator, X: Array, F: Array
    ) -> tuple[Array | None, Array, Array]:
        """Return covariances on request, variances, and a bound on their errors."""
        posterior, xp, p = self.posterior, namespace(X), F.shape[2]
        V = posterior.half(F.reshape(-1, p)).reshape(*F.shape[:2], -1)
        error = xp.zeros(len(X))
        if not self.evaluation.exact:
            images = weighted_images(self.exact, operator, X, p)
            U = posterior.half(images.reshape(-1, p)).reshape(V.shape)
            lengths = xp.sqrt(xp.max((V * V).sum(axis=2), axis=1))
            lengths = lengths + xp.sqrt(xp.max((U * U).sum(axis=2), axis=1))
            error = lengths * xp.sqrt(xp.max(((U - V) ** 2).sum(axis=2), axis=1))
        if self.evaluation.uncertainty == "cov":
            block = covariance(outer_products(V))
            var = xp.diagonal(block, axis1=1, axis2=2)
        else:
            V *= V
            block, var = None, V.sum(axis=2)
        return block, var, error + posterior.rounding * xp.max(var, axis=1)

    def joint(self, X: Array) -> Array:
        posterior = self.posterior
        posterior.basis.check_rows("X", X)
        n, q, p = len(X), self.operator.size(X.shape[1]), len(posterior.basis)
        check_joint_memory(n, q)
        remedy = "use fewer rows, say a random sample"
        check_memory("The attributions of the basis", (n, q, p), remedy)
        V = namespace(X).empty((n * q, posterior.rank))
        for rows in blocks(n, 24.0 * q * p, X):
            F = weighted_images(self.chosen, self.operator.rows(rows), X[rows], p)
            V[rows.start * q : rows.stop * q] = posterior.half(F.reshape(-1, p))
        return covariance(outer_products(V)).reshape(n, q, n, q)

    def rows_covariance(self, X: Array, gather: Any = None) -> Array:
        """Return the covariance between rows of each output by itself, or column of ``gather``."""
        posterior, xp = self.posterior, namespace(X)
        posterior.basis.check_rows("X", X)
        n, q, p = len(X), self.operator.size(X.shape[1]), len(posterior.basis)
        G = gathering(gather, q, X)
        result = rows_covariance_of(n, q, G, X)
        # Twice the working memory: for each block of outputs the basis is evaluated again.
        for some in blocks(len(result), 4.0 * n * posterior.rank, X):
            V = xp.empty((some.stop - some.start, n, posterior.rank))
            for rows in blocks(n, 24.0 * q * p, X):
                F = weighted_images(self.chosen, self.operator.rows(rows), X[rows], p)
                F = F[:, some] + 0.0 if G is None else xp.swapaxes(G[:, some], 0, 1) @ F
                half = posterior.half(F.reshape(-1, p)).reshape(*F.shape[:2], -1)
                V[:, rows] = xp.swapaxes(half, 0, 1)
            result[some] = V @ xp.swapaxes(V, 1, 2)
        return covariance(result)

    def covariance_with_values(self, X: Array, candidates: Array, gather: Any = None) -> Array:
        posterior, xp = self.posterior, namespace(X)
        for name, rows in (("X", X), ("candidates", candidates)):
            posterior.basis.check_rows(name, rows)
        n, q, p = len(X), self.operator.size(X.shape[1]), len(posterior.basis)
        G = gathering(gather, q, X)
        result = values_covariance_of(n, q, len(candidates), G, X)
        check_memory("candidates: their basis functions", (len(candidates), p), "use fewer")
        H = posterior.half(posterior.basis(candidates))
        for rows in blocks(n, 24.0 * q * (p + len(candidates)), X):
            F = weighted_images(self.chosen, self.operator.rows(rows), X[rows], p)
            F = F if G is None else xp.swapaxes(G, 0, 1) @ F
            V = posterior.half(F.reshape(-1, p))
            result[rows] = product(V, H.T).reshape(result[rows].shape)
        return result

    def sample(self, X: Array, n: int, random_state: RandomLike) -> np.ndarray:
        """Return n draws at all rows together, (n, rows, q), from n draws of the weights."""
        posterior, xp = self.posterior, namespace(X)
        posterior.basis.check_rows("X", X)
        q, p = self.operator.size(X.shape[1]), len(posterior.basis)
        half = posterior.half(xp.eye(p))
        normal = xp.asarray(standard_draws("n", n, half.shape[1], random_state))
        weights = (posterior.weights + product(normal, half.T)).T  # (p, n)
        check_memory("The draws", (n, len(X), q), "use fewer draws or rows")
        mean = weighted_mean(self.mean_formulas, self.operator, X).value
        draws = np.empty((n, len(X), q))
        for rows in blocks(len(X), 24.0 * q * p, X):
            F = weighted_images(self.chosen, self.operator.rows(rows), X[rows], p)
            values = product(F, weights) + mean[rows][:, :, None]  # (r, q, n)
            draws[:, rows] = np.moveaxis(to_numpy(values), 2, 0)
        return draws
