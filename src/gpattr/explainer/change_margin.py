"""The margin of a change: by how much a quantile of f at the changed row passes the target.

    g(u) = ±(q(x') − t),   x' = x + s∘u,   P(f ≥ q) = level, or P(f ≤ q) = level with the minus

It is not negative exactly where P(f ≥ t) ≥ level, or P(f ≤ t) with the minus. For a Gaussian
q = μ ∓ zσ, z = Φ⁻¹(level). For a mixture, with densities ωₖ = wₖ φ(zₖ)/σₖ of its models at q and
zₖ = (q − μₖ)/σₖ,

    ∇q = Σ ωₖ (∇μₖ + zₖ ∇σₖ) / Σ ωₖ.

Gradients need ∇μ = E[∂f] and ∇σ = Cov[f, ∂f]/σ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri, ndtri_exp, softmax

from gpattr._core.array import to_numpy
from gpattr._core.validation import beside
from gpattr.distributions.marginals import Marginals
from gpattr.exceptions import UnsupportedModelError
from gpattr.explainer.change_space import ChangeSpace
from gpattr.posteriors import MixturePosterior, Posterior

# The margin uses a slightly higher level, so that rounding cannot bring a result below it.
SAFETY = 1e-9
HALVINGS = 20


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

    @property
    def weights(self) -> np.ndarray:
        """The weights of the models, (K,); of a single Gaussian, 1."""
        return np.array([weight for weight, _ in self.posterior.components])

    def moments(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f at rows, as `predict` does."""
        rows = beside("x", rows, self.posterior.like)
        mean, std = self.posterior.moments(rows, return_std=True)
        return to_numpy(mean), to_numpy(std)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return P(f ≥ target), or with the minus P(f ≤ target), at rows, (r,)."""
        means, stds = self._models(rows)
        above = self.sign * (means - self.target)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(stds > 0, ndtr(above / stds), (above >= 0).astype(float))
        return self.weights @ each

    def marginals(self, rows: np.ndarray) -> Marginals | None:
        """Return the distribution of f at rows if it is a mixture, else None."""
        if len(self.posterior.components) == 1:
            return None
        means, stds = self._models(rows)
        return Marginals(self.weights, means, stds**2)

    def values(self, u: np.ndarray, setting: np.ndarray) -> np.ndarray:
        """Return the margins g (r,)."""
        return self.sign * (
            self._quantile(*self._models(self.space.rows(u, setting))) - self.target
        )

    def slopes(self, u: np.ndarray, setting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the margins g (r,) and their gradients (r, p)."""
        means, stds, d_means, d_stds = self._derivatives(u, setting)
        q = self._quantile(means, stds)
        z = (q - means) / stds
        logs = np.log(self.weights)[:, None] - 0.5 * z * z - np.log(stds)
        share = softmax(logs, axis=0)[..., None]
        gradient = (share * (d_means + z[..., None] * d_stds)).sum(axis=0)
        return self.sign * (q - self.target), self.sign * gradient

    def scores(self, u: np.ndarray, setting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Φ⁻¹ of the probability, (r,), and its gradients (r, p).

        For a Gaussian it is ±(μ − t)/σ.
        """
        means, stds, d_means, d_stds = self._derivatives(u, setting)
        each = self.sign * (means - self.target) / stds
        slopes = (self.sign * d_means - each[..., None] * d_stds) / stds[..., None]
        score = self._score(each)
        ratio = np.exp(np.minimum(0.5 * (score**2 - each**2), 700.0))
        return score, ((self.weights[:, None] * ratio)[..., None] * slopes).sum(axis=0)

    def heights(self, u: np.ndarray, setting: np.ndarray) -> np.ndarray:
        """Return the scores alone, (r,)."""
        means, stds = self._models(self.space.rows(u, setting))
        return self._score(self.sign * (means - self.target) / np.maximum(stds, 1e-300))

    def _score(self, each: np.ndarray) -> np.ndarray:
        """Return Φ⁻¹(Σ wₖ Φ(sₖ)), (r,), for s (K, r), in the tails too."""
        if len(each) == 1:
            return each[0]
        logs = np.log(self.weights)[:, None]
        low = logsumexp(logs + log_ndtr(each), axis=0)
        high = logsumexp(logs + log_ndtr(-each), axis=0)
        return np.where(low < high, ndtri_exp(low), -ndtri_exp(high))

    def _quantile(self, means: np.ndarray, stds: np.ndarray) -> np.ndarray:
        """Return q, (r,), for the models' moments (K, r)."""
        if len(means) == 1:
            return means[0] - self.sign * self.z * stds[0]
        return Marginals(self.weights, means, stds**2).quantile(float(ndtr(-self.sign * self.z)))

    def _models(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of each model at rows, (K, r)."""
        if len(self.posterior.components) == 1:
            mean, std = self.moments(rows)
            return mean[None], std[None]
        rows = beside("x", rows, self.posterior.like)
        if isinstance(self.posterior, MixturePosterior):
            found = self.posterior.marginals_at(rows)
            return to_numpy(found.means), np.sqrt(to_numpy(found.variances))
        parts = [
            tuple(map(to_numpy, part.moments(rows, return_std=True)))
            for _, part in self.posterior.components
        ]
        return np.stack([mean for mean, _ in parts]), np.stack([std for _, std in parts])

    def _derivatives(self, u: np.ndarray, setting: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return mean and standard deviation of each model, (K, r), and gradients (K, r, p)."""
        columns, scales = self.space.columns, self.space.scales
        rows = beside("x", self.space.rows(u, setting), self.posterior.like)
        if isinstance(self.posterior, MixturePosterior):
            mean, var, slope, cov = self.posterior.component_slopes(rows)
        else:
            parts = [part.slopes(rows) for _, part in self.posterior.components]
            mean, var, slope, cov = (
                np.stack([to_numpy(part[i]) for part in parts]) for i in range(4)
            )
        # Rounding leaves a variance of zero at training rows without noise.
        std = np.maximum(np.sqrt(var), 1e-12 * np.abs(mean) + 1e-100)
        return mean, std, slope[..., columns] * scales, cov[..., columns] * scales / std[..., None]

    def check(self) -> None:
        """Refuse a posterior without the gradients of its mean and variance."""
        try:
            for _, part in self.posterior.components:
                part.require_jets()
        except UnsupportedModelError as error:
            raise UnsupportedModelError(
                "model: a counterfactual needs the gradients of the mean and the variance of the"
                f" prediction; {error}"
            ) from None


@dataclass(frozen=True, eq=False)
class Change:
    """A change u (p,) in a ``setting`` of categories: its length and its number of features."""

    u: np.ndarray
    setting: int
    distance: float
    n_features: int


@dataclass(frozen=True, eq=False)
class ChangePool:
    """Changes u (r, p) of features ``sets`` (r, p) in settings (r,), with their margins (r,)."""

    u: np.ndarray
    sets: np.ndarray
    setting: np.ndarray
    g: np.ndarray

    def __len__(self) -> int:
        return len(self.g)

    def __getitem__(self, chosen: np.ndarray | slice) -> ChangePool:
        return ChangePool(self.u[chosen], self.sets[chosen], self.setting[chosen], self.g[chosen])

    def __add__(self, other: ChangePool) -> ChangePool:
        mine, theirs = ((pool.u, pool.sets, pool.setting, pool.g) for pool in (self, other))
        return ChangePool(*(np.concatenate(pair) for pair in zip(mine, theirs, strict=True)))


def pulled(margin: ChangeMargin, pool: ChangePool) -> ChangePool:
    """Return the changes that reach the target, shrunk towards the row while they still do."""
    pool = pool[pool.g >= 0]
    inner, outer, g = np.zeros(len(pool)), np.ones(len(pool)), pool.g
    for _ in range(HALVINGS if len(pool) else 0):
        middle = 0.5 * (inner + outer)
        values = margin.values(middle[:, None] * pool.u, pool.setting)
        reached = values >= 0
        g = np.where(reached, values, g)
        inner, outer = np.where(reached, inner, middle), np.where(reached, middle, outer)
    return ChangePool(outer[:, None] * pool.u, pool.sets, pool.setting, g)
