"""Sensitivity of a posterior covariance to errors of what it is computed from.

Σ = P − VVᵀ with V = CL⁻ᵀ: an error δC of the covariances with the data changes Σ by 2 δC·W to first order, W = VL⁻¹ = C(LLᵀ)⁻¹,
and an error of LLᵀ changes it by W δ(LLᵀ) Wᵀ. The lengths of the rows of W are estimated without another solve: for a standard
normal g, (V·L⁻¹g)² has the mean ‖W‖². With 32 of them, twice the estimate is too short once in 300 000 times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._array import EPS, Array, namespace, product, solve_lower_rows

N_DIRECTIONS = 32


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How much errors of covariances with the data, and rounding, are amplified in the posterior covariance."""

    directions: Array  # L⁻¹g, (m, s)
    scale: float  # what covariances with the data are multiplied by
    size: float  # the largest variance of a target

    @classmethod
    def of(cls, L: Array, column_scale: Array | None) -> Sensitivity:
        """Return that of a posterior with the factor L (m, m) and the scale w (m,) or None of the covariances with its data."""
        xp = namespace(L)
        normal = xp.asarray(np.random.default_rng(0).standard_normal((N_DIRECTIONS, len(L))))
        directions = xp.swapaxes(solve_lower_rows(L, normal), 0, 1)
        scale = 1.0 if column_scale is None else float(xp.max(xp.abs(column_scale), axis=0))
        return cls(directions, scale, float(xp.max((L * L).sum(axis=1), axis=0)))

    def lengths(self, V: Array) -> Array:
        """Return an upper estimate of the largest ‖W‖ of each row, (r,), for V (r, d, m)."""
        xp = namespace(V)
        products = product(V, self.directions)  # (r, d, s)
        return (2.0 * self.scale) * xp.sqrt(xp.max((products * products).mean(axis=2), axis=1))

    def rounding(self, lengths: Array, size: Array) -> Array:
        """Return what rounding makes of the covariance, (r,), for lengths of W and the largest prior variance, (r,) each."""
        m = len(self.directions)
        return EPS * (16.0 + m**0.5) * (size + self.size * lengths * lengths)
