"""Mixtures of normal distributions, number by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from gpattr._array import Array, namespace, to_numpy
from gpattr._frozen import Frozen
from gpattr._validation import numbers
from gpattr.exceptions import InvalidInputError

MAX_STEPS = 200  # of which Newton's method needs about ten; the rest is for jumps


@dataclass(frozen=True, eq=False)
class Mixture(Frozen):
    """Σₖ weightₖ N(meanₖ, varₖ) for every entry of arrays ``means`` and ``variances`` (K, ...); ``weights`` (K,) sum to 1."""

    weights: Array
    means: Array
    variances: Array

    @property
    def mean(self) -> Array:
        """The mean of each entry."""
        return namespace(self.means).tensordot(self.weights, self.means, axes=1)

    @property
    def var(self) -> Array:
        """The variance of each entry by total variance: the mean of the variances, and the variance of the means."""
        xp = namespace(self.means)
        return xp.tensordot(self.weights, self.variances + (self.means - self.mean) ** 2, axes=1)

    def density(self, x: Any) -> np.ndarray:
        """Return the density of each entry at x, which broadcasts against the entries; points that are sure have none."""
        w, m, s, x = self._numpy(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(s > 0, np.exp(-0.5 * ((x - m) / s) ** 2) / (s * np.sqrt(2.0 * np.pi)), 0.0)
        return np.tensordot(w, each, axes=1)

    def cdf(self, x: Any) -> np.ndarray:
        """Return P(entry ≤ x), x broadcasting against the entries."""
        w, m, s, x = self._numpy(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(s > 0, ndtr((x - m) / s), x >= m)
        return np.tensordot(w, each, axes=1)

    def quantile(self, level: float) -> np.ndarray:
        """Return the smallest x with P(entry ≤ x) ≥ level, for each entry.

        It lies between the quantiles of the components; Newton's method with that bracket finds it.
        """
        if isinstance(level, bool) or not isinstance(level, (int, float, np.floating)) or not 0.0 < level < 1.0:
            raise InvalidInputError(f"level: expected a number between 0 and 1, got {level!r}")
        _, m, s, _ = self._numpy(0.0)
        ends = m + ndtri(level) * s
        low, high = ends.min(axis=0), ends.max(axis=0)
        high = np.where(self.cdf(low) >= level, low, high)
        x = np.clip(to_numpy(self.mean) + ndtri(level) * np.sqrt(to_numpy(self.var)), low, high)
        for _ in range(MAX_STEPS):
            excess, slope = self.cdf(x) - level, self.density(x)
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                new = x - excess / slope
            new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
            settled = (np.abs(new - x) <= 4e-16 * np.maximum(np.abs(low), np.abs(high))) | (excess == 0)
            x = np.where(excess == 0, x, new)
            if (settled | (high <= low)).all():
                break
        return np.where(np.abs(self.cdf(x) - level) <= 1e-10, x, high)  # at a jump, where it ends

    def _numpy(self, x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        x = to_numpy(numbers("x", x))
        m, v = to_numpy(self.means), to_numpy(self.variances)
        extra = max(0, x.ndim - (m.ndim - 1))
        shape = (len(m), *[1] * extra, *m.shape[1:])
        return to_numpy(self.weights), m.reshape(shape), np.sqrt(v).reshape(shape), x
