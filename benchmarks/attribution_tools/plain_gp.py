"""The GP in plain NumPy, which shares no code with gpattr nor with any tool."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve


@dataclass(frozen=True)
class PlainGP:
    """The GP in plain NumPy: f ~ GP(constant, σ² exp(−r²/2)), r in length-scales, given y = f(Z) +
    noise.
    """

    Z: np.ndarray
    y: np.ndarray
    lengthscale: np.ndarray
    variance: float
    noise: float
    constant: float

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        U, V = (A - self.Z[0]) / self.lengthscale, (B - self.Z[0]) / self.lengthscale
        squares = (U**2).sum(axis=1)[:, None] + (V**2).sum(axis=1) - 2 * U @ V.T
        return self.variance * np.exp(-np.maximum(squares, 0) / 2)

    @cached_property
    def factor(self) -> tuple[np.ndarray, bool]:
        return cho_factor(
            self.kernel(self.Z, self.Z) + self.noise * np.eye(len(self.Z)), lower=True
        )

    @cached_property
    def alpha(self) -> np.ndarray:
        return cho_solve(self.factor, self.y - self.constant)

    def predict(self, points: np.ndarray) -> np.ndarray:
        return self.constant + self.kernel(points, self.Z) @ self.alpha

    def covariance(self, points: np.ndarray) -> np.ndarray:
        cross = self.kernel(self.Z, points)
        return self.kernel(points, points) - cross.T @ cho_solve(self.factor, cross)

    def gradient(self, points: np.ndarray) -> np.ndarray:
        """Of the posterior mean, (n, d)."""
        weights = self.kernel(points, self.Z) * self.alpha
        steps = (self.Z - points[:, None]) / self.lengthscale**2
        return np.einsum("nm,nmd->nd", weights, steps)
