"""One state for every Gaussian process conditioned on finitely many function values.

    E[f(x)]         = m(x) + k(x, Z) α
    Cov[f(x), f(x')] = k(x, x') − T(x)ᵀ (I − RRᵀ) T(x'),     T(x) = L⁻¹ diag(w) k(Z, x)

Exact regression has Z = the training inputs, L = chol(K + noise), no R, no w; sparse and Laplace posteriors fill in the rest.
The form stays factored: forming K⁻¹ and k − kK⁻¹k loses five digits of variance on ordinary data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr import closed_forms
from gpattr._array import EPS, Array, is_tensor, namespace, solve_lower_rows
from gpattr._frozen import Frozen
from gpattr._memory import blocks, require_room
from gpattr._validation import Names, as_matrix, check_choice, read_only
from gpattr.closed_forms.means import method_of
from gpattr.exceptions import InvalidInputError, NoClosedFormError
from gpattr.kernels import Kernel
from gpattr.means import Mean, Zero
from gpattr.operators import Operator

UNCERTAINTY = ("cov", "std", "none")
FARTHEST = 1e140  # length-scales: beyond, squares of distances overflow


@dataclass(frozen=True, eq=False)
class Attributions:
    """The Gaussian 𝒜f at n rows: ``mean`` (n, d), ``var`` (n, d), ``cov`` (n, d, d), as far as they were asked for.

    ``error`` (n,) bounds the error of ``mean`` that the evaluation makes; ``method`` says how it was evaluated.
    """

    mean: Array
    var: Array | None
    cov: Array | None
    error: Array
    method: str


@dataclass(frozen=True, eq=False)
class FunctionSpacePosterior(Frozen):
    """A Gaussian process given by its state (Z, α, L, R, w).

    ``kernel`` and ``mean`` are the prior's; ``inputs`` Z (m, d), ``alpha`` (m,), ``factor`` L (m, m) lower triangular, ``root`` R
    (m, r) or None, ``column_scale`` w (m,) or None. ``feature_names`` are the columns of the frame it was trained on.
    """

    kernel: Kernel
    inputs: Array
    alpha: Array
    factor: Array
    root: Array | None = None
    column_scale: Array | None = None
    mean: Mean = Zero()  # noqa: RUF009  (a frozen value)
    feature_names: Names | None = None

    def __post_init__(self) -> None:
        m, _ = self.inputs.shape
        sizes = {"alpha": (m,), "factor": (m, m), "column_scale": (m,)}
        for name, expected in sizes.items():
            value = getattr(self, name)
            if value is not None and value.shape != expected:
                raise InvalidInputError(f"{name}: expected the shape {expected}, got {value.shape}")
        for name in ("inputs", "alpha", "factor", "root", "column_scale"):
            value = getattr(self, name)
            if value is not None and not is_tensor(value) and value.flags.writeable:
                # BLAS reads columns: a factor in any other order would be copied at every solve.
                object.__setattr__(self, name, read_only(np.asfortranarray(value) if name == "factor" else value))

    @property
    def n_features(self) -> int:
        """The number of features d."""
        return self.inputs.shape[1]

    @property
    def training_inputs(self) -> Array | None:
        """The inputs the model was trained on, where it still has them."""
        return None

    def predict(self, X: Any, *, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of the latent function at X, (n,); with its standard deviation (n,) or covariance (n, n) if asked.

        The latent function is free of noise: its variance does not contain the noise of an observation.
        """
        X = self._rows(X)
        xp = namespace(X)
        n, m = len(X), len(self.inputs)
        if return_cov:
            require_room("The covariance of the predictions", (n, n), "use return_std=True, or fewer rows")
        mean, var = self.mean(X) + 0.0, xp.empty(n)  # a copy: a user's mean may hand out its own array
        T = xp.empty((n, m)) if return_cov else None
        for rows in blocks(n, 32.0 * m, X):
            k = self.kernel(X[rows], self.inputs)
            mean[rows] += k @ self.alpha
            if T is not None:
                T[rows] = self._solve(k)
            elif return_std:
                var[rows] = self.kernel.diagonal(X[rows]) - self._explained(self._solve(k)[:, None, :])[:, 0, 0]
        if T is not None:
            return mean, _covariance(self.kernel(X, X) - self._explained(T))
        return (mean, xp.sqrt(xp.maximum(var, 0.0))) if return_std else mean

    def apply(self, operator: Operator, X: Any, *, uncertainty: str = "cov", method: str = "auto") -> Attributions:
        """Return the joint Gaussian of the operator's d values at every row of X.

        ``uncertainty`` is ``"cov"`` (covariance between features), ``"std"`` (variances only) or ``"none"`` (means, at a
        few times the cost of a prediction).
        """
        check_choice("uncertainty", uncertainty, UNCERTAINTY)
        rule = closed_forms.rule_for(type(operator), self.kernel, method)
        if method == "exact" and method_of(self.mean):
            raise NoClosedFormError(
                f'method: "exact" was asked for, but the prior mean {type(self.mean).__name__} has no closed form'
            )
        X = self._rows(X)
        xp = namespace(X)
        n, d = X.shape
        if uncertainty == "cov":
            require_room(
                "The covariance of the attributions",
                (n, d, d),
                'use uncertainty="std", or go through the rows in parts (explainer.batches)',
            )
        mean, error = closed_forms.attribute_mean(operator, self.mean, X)
        error = error + closed_forms.error(operator, self.kernel, X, self.inputs, self.alpha, method=method)
        var = xp.empty((n, d)) if uncertainty != "none" else None
        cov = xp.empty((n, d, d)) if uncertainty == "cov" else None
        if var is None:
            mean = mean + closed_forms.cross_dot(operator, self.kernel, X, self.inputs, self.alpha, method=method)
        else:
            for rows in blocks(n, 32.0 * d * (len(self.inputs) + len(operator.rows(slice(1)).terms(X[:1]))), X):
                here, part = X[rows], operator.rows(rows)
                cross = closed_forms.cross(part, self.kernel, here, self.inputs, method=method)  # (r, d, m)
                mean[rows] += cross @ self.alpha
                explained = self._explained(self._solve(cross.reshape(-1, cross.shape[2])).reshape(cross.shape))
                block = _covariance(closed_forms.auto(part, self.kernel, here, method=method) - explained)
                var[rows] = xp.diagonal(block, axis1=1, axis2=2)
                if cov is not None:
                    cov[rows] = block
        mean = mean + 0.0  # −0.0 becomes 0.0
        names = " + ".join(sorted(rule.methods | method_of(self.mean)))
        return Attributions(mean, var, cov, error + EPS * xp.max(xp.abs(mean), axis=1), names)

    def joint(self, operator: Operator, X: Any, *, method: str = "auto") -> Array:
        """Return the covariance between all features of all rows, (n, d, n, d)."""
        X = self._rows(X)
        n, d = X.shape
        m = len(self.inputs)
        require_room("The joint covariance of the attributions", (n, d, n, d), "use fewer rows, say a random sample", copies=2)
        result = closed_forms.between(operator, self.kernel, X, method=method).reshape(n * d, n * d)
        T = namespace(X).empty((n * d, m))
        for rows in blocks(n, 32.0 * d * m, X):
            cross = closed_forms.cross(operator.rows(rows), self.kernel, X[rows], self.inputs, method=method)
            T[rows.start * d : rows.stop * d] = self._solve(cross.reshape(-1, m))
        return _covariance(result - self._explained(T)).reshape(n, d, n, d)

    def contributions(self, operator: Operator, X: Any, *, method: str = "auto") -> Array:
        """Return αₘ 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m): the share of each input in each mean attribution.

        Their sum over m is the attribution less that of the prior mean.
        """
        X = self._rows(X)
        require_room("The contributions", (*X.shape, len(self.inputs)), "use fewer rows")
        return closed_forms.cross(operator, self.kernel, X, self.inputs, method=method) * self.alpha

    def _rows(self, X: Any) -> Array:
        X = as_matrix("X", X, names=self.feature_names, n_features=self.n_features, like=self.inputs)
        with np.errstate(over="ignore"):
            distance = self.kernel.span(X - self.inputs[0])
        if not (distance < FARTHEST).all():
            row = int(distance.argmax())
            raise InvalidInputError(
                f"X: expected rows within {FARTHEST:.0e} length-scales of the data, got row {row} at {distance[row]:.0e}"
            )
        return X

    def _solve(self, k: Array) -> Array:
        """Return the rows T(x)ᵀ = k(x, Z) diag(w) L⁻ᵀ, (r, m), for covariances k (r, m) with the function at Z, in place of k."""
        return solve_lower_rows(self.factor, k if self.column_scale is None else k * self.column_scale)

    def _explained(self, V: Array) -> Array:
        """Return V(I − RRᵀ)Vᵀ, (..., k, k), for V (..., k, m)."""
        xp = namespace(V)
        explained = V @ xp.swapaxes(V, -1, -2)
        if self.root is not None:
            W = V @ self.root
            explained -= W @ xp.swapaxes(W, -1, -2)
        return explained


def _covariance(C: Array) -> Array:
    """Return C (..., k, k) made exactly symmetric, its variances not below zero: rounding can leave either a little off."""
    xp = namespace(C)
    C = 0.5 * (C + xp.swapaxes(C, -1, -2))
    diagonal = xp.arange(C.shape[-1])
    C[..., diagonal, diagonal] = xp.maximum(C[..., diagonal, diagonal], 0.0)
    return C
