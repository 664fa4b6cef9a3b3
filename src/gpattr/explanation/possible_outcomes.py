"""Possible outcomes of a measurement if one of several models is right.

The outcome y of a measurement is not known, and it changes the weights of the models:

    wₖ(y) ∝ wₖ N(y; μₖ, vₖ + τₖ²),      E[A | y] = Σₖ wₖ(y) (mₖ + cₖ (y − μₖ)/(vₖ + τₖ²))

So the remaining variance depends on y. On average over the outcomes that the models expect, it
falls by Var E[A | y], an integral over one variable, which Gauss–Hermite rules of all models take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

NODES = 20  # of each model's rule


@dataclass(frozen=True, eq=False)
class PossibleOutcomes:
    """Attributions and measurements by model, with ``weights`` (K,).

    ``means`` and ``variances`` (K, n, q) of the attributions, ``covariance`` (K, c, n, q) with the
    function at c candidates, whose ``value_means`` and ``value_variance`` are (K, c), and ``noise``
    (K, c).
    """

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    covariance: np.ndarray
    value_means: np.ndarray
    value_variance: np.ndarray
    noise: np.ndarray

    def reductions(self) -> np.ndarray:
        """Return by how much the variances fall on average, Var E[A | y], (c, n, q)."""
        result = np.empty(self.covariance.shape[1:])
        now = np.tensordot(self.weights, self.means, axes=1)
        for c, chance, models, shift in self._outcomes():
            # E[A | y] at every node, (nodes, n, q)
            after = np.tensordot(models, self.means, axes=1)
            after += np.tensordot(models * shift, self._gain(c), axes=1)
            result[c] = np.tensordot(chance, (after - now) ** 2, axes=1)
        return result

    def expected_sign_certainty(self) -> np.ndarray:
        """Return how certain signs will be, averaged over outcomes, (c, n, q)."""
        return np.stack(
            [np.tensordot(chance, part, axes=1) for chance, part in self._sign_certainties()]
        )

    def prob_settled(self, level: float) -> np.ndarray:
        """Return the chance that signs will be certain to more than ``level``, (c, n, q)."""
        return np.stack(
            [
                np.tensordot(chance, part > level, axes=1)
                for chance, part in self._sign_certainties()
            ]
        )

    def prob_positive(self) -> np.ndarray:
        """Return P(A > 0) now, (n, q)."""
        return np.tensordot(self.weights, _positive(self.means, self.variances), axes=1)

    def after(self, c: int, between: np.ndarray) -> PossibleOutcomes:
        """Return the outcomes of a further measurement, given candidate c as each model expects it.

        ``between`` (K, c) are the covariances of the function there and at all candidates.
        """
        share, cross = self.inverse_std(c) ** 2, self.covariance[:, c]
        left = self.value_variance - share[:, None] * between**2
        known = left <= 1e-14 * self.value_variance
        covariance = self.covariance - (share[:, None] * between)[:, :, None, None] * cross[:, None]
        variances = self.variances - share[:, None, None] * cross**2
        return replace(
            self,
            covariance=np.where(known[:, :, None, None], 0.0, covariance),
            value_variance=np.where(known, 0.0, left),
            variances=np.maximum(variances, 0.0),
        )

    def inverse_std(self, c: int) -> np.ndarray:
        """Return (vₖ + τₖ²)^(−½) of candidate c, (K,); 0 where nothing is left to measure."""
        std = np.sqrt(self.value_variance[:, c] + self.noise[:, c])
        return np.divide(1.0, std, out=np.zeros_like(std), where=std > 0)

    def _gain(self, c: int) -> np.ndarray:
        """Return cₖ/(vₖ + τₖ²), (K, n, q)."""
        return (self.inverse_std(c) ** 2)[:, None, None] * self.covariance[:, c]

    def _outcomes(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield candidates with the chances of nodes (s,), wₖ(y) and y − μₖ there, (s, K)."""
        t, w = np.polynomial.hermite_e.hermegauss(NODES)
        w = w / w.sum()
        for c in range(self.value_means.shape[1]):
            mean, total = self.value_means[:, c], self.value_variance[:, c] + self.noise[:, c]
            y = (mean[:, None] + np.sqrt(total)[:, None] * t).reshape(-1)
            chance = (self.weights[:, None] * w).reshape(-1)
            shift = y[:, None] - mean
            spread = np.where(total > 0, total, 1.0)
            logs = np.log(self.weights) - 0.5 * shift**2 / spread - 0.5 * np.log(spread)
            logs = np.where((total > 0).all(), logs, np.log(self.weights))
            models = np.exp(logs - logs.max(axis=1, keepdims=True))
            yield c, chance, models / models.sum(axis=1, keepdims=True), shift

    def _sign_certainties(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, by candidate, the chances of nodes (s,) and the certainties then, (s, n, q)."""
        for c, chance, models, shift in self._outcomes():
            gain = self._gain(c)
            left = np.maximum(self.variances - gain * self.covariance[:, c], 0.0)
            positive = np.zeros((len(chance), *self.means.shape[1:]))
            for k in range(len(self.weights)):
                after = self.means[k] + shift[:, k, None, None] * gain[k]
                positive += models[:, k, None, None] * _positive(after, left[k])
            yield chance, np.maximum(positive, 1.0 - positive)


def _positive(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return P(A > 0) of normal distributions; ½ for one that is exactly 0."""
    std = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(std > 0, ndtr(mean / std), 0.5 * (1.0 + np.sign(mean)))
