"""Marginals: mixtures of normal distributions, number by number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from gpattr._core.array import EPS, Array, namespace, to_numpy
from gpattr._core.frozen import Frozen
from gpattr._core.normal import check_level
from gpattr._core.validation import numbers
from gpattr.exceptions import InvalidInputError

# Newton's method needs about ten steps; halving, where there are jumps, may need over a thousand.
MAX_STEPS = 1200
ROOT_2PI = math.sqrt(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class Marginals(Frozen):
    """Σₖ weightₖ N(meanₖ, varₖ) for every entry of arrays ``means`` and ``variances`` (K, ...).

    ``weights`` (K,) sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.distributions import Marginals
    >>> means, variances = np.array([[-1.0], [1.0]]), np.ones((2, 1))
    >>> Marginals(np.array([0.5, 0.5]), means, variances).cdf(0.0)
    array([0.5])
    """

    weights: Array
    means: Array
    variances: Array

    @property
    def mean(self) -> Array:
        """The mean of each entry."""
        return namespace(self.means).tensordot(self.weights, self.means, axes=1)

    @property
    def var(self) -> Array:
        """The variance of each entry: the mean of the variances plus the variance of the means."""
        xp = namespace(self.means)
        return xp.tensordot(self.weights, self.variances + (self.means - self.mean) ** 2, axes=1)

    @property
    def between(self) -> Array:
        """The share of each entry's variance that is the variance of the means.

        It is 0 for an entry without variance.
        """
        xp = namespace(self.means)
        apart = xp.tensordot(self.weights, (self.means - self.mean) ** 2, axes=1)
        return apart / xp.where(apart > 0, self.var, 1.0)

    def density(self, x: Any) -> np.ndarray:
        """Return the density of each entry at x, which broadcasts against the entries.

        A component without variance has no density.
        """
        return self._density(points(x, self.means.shape[1:]))

    def cdf(self, x: Any) -> np.ndarray:
        """Return P(entry ≤ x), x broadcasting against the entries."""
        return self._cdf(points(x, self.means.shape[1:]))

    def quantile(self, level: float) -> np.ndarray:
        """Return the smallest x with P(entry ≤ x) ≥ level, for each entry.

        It lies between the quantiles of the components; Newton's method with that bracket finds it.
        """
        check_level(level)
        _, m, s = self._numpy(0)
        # Where there are jumps the search halves to the last digit, and ends where the jump does.
        jumps = (s == 0).any(axis=0)
        ends = m + ndtri(level) * s
        low, high = ends.min(axis=0), ends.max(axis=0)
        high = np.where(self._cdf(low) >= level, low, high)
        x = 0.5 * low + 0.5 * high
        if not jumps.any():  # a normal distribution's with the same moments is near
            x = (self.mean + ndtri(level) * np.sqrt(self.var)).clip(low, high)
        for _ in range(MAX_STEPS):
            below, slope = self._cdf(x), self._density(x)
            excess = below - level
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                # Φ⁻¹ of the probability is nearly a straight line.
                score = ndtri(below)
                new = x - (score - ndtri(level)) * np.exp(-0.5 * score**2) / ROOT_2PI / slope
            settled = np.abs(new - x) <= 4e-16 * np.maximum(np.abs(low), np.abs(high))
            settled &= ~jumps
            middle = 0.5 * low + 0.5 * high
            new = np.where(~jumps & (new > low) & (new < high), new, middle)
            sure = np.where(jumps, (middle <= low) | (middle >= high), np.abs(excess) <= EPS)
            x = np.where(sure | settled, x, new)
            if (sure | settled | (high <= low)).all():
                break
        return np.where(jumps, high, x)

    def _density(self, x: np.ndarray) -> np.ndarray:
        w, m, s = self._numpy(x.ndim)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(s > 0, np.exp(-0.5 * ((x - m) / s) ** 2) / (s * ROOT_2PI), 0.0)
        return np.tensordot(w, each, axes=1)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        w, m, s = self._numpy(x.ndim)
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(s > 0, ndtr((x - m) / s), x >= m)
        return np.tensordot(w, each, axes=1)

    def _numpy(self, ndim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return weights, means and standard deviations that broadcast against ``ndim`` axes."""
        m, v = to_numpy(self.means), to_numpy(self.variances)
        extra = max(0, ndim - (m.ndim - 1))
        shape = (len(m), *[1] * extra, *m.shape[1:])
        return to_numpy(self.weights), m.reshape(shape), np.sqrt(v).reshape(shape)


def points(x: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers that broadcast against entries of this shape."""
    found = to_numpy(numbers("x", x))
    try:
        np.broadcast_shapes(found.shape, shape)
    except ValueError:
        raise InvalidInputError(
            f"x: expected numbers that broadcast against the shape {tuple(shape)}, got the shape"
            f" {found.shape}"
        ) from None
    if np.isnan(found).any():
        raise InvalidInputError("x: expected numbers, got NaN")
    return found


Mixture = Marginals  # its former name
