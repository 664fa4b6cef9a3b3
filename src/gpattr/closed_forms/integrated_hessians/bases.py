"""Integrated Hessians of polynomial kernels and of bases: monomials, waves, products of sines.

Of a wave e^{iv·x}, with θ = v·(x − b), pᵢ = xᵢ − bᵢ and φ its phase at b,

    Γᵢⱼ = e^{iφ}(−pᵢpⱼvᵢvⱼ L₁(θ) + δᵢⱼ pᵢ i vᵢ L₀(θ)),   Lₖ(θ) = ∫₀¹ (−ln s) sᵏ e^{isθ} ds.

Polynomial kernels are integrated exactly by a Gauss rule for −ln s. With τ = c + Σᵢ σᵢ²xᵢzᵢ, ∂ᵢ =
σᵢ²zᵢ d/dτ: derivatives by x are powers of τ times products of σ²z.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from itertools import product as all_combinations
from math import perm
from typing import Any, NamedTuple

import numpy as np
from scipy.special import sici

from gpattr._core.array import EPS, Array, namespace, product, to_numpy
from gpattr._core.memory import blocks
from gpattr.bases import Basis, Combined, Fourier, Hilbert, Monomials
from gpattr.closed_forms.resolution import basis_formulas_for
from gpattr.closed_forms.table import BASES, KERNELS, BasisFormulas, Bounded, Formulas, rounding
from gpattr.kernels import Linear, Polynomial
from gpattr.operators import IntegratedHessians, Paths
from gpattr.operators.pairs import Pairs, pairs_within
from gpattr.special.log_paths import log_rule

Pair = tuple[Array, Array]
SHORT = 8.0  # radians that 16 nodes of the logarithmic rule resolve
EULER = 0.57721566490153286061


def monomials(operator: IntegratedHessians, basis: Monomials) -> BasisFormulas:
    """Return Γᵢⱼ of monomials, exactly: a Gauss rule with as many nodes as the degree needs.

    Γ does not depend on units, so paths are in the basis's own coordinates.
    """

    def images(paths: Paths, size: bool = False) -> Array:
        basis.check_rows("baseline", paths.start)
        local = Paths(basis.local(paths.start), basis.local(paths.stop))
        pairs = tuple(operator.pairs_for(paths.shape[1]))
        total: Any = 0.0
        for s, weight in zip(*(r.tolist() for r in log_rule(basis.degree // 2 + 1)), strict=True):
            u = local.at([s])[0]
            u, step = (abs(u), abs(local.step)) if size else (u, local.step)
            total = total + weight * _monomials_at(basis, pairs, u, step, s)
        return total

    def contract(paths: Paths, w: Array) -> Pair:
        xp = namespace(w)
        q = len(operator.pairs_for(paths.shape[1]))
        value, size = (xp.empty((paths.shape[0], q)) for _ in range(2))
        for rows in blocks(paths.shape[0], 32.0 * q * len(basis), w):
            value[rows] = product(images(paths[rows]), w)
            size[rows] = product(images(paths[rows], size=True), abs(w))
        return value, size

    return BasisFormulas(images, contract)


def _monomials_at(basis: Monomials, pairs: Pairs, u: Array, step: Array, s: float) -> Array:
    """Return s pᵢpⱼ∂ᵢ∂ⱼφ + δᵢⱼpᵢ∂ᵢφ at u, (n, q, p), by the product rule.

    Each factor of a monomial is one coordinate; two of them are differentiated.
    """
    xp, n, p = namespace(u), len(u), len(basis)
    place = {pair: at for at, pair in enumerate(pairs)}
    padded = xp.concatenate([u, xp.zeros((n, 1)) + 1.0], axis=1)
    steps = xp.concatenate([step, xp.zeros((n, 1))], axis=1)
    result = xp.zeros((n, len(pairs) + 1, p))  # the last is for pairs that are not asked for
    factors = basis.factor_places
    every = list(range(p))
    for k, left in enumerate(factors):
        rest = [places for m, places in enumerate(factors) if m != k]
        target = [place.get((i, i), len(pairs)) for i in left]
        result[:, target, every] += steps[:, left] * _product_of(padded, rest, n, p)
    for k, m in combinations(range(len(factors)), 2):
        left, right = factors[k], factors[m]
        rest = [places for at, places in enumerate(factors) if at not in (k, m)]
        both = steps[:, left] * steps[:, right] * _product_of(padded, rest, n, p)
        ordered = [(min(i, j), max(i, j)) for i, j in zip(left, right, strict=True)]
        target = [place.get(pair, len(pairs)) for pair in ordered]
        twice = xp.asarray([2.0 if i == j else 1.0 for i, j in ordered])  # (k, m) and (m, k)
        result[:, target, every] += s * twice * both
    return result[:, :-1]


def _product_of(padded: Array, factors: list[list[int]], n: int, p: int) -> Array:
    result = namespace(padded).zeros((n, p)) + 1.0
    for places in factors:
        result = result * padded[:, places]
    return result


class _Waves(NamedTuple):
    """Real and imaginary parts of e^{iφ}L₁ and of i e^{iφ}L₀, (n, M) each."""

    cosine_2: Array
    sine_2: Array
    cosine_1: Array
    sine_1: Array


def _waves(V: Array, origin: Any, paths: Paths) -> _Waves:
    xp = namespace(V)
    theta = product(paths.step, V.T)
    phase = product(xp.broadcast_to(paths.start - origin, paths.shape), V.T)
    cosine, sine = xp.cos(phase), xp.sin(phase)
    (r0, i0), (r1, i1) = log_waves(theta)
    return _Waves(
        cosine * r1 - sine * i1,
        sine * r1 + cosine * i1,
        -(sine * r0 + cosine * i0),
        cosine * r0 - sine * i0,
    )


def log_waves(theta: Array) -> tuple[Pair, Pair]:
    """Return real and imaginary parts of L₀ and L₁, Lₖ = ∫₀¹ (−ln s) sᵏ e^{isθ} ds.

    For |θ| ≤ 8 by a Gauss rule; beyond, L₀ = (Si(θ) + i Cin(θ))/θ and L₁ = −i dL₀/dθ, in terms of
    the sine and cosine integrals, which only SciPy has, so that tensors are computed on the host.
    """
    xp = namespace(theta)
    angle = to_numpy(theta)
    size = np.abs(angle)
    real_0, imaginary_0, real_1, imaginary_1 = (np.zeros(size.shape) for _ in range(4))
    near, far = np.minimum(size, SHORT), np.maximum(size, SHORT)
    for s, weight in zip(*(rule.tolist() for rule in log_rule(16)), strict=True):
        cosine, sine = weight * np.cos(s * near), weight * np.sin(s * near)
        real_0, imaginary_0 = real_0 + cosine, imaginary_0 + sine
        real_1, imaginary_1 = real_1 + s * cosine, imaginary_1 + s * sine
    Si, Ci = sici(far)
    Cin = EULER + np.log(far) - Ci
    long = size > SHORT
    real_0 = np.where(long, Si / far, real_0)
    imaginary_0 = np.where(long, Cin / far, imaginary_0)
    real_1 = np.where(long, ((1.0 - np.cos(far)) - Cin) / far**2, real_1)
    imaginary_1 = np.where(long, (Si - np.sin(far)) / far**2, imaginary_1)
    sign = np.where(angle < 0.0, -1.0, 1.0)
    parts = (real_0, sign * imaginary_0, real_1, sign * imaginary_1)
    first, second, third, fourth = map(xp.asarray, parts)
    return (first, second), (third, fourth)


def fourier(operator: IntegratedHessians, basis: Fourier) -> BasisFormulas:
    """Return Γᵢⱼ of sines and cosines."""

    def parts(paths: Paths) -> tuple[Array, _Waves, list[int], list[int], list[int]]:
        basis.check_rows("baseline", paths.start)
        V = namespace(paths.stop).asarray(basis.frequencies)
        origin = 0.0 if basis.origin is None else namespace(V).asarray(basis.origin)
        pairs = operator.pairs_for(paths.shape[1])
        i, j = map(list, zip(*pairs, strict=True))
        diagonal = [at for at, (a, b) in enumerate(pairs) if a == b]
        return V, _waves(V, origin, paths), i, j, diagonal

    def images(paths: Paths) -> Array:
        V, waves, i, j, diagonal = parts(paths)
        xp, M, step = namespace(V), len(V), paths.step
        outer = (step[:, i] * step[:, j])[:, :, None] * -(V[:, i] * V[:, j]).T
        along = step[:, :, None] * V.T
        own = along[:, [i[at] for at in diagonal]]
        result = xp.empty((len(step), len(i), 2 * M))
        halves = ((waves.sine_2, waves.sine_1), (waves.cosine_2, waves.cosine_1))
        for half, (second, first) in enumerate(halves):
            here = slice(half * M, (half + 1) * M)
            result[:, :, here] = outer * second[:, None, :]
            result[:, diagonal, here] += own * first[:, None, :]
        return result

    def contract(paths: Paths, w: Array) -> Pair:
        """Return two matrix products for all pairs together; (n, q, p) is never formed."""
        V, waves, i, j, diagonal = parts(paths)
        M, step = len(V), paths.step
        features = [i[at] for at in diagonal]
        sines, cosines = w[:M], w[M:]
        second = waves.sine_2 * sines + waves.cosine_2 * cosines
        first = waves.sine_1 * sines + waves.cosine_1 * cosines
        outer, both = step[:, i] * step[:, j], V[:, i] * V[:, j]
        value = -outer * product(second, both)
        value[:, diagonal] += step[:, features] * product(first, V[:, features])
        length = (sines**2 + cosines**2) ** 0.5
        size = 0.25 * abs(outer) * product(length, abs(both))
        size[:, diagonal] += abs(step[:, features]) * product(length, abs(V[:, features]))
        return value, size

    return BasisFormulas(images, contract)


def hilbert(operator: IntegratedHessians, basis: Hilbert) -> BasisFormulas:
    """Return Γᵢⱼ of Πᵢ sin aᵢ = 2^(1−d) Σₛ cos(Σᵢ sᵢaᵢ − (π/2)Σᵢ sᵢ), waves over signs, s₁ = 1."""

    def images(paths: Paths) -> Array:
        basis.check_rows("baseline", paths.start)
        xp, step = namespace(paths.stop), paths.step
        omega, d = xp.asarray(basis.frequencies), basis.n_features
        pairs = operator.pairs_for(paths.shape[1])
        i, j = map(list, zip(*pairs, strict=True))
        diagonal = [at for at, (a, b) in enumerate(pairs) if a == b]
        features = [i[at] for at in diagonal]
        total = xp.zeros((len(step), len(pairs), len(omega)))
        for tail in all_combinations((1.0, -1.0), repeat=d - 1):
            signs = (1.0, *tail)
            V = omega * xp.asarray(signs)
            waves = _waves(V, xp.asarray(basis.lower), paths)
            quarter = int(sum(signs)) % 4  # cos(x − quarter·π/2)
            second = (waves.cosine_2, waves.sine_2, -waves.cosine_2, -waves.sine_2)[quarter]
            first = (waves.cosine_1, waves.sine_1, -waves.cosine_1, -waves.sine_1)[quarter]
            outer = (step[:, i] * step[:, j])[:, :, None] * (V[:, i] * V[:, j]).T
            total = total - outer * second[:, None, :]
            total[:, diagonal] += step[:, features, None] * V.T[features] * first[:, None, :]
        return total * 2.0 ** (1 - d)

    return BasisFormulas(images, _from_images(operator, basis, images))


def combined(operator: IntegratedHessians, basis: Combined) -> BasisFormulas:
    """Return Γᵢⱼ of several bases, each on its columns: pairs with other columns have none."""
    d = basis.n_features
    pairs = tuple(operator.pairs_for(d))
    parts = []
    for part, columns in zip(basis.parts, basis.columns, strict=True):
        here, inner = pairs_within(pairs, columns)
        chosen = operator.replaced(operator.points[:, list(columns)], inner or ((0, 0),))
        parts.append((here, list(columns), len(part), basis_formulas_for(chosen, part)))

    def images(paths: Paths) -> Array:
        result, at = namespace(paths.stop).zeros((paths.shape[0], len(pairs), len(basis))), 0
        for here, columns, size, formulas in parts:
            if here:
                values = formulas.images(paths.select(columns))
                result[:, here, at : at + size] = values[:, : len(here)]
            at += size
        return result

    def contract(paths: Paths, w: Array) -> Pair:
        xp, at = namespace(paths.stop), 0
        value, size = (xp.zeros((paths.shape[0], len(pairs))) for _ in range(2))
        for here, columns, count, formulas in parts:
            if here:
                more, absolute = formulas.contract(paths.select(columns), w[at : at + count])
                value[:, here] += more[:, : len(here)]
                size[:, here] += absolute[:, : len(here)]
            at += count
        return value, size

    return BasisFormulas(images, contract)


def _from_images(operator: IntegratedHessians, basis: Basis, images: Any) -> Any:
    """Return the function that sums images over the functions of a basis, in bounded memory."""

    def contract(paths: Paths, w: Array) -> Pair:
        xp = namespace(w)
        q = len(operator.pairs_for(paths.shape[1]))
        value, size = (xp.empty((paths.shape[0], q)) for _ in range(2))
        for rows in blocks(paths.shape[0], 48.0 * q * len(basis), w):
            part = images(paths[rows])
            value[rows], size[rows] = product(part, w), product(abs(part), abs(w))
        return value, size

    return contract


BASES[IntegratedHessians, Monomials] = monomials
BASES[IntegratedHessians, Fourier] = fourier
BASES[IntegratedHessians, Hilbert] = hilbert
BASES[IntegratedHessians, Combined] = combined


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
