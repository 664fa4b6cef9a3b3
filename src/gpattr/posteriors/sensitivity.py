"""Sensitivity of a posterior to errors of its matrices.

With covariances C with the data and A = LLᵀ, the mean is Cα, α = A⁻¹y, and the covariance
Σ = P − VVᵀ, V = CL⁻ᵀ. An error δA changes the mean by W δA α to first order, W = VL⁻¹ = CA⁻¹, and
Σ by W δA Wᵀ; an error δC changes Σ by 2 δC·W.

The lengths of the rows of W are estimated without another solve: for a standard normal g, (V·L⁻¹g)²
has the mean ‖W‖². With 32 of them, twice the estimate is too short once in 300 000 times. Where V
is not formed, ‖W‖² ≤ P ‖L⁻¹‖² is used, for Σ ≥ 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product, solve_lower_rows, solve_upper
from gpattr._core.memory import blocks

N_DIRECTIONS = 32
N_SKETCHED = 8  # four times their estimate is too short once in 7000 times
HIDDEN = 1e-3


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A posterior's amplification of rounding, and of errors of covariances with its data."""

    directions: Array  # L⁻¹g, (m, s)
    sketch: Array  # A⁻¹g of some of them, (m, s')
    scale: float  # the factor of covariances with the data
    size: float  # the largest variance of a target
    weights: float  # ‖α‖

    @classmethod
    def of(cls, L: Array, alpha: Array, column_scale: Array | None) -> Sensitivity:
        """Return the sensitivity of a posterior with L (m, m), α (m,) and a scale (m,) or None."""
        xp = namespace(L)
        normal = xp.asarray(np.random.default_rng(0).standard_normal((N_DIRECTIONS, len(L))))
        directions = xp.swapaxes(solve_lower_rows(L, normal), 0, 1)
        sketch = solve_upper(L, directions[:, :N_SKETCHED])
        scale = 1.0
        if column_scale is not None:
            sketch, scale = (
                column_scale[:, None] * sketch,
                float(xp.max(xp.abs(column_scale), axis=0)),
            )
        rows = (L[some] for some in blocks(len(L), 16.0 * len(L), L))
        size = max(float(((part * part).sum(axis=1)).max()) for part in rows)
        weights = float((alpha * alpha).sum()) ** 0.5
        return cls(directions, sketch, scale, size, weights)

    def lengths(self, V: Array) -> Array:
        """Return an upper estimate of the largest ‖W‖ of each row, (r,), for V (r, d, m)."""
        return 2.0 * _largest_root_mean_square(product(V, self.directions))

    def beside(self, alpha: Array) -> Array:
        """Return α and the sketch beside it, (m, 1 + s').

        The sketch is made so small that its errors are hidden by the errors of α.
        """
        return namespace(alpha).concatenate([alpha[None], self._smallness * self.sketch.T]).T

    def lengths_from(self, products: Array) -> Array:
        """Return `lengths` from covariances times the sketch of `beside`, (r, d, s')."""
        return (4.0 / (self._smallness or 1.0)) * _largest_root_mean_square(products)

    def sketched_lengths(self, cross: Array) -> Array:
        """Return `lengths` from covariances with the data, (r, d, m), not solved for."""
        return 4.0 * _largest_root_mean_square(product(cross, self.sketch))

    @property
    def _smallness(self) -> float:
        """The factor of the sketch beside α; 0 where α is."""
        return HIDDEN * self.weights / (float((self.sketch**2).sum()) ** 0.5 or 1.0)

    def longest(self, std: Array) -> Array:
        """Return an upper estimate of ‖W‖, (r,), from each row's largest prior std, (r,)."""
        inverse = (
            float((self.directions * self.directions).sum(axis=0).mean()) ** 0.5
        )  # ‖L⁻¹‖, Frobenius's
        return 2.0 * inverse * std

    def rounding_of_mean(self, lengths: Array) -> Array:
        """Return the error of the mean by rounding of the data's covariances, (r,), from ‖W‖."""
        return EPS * (16.0 + len(self.directions) ** 0.5) * self.size * self.weights * lengths

    def rounding(self, lengths: Array, size: Array) -> Array:
        """Return the error of the covariance by rounding, (r,), from ‖W‖ and prior variances."""
        m = len(self.directions)
        return EPS * (16.0 + m**0.5) * (size + self.size * lengths * lengths)


def _largest_root_mean_square(products: Array) -> Array:
    """Return the largest over d of the root mean square over s, (r,), for (r, d, s)."""
    xp = namespace(products)
    return xp.sqrt(xp.max((products * products).mean(axis=2), axis=1))
