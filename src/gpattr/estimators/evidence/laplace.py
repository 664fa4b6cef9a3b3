"""Laplace's approximation of the evidence of labels, and its derivatives by log θ.

With f̂ the mode, g = ∇ log p(y | f̂), W = −∇² log p, R = W^½B⁻¹W^½, B = I + W^½KW^½:

    log Z = log p(y | f̂) − ½ gᵀ(f̂ − m) − ½ log|B|
    ∂ log Z = Σ G∘∂K,      G = ½(ggᵀ − R) + ½(ugᵀ + guᵀ),
    u = (I − RK)s,   s = ½ diag(K − KRK)∘∇³ log p(y | f̂)

(Rasmussen and Williams, section 5.5.1). The last part of G is due to the mode, which moves
with the hyperparameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpattr._core.array import (
    Array,
    LinAlgError,
    namespace,
    outer_products,
    product,
    solve_lower_rows,
)
from gpattr.estimators.hyperparameters import likelihood_gradient
from gpattr.exceptions import NotPositiveDefiniteError
from gpattr.kernels import Kernel
from gpattr.posteriors.classification import factor_at
from gpattr.posteriors.laplace import evidence_at, mode, score, sqrt_weights


@dataclass(frozen=True)
class LaplaceEvidence:
    """log Z of labels y at rows X (centred) with prior mean ``mean`` (n,).

    Newton's method starts at the α of the last kernel: a search moves in small steps, and far from
    the mode each of Newton's gains about one unit of log odds.
    """

    X: Array
    y: Array
    mean: Array
    last: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, kernel: Kernel, noise: None) -> tuple[float, dict[str, Any]]:
        """Return log Z and its derivatives; there is no noise, because labels have their own."""
        xp = namespace(self.X)
        K = kernel(self.X, self.X)
        try:
            f = mode(K, self.y, self.mean, *self.last)
            scale = sqrt_weights(f)
            L = factor_at(K, scale)
        except NotPositiveDefiniteError as error:
            raise LinAlgError(str(error)) from None
        g = score(f, self.y)
        self.last[:] = [g]
        value = evidence_at(f, self.y, self.mean, L)
        T = solve_lower_rows(L, K * scale)  # rows k(xₙ, X)W^½L⁻ᵀ
        half = solve_lower_rows(L, xp.eye(len(K)) * scale)  # rows of W^½L⁻ᵀ: R = half halfᵀ
        R = outer_products(half)
        third = scale**2 * (2.0 * self._probability(f) - 1.0)  # ∇³ log p = −σ(1 − σ)(1 − 2σ)
        s = 0.5 * (K.diagonal() - (T**2).sum(axis=1)) * third
        u = s - product(R, product(K, s))
        G = 0.5 * (g[:, None] * g - R + u[:, None] * g + g[:, None] * u)
        return value, likelihood_gradient(kernel, self.X, G)

    def _probability(self, f: Array) -> Array:
        return 0.5 * (1.0 + namespace(f).tanh(0.5 * f))
