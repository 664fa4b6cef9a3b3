"""Integrated gradients of the squared-exponential kernel, in closed form.

With p = (x − b)/ℓ, e = (b − z)/ℓ and the path moments Jₖ = ∫₀¹ tᵏ exp(−‖e + t p‖²/2) dt,

    𝒜ᵢk(·, z)(x) = −σ² pᵢ (pᵢ J₁ + eᵢ J₀).

Everything is computed from differences x − b, b − z, x − z, so data far from the origin lose
nothing.
"""

from __future__ import annotations

from gpattr._core.array import EPS, Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.closed_forms.geometry import REACH, Arguments, Geometry, from_moments, neighbourhoods
from gpattr.closed_forms.table import register
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients, Paths
from gpattr.special.gaussian import centred_moments, g2, path_moments, path_products
from gpattr.special.quadrature import gauss_legendre

FARTHEST_PAIR = 1e5  # length-scales: panels that cover them take 0.1 GB


def cross(kernel: SquaredExponential, paths: Paths, Z: Array) -> Array:
    """Return 𝒜ᵢk(·, zₘ)(xₙ), (n, d, m)."""
    return from_moments(kernel, paths, Z, path_moments, -kernel.variance)


def cross_dot(kernel: SquaredExponential, paths: Paths, Z: Array, w: Array) -> Array:
    """Return Σₘ 𝒜ᵢk(·, zₘ)(xₙ) wₘ, (n, d, q), by matrix products with J₀ and J₁."""
    xp = namespace(Z)
    (m, q), d = w.shape, Z.shape[1]
    result = xp.empty((*paths.shape, q))
    for g in neighbourhoods(kernel, paths, Z):
        right = xp.concatenate(
            [w.T, (g.E.T[:, None, :] * w.T).reshape(d * q, m)]
        ).T  # (m, q + dq): w and E∘w

        def fill(rows: Array, arguments: Arguments, g: Geometry = g, right: Array = right) -> None:
            first, second = path_products(*arguments, right)
            part = first[:, q:].reshape(-1, d, q)
            if g.shift is not None:
                part = part + g.shift[rows][:, :, None] * first[:, None, :q]
            step = g.step[rows][:, :, None]
            result[g.rows[rows]] = -kernel.variance * step * (part + step * second[:, None, :q])

        g.for_chunks(fill)
    return result


def error(kernel: SquaredExponential, paths: Paths, Z: Array, w: Array) -> Array:
    """Return a bound (n,) on the rounding error of `cross_dot`.

    Every entry is at most about σ² min(1, ‖p‖∞), is a sum over m, and loses ε × (distance in
    length-scales)² in the exponent.
    """
    xp = namespace(paths.stop)
    scale = xp.asarray(kernel.lengthscale)
    step = paths.step / scale
    reach = (step * step).sum(axis=1) + (0.0 if paths.shared_start else REACH * step.shape[1])
    size = (
        kernel.variance
        * xp.abs(w).sum(axis=0).max()
        * xp.minimum(xp.max(xp.abs(step), axis=1), 1.0)
    )
    return EPS * (32.0 + len(Z) ** 0.5 + 2.0 * reach) * size


def prior_cov(kernel: SquaredExponential, paths: Paths) -> Array:
    """Return the prior covariance of the attributions along each path, (n, d, d).

        (𝒜k𝒜ᵀ)ᵢⱼ = σ² pᵢpⱼ (δᵢⱼ G₀(a) − pᵢpⱼ G₂(a))

    On the diagonal G₀ − pᵢ²G₂ = (G₀ − aG₂) + (a − pᵢ²)G₂, and G₀ − aG₂ = (2/a)(1 − e^(−a/2)): two
    positive terms, the second with the sum of the *other* squares, so nothing cancels on long
    paths.
    """
    xp = namespace(paths.stop)
    p2 = (paths.step / xp.asarray(kernel.lengthscale)) ** 2
    d = p2.shape[1]
    a = p2.sum(axis=1)
    G2 = g2(a)[:, None]
    half = xp.maximum(0.5 * a, 1e-300)
    fall = (-xp.expm1(-half) / half)[:, None]  # G₀ − aG₂, which is 1 at a = 0
    result = -G2[:, :, None] * p2[:, :, None] * p2[:, None, :]
    diagonal = xp.arange(d)
    result[:, diagonal, diagonal] = p2 * (fall + G2 * (product(p2, 1.0 - xp.eye(d))))
    result *= kernel.variance
    return result


def between(kernel: SquaredExponential, paths: Paths, other: Paths) -> Array:
    """Return the prior covariance of the attributions along the k-th path of each, (n, d, d).

        σ² pᵢ qⱼ ∫₀¹∫₀¹ exp(−‖u‖²/2) (δᵢⱼ − uᵢuⱼ) ds dt,   u = e + s p − t q

    with q = (x' − b')/ℓ, e = (b − b')/ℓ. The integral along the longer path is done in closed form,
    that along the shorter by Gauss–Legendre panels (see `_second_moments`).
    """
    xp = namespace(paths.stop)
    scale = xp.asarray(kernel.lengthscale)
    p, q = paths.step / scale, other.step / scale
    e = xp.broadcast_to((paths.start - other.start) / scale, p.shape)
    p_norm, q_norm = xp.sqrt((p * p).sum(axis=1)), xp.sqrt((q * q).sum(axis=1))
    swap = (q_norm > p_norm)[:, None]
    longer, shorter, offset = xp.where(swap, q, p), xp.where(swap, p, q), xp.where(swap, -e, e)
    integral = _second_moments(longer, shorter, offset, xp.minimum(p_norm, q_norm))
    return kernel.variance * p[:, :, None] * q[:, None, :] * integral


def _second_moments(p: Array, q: Array, e: Array, q_norm: Array) -> Array:
    """Return ∫∫ exp(−‖u‖²/2)(δᵢⱼ − uᵢuⱼ) ds dt, (n, d, d), for ‖p‖ ≥ ‖q‖.

    It is symmetric in i and j, and under p ↔ q, e ↔ −e. Panels of 16 nodes cover at most two
    length-scales of q each; pairs are grouped by their number, a power of two.
    """
    xp = namespace(p)
    n, d = p.shape
    result = xp.empty((n, d, d))
    short = (p * p).sum(axis=1) <= 1.0
    if not (q_norm <= FARTHEST_PAIR).all():
        raise InvalidInputError(
            "X: the covariance between rows is known where at most one of two paths is longer than"
            f" {FARTHEST_PAIR:.0e} length-scales, got {float(q_norm.max()):.0e}; leave out rows"
            " that far away"
        )
    panels = xp.exp2(xp.ceil(xp.log2(xp.maximum(0.5 * q_norm, 1.0))))
    panels[short] = 0
    for count in sorted(map(int, set(panels.tolist()))):
        rows = xp.nonzero(panels == count)[0]
        nodes = 11 * 11 if count == 0 else 16 * count
        for block in blocks(len(rows), 8 * (16 * nodes + 8 * d * d)):
            chosen = rows[block]
            if count == 0:
                result[chosen] = _short_pair(p[chosen], q[chosen], e[chosen])
            else:
                result[chosen] = _long_pair(
                    p[chosen], q[chosen], e[chosen], *gauss_legendre(16, count)
                )
    return result


def _short_pair(p: Array, q: Array, e: Array) -> Array:
    """Both paths within one length-scale: a product rule, without any division by their lengths."""
    xp = namespace(p)
    t, w = map(xp.asarray, gauss_legendre(11))
    s, t = xp.repeat(t, len(t)), xp.tile(t, len(t))  # (S,)
    weight = (w[:, None] * w).ravel()
    square = (
        (e * e).sum(1)[:, None] + s * s * (p * p).sum(1)[:, None] + t * t * (q * q).sum(1)[:, None]
    )
    square += 2.0 * (
        s * (e * p).sum(1)[:, None] - t * (e * q).sum(1)[:, None] - s * t * (p * q).sum(1)[:, None]
    )
    value = weight * xp.exp(-0.5 * square)  # (n, S)
    powers = xp.stack([xp.ones_like(s), s, -t])  # (3, S): u = 1·e + s·p − t·q
    return _assemble(xp.stack([e, p, q], axis=2), xp.einsum("nS,aS,bS->nab", value, powers, powers))


def _long_pair(p: Array, q: Array, e: Array, t: Array, w: Array) -> Array:
    """Along p in closed form about u = v(t) + τ p, v ⟂ p, the closest; along q by the given rule.

    v(t) = f − (t − t*) q⊥ is taken about the t* in [0, 1] closest to the other path, so that no
    large terms cancel.
    """
    xp = namespace(p)
    t, w = xp.asarray(t), xp.asarray(w)
    a = (p * p).sum(axis=1)[:, None]
    pe, pq = (p * e).sum(axis=1)[:, None], (p * q).sum(axis=1)[:, None]
    e_perp, q_perp = e - (pe / a) * p, q - (pq / a) * p
    qq, fq = (q_perp * q_perp).sum(axis=1)[:, None], (e_perp * q_perp).sum(axis=1)[:, None]
    nearest = xp.clip(fq / xp.maximum(qq, 1e-300), 0.0, 1.0)
    f = e_perp - nearest * q_perp
    tau = t - nearest  # (n, T)
    rho2 = (
        (f * f).sum(axis=1)[:, None]
        - 2.0 * tau * (f * q_perp).sum(axis=1)[:, None]
        + tau * tau * qq
    )
    M0, M1, M2 = centred_moments(a, pe - t * pq, xp.maximum(rho2, 0.0))
    S = xp.empty((len(p), 3, 3))
    S[:, 0, 0], S[:, 1, 1], S[:, 2, 2] = product(M0, w), product(M2, w), product(M0 * tau * tau, w)
    S[:, 0, 1] = S[:, 1, 0] = product(M1, w)
    S[:, 0, 2] = S[:, 2, 0] = -product(M0 * tau, w)
    S[:, 1, 2] = S[:, 2, 1] = -product(M1 * tau, w)
    return _assemble(xp.stack([f, p, q_perp], axis=2), S)


def _assemble(vectors: Array, S: Array) -> Array:
    """Return δᵢⱼ S₀₀ − (V S Vᵀ)ᵢⱼ for vectors V (n, d, 3) and their moments S (n, 3, 3)."""
    xp = namespace(S)
    return S[:, 0, 0, None, None] * xp.eye(vectors.shape[1]) - vectors @ S @ xp.swapaxes(
        vectors, 1, 2
    )


register(
    IntegratedGradients,
    SquaredExponential,
    cross=cross,
    cross_dot=cross_dot,
    prior_cov=prior_cov,
    between=between,
    error=error,
)
