"""Integrated gradients of Matérn and rational-quadratic kernels, from a few scalar integrals.

With p = (x − b)/ℓ, e = (b − z)/ℓ, h(r) = g'(r)/r and Hₖ = ∫₀¹ tᵏ h(‖e + t p‖) dt,

    𝒜ᵢk(·, z)(x) = σ² pᵢ (pᵢ H₁ + eᵢ H₀).

H₀ has no elementary form, but one number a pair suffices for all features; its quadrature is
accurate to 1e-12 (`special.radial`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.geometry import (
    REACH,
    Arguments,
    Geometry,
    closest_approach,
    from_moments,
    neighbourhoods,
)
from gpattr.closed_forms.table import Bounded, register
from gpattr.kernels import Matern, Matern32, Matern52, Radial, RationalQuadratic
from gpattr.operators import IntegratedGradients, Paths
from gpattr.special import graded
from gpattr.special.graded import integrate_graded
from gpattr.special.radial import (
    corner_moments,
    finest_panel,
    integrate_from,
    prior_moments,
    radial_moments,
)

QUADRATURE_ERROR = 1e-12  # relative to σ² min(1, ‖p‖∞): twice the largest that was seen
TOUCH = 1e-7  # length-scales: paths that come nearer count as touching, at an error of its square


def cross(kernel: Radial, paths: Paths, Z: Array) -> Array:
    """Return 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m)."""
    return from_moments(kernel, paths, Z, partial(radial_moments, kernel), kernel.variance)


def cross_dot(kernel: Radial, paths: Paths, Z: Array, w: Array) -> Array:
    """Return Σₘ 𝒜ᵢk(·, zₘ)(xₙ) wₘ, (n, d, q), by matrix products with H₀ and H₁."""
    xp = namespace(Z)
    (m, q), d = w.shape, Z.shape[1]
    result = xp.empty((*paths.shape, q))
    for g in neighbourhoods(kernel, paths, Z):
        # w and E∘w, (m, q + dq).
        right = xp.concatenate([w.T, (g.E.T[:, None, :] * w.T).reshape(d * q, m)]).T

        def fill(rows: Array, arguments: Arguments, g: Geometry = g, right: Array = right) -> None:
            H0, H1 = radial_moments(kernel, *arguments)
            first, second = product(H0, right), product(H1, w)
            part = first[:, q:].reshape(-1, d, q)
            if g.shift is not None:
                part = part + g.shift[rows][:, :, None] * first[:, None, :q]
            step = g.step[rows][:, :, None]
            result[g.rows[rows]] = kernel.variance * step * (part + step * second[:, None, :])

        g.for_chunks(fill)
    return result


def error(kernel: Radial, paths: Paths, Z: Array, w: Array) -> Array:
    """Return a bound (n,) on the error of `cross_dot`: the error of H₀, and rounding."""
    xp = namespace(paths.stop)
    step = paths.step / xp.asarray(kernel.lengthscale)
    reach = (step * step).sum(axis=1) + (0.0 if paths.shared_start else REACH * step.shape[1])
    size = (
        kernel.variance
        * xp.abs(w).sum(axis=0).max()
        * xp.minimum(xp.max(xp.abs(step), axis=1), 1.0)
    )
    return (QUADRATURE_ERROR + EPS * (32.0 + len(Z) ** 0.5 + 4.0 * reach)) * size


def prior_cov(kernel: Radial, paths: Paths) -> Bounded:
    """Return the prior covariance of the attributions along each path, (n, d, d).

        (𝒜k𝒜ᵀ)ᵢⱼ = −σ² pᵢpⱼ pᵢpⱼ B off the diagonal,   σ² pᵢ² (F + (a − pᵢ²) B) on it

    with B = 2∫₀¹ (1 − u) u² h'(r)/r du, r = u√a, and F = 2(1 − g(√a))/a: positive terms, as for the
    squared exponential.
    """
    xp = namespace(paths.stop)
    p2 = (paths.step / xp.asarray(kernel.lengthscale)) ** 2
    d = p2.shape[1]
    fall, B = (moment[:, None] for moment in prior_moments(kernel, p2.sum(axis=1)))
    result = -B[:, :, None] * p2[:, :, None] * p2[:, None, :]
    diagonal = xp.arange(d)
    result[:, diagonal, diagonal] = p2 * (fall + B * (product(p2, 1.0 - xp.eye(d))))
    result *= kernel.variance
    reach = kernel.variance * xp.minimum(xp.max(p2, axis=1), 1.0) + 2.0 * xp.max(
        xp.abs(result), axis=(1, 2)
    )
    # Entries of long paths may exceed σ², and so may their errors.
    return Bounded(result, QUADRATURE_ERROR * reach)


def between(kernel: Radial, paths: Paths, other: Paths) -> Bounded:
    """Return the prior covariance of the attributions along the k-th path of each, (n, d, d).

        −σ² pᵢqⱼ ∫₀¹∫₀¹ (h δᵢⱼ + (h'/r) uᵢuⱼ) ds dt,   u = e + s p − t q

    The square is cut at its point (s*, t*) where the paths are closest, and each of the (at most
    four) rectangles into two triangles, on which u = u* + λ(A + μB) with λ, μ ∈ [0, 1]. Where the
    paths touch, u* = 0, the integral over λ is elementary.

    The error is of quadrature, and the gap to the covariance of f(x) − f(b) and f(x') − f(b').
    """
    xp = namespace(paths.stop)
    scale = xp.asarray(kernel.lengthscale)
    p, q = paths.step / scale, other.step / scale
    e = xp.broadcast_to((paths.start - other.start) / scale, p.shape)
    integral = xp.zeros((*p.shape, p.shape[1]))
    s, t = closest_approach(p, q, e)
    u = e + s[:, None] * p - t[:, None] * q
    touching = (u * u).sum(axis=1) <= TOUCH**2
    for ds in (-s, 1.0 - s):
        for dt in (-t, 1.0 - t):
            area = xp.abs(ds * dt)[:, None, None]
            for touch in (True, False):
                rows = xp.nonzero((ds * dt != 0) & (touching == touch))[0]
                for some in blocks(len(rows), 64.0 * p.shape[1] ** 2, p):
                    at = rows[some]
                    one, two = ds[at, None] * p[at], -dt[at, None] * q[at]
                    if touch:
                        integral[at] += area[at] * (
                            _touching(kernel, one, two) + _touching(kernel, two, one)
                        )
                    else:
                        integral[at] += area[at] * (
                            _triangle(kernel, u[at], one, two) + _triangle(kernel, u[at], two, one)
                        )
    result = -kernel.variance * p[:, :, None] * q[:, None, :] * integral
    same = ((paths.start == other.start) & (paths.stop == other.stop)).all(axis=1)
    if same.any():
        result[same] = prior_cov(kernel, paths[same]).value
    ends = ((1.0, e + p - q), (-1.0, e + p), (-1.0, e - q), (1.0, e))
    gain = kernel.variance * sum(sign * kernel.profile((v * v).sum(axis=1)) for sign, v in ends)
    rounding = QUADRATURE_ERROR + EPS * (64.0 + (xp.abs(p) + xp.abs(q)).sum(axis=1))
    reach = kernel.variance * xp.minimum(xp.max(xp.abs(p), axis=1) * xp.max(xp.abs(q), axis=1), 1.0)
    reach = reach + 2.0 * xp.max(xp.abs(result), axis=(1, 2))
    # The values that `gain` is made of are rounded themselves.
    gap = xp.abs(result.sum(axis=(1, 2)) - gain) - 16 * EPS * kernel.variance
    return Bounded(result, xp.maximum(gap, 0.0) + rounding * reach)


def _touching(kernel: Radial, A: Array, B: Array) -> Array:
    """Return ∫∫ λ (h δᵢⱼ + b vᵢvⱼ) dλ dμ, (n, d, d), v = λ(A + μB), r = ‖v‖ = λc, b = h'/r.

    Only the integral over μ is numeric: with h = g'/r those over λ are elementary, and for c ≤ 1,
    where they would cancel, taken by a fixed rule (`corner_moments`).
    """
    xp = namespace(A)
    BB = (B * B).sum(axis=1)
    safe = xp.where(BB > 0, BB, 1.0)
    turn = (A * B).sum(axis=1) / safe
    C = A - turn[:, None] * B
    CC = (C * C).sum(axis=1)

    def evaluate(rows: Array, mu: Array, w: Array) -> Array:
        nu = mu + turn[rows, None]
        Lh, Lb = corner_moments(kernel, CC[rows, None] + nu * nu * BB[rows, None])
        Lb = Lb * w
        return xp.stack(
            [
                (w * Lh).sum(axis=1),
                Lb.sum(axis=1),
                (Lb * nu).sum(axis=1),
                (Lb * nu * nu).sum(axis=1),
            ],
            axis=1,
        )

    nearest = xp.clip(-turn, 0.0, 1.0)
    distance = xp.sqrt(CC + (nearest + turn) ** 2 * BB)
    moments = integrate_from(kernel, evaluate, nearest, distance, safe, 200.0)
    vectors, S = xp.stack([C, B], axis=2), moments[:, [1, 2, 2, 3]].reshape(-1, 2, 2)
    return moments[:, 0, None, None] * xp.eye(A.shape[1]) + vectors @ S @ xp.swapaxes(vectors, 1, 2)


def _triangle(kernel: Radial, u: Array, A: Array, B: Array) -> Array:
    """Return ∫∫ λ (h δᵢⱼ + b vᵢvⱼ) dλ dμ, (n, d, d), v = u + λ(A + μB), r = ‖v‖, b = h'/r.

    With C = A − (A·B/B·B) B and ν = μ + A·B/B·B, v = u + λC + λνB and C ⟂ B: where paths are nearly
    parallel and long, the large terms of A + μB cancel before anything is squared.
    """
    xp = namespace(u)
    BB = (B * B).sum(axis=1)
    BB = xp.where(BB > 0, BB, 1.0)
    turn = (A * B).sum(axis=1) / BB
    C = A - turn[:, None] * B
    uu, uC, uB, CC, AA = ((x * y).sum(axis=1) for x, y in ((u, u), (u, C), (u, B), (C, C), (A, A)))
    ends = A + B
    longest = xp.sqrt(xp.maximum(xp.maximum(AA, (ends * ends).sum(axis=1)), 1e-300))
    near = xp.maximum(xp.sqrt(uu), min(kernel.core**0.5, 1.0))
    delta = xp.minimum(near, 2.0) / longest

    def outer(rows: Array, lam: Array, w: Array) -> Array:
        T = lam.shape[1]
        at, L = xp.repeat(rows, T), lam.reshape(-1)
        segments = _Segments(
            constant=uu[at] + L * (2.0 * uC[at] + L * CC[at]),
            linear=L * uB[at],
            square=xp.maximum(L * L * BB[at], 1e-300),  # L = 0 at empty panels
            shift=turn[at],
        )
        part = segments.moments(kernel).reshape(-1, T, 4)
        b0, b1, b2, h = (part[:, :, k] for k in range(4))
        w1, w2, w3 = w * lam, w * lam**2, w * lam**3
        sums = ((w1, b0), (w2, b0), (w2, b1), (w3, b0), (w3, b1), (w3, b2), (w1, h))
        return xp.stack([(x * y).sum(axis=1) for x, y in sums], axis=1)

    unit = xp.zeros((len(u), 1)) + xp.asarray([0.0, 1.0])
    centres = xp.zeros_like(delta)[:, None]
    moments = integrate_graded(
        outer, unit, centres, delta[:, None], 2000.0, order=_nodes_per_panel(kernel)
    )
    S = moments[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)  # of (1, λ, λν), weighted by b
    vectors = xp.stack([u, C, B], axis=2)
    return moments[:, 6, None, None] * xp.eye(u.shape[1]) + vectors @ S @ xp.swapaxes(vectors, 1, 2)


def _nodes_per_panel(kernel: Radial) -> int:
    return 16 if kernel.core else graded.ORDER


@dataclass(frozen=True)
class _Segments:
    """Segments μ ∈ [0, 1], at r² = constant + 2ν linear + ν² square, ν = μ + shift; (N,)."""

    constant: Array
    linear: Array
    square: Array
    shift: Array

    def squared_distance(self, nu: Array) -> Array:
        return self.constant + nu * (2.0 * self.linear + nu * self.square)

    def as_column(self, rows: Array) -> _Segments:
        """Return some of the segments, (r, 1), for several μ each."""
        parts = (self.constant, self.linear, self.square, self.shift)
        return _Segments(*(part[rows, None] for part in parts))

    def moments(self, kernel: Radial) -> Array:
        """Return ∫ b(r) dμ, ∫ b(r) ν dμ, ∫ b(r) ν² dμ and ∫ h(r) dμ, (N, 4)."""
        xp = namespace(self.constant)
        finest = finest_panel(kernel) if kernel.core else TOUCH
        nearest = xp.clip(-self.linear / self.square - self.shift, 0.0, 1.0)
        here = xp.maximum(self.squared_distance(nearest + self.shift), 0.0)
        delta = xp.sqrt(xp.maximum(here, finest**2) / self.square)

        def evaluate(some: Array, mu: Array, v: Array) -> Array:
            segments = self.as_column(some)
            nu = mu + segments.shift
            # h'/r may be infinite at 0, where what it multiplies vanishes.
            r2 = xp.maximum(segments.squared_distance(nu), (0.01 * TOUCH) ** 2)
            curvature = v * kernel.curvature(r2)
            integrands = (curvature, curvature * nu, curvature * nu * nu, v * kernel.slope(r2))
            return xp.stack([integrand.sum(axis=1) for integrand in integrands], axis=1)

        edges = xp.zeros((len(self.constant), 1)) + xp.asarray([0.0, 1.0])
        order = _nodes_per_panel(kernel)
        return integrate_graded(
            evaluate, edges, nearest[:, None], delta[:, None], 48.0, order=order
        )


for _kernel in (Matern, Matern32, Matern52, RationalQuadratic):
    register(
        IntegratedGradients,
        _kernel,
        cross=cross,
        cross_dot=cross_dot,
        prior_cov=prior_cov,
        between=between,
        error=error,
        method="quadrature",
    )
