"""The margin of a change: by how much a quantile of f at the changed row passes the target.

    g(u) = ±(μ(x') − t) − z σ(x'),   x' = x + s∘u,   z = Φ⁻¹(level)

It is not negative exactly where P(f ≥ t) ≥ level, or P(f ≤ t) with the minus. Its gradient needs
∇μ = E[∂f] and ∇σ = Cov[f, ∂f]/σ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from gpattr._core.array import to_numpy
from gpattr._core.validation import beside
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer.change_space import ChangeSpace
from gpattr.posteriors import Posterior

# The margin is that of a level a little higher, so that rounding cannot bring a result below it.
SAFETY = 1e-9


@dataclass(frozen=True, eq=False)
class ChangeMargin:
    """Margins of changes in a ``space`` for a ``posterior`` of columns."""

    posterior: Posterior
    space: ChangeSpace
    target: float
    level: float
    sign: float

    @property
    def z(self) -> float:
        """The standard normal quantile of the level."""
        return float(ndtri(self.level + SAFETY * min(self.level, 1.0 - self.level)))

    def moments(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f at rows, as `predict` does."""
        rows = beside("x", rows, self.posterior.like)
        mean, std = self.posterior.moments(rows, return_std=True)
        return to_numpy(mean), to_numpy(std)

    def values(self, u: np.ndarray, setting: np.ndarray) -> np.ndarray:
        """Return the margins g (r,)."""
        mean, std = self.moments(self.space.rows(u, setting))
        return self.sign * (mean - self.target) - self.z * std

    def slopes(self, u: np.ndarray, setting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins g (r,) and their gradients (r, p)."""
        mean, std, d_mean, d_std = self._derivatives(u, setting)
        g = self.sign * (mean - self.target) - self.z * std
        return g, self.sign * d_mean - self.z * d_std

    def scores(self, u: np.ndarray, setting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ±(μ − t)/σ, which grows with the probability, (r,) and its gradients (r, p)."""
        mean, std, d_mean, d_std = self._derivatives(u, setting)
        score = self.sign * (mean - self.target) / std
        return score, (self.sign * d_mean - score[:, None] * d_std) / std[:, None]

    def _derivatives(self, u: np.ndarray, setting: np.ndarray) -> tuple[np.ndarray, ...]:
        columns, scales = self.space.columns, self.space.scales
        rows = beside("x", self.space.rows(u, setting), self.posterior.like)
        mean, var, slope, cov = map(to_numpy, self.posterior.slopes(rows))
        # Rounding leaves a variance of zero at training rows without noise.
        std = np.maximum(np.sqrt(var), 1e-12 * np.abs(mean) + 1e-100)
        return mean, std, slope[:, columns] * scales, cov[:, columns] * scales / std[:, None]

    def check(self) -> None:
        """Refuse a mixture, and a posterior without the gradients of its mean and variance."""
        if len(self.posterior.components) > 1:
            raise UnsupportedModelError(
                "model: a counterfactual needs one Gaussian posterior, got a mixture of"
                f" {len(self.posterior.components)}; explain one of them"
            )
        try:
            self.posterior.require_jets()
        except UnsupportedModelError as error:
            raise UnsupportedModelError(
                "model: a counterfactual needs the gradients of the mean and the variance of the"
                f" prediction; {error}"
            ) from None


def probability(mean: np.ndarray, std: np.ndarray, target: float, sign: float) -> np.ndarray:
    """Return P(f ≥ target), or with the sign −1 P(f ≤ target), for f ~ N(mean, std²)."""
    above = sign * (mean - target)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(std > 0, ndtr(above / std), (above >= 0).astype(float))
