"""Integrated Hessians of polynomial kernels: a Gauss rule for −ln s integrates them exactly.

With τ = c + Σᵢ σᵢ²xᵢzᵢ, ∂ᵢ = σᵢ²zᵢ d/dτ: derivatives by x are powers of τ times products of σ²z.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import perm

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.table import KERNELS, Bounded, Formulas, rounding
from gpattr.kernels import Linear, Polynomial
from gpattr.operators import IntegratedHessians, Paths
from gpattr.special.log_paths import log_rule


def linear(operator: IntegratedHessians, kernel: Linear) -> Formulas:
    """Return the formulas of a linear kernel: a polynomial of degree 1 without an offset."""
    return _Power(operator, kernel.variance, 1, 0.0).formulas()


def polynomial(operator: IntegratedHessians, kernel: Polynomial) -> Formulas:
    """Return the formulas of a polynomial kernel."""
    return _Power(operator, kernel.variance, kernel.degree, kernel.offset).formulas()


@dataclass(frozen=True, eq=False)
class _Power:
    """k(x, z) = (c + Σᵢ σᵢ²xᵢzᵢ)^degree."""

    operator: IntegratedHessians
    variance: float | Array
    degree: int
    offset: float

    def formulas(self) -> Formulas:
        def cross(paths: Paths, Z: Array) -> Bounded:
            value, size = self.cross(paths, Z)
            largest = namespace(Z).max(size, axis=1)
            return Bounded(value, 32 * EPS * (largest * largest).sum(axis=1) ** 0.5)

        def contract(paths: Paths, Z: Array, w: Array) -> Bounded:
            xp = namespace(Z)
            n, q = paths.shape[0], len(self.operator.pairs_for(paths.shape[1]))
            result, error = xp.empty((n, q, w.shape[1])), xp.empty(n)
            for rows in blocks(n, 48.0 * q * len(Z), Z):
                value, size = self.cross(paths[rows], Z)
                result[rows], error[rows] = product(value, w), rounding(size, w)
            return Bounded(result, error)

        return Formulas(
            cross=cross,
            contract=contract,
            prior_cov=lambda paths: self.between(paths, paths),
            between=self.between,
        )

    def power(self, tau: Array, order: int) -> Array:
        """Return the derivative of this order of τ^degree."""
        left = self.degree - order
        return perm(self.degree, order) * tau**left if left >= 0 else 0.0 * tau

    def rule(self) -> tuple[list[float], list[float]]:
        """Nodes and weights of −ln s, exact for s times second derivatives."""
        nodes, weights = log_rule(self.degree // 2 + 1)
        return nodes.tolist(), weights.tolist()

    def cross(self, paths: Paths, Z: Array) -> tuple[Array, Array]:
        """Return Γᵢⱼk(·, z), (n, q, m), and its size before anything cancels."""
        xp = namespace(Z)
        pairs = self.operator.pairs_for(paths.shape[1])
        i, j = map(list, zip(*pairs, strict=True))
        diagonal = [place for place, (a, b) in enumerate(pairs) if a == b]
        step, scaled = paths.step, (Z * xp.asarray(self.variance)).T  # (d, m)
        first, second, size_1, size_2 = (xp.zeros((paths.shape[0], len(Z))) for _ in range(4))
        for s, weight in zip(*self.rule(), strict=True):
            tau = product(paths.at([s])[0], scaled) + self.offset
            slope, curvature = self.power(tau, 1), self.power(tau, 2)
            first, second = first + weight * slope, second + (weight * s) * curvature
            size_1, size_2 = size_1 + weight * abs(slope), size_2 + (weight * s) * abs(curvature)
        outer = (step[:, i] * step[:, j])[:, :, None] * (scaled[i] * scaled[j])
        along = step[:, :, None] * scaled  # (n, d, m)
        value, size = outer * second[:, None, :], abs(outer) * size_2[:, None, :]
        own = along[:, [i[place] for place in diagonal]]
        value[:, diagonal] += own * first[:, None, :]
        size[:, diagonal] += abs(own) * size_1[:, None, :]
        return value, size

    def between(self, paths: Paths, other: Paths) -> Bounded:
        """Return the covariance along the k-th path of each, (n, q, q)."""
        xp = namespace(paths.stop)
        pairs = self.operator.pairs_for(paths.shape[1])
        n, q = paths.shape[0], len(pairs)
        value, size = xp.zeros((n, q, q)), xp.zeros(n)
        for s, ws in zip(*self.rule(), strict=True):
            for t, wt in zip(*self.rule(), strict=True):
                x, y = paths.at([s])[0], other.at([t])[0]
                part = self._derivatives(pairs, x, y, paths.step, other.step, s, t)
                value += (ws * wt) * part
                size += (ws * wt) * xp.max(abs(part), axis=(1, 2))
        return Bounded(value, 64 * EPS * size)

    def _derivatives(
        self,
        pairs: list[tuple[int, int]],
        x: Array,
        y: Array,
        p: Array,
        q: Array,
        s: float,
        t: float,
    ) -> Array:
        """Return Γᵢⱼ of one point of a path and Γₖₗ of one of the other, (n, Q, Q).

        The operator is s pᵢpⱼ∂ᵢ∂ⱼ + δᵢⱼpᵢ∂ᵢ. With X = q∘σ²x, Y = p∘σ²y and M = p∘σ²∘q, each ∂ᵢ
        gives Y, each ∂ₖ gives X, and one that meets the other gives M.
        """
        xp = namespace(x)
        scale = xp.asarray(self.variance)
        i, j = map(list, zip(*pairs, strict=True))
        equal = xp.asarray([float(a == b) for a, b in pairs])
        tau = (x * scale * y).sum(axis=1) + self.offset
        D1, D2, D3, D4 = (self.power(tau, order)[:, None, None] for order in (1, 2, 3, 4))
        X, Y, M = q * scale * x, p * scale * y, p * scale * q
        XX, YY = (X[:, i] * X[:, j])[:, None, :], (Y[:, i] * Y[:, j])[:, :, None]
        meet = xp.eye(x.shape[1]) * M[:, None, :]  # δₐ_b Mₐ, (n, d, d)
        ii, ij, ji, jj = (meet[:, a][:, :, b] for a in (i, j) for b in (i, j))
        Xi, Xj, Yi, Yj = X[:, None, i], X[:, None, j], Y[:, i, None], Y[:, j, None]
        mixed = ii * Yj * Xj + ij * Yj * Xi + ji * Yi * Xj + jj * Yi * Xi
        result = (s * t) * (D4 * YY * XX + D3 * mixed + D2 * (ii * jj + ij * ji))
        on_right = equal * (D3 * YY * Xi + D2 * (ii * Yj + ji * Yi))
        on_left = equal[:, None] * (D3 * Yi * XX + D2 * (ii * Xj + ij * Xi))
        both = equal[:, None] * equal * (D2 * Yi * Xi + D1 * ii)
        return result + s * on_right + t * on_left + both


KERNELS[IntegratedHessians, Linear] = linear
KERNELS[IntegratedHessians, Polynomial] = polynomial
