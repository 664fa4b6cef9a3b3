"""The evidence of coregionalised targets, and its derivatives.

For Y = f(X) + noise with Cov[f_o(x), f_p(x')] = B_op k(x, x') and noise variances D = diag(d): with
D^−½ B D^−½ = UΛUᵀ the columns of Ŷ = Y D^−½ U are independent, ŷ_q ~ N(c_q, A_q), A_q = λ_q K + I,
and α_q = A_q⁻¹(ŷ_q − c_q):

    log p(Y) = Σ_q log N(ŷ_q; c_q, A_q) − (m/2) log|D|
    ∂ by K   = Σ_q λ_q ½(α_qα_qᵀ − A_q⁻¹)
    ∂ by B   = D^−½ U ½(αᵀKα − diag tr(A_q⁻¹K)) Uᵀ D^−½
    ∂ by d_o = ½(|a_o|² − Σ_q U_oq² tr(A_q⁻¹)/d_o),      a = α Uᵀ D^−½
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import (
    Array,
    LinAlgError,
    cholesky,
    cholesky_inverse,
    product,
    solve_cholesky,
)
from gpattr.estimators.evidence.marginal_likelihood import FREE, NOISE, SINGULAR
from gpattr.estimators.hyperparameters import likelihood_gradient
from gpattr.kernels import Kernel


@dataclass(frozen=True)
class CoregionalisedEvidence:
    """log p(Y) of targets Y (m, P) at rows X (centred), B = RRᵀ with R lower triangular.

    R is diagonal where ``independent``. ``noise`` are known variances (P,), None where they are
    hyperparameters. With ``free_mean`` the unknown constant mean of each output takes its best
    value, which leaves the other derivatives as they are.
    """

    X: Array
    Y: Array
    noise: Array | None
    independent: bool
    free_mean: bool

    @property
    def places(self) -> tuple[Array, ...]:
        """The places of the learned entries of R."""
        P = self.Y.shape[1]
        return np.diag_indices(P) if self.independent else np.tril_indices(P)

    def root(self, entries: Array) -> Array:
        """Return R, (P, P), from its entries that are learned."""
        R = np.zeros((self.Y.shape[1],) * 2)
        R[self.places] = entries
        return R

    def __call__(self, kernel: Kernel, noise: Any, entries: Array) -> tuple[float, dict[str, Any]]:
        """Return log p(Y) and its derivatives by log θ and by the entries of R."""
        m, P = self.Y.shape
        K, R = kernel(self.X, self.X), self.root(entries)
        d = np.asarray(self.noise if noise is None else noise) + np.zeros(P)
        scale = np.sqrt(d)
        parts = self._rotated(K, R, scale)
        value = -m * (float(np.log(scale).sum()) + 0.5 * P * math.log(2.0 * math.pi))
        G, alpha = np.zeros_like(K), np.empty((m, P))
        traces, products = np.empty(P), np.empty(P)
        for q, (share, L, residual) in enumerate(parts.columns):
            alpha[:, q] = solve_cholesky(L, residual)
            value -= 0.5 * float(residual @ alpha[:, q]) + float(np.log(L.diagonal()).sum())
            inverse = cholesky_inverse(L)
            inverse = np.triu(inverse) + np.triu(inverse, 1).T
            traces[q], products[q] = inverse.diagonal().sum(), (inverse * K).sum()
            G += (0.5 * share) * (alpha[:, q, None] * alpha[:, q] - inverse)
        gradient = likelihood_gradient(kernel, self.X, G)
        U = parts.vectors
        by_covariance = (
            U
            @ (0.5 * (product(alpha.T, product(K, alpha)) - np.diag(products)))
            @ U.T
            / scale[:, None]
            / scale
        )
        gradient[FREE] = (2.0 * by_covariance @ R)[self.places]
        if noise is not None:
            a = product(alpha, U.T) / scale
            gradient[NOISE] = 0.5 * (d * (a * a).sum(axis=0) - U**2 @ traces)
        return value, gradient

    def constants(self, kernel: Kernel, noise: Any, entries: Array) -> Array:
        """Return the most likely constant mean of each output, (P,); zeros if not free."""
        scale = np.sqrt(np.asarray(noise) + np.zeros(self.Y.shape[1]))
        parts = self._rotated(kernel(self.X, self.X), self.root(entries), scale)
        return scale * (parts.vectors @ parts.constants)

    def _rotated(self, K: Array, R: Array, scale: Array) -> _Rotated:
        vectors, values, _ = np.linalg.svd(R / scale[:, None])
        columns, constants = [], np.zeros(len(values))
        ones, i = np.ones(len(K)), np.arange(len(K))
        for q, y in enumerate(product(self.Y / scale, vectors).T):
            share = float(values[q] ** 2)
            A = share * K
            A[i, i] += 1.0
            L = cholesky(A)
            if float(L.diagonal().min()) ** 2 <= SINGULAR * share * float(K.diagonal().max()):
                raise LinAlgError("singular to rounding")
            if self.free_mean:
                solved = solve_cholesky(L, ones)
                constants[q] = (solved @ y) / solved.sum()
            columns.append((share, L, y - constants[q]))
        return _Rotated(vectors, columns, constants)


@dataclass(frozen=True)
class _Rotated:
    """The independent columns: U, then (λ, chol A, ŷ − c) of each, and their constants c."""

    vectors: Array
    columns: list[tuple[float, Array, Array]]
    constants: Array
