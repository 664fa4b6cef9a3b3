"""The posterior of the weights and the evidence, from sums over rows.

y = c + Φw + noise, w ~ N(0, diag(S)): with B = I + S^½ ΦᵀΦ S^½/σ² = LLᵀ, the weights have the
precision S^−½ B S^−½, and

    log p(y) = −½ [ (‖r‖² − ‖u‖²)/σ² + n log σ² + log|B| + n log 2π ],
    r = y − c,   u = L⁻¹ S^½ Φᵀr / σ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpattr._core.array import (
    Array,
    LinAlgError,
    cholesky,
    cholesky_inverse,
    namespace,
    solve_cholesky,
    solve_lower_rows,
)
from gpattr.estimators.sums import Sums
from gpattr.exceptions import NotPositiveDefiniteError


@dataclass(frozen=True)
class WeightFit:
    """The weights given data: ``weights`` (p,) with precision FFᵀ, the ``constant`` c, log p(y).

    The rest is for derivatives. ``scale`` is S^½, ``factor`` L, and ``residual`` (‖r‖² − ‖u‖²)/σ².
    """

    weights: Array
    scale: Array
    factor: Array
    noise: float
    constant: float
    residual: float
    n: int
    log_marginal_likelihood: float

    @property
    def precision_factor(self) -> Array:
        """F = S^−½ L, lower triangular."""
        return self.factor / self.scale[:, None]

    def inverse(self) -> Array:
        """Return B⁻¹, (p, p), of which only the upper triangle means anything."""
        return cholesky_inverse(self.factor + 0.0)  # a copy, which it may overwrite

    def gradient(self, inverse: Array) -> tuple[Array, float]:
        """Return ∂ log p(y)/∂ log Sⱼ, (p,), and ∂ log p(y)/∂ log σ², for B⁻¹ = ``inverse``.

        The first is ½[wⱼ²/Sⱼ − 1 + (B⁻¹)ⱼⱼ]. All together, noise included, give ½[rᵀC⁻¹r − n]:
        scaling all variances.
        """
        by_variance = 0.5 * ((self.weights / self.scale) ** 2 - 1.0 + inverse.diagonal())
        return by_variance, 0.5 * (self.residual - self.n) - float(by_variance.sum())


def fit_weights(sums: Sums, variances: Array, noise: float, *, free_mean: bool) -> WeightFit:
    """Return the posterior of the weights with prior variances S (p,).

    With ``free_mean`` it has the most likely constant c, else 0.
    """
    xp = namespace(sums.gram)
    scale = xp.sqrt(variances)
    B = sums.whole_gram() * (scale[:, None] / noise) * scale
    i = xp.arange(len(B))
    B[i, i] += 1.0
    if not xp.isfinite(B).all():
        raise NotPositiveDefiniteError(
            "noise_variance: the precision of the weights is not finite; give a larger one, or a"
            " kernel of smaller variance"
        )
    try:
        L = cholesky(B)
    except LinAlgError:
        raise NotPositiveDefiniteError(
            f"noise_variance: with {noise:.0e} float64 cannot distinguish the weights; give a"
            " larger one"
        ) from None
    std = math.sqrt(noise)
    both = solve_lower_rows(L, xp.stack([sums.cross, sums.ones]) * (scale / std))
    y, one = both[0], both[1]
    constant = 0.0
    if free_mean:
        # σ² 1ᵀC⁻¹1; nothing is left where the basis contains the constants.
        seen = sums.n - float(one @ one)
        constant = (sums.target - float(one @ y)) / seen if seen > 1e-12 * sums.n else 0.0
    u = y - constant * one
    square = sums.square - 2.0 * constant * sums.target + constant * constant * sums.n
    residual = max(square - float(u @ u), 0.0) / noise
    weights = scale * solve_cholesky(L, scale * (sums.cross - constant * sums.ones)) / noise
    logs = 2.0 * float(xp.log(L.diagonal()).sum()) + sums.n * math.log(2.0 * math.pi * noise)
    return WeightFit(weights, scale, L, noise, constant, residual, sums.n, -0.5 * (residual + logs))
