"""Integrated gradients of Matérn and rational-quadratic kernels: everything from a few scalar integrals of the profile.

With p = (x − b)/ℓ, e = (b − z)/ℓ, h(r) = g'(r)/r and Hₖ = ∫₀¹ tᵏ h(‖e + t p‖) dt,

    𝒜ᵢk(·, z)(x) = σ² pᵢ (pᵢ H₁ + eᵢ H₀).

H₀ has no elementary form, but one number a pair suffices for all features; quadrature is to 1e-12 (`special.radial`).
"""

from __future__ import annotations

from gpattr._array import EPS, Array, namespace, product
from gpattr.closed_forms.geometry import REACH, neighbourhoods
from gpattr.closed_forms.table import register
from gpattr.kernels import Matern32, Matern52, Radial, RationalQuadratic
from gpattr.operators import IntegratedGradients, Paths
from gpattr.special import graded
from gpattr.special.graded import integrate_graded
from gpattr.special.radial import finest_panel, prior_moments, radial_moments

QUADRATURE_ERROR = 1e-12  # relative to σ² min(1, ‖p‖∞): twice the largest that was seen
TOUCH = 1e-7  # length-scales: paths that come nearer count as touching, at an error of its square


def cross(kernel: Radial, paths: Paths, Z: Array) -> Array:
    """Return 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m)."""
    result = namespace(Z).empty((*paths.shape, len(Z)))
    for g in neighbourhoods(kernel, paths, Z):
        for rows, arguments in g.chunks():
            H0, H1 = (moment[:, None, :] for moment in radial_moments(kernel, *arguments))
            step = g.step[rows][:, :, None]
            part = H0 * g.E.T  # (r, d, m)
            if g.shift is not None:
                part += g.shift[rows][:, :, None] * H0
            part += step * H1
            part *= kernel.variance * step
            result[g.rows[rows]] = part
    return result


def cross_dot(kernel: Radial, paths: Paths, Z: Array, w: Array) -> Array:
    """Return Σₘ 𝒜ᵢk(·, zₘ)(xₙ) wₘ, (n, d, q), by matrix products with H₀ and H₁."""
    xp = namespace(Z)
    (m, q), d = w.shape, Z.shape[1]
    result = xp.empty((*paths.shape, q))
    for g in neighbourhoods(kernel, paths, Z):
        right = xp.concatenate([w.T, (g.E.T[:, None, :] * w.T).reshape(d * q, m)]).T  # (m, q + dq): w and E∘w
        for rows, arguments in g.chunks():
            H0, H1 = radial_moments(kernel, *arguments)
            first, second = product(H0, right), product(H1, w)
            part = first[:, q:].reshape(-1, d, q)
            if g.shift is not None:
                part = part + g.shift[rows][:, :, None] * first[:, None, :q]
            step = g.step[rows][:, :, None]
            result[g.rows[rows]] = kernel.variance * step * (part + step * second[:, None, :])
    return result


def error(kernel: Radial, paths: Paths, Z: Array, w: Array) -> Array:
    """Return a bound (n,) on the error of `cross_dot`: that of H₀, and the rounding of the sum and of distances."""
    xp = namespace(paths.stop)
    step = paths.step / xp.asarray(kernel.lengthscale)
    reach = (step * step).sum(axis=1) + (0.0 if paths.shared_start else REACH * step.shape[1])
    size = kernel.variance * xp.abs(w).sum(axis=0).max() * xp.minimum(xp.max(xp.abs(step), axis=1), 1.0)
    return (QUADRATURE_ERROR + EPS * (32.0 + len(Z) ** 0.5 + 4.0 * reach)) * size


def auto(kernel: Radial, paths: Paths) -> Array:
    """Return the prior covariance of the attributions along each path, (n, d, d).

        (𝒜k𝒜ᵀ)ᵢⱼ = −σ² pᵢpⱼ pᵢpⱼ B off the diagonal,   σ² pᵢ² (F + (a − pᵢ²) B) on it

    with B = 2∫₀¹ (1 − u) u² h'(r)/r du, r = u√a, and F = 2(1 − g(√a))/a: positive terms, as for the squared exponential.
    """
    xp = namespace(paths.stop)
    p2 = (paths.step / xp.asarray(kernel.lengthscale)) ** 2
    d = p2.shape[1]
    fall, B = (moment[:, None] for moment in prior_moments(kernel, p2.sum(axis=1)))
    result = -B[:, :, None] * p2[:, :, None] * p2[:, None, :]
    diagonal = xp.arange(d)
    result[:, diagonal, diagonal] = p2 * (fall + B * (p2 @ (1.0 - xp.eye(d))))
    result *= kernel.variance
    return result


def between(kernel: Radial, paths: Paths, other: Paths) -> Array:
    """Return the prior covariance of the attributions along the k-th path of each, (n, d, d).

        −σ² pᵢqⱼ ∫₀¹∫₀¹ (h δᵢⱼ + (h'/r) uᵢuⱼ) ds dt,   u = e + s p − t q

    The square is cut at its point (s*, t*) where the paths are closest, and each of the (at most four) rectangles into two
    triangles, on which u = u* + λ(A + μB) with λ, μ ∈ [0, 1]: where the paths touch, u* = 0, this is smooth in λ and in μ.
    """
    xp = namespace(paths.stop)
    scale = xp.asarray(kernel.lengthscale)
    p, q = paths.step / scale, other.step / scale
    e = xp.broadcast_to((paths.start - other.start) / scale, p.shape)
    n, d = p.shape
    s, t = _closest(p, q, e)
    u = e + s[:, None] * p - t[:, None] * q
    S, H = xp.zeros((n, 3, 3)), xp.zeros(n)  # moments of (1, s − s*, −(t − t*)) with weight h'/r, and of h
    for ds in (-s, 1.0 - s):
        for dt in (-t, 1.0 - t):
            rows = xp.nonzero(ds * dt != 0)[0]
            if not len(rows):
                continue
            one, two = ds[rows, None] * p[rows], -dt[rows, None] * q[rows]
            area = xp.abs(ds[rows] * dt[rows])
            for A, B, order in ((one, two, [0, 1, 2]), (two, one, [0, 2, 1])):
                moments = _triangle(kernel, u[rows], A, B) * area[:, None]
                H[rows] += moments[:, 6]
                part = moments[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]]  # as a symmetric matrix
                part = part.reshape(-1, 3, 3)[:, order][:, :, order]
                factor = xp.stack([xp.ones_like(area), ds[rows], -dt[rows]], axis=1)
                S[rows] += part * factor[:, :, None] * factor[:, None, :]
    vectors = xp.stack([u, p, q], axis=2)
    integral = H[:, None, None] * xp.eye(d) + vectors @ S @ xp.swapaxes(vectors, 1, 2)
    return -kernel.variance * p[:, :, None] * q[:, None, :] * integral


def _closest(p: Array, q: Array, e: Array) -> tuple[Array, Array]:
    """Return the s and t in [0, 1] that minimise ‖e + s p − t q‖, (n,) each."""
    xp = namespace(p)
    pp, qq, pq = ((x * y).sum(axis=1) for x, y in ((p, p), (q, q), (p, q)))
    pe, qe = (p * e).sum(axis=1), (q * e).sum(axis=1)
    safe_p, safe_q = xp.where(pp > 0, pp, 1.0), xp.where(qq > 0, qq, 1.0)
    determinant = pp * qq - pq * pq
    skew = determinant > 1e-12 * pp * qq
    s = xp.where(skew, (pq * qe - qq * pe) / xp.where(skew, determinant, 1.0), 0.0)
    s = xp.clip(s, 0.0, 1.0)
    t = xp.clip((qe + s * pq) / safe_q, 0.0, 1.0)
    return xp.clip((t * pq - pe) / safe_p, 0.0, 1.0), t


def _triangle(kernel: Radial, u: Array, A: Array, B: Array) -> Array:
    """Return ∫∫ λ b (1, λ, λμ, λ², λ²μ, λ²μ²) dλ dμ and ∫∫ λ h dλ dμ, (n, 7), at r = ‖u + λ(A + μB)‖, b = h'/r."""
    xp = namespace(u)
    uu, uA, uB, AA, AB, BB = ((x * y).sum(axis=1) for x, y in ((u, u), (u, A), (u, B), (A, A), (A, B), (B, B)))
    BB_safe = xp.where(BB > 0, BB, 1.0)
    longest = xp.sqrt(xp.maximum(xp.maximum(AA, AA + 2.0 * AB + BB), 1e-300))
    finest = finest_panel(kernel) if kernel.core else TOUCH
    order = 16 if kernel.core else graded.ORDER
    near = xp.maximum(xp.sqrt(uu), min(kernel.core**0.5, 1.0))
    delta = xp.where(near > TOUCH, xp.minimum(near, 2.0), 2.0) / longest
    edges = xp.zeros((len(u), 1)) + xp.asarray([0.0, 1.0])

    def outer(rows: Array, lam: Array, w: Array) -> Array:
        T = lam.shape[1]
        at, L = xp.repeat(rows, T), lam.reshape(-1)
        constant = uu[at] + L * (2.0 * uA[at] + L * AA[at])
        linear, square = L * (uB[at] + L * AB[at]), xp.maximum(L * L * BB_safe[at], 1e-300)  # L = 0 at empty panels
        nearest = xp.clip(-linear / square, 0.0, 1.0)
        here = xp.maximum(constant + nearest * (2.0 * linear + nearest * square), 0.0)
        inner_delta = xp.sqrt(xp.maximum(here, finest**2) / square)

        def inner(some: Array, mu: Array, v: Array) -> Array:
            r2 = constant[some, None] + mu * (2.0 * linear[some, None] + mu * square[some, None])
            r2 = xp.maximum(r2, (0.01 * TOUCH) ** 2)  # h'/r may be infinite at 0, where what it multiplies vanishes
            bend = v * kernel.bend(r2)
            sums = [bend.sum(axis=1), (bend * mu).sum(axis=1), (bend * mu * mu).sum(axis=1)]
            return xp.stack([*sums, (v * kernel.slope(r2)).sum(axis=1)], axis=1)

        ones = xp.zeros((len(L), 1)) + xp.asarray([0.0, 1.0])
        part = integrate_graded(inner, ones, nearest[:, None], inner_delta[:, None], 48.0, order=order).reshape(-1, T, 4)
        b0, b1, b2, h = (part[:, :, k] for k in range(4))
        w1, w2, w3 = w * lam, w * lam**2, w * lam**3
        sums = ((w1, b0), (w2, b0), (w2, b1), (w3, b0), (w3, b1), (w3, b2), (w1, h))
        return xp.stack([(x * y).sum(axis=1) for x, y in sums], axis=1)

    return integrate_graded(outer, edges, xp.zeros_like(delta)[:, None], delta[:, None], 2000.0, order=order)


for _kernel in (Matern32, Matern52, RationalQuadratic):
    register(
        IntegratedGradients,
        _kernel,
        cross=cross,
        cross_dot=cross_dot,
        auto=auto,
        between=between,
        error=error,
        method="quadrature",
    )
