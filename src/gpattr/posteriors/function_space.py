"""One state for every Gaussian process conditioned on finitely many function values.

    E[f(x)]         = m(x) + k(x, Z) α
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀ (I − RRᵀ) T(x'),     T(x) = L⁻¹ diag(w) k(Z, x)

Exact regression has Z = the training inputs, L = chol(K + noise), no R, no w; sparse and Laplace
posteriors fill in the rest. The form stays factored: forming K⁻¹ and k − kK⁻¹k loses five digits of
variance on ordinary data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpattr import closed_forms
from gpattr._core.arguments import an_array, instance, some_rows
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
from gpattr._core.validation import (
    Names,
    as_matrix,
    check_choice,
    check_names,
    positive_scalar,
    read_only,
)
from gpattr.bases import Basis
from gpattr.closed_forms.means import method_of
from gpattr.exceptions import InvalidInputError, NoClosedFormError, ToleranceError
from gpattr.kernels import Kernel
from gpattr.means import Mean, Zero
from gpattr.operators import Operator
from gpattr.posteriors.base import (
    TOLERANCE,
    UNCERTAINTY,
    Attributions,
    Posterior,
    covariance,
    feature_by_feature,
    gathering,
    require_covariance_room,
    rows_covariance_of,
)
from gpattr.posteriors.sensitivity import Sensitivity

FARTHEST = 1e140  # length-scales: beyond, squares of distances overflow


@dataclass(frozen=True, eq=False)
class Trend:
    """What is still uncertain about the coefficients of a prior mean Σⱼ βⱼφⱼ: it adds R C Rᵀ, C =
    GGᵀ, to every covariance.

    R(x) = φ(x) − k(x, Z) W with ``weights`` W = (K + noise)⁻¹Φ, (m, p), and ``root`` G, (p, p); φ
    are those of ``basis``."""

    basis: Basis
    weights: Array
    root: Array

    @property
    def covariance(self) -> Array:
        """The posterior covariance C of the coefficients, (p, p)."""
        return self.root @ self.root.T

    @property
    def length(self) -> float:
        """The length of WG: how far an error of the covariances with the data reaches R."""
        return float(((self.weights @ self.root) ** 2).sum()) ** 0.5


@dataclass(frozen=True, eq=False)
class FunctionSpacePosterior(Posterior):
    """A Gaussian process given by its state (Z, α, L, R, w).

    ``kernel`` and ``mean`` are the prior's; ``inputs`` Z (m, d), ``alpha`` (m,), ``factor`` L (m,
    m) lower triangular, ``root`` R (m, r) or None, ``column_scale`` w (m,) or None.
    ``feature_names`` are the columns of the frame it was trained on. ``trend`` is what is uncertain
    about the coefficients of the mean."""

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
    def reference_points(
        self,
    ) -> Mapping[str, Array]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The mean and the median of the training inputs, where they are known."""
        if self.training_inputs is None:
            return {}
        Z = to_numpy(self.training_inputs)
        return {"mean": Z.mean(axis=0), "median": np.median(Z, axis=0)}

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        X = self._rows(X)
        xp = namespace(X)
        n, m = len(X), len(self.inputs)
        if return_cov:
            check_memory(
                "The covariance of the predictions", (n, n), "use return_std=True, or fewer rows"
            )
        mean, var = (
            self.mean(X) + 0.0,
            xp.empty(n),
        )  # a copy: a user's mean may hand out its own array
        T = xp.empty((n, m)) if return_cov else None
        trend = (
            xp.empty((n, self.trend.root.shape[1]))
            if self.trend is not None and (return_std or return_cov)
            else None
        )
        for rows in blocks(n, 32.0 * m, X):
            k = self.kernel(X[rows], self.inputs)
            mean[rows] += product(k, self.alpha)
            if trend is not None:
                trend[rows] = self._trend(self.trend.basis(X[rows]), k)  # pyright: ignore[reportOptionalMemberAccess]
            if T is not None:
                T[rows] = self._solve(k)
            elif return_std:
                var[rows] = (
                    self.kernel.diagonal(X[rows])
                    - self._explained(self._solve(k)[:, None, :])[:, 0, 0]
                )
                if trend is not None:
                    var[rows] += (trend[rows] ** 2).sum(axis=1)
        if T is not None:
            return mean, covariance(
                self.kernel(X, X)
                - self._explained(T)
                + (0.0 if trend is None else outer_products(trend))
            )
        return (mean, xp.sqrt(xp.maximum(var, 0.0))) if return_std else mean

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
        positive_scalar("tolerance", tolerance)
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        rule = closed_forms.rule_for(type(operator), self.kernel, **options)
        if method == "exact" and method_of(self.mean):
            raise NoClosedFormError(
                f'method: "exact" was asked for, but the prior mean {type(self.mean).__name__} has'
                " no closed form"
            )
        X = self._rows(X)
        xp = namespace(X)
        n, d = X.shape
        if uncertainty == "cov":
            require_covariance_room(n, d)
        names = " + ".join(sorted(rule.methods | method_of(self.mean)))
        bounded = (
            "quadrature" in names and n_steps is None
        )  # a rule with a number of steps is as good as it is
        mean, error = closed_forms.attribute_mean(operator, self.mean, X)
        # Where the error is known beforehand, the means come with the covariance from the same
        # cross term.
        by_estimate = uncertainty == "none" or rule.bound is None
        if by_estimate:
            sketched = (
                uncertainty == "none" and rule.bound is None
            )  # where V is not formed, and prior variances take long
            w = self.sensitivity.beside(self.alpha) if sketched else self.alpha[:, None]
            value, bound = closed_forms.estimate(
                operator, self.kernel, X, self.inputs, w, **options
            )
            mean, error = mean + value[:, :, 0], error + bound
            if sketched:
                error = error + self.sensitivity.rounding_of_mean(
                    self.sensitivity.lengths_from(value[:, :, 1:])
                )
            elif uncertainty == "none":
                error = error + self.sensitivity.rounding_of_mean(
                    self.sensitivity.longest(self._prior_std(operator, rule, X))
                )
            if bounded:
                self._require_accuracy(X, mean, error, tolerance)
        else:
            error = error + closed_forms.error(
                operator, self.kernel, X, self.inputs, self.alpha, **options
            )
        var = xp.empty((n, d)) if uncertainty != "none" else None
        cov = xp.empty((n, d, d)) if uncertainty == "cov" else None
        cov_error = xp.empty(n) if uncertainty != "none" else None
        if var is not None and cov_error is not None:
            for rows in blocks(
                n, 32.0 * d * (len(self.inputs) + len(operator.rows(slice(1)).terms(X[:1]))), X
            ):
                here, part = X[rows], operator.rows(rows)
                cross, cross_error = closed_forms.bounded_cross(
                    part, self.kernel, here, self.inputs, **options
                )  # (r, d, m)
                if not by_estimate:
                    mean[rows] += product(cross, self.alpha)
                block, prior_error = closed_forms.bounded_auto(part, self.kernel, here, **options)
                size = xp.max(xp.diagonal(block, axis1=1, axis2=2), axis=1)
                trend_error = 0.0
                if self.trend is not None:
                    R = self._trend(closed_forms.features(part, self.trend.basis, here), cross)
                    block = block + outer_products(R)
                    trend_error = (
                        2.0 * self.trend.length * xp.sqrt(xp.max((R * R).sum(axis=2), axis=1))
                    )
                V = self._solve(cross.reshape(-1, cross.shape[2])).reshape(cross.shape)
                block = covariance(block - self._explained(V))
                var[rows] = xp.diagonal(block, axis1=1, axis2=2)
                if cov is not None:
                    cov[rows] = block
                lengths = self.sensitivity.lengths(V)
                error[rows] += self.sensitivity.rounding_of_mean(lengths)
                integrated = prior_error + cross_error * (
                    2.0 * self.sensitivity.scale * lengths + trend_error
                )
                cov_error[rows] = integrated + self.sensitivity.rounding(lengths, size)
                if bounded:
                    self._require_covariance_accuracy(
                        here, rows.start, integrated, tolerance * xp.maximum(size, 1e-300)
                    )
        mean = mean + 0.0  # −0.0 becomes 0.0
        error = error + EPS * xp.max(xp.abs(mean), axis=1)
        if bounded:
            self._require_accuracy(X, mean, error, tolerance)
        return Attributions(mean, var, cov, error, names, cov_error=cov_error)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How much rounding, and errors of covariances with the data, are amplified."""
        return Sensitivity.of(self.factor, self.alpha, self.column_scale)

    def _prior_std(self, operator: Operator, rule: Any, X: Array) -> Array:
        """Return an upper bound of the largest prior standard deviation of each row, (n,): that of
        an average is no larger than the average of standard deviations."""
        xp, std = namespace(X), namespace(X).zeros(len(X))
        for rows in blocks(len(X), 32.0 * X.shape[1] ** 2, X):
            for weight, sites in operator.rows(rows).terms(X[rows]):
                variances = xp.diagonal(rule.auto(sites).value, axis1=1, axis2=2)
                std[rows] += weight * xp.sqrt(xp.max(variances, axis=1))
        return std

    def _require_covariance_accuracy(
        self, X: Array, first: int, error: Array, allowed: Array
    ) -> None:
        """Raise `ToleranceError` if quadrature leaves an error of a covariance that is larger than
        allowed, (r,) each.
        """
        xp = namespace(X)
        excess = error - xp.maximum(allowed, 1e-9 * self.kernel.diagonal(X))
        if not (excess <= 0).all():
            row = int(excess.argmax())
            raise ToleranceError(
                f"tolerance: covariances of the attributions of row {first + row} are accurate only"
                f" to {float(error[row]):.1e}, where {float(allowed[row]):.1e} is asked for; the"
                " kernel changes too fast along the path, or the model is too ill-conditioned. A"
                ' larger tolerance= accepts it; uncertainty="none" explains without them'
            )

    def _require_accuracy(self, X: Array, mean: Array, error: Array, tolerance: float) -> None:
        """Raise `ToleranceError` if an error exceeds this share of the attributions and of the
        prior's standard deviation.
        """
        xp = namespace(X)
        size = xp.maximum(xp.max(xp.abs(mean), axis=1), xp.sqrt(self.kernel.diagonal(X)))
        excess = error - tolerance * size
        if not (excess <= 0).all():
            row = int(excess.argmax())
            raise ToleranceError(
                f"tolerance: attributions of row {row} are sure to {float(error[row]):.1e} only,"
                f" not to {tolerance:.0e} of {float(size[row]):.2g} (the larger of the attributions"
                " and the prior's standard deviation). The kernel changes too fast along the path,"
                " its derivatives are not smooth (gpattr.testing.check_kernel tells), or rounding"
                " does not allow more; a larger tolerance= accepts it"
            )

    def joint(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        X = self._rows(X)
        n, d = X.shape
        m = len(self.inputs)
        check_memory(
            "The joint covariance of the attributions",
            (n, d, n, d),
            "use fewer rows, say a random sample",
            copies=2,
        )
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        result = closed_forms.between(operator, self.kernel, X, **options).reshape(n * d, n * d)
        T = namespace(X).empty((n * d, m))
        R = None if self.trend is None else namespace(X).empty((n * d, self.trend.root.shape[1]))
        for rows in blocks(n, 32.0 * d * m, X):
            part = operator.rows(rows)
            cross = closed_forms.cross(part, self.kernel, X[rows], self.inputs, **options)
            if R is not None and self.trend is not None:
                basis = closed_forms.features(part, self.trend.basis, X[rows])
                R[rows.start * d : rows.stop * d] = self._trend(basis, cross).reshape(
                    -1, R.shape[1]
                )
            T[rows.start * d : rows.stop * d] = self._solve(cross.reshape(-1, m))
        if R is not None:
            result += outer_products(R)
        return covariance(result - self._explained(T)).reshape(n, d, n, d)

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
        𝒜ᵢk𝒜ᵢᵀ − Vᵢ(I − RRᵀ)Vᵢᵀ.

        The prior's part is formed for blocks of pairs of rows, and only what belongs to one feature
        is kept; Vᵢ is formed for blocks of features."""
        X = self._rows(X)
        xp, (n, d), m = namespace(X), X.shape, len(self.inputs)
        options: dict[str, Any] = {"method": method, "n_steps": n_steps}
        G = gathering(gather, X)
        result = rows_covariance_of(n, d, G, X)
        pairs = next(
            blocks(n * n, 32.0 * d * d, X)
        ).stop  # of rows that fit into the working memory
        side = max(1, int(pairs**0.5))
        strips = [slice(start, min(start + side, n)) for start in range(0, n, side)]
        for k, left in enumerate(strips):
            for right in strips[k:]:
                other = {} if left == right else {"X2": X[right], "op2": operator.rows(right)}
                prior = closed_forms.between(
                    operator.rows(left), self.kernel, X[left], **other, **options
                )
                part = feature_by_feature(prior, G)
                result[:, left, right], result[:, right, left] = part, xp.swapaxes(part, 1, 2)
        # Twice the working memory: for each block of features the cross term is evaluated again.
        for some in blocks(len(result), 4.0 * n * m, X):
            V = xp.empty((some.stop - some.start, n, m))
            R = None if self.trend is None else xp.empty((len(V), n, self.trend.root.shape[1]))
            for rows in blocks(n, 32.0 * d * m, X):
                part = operator.rows(rows)
                cross = _gathered(
                    closed_forms.cross(part, self.kernel, X[rows], self.inputs, **options), G, some
                )
                if R is not None and self.trend is not None:
                    basis = _gathered(
                        closed_forms.features(part, self.trend.basis, X[rows]), G, some
                    )
                    R[:, rows] = xp.swapaxes(self._trend(basis, cross), 0, 1)
                solved = self._solve(cross.reshape(-1, m)).reshape(cross.shape)
                V[:, rows] = xp.swapaxes(solved, 0, 1)
            result[some] = result[some] - self._explained(V)
            if R is not None:
                result[some] = result[some] + R @ xp.swapaxes(R, 1, 2)
        return covariance(result)

    def contributions(
        self, operator: Operator, X: Any, *, method: str = "auto", n_steps: int | None = None
    ) -> Array:
        """Return αₘ 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m): the share of each training row in each mean
        attribution.

        Their sum over m is the attribution less that of the prior mean.
        """
        if self.training_inputs is None:
            return super().contributions(operator, X)
        X = self._rows(X)
        check_memory("The contributions", (*X.shape, len(self.inputs)), "use fewer rows")
        return (
            closed_forms.cross(
                operator, self.kernel, X, self.inputs, method=method, n_steps=n_steps
            )
            * self.alpha
        )

    def _rows(self, X: Any) -> Array:
        X = as_matrix(
            "X", X, names=self.feature_names, n_features=self.n_features, like=self.inputs
        )
        with np.errstate(over="ignore", invalid="ignore"):
            distance = self.kernel.n_lengthscales(X - self.inputs[0])
            size = self.kernel.diagonal(X)
        finite = to_numpy(namespace(X).isfinite(size))
        if not finite.all():
            raise InvalidInputError(
                f"X: row {int(finite.argmin())} lies so far out that its prior variance is not"
                " finite"
            )
        if not (distance < FARTHEST).all():
            row = int(distance.argmax())
            raise InvalidInputError(
                f"X: expected rows within {FARTHEST:.0e} length-scales of the data, got row {row}"
                f" at {distance[row]:.0e}"
            )
        return X

    def _solve(self, k: Array) -> Array:
        """Return the rows T(x)ᵀ = k(x, Z) diag(w) L⁻ᵀ, (r, m), for covariances k (r, m) with the
        function at Z, in place of k.
        """
        return solve_lower_rows(
            self.factor, k if self.column_scale is None else k * self.column_scale
        )

    def _trend(self, basis: Array, k: Array) -> Array:
        """Return R(x) G, (..., p), of the uncertain coefficients, for basis functions (..., p) and
        covariances k (..., m).
        """
        assert self.trend is not None
        return product(basis - product(k, self.trend.weights), self.trend.root)

    def _explained(self, V: Array) -> Array:
        """Return V(I − RRᵀ)Vᵀ, (..., k, k), for V (..., k, m)."""
        explained = outer_products(V)
        if self.root is not None:
            explained -= outer_products(product(V, self.root))
        return explained


def _gathered(cross: Array, G: Array | None, some: slice) -> Array:
    """Return ``some`` of the features of cross (r, d, m), or of the columns of Gᵀ cross, in an
    array of their own.
    """
    if G is None:
        return cross if some == slice(0, cross.shape[1]) else cross[:, some] + 0.0
    return namespace(cross).swapaxes(G[:, some], 0, 1) @ cross
