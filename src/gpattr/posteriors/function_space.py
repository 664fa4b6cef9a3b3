"""One state for every Gaussian process conditioned on finitely many function values.

    E[f(x)]         = m(x) + k(x, Z) α
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀ (I − RRᵀ) T(x'),     T(x) = L⁻¹ diag(w) k(Z, x)

Exact regression has Z = the training inputs, L = chol(K + noise), no R, no w; sparse and Laplace
posteriors fill in the rest. The form stays factored: forming K⁻¹ and k − kK⁻¹k loses five digits of
variance on ordinary data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpattr._core.arguments import an_array, instance, some_rows
from gpattr._core.array import (
    EPS,
    Array,
    corners_of,
    is_tensor,
    namespace,
    outer_products,
    product,
    solve_lower_rows,
    to_numpy,
)
from gpattr._core.memory import blocks, check_memory
from gpattr._core.validation import Names, check_names, read_only
from gpattr.bases import Basis
from gpattr.closed_forms.derivatives import require_derivatives
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean, Zero
from gpattr.operators import Operator
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.bound import Bound, Evaluation, covariance
from gpattr.posteriors.function_space_bound import FunctionSpaceBound
from gpattr.posteriors.jets import increments, jets, slopes
from gpattr.posteriors.sensitivity import Sensitivity

FARTHEST = 1e140  # length-scales: beyond, squares of distances overflow


@dataclass(frozen=True, eq=False)
class Trend:
    """Uncertain coefficients of a prior mean Σⱼ βⱼφⱼ: they add R C Rᵀ, C = GGᵀ, to covariances.

    R(x) = φ(x) − k(x, Z) W with ``weights`` W = (K + noise)⁻¹Φ, (m, p), and ``root`` G, (p, p); φ
    are the functions of ``basis``.
    """

    basis: Basis
    weights: Array
    root: Array

    @property
    def covariance(self) -> Array:
        """The posterior covariance C of the coefficients, (p, p)."""
        return self.root @ self.root.T

    def residual(self, basis: Array, k: Array) -> Array:
        """Return R(x)G, (..., p), for basis functions (..., p) and covariances k (..., m)."""
        return product(basis - product(k, self.weights), self.root)

    @property
    def length(self) -> float:
        """The length of WG: how far an error of the covariances with the data reaches R."""
        return float(((self.weights @ self.root) ** 2).sum()) ** 0.5


@dataclass(frozen=True, eq=False)
class FunctionSpacePosterior(Posterior):
    """A Gaussian process given by its state (Z, α, L, R, w).

    ``kernel`` and ``mean`` are the prior's; ``inputs`` Z (m, d), ``alpha`` (m,), ``factor`` L (m,
    m) lower triangular, ``root`` R (m, r) or None, ``column_scale`` w (m,) or None.
    ``feature_names`` are the columns of the frame it was trained on. ``trend`` is the uncertainty
    of the coefficients of the mean.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor(hyperparameters="optimal").fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> isinstance(model.posterior_, gpattr.posteriors.FunctionSpacePosterior)
    True
    >>> model.posterior_.inputs.shape, model.posterior_.alpha.shape
    ((30, 2), (30,))
    """

    kernel: Kernel
    inputs: Array
    alpha: Array
    factor: Array
    root: Array | None = None
    column_scale: Array | None = None
    mean: Mean = Zero()  # noqa: RUF009  (a frozen value)
    feature_names: Names | None = None
    trend: Trend | None = None

    def __post_init__(self) -> None:
        instance(Kernel, "a gpattr kernel")("kernel", self.kernel)
        instance(Mean, "a gpattr mean")("mean", self.mean)
        some_rows("inputs", self.inputs)
        m, d = self.inputs.shape
        if self.feature_names is not None:
            check_names("feature_names", self.feature_names, d)
        if self.trend is not None:
            instance(Trend, "what is uncertain of a mean, or None")("trend", self.trend)
        sizes = {"alpha": (m,), "factor": (m, m), "root": (m, ...), "column_scale": (m,)}
        for name, expected in sizes.items():
            value = getattr(self, name)
            if value is None and name in ("root", "column_scale"):
                continue
            an_array(name, value)
            shape = tuple(value.shape)  # pyright: ignore[reportOptionalMemberAccess]
            if len(shape) != len(expected) or any(
                n not in (k, ...) for n, k in zip(expected, shape, strict=True)
            ):
                raise InvalidInputError(f"{name}: expected the shape {expected}, got {shape}")
        for name in ("inputs", "alpha", "factor", "root", "column_scale"):
            value = getattr(self, name)
            if value is not None and not is_tensor(value) and value.flags.writeable:
                # BLAS reads columns: a factor in any other order would be copied at every solve.
                object.__setattr__(
                    self, name, read_only(np.asfortranarray(value) if name == "factor" else value)
                )

    @property
    def like(self) -> Array:
        return self.inputs

    @property
    def n_features(self) -> int:
        return self.inputs.shape[1]

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The mean and the median of the training inputs, where they are known."""
        if self.training_inputs is None:
            return {}
        Z = to_numpy(self.training_inputs)
        return {"mean": Z.mean(axis=0), "median": np.median(Z, axis=0)}

    @property
    def condition_number(self) -> float:
        pivots = to_numpy(self.factor.diagonal())
        return float((pivots.max() / pivots.min()) ** 2)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """The amplification of rounding, and of errors of covariances with the data."""
        return Sensitivity.of(self.factor, self.alpha, self.column_scale)

    def moments(self, X: Array, *, return_std: bool = False, return_cov: bool = False) -> Any:
        self.check_range(X)
        if return_cov:
            return self._joint_moments(X)
        xp, m = namespace(X), len(self.inputs)
        # A copy: a user's mean may hand out its own array.
        mean, var = self.mean(X) + 0.0, xp.empty(len(X))
        for rows in blocks(len(X), 32.0 * m, X):
            k = self.kernel(X[rows], self.inputs)
            mean[rows] += product(k, self.alpha)
            if not return_std:
                continue
            trend = self._trend_at(X[rows], k)
            explained = self.explained(self.solve(k)[:, None, :])[:, 0, 0]
            var[rows] = self.kernel.diagonal(X[rows]) - explained
            if trend is not None:
                var[rows] += (trend**2).sum(axis=1)
        return (mean, xp.sqrt(xp.maximum(var, 0.0))) if return_std else mean

    def _joint_moments(self, X: Array) -> tuple[Array, Array]:
        """Return mean (n,) and covariance (n, n) of f at X."""
        n, m, xp = len(X), len(self.inputs), namespace(X)
        remedy = "use return_std=True, or fewer rows"
        check_memory("The covariance of the predictions", (n, n), remedy)
        mean, T = self.mean(X) + 0.0, xp.empty((n, m))
        R = None if self.trend is None else xp.empty((n, self.trend.root.shape[1]))
        for rows in blocks(n, 32.0 * m, X):
            k = self.kernel(X[rows], self.inputs)
            mean[rows] += product(k, self.alpha)
            if R is not None:
                R[rows] = self._trend_at(X[rows], k)
            T[rows] = self.solve(k)
        trend = 0.0 if R is None else outer_products(R)
        return mean, covariance(self.kernel(X, X) - self.explained(T) + trend)

    def values_variance(self, X: Array) -> Array:
        self.check_range(X)
        xp, prior, var = namespace(X), self.kernel.diagonal(X), namespace(X).empty(len(X))
        for rows in blocks(len(X), 32.0 * len(self.inputs), X):
            T, R = self.whitened(X[rows])
            var[rows] = prior[rows] - self.explained(T[:, None, :])[:, 0, 0]
            if R is not None:
                var[rows] += (R**2).sum(axis=1)
        return xp.where(var > self.rounding_of_variance(X), var, 0.0)

    def values_covariance(self, X: Array, points: Array) -> Array:
        T, R = self.whitened(X)
        S, Q = (T, R) if points is X else self.whitened(points)
        result = self.kernel(X, points) - self.explained_between(T, S)
        return result if R is None or Q is None else result + product(R, Q.T)

    def whitened(self, X: Array) -> tuple[Array, Array | None]:
        """Return the rows T(x)ᵀ, (n, m), and the uncertain trend's residual there, (n, p)."""
        xp, n, m = namespace(X), len(X), len(self.inputs)
        T = xp.empty((n, m))
        R = None if self.trend is None else xp.empty((n, self.trend.root.shape[1]))
        for rows in blocks(n, 32.0 * m, X):
            k = self.kernel(X[rows], self.inputs)
            if R is not None:
                R[rows] = self._trend_at(X[rows], k)
            T[rows] = self.solve(k)
        return T, R

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        return FunctionSpaceBound.of(self, operator, evaluation)

    @property
    def size(self) -> int:
        return len(self.inputs)

    def require_jets(self) -> None:
        require_derivatives(self.kernel)

    def path_lengths(self, start: Array, stop: Array) -> Array:
        return self.kernel.n_lengthscales(self.rows("X", stop) - self.rows("X", start))

    def slopes(self, X: Array) -> tuple[np.ndarray, ...]:
        return slopes(self, X)

    def rounding_of_variance(self, X: Array) -> Array:
        """Return the rounding of a difference of prior and explained variances, (n,)."""
        rows = self.rows("X", X)
        return EPS * (64.0 + len(self.inputs) ** 0.5) * self.kernel.diagonal(rows)

    def jets(self, X: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and covariance of values and gradients at T points a row, X (r, T, d)."""
        return jets(self, X)

    def increments(
        self,
        start: Array,
        stop: Array,
        gathering: Array | None,
        nodes: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        return increments(self, start, stop, gathering, nodes, weights)

    def check_range(self, X: Array, name: str = "X") -> None:
        """Raise `InvalidInputError` for rows too far out for float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            distance = self.kernel.n_lengthscales(X - self.inputs[0])
            size = self.kernel.diagonal(X)
        finite = namespace(X).isfinite(size)
        if not finite.all():
            row = int(to_numpy(finite).argmin())
            raise InvalidInputError(
                f"{name}: row {row} lies so far out that its prior variance is not finite"
            )
        if not (distance < FARTHEST).all():
            row = int(distance.argmax())
            raise InvalidInputError(
                f"{name}: expected rows within {FARTHEST:.0e} length-scales of the data, got row"
                f" {row} at {distance[row]:.0e}"
            )

    @cached_property
    def _corners(self) -> Any:
        return corners_of(self.factor)

    def solve(self, k: Array) -> Array:
        """Return the rows T(x)ᵀ = k(x, Z) diag(w) L⁻ᵀ, (r, m), in place of k (r, m)."""
        scaled = k if self.column_scale is None else k * self.column_scale
        return solve_lower_rows(self.factor, scaled, self._corners)

    def explained(self, V: Array) -> Array:
        """Return V(I − RRᵀ)Vᵀ, (..., k, k), for V (..., k, m)."""
        explained = outer_products(V)
        if self.root is not None:
            explained -= outer_products(product(V, self.root))
        return explained

    def explained_between(self, V: Array, T: Array) -> Array:
        """Return V(I − RRᵀ)Tᵀ, (r, c), for V (r, m) and T (c, m)."""
        explained = product(V, T.T)
        if self.root is not None:
            explained -= product(product(V, self.root), product(T, self.root).T)
        return explained

    def _trend_at(self, X: Array, k: Array) -> Array | None:
        return None if self.trend is None else self.trend.residual(self.trend.basis(X), k)

    def _facts(self) -> list[tuple[str, object]]:
        return [*super()._facts(), ("kernel", self.kernel)]
