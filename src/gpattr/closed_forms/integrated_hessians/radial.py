"""Integrated Hessians of squared-exponential, rational-quadratic and Matérn kernels.

With the integrals of `path_integrals` and u_c, p in length-scales,

    Γᵢⱼk(·, z) = σ²pᵢpⱼ(uᵢuⱼB₀ + (uᵢpⱼ + uⱼpᵢ)B₁ + pᵢpⱼB₂) + δᵢⱼσ²(pᵢ²C + pᵢ(uᵢD₀ + pᵢD₁)).

The covariance along one path is a few integrals over |s − t|, because the distance of two of its
points depends on that alone. Matérn kernels need ν > 2: fourth derivatives at r = 0.

Covariances are assembled from moments of the kernel along two paths. With u = Σₐ cₐ(s, t) Vₐ the
difference of two points in length-scales, ψₖ the k-th derivative of the kernel by ‖u‖²/2, p and q
the steps of the paths, and the weights A₁ = −ln s and A₂ = −s ln s,

    Cov[Γᵢⱼ, Γ'ₖₗ] = pᵢpⱼqₖqₗ∫∫A₂A₂ ∂ᵢ∂ⱼ∂ₖ∂ₗ − δₖₗ pᵢpⱼqₖ∫∫A₂A₁ ∂ᵢ∂ⱼ∂ₖ
                     + δᵢⱼ pᵢqₖqₗ∫∫A₁A₂ ∂ᵢ∂ₖ∂ₗ − δᵢⱼδₖₗ pᵢqₖ∫∫A₁A₁ ∂ᵢ∂ₖ

where ∂ᵢ∂ₖ = ψ₂uᵢuₖ + ψ₁δᵢₖ, and so on: one product of derivatives for each way to pair indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.integrated_hessians.path_integrals import (
    PathIntegrals,
    PathMoments,
    derivatives,
    moments_between,
    path_integrals,
    require_second_derivatives,
)
from gpattr.closed_forms.table import KERNELS, Bounded, Formulas
from gpattr.kernels import (
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Radial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.operators import IntegratedHessians, Paths
from gpattr.operators.pairs import Pairs
from gpattr.special.log_paths import path_correlations

QUADRATURE_ERROR = 1e-12  # of kernels with a core or a kink, relative to their size


def formulas(operator: IntegratedHessians, kernel: Radial) -> Formulas:
    """Return the formulas of a radial kernel; refuse functions that are too rough."""
    require_second_derivatives(kernel)

    def pairs(paths: Paths) -> Pairs:
        return tuple(operator.pairs_for(paths.shape[1]))

    bound = partial(_bound, kernel)

    def whole(paths: Paths, Z: Array) -> Bounded:
        unit = namespace(Z).zeros((1, 1)) + 1.0
        error = bound(paths, Z, unit) * len(Z) ** 0.5
        return Bounded(_cross(kernel, pairs(paths), paths, Z), error)

    return Formulas(
        cross=whole,
        contract=lambda paths, Z, w: Bounded(
            _contract(kernel, pairs(paths), paths, Z, w), bound(paths, Z, w)
        ),
        prior_cov=lambda paths: _prior_cov(kernel, pairs(paths), paths),
        between=lambda paths, other: _between(kernel, pairs(paths), paths, other),
        bound=bound,
    )


def _cross(kernel: Radial, pairs: Pairs, paths: Paths, Z: Array) -> Array:
    """Return Γᵢⱼk(·, zₘ)(xₙ), (n, q, m)."""
    xp = namespace(Z)
    result = xp.empty((paths.shape[0], len(pairs), len(Z)))
    columns: dict[int, list[int]] = {}
    for place, (i, _) in enumerate(pairs):
        columns.setdefault(i, []).append(place)
    for part in path_integrals(kernel, paths, Z):
        (B0, B1, B2), u, p = part.B, part.nearest, part.p[:, :, None]
        value = xp.empty((len(part.rows), len(pairs), len(Z)))
        for i, places in columns.items():
            first, second = u[:, i] * B0, u[:, i] * B1
            first += p[:, i] * B1
            second += p[:, i] * B2
            for place in places:
                j = pairs[place][1]
                entry = u[:, j] * first
                entry += p[:, j] * second
                entry *= (kernel.variance * p[:, i]) * p[:, j]
                if i == j:
                    slope = u[:, i] * part.D[0] + p[:, i] * (part.C + part.D[1])
                    entry += (kernel.variance * p[:, i]) * slope
                value[:, place] = entry
        result[part.rows] = value
    return result


def _contract(kernel: Radial, pairs: Pairs, paths: Paths, Z: Array, w: Array) -> Array:
    """Return Σₘ Γᵢⱼk(·, zₘ)(xₙ)wₘ, (n, q, k), from weighted products of the u_c, (d, d) a row."""
    xp = namespace(Z)
    result = xp.empty((paths.shape[0], len(pairs), w.shape[1]))
    for part in path_integrals(kernel, paths, Z):
        for column in range(w.shape[1]):
            result[part.rows, :, column] = kernel.variance * _weighted(part, pairs, w[:, column])
    return result


def _weighted(part: PathIntegrals, pairs: Pairs, w: Array) -> Array:
    xp, (i, j) = namespace(w), map(list, zip(*pairs, strict=True))
    B0, B1, B2, C, D0, D1 = (moment * w for moment in (*part.B, part.C, *part.D))
    u, p = part.nearest, part.p
    square = (u * B0[:, None, :]) @ xp.swapaxes(u, 1, 2)
    once = (u @ B1[:, :, None])[:, :, 0]  # (r, d)
    twice = p[:, :, None] * B2.sum(axis=1)[:, None, None] * p[:, None, :]
    mixed = once[:, :, None] * p[:, None, :]
    matrix = square + mixed + xp.swapaxes(mixed, 1, 2) + twice
    matrix *= p[:, :, None] * p[:, None, :]
    slope = (u @ D0[:, :, None])[:, :, 0] + p * (C + D1).sum(axis=1)[:, None]
    every = xp.arange(p.shape[1])
    matrix[:, every, every] += p * slope
    return matrix[:, i, j]


def _bound(kernel: Radial, paths: Paths, Z: Array, w: Array) -> Array:
    """Return a bound (n,) on the error of `_contract`: quadrature and rounding.

    An entry is at most about σ²(min(1, ‖p‖∞) + ‖p‖∞²/max(1, ‖p‖)), and is a sum over m. Positions
    on long paths are known to ε times their length.
    """
    xp = namespace(paths.stop)
    p = abs(paths.step / xp.asarray(kernel.lengthscale))
    length, largest = xp.sqrt((p * p).sum(axis=1)), xp.max(p, axis=1)
    size = xp.minimum(largest, 1.0) + largest * (largest / xp.maximum(length, 1.0))
    relative = EPS * (64.0 + len(Z) ** 0.5 + 4.0 * length)
    if not isinstance(kernel, SquaredExponential):
        relative = relative + QUADRATURE_ERROR * kernel_size(kernel)
    return kernel.variance * float(xp.abs(w).sum(axis=0).max()) * relative * size


def kernel_size(kernel: Radial) -> float:
    """Return the largest curvature of the kernel, 1 for a squared exponential."""
    if isinstance(kernel, RationalQuadratic):
        return 1.0 + 1.0 / kernel.alpha
    nu = kernel.nu if isinstance(kernel, (Matern, Matern52)) else 2.0**60
    return nu * nu / ((nu - 1.0) * (nu - 2.0))


def _prior_cov(kernel: Radial, pairs: Pairs, paths: Paths) -> Bounded:
    """Return the covariance along each path, (n, q, q): u = (s − t)p."""
    xp = namespace(paths.stop)
    p = paths.step / xp.asarray(kernel.lengthscale)
    a = (p * p).sum(axis=1)
    v, second, first = map(xp.asarray, path_correlations())
    n, v2 = len(p), v * v
    scalars = xp.empty((7, n))
    for rows in blocks(n, 64.0 * len(v), p):
        psi1, psi2, psi3, psi4 = derivatives(kernel, a[rows, None] * v2, (1, 2, 3, 4))
        scalars[0, rows] = 2.0 * product(psi4, second * v2 * v2)
        scalars[1, rows] = 2.0 * product(psi3, second * v2)
        scalars[2, rows] = 2.0 * product(psi2, second)
        # ∫∫s ln s ln t f(s − t) for odd f: (s − t) ln s ln t remains of both signs of s − t.
        scalars[3, rows] = product(psi3, first * v2 * v2)
        scalars[4, rows] = product(psi2, first * v2)
        scalars[5, rows] = 2.0 * product(psi2, first * v2)
        scalars[6, rows] = 2.0 * product(psi1, first)
    S4, S3, S2, T3, T2, U2, U1 = scalars
    one, two = (slice(None), None), (slice(None), None, None)
    moments = PathMoments(
        p[:, :, None], S4[two], S3[two], S2, T3[two], T2[one], -T3[two], -T2[one], U2[two], U1
    )
    result = kernel.variance * assembled(pairs, p, p, moments)
    P = xp.max(p * p, axis=1)
    size = P * P * (P * P * S4 + 6.0 * P * abs(S3) + 3.0 * S2)
    size = size + 2.0 * P * P * (P * abs(T3) + 3.0 * abs(T2)) + P * (P * U2 + abs(U1))
    return Bounded(result, 32.0 * EPS * kernel.variance * size)


def _between(kernel: Radial, pairs: Pairs, paths: Paths, other: Paths) -> Bounded:
    """Return the covariance along the k-th path of each, (n, q, q)."""
    xp = namespace(paths.stop)
    scale = xp.asarray(kernel.lengthscale)
    p, q = paths.step / scale, other.step / scale
    e = xp.broadcast_to((paths.start - other.start) / scale, p.shape)
    result, error = xp.empty((len(p), len(pairs), len(pairs))), xp.empty(len(p))
    same = (abs(e) + abs(p - q)).sum(axis=1) == 0.0
    if same.any():
        result[same], error[same] = _prior_cov(kernel, pairs, paths[same])
    for rows, moments, bound in moments_between(kernel, p, q, e, xp.nonzero(~same)[0]):
        result[rows] = kernel.variance * assembled(pairs, p[rows], q[rows], moments)
        error[rows] = kernel.variance * bound
    return Bounded(result, error)


for kind in (SquaredExponential, RationalQuadratic, Matern, Matern12, Matern32, Matern52):
    KERNELS[IntegratedHessians, kind] = formulas


@dataclass(frozen=True)
class Layout:
    """Places where pairs of features meet: positions in the matrix of all pairs (i, j) × (k, l)."""

    i: list[int]
    j: list[int]
    diagonal: list[int]  # the positions of pairs i = j
    # Positions (rows, columns) of equal features, and the two features that remain.
    meetings: tuple[tuple[list[int], list[int], list[int], list[int]], ...]
    same: list[int]  # how often both features of a pair can be paired with themselves

    @property
    def features(self) -> list[int]:
        """The features of the pairs i = j."""
        return [self.i[place] for place in self.diagonal]


@lru_cache(maxsize=32)
def layout_of(pairs: Pairs) -> Layout:
    """Return the layout of these pairs."""
    i, j = (np.array(side, dtype=int) for side in zip(*pairs, strict=True))
    meetings = []
    for mine, rest in ((i, j), (j, i)):
        for other, remaining in ((i, j), (j, i)):
            rows, columns = np.nonzero(mine[:, None] == other)
            found = (rows, columns, rest[rows], remaining[columns])
            meetings.append(tuple(part.tolist() for part in found))
    return Layout(
        i.tolist(),
        j.tolist(),
        np.flatnonzero(i == j).tolist(),
        tuple(meetings),
        (1 + (i == j)).tolist(),
    )


def assembled(pairs: Pairs, p: Array, q: Array, moments: PathMoments) -> Array:
    """Return Cov[Γᵢⱼ, Γ'ₖₗ] for the given pairs, (n, Q, Q), of a kernel of variance 1."""
    xp, layout, V = namespace(p), layout_of(pairs), moments.vectors
    i, j, diagonal = layout.i, layout.j, layout.diagonal
    n, count, size = len(p), len(i), V.shape[2]
    F = (V[:, i, :, None] * V[:, j, None, :]).reshape(n, count, size * size)
    result = F @ moments.a22_4 @ xp.swapaxes(F, 1, 2)
    third = (F @ moments.a22_3.reshape(n, -1, 1))[:, :, 0]  # ψ₃uₖuₗ
    if diagonal:
        result[:, diagonal, :] += third[:, None, :]
        result[:, :, diagonal] += third[:, :, None]
        result[:, [[place] for place in diagonal], diagonal] += moments.a22_2[:, None, None]
    outer = V @ moments.a22_3 @ xp.swapaxes(V, 1, 2)  # ψ₃uⱼuₗ, (n, d, d)
    for rows, columns, first, second in layout.meetings:
        result[:, rows, columns] += outer[:, first, second]
    every = xp.arange(count)
    result[:, every, every] += moments.a22_2[:, None] * xp.asarray(layout.same)
    left, right = p[:, i] * p[:, j], q[:, i] * q[:, j]
    result *= left[:, :, None]
    result *= right[:, None, :]
    if not diagonal:
        return result
    features = layout.features
    ours = _third(layout, V, F, moments.a21_3, moments.a21_2)  # (n, Q, diagonal)
    result[:, :, diagonal] -= left[:, :, None] * ours * q[:, None, features]
    theirs = xp.swapaxes(_third(layout, V, F, moments.a12_3, moments.a12_2), 1, 2)
    result[:, diagonal, :] += p[:, features, None] * theirs * right[:, None, :]
    some = V[:, features]
    second = some @ moments.a11_2 @ xp.swapaxes(some, 1, 2)
    place = xp.arange(len(features))
    second[:, place, place] += moments.a11_1[:, None]
    second = p[:, features, None] * second * q[:, None, features]
    result[:, [[at] for at in diagonal], diagonal] -= second
    return result


def _third(layout: Layout, V: Array, F: Array, third: Array, second: Array) -> Array:
    """Return ∂ᵢ∂ⱼ∂ₖ, (n, Q, K), for pairs (i, j) and the features k of pairs (k, k)."""
    xp, features = namespace(V), layout.features
    result = F @ third @ xp.swapaxes(V[:, features], 1, 2)
    along = (V @ second[:, :, None])[:, :, 0]  # ψ₂uᵢ, (n, d)
    result[:, layout.diagonal, :] += along[:, None, features]
    for mine, rest in ((layout.i, layout.j), (layout.j, layout.i)):
        for column, feature in enumerate(features):
            rows = [row for row, own in enumerate(mine) if own == feature]
            result[:, rows, column] += along[:, [rest[row] for row in rows]]
    return result
