"""Integrals of radial kernels along paths, with the weights A₁ = −ln s and A₂ = −s ln s.

From the point c of the path that is closest, u = u_c + vp with v = s − c, and r² = ‖u‖². With
ψₖ the derivatives of the kernel by r²/2, six integrals a path and point carry integrated Hessians:

    Bₖ = ∫A₂ψ₂vᵏ (k = 0, 1, 2),   C = ∫A₂ψ₁,   Dₖ = ∫A₁ψ₁vᵏ (k = 0, 1)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpattr._core.array import Array, chunk_rows, namespace, squared_distances
from gpattr._core.memory import blocks
from gpattr.closed_forms.integrated_hessians.profiles import derivatives
from gpattr.kernels import Radial, SquaredExponential
from gpattr.operators import Paths
from gpattr.special.log_paths import graded_nodes, shared_rule

SHARED = 32.0  # length-scales: the longest path whose nodes all points share
NEAR = 2.0  # length-scales: shorter paths are seen from their start, which needs no division
NOTHING = 1e-30  # kernels smaller than this do not count


@dataclass(frozen=True, eq=False)
class PathIntegrals:
    """The integrals of some ``rows``, (r, m) each, with p (r, d) and u_c (r, d, m)."""

    rows: Array
    p: Array
    nearest: Array
    B: tuple[Array, Array, Array]
    C: Array
    D: tuple[Array, Array]


def path_integrals(kernel: Radial, paths: Paths, Z: Array) -> Iterator[PathIntegrals]:
    """Yield the integrals of all rows, in chunks of rows of like length that fit the cache."""
    xp, scale = namespace(Z), namespace(Z).asarray(kernel.lengthscale)
    p = paths.step / scale
    lengths = kernel.n_lengthscales(paths.step)
    order = xp.argsort(lengths)
    # u_c takes d times as much as an integral.
    size = max(1, chunk_rows(Z, len(Z)) * 16 // (16 + Z.shape[1]))
    kinds = (lengths[order] <= NEAR, lengths[order] <= SHARED if kernel.smooth else None)
    near = int(kinds[0].sum()) if kernel.smooth else 0
    shared = 0 if kinds[1] is None else int(kinds[1].sum())
    bounds = ((0, near), (near, shared), (shared, len(order)))
    for kind, (first, last) in enumerate(bounds):
        for start in range(first, last, size):
            rows = order[start : min(start + size, last)]
            part = paths[rows]
            e = (xp.broadcast_to(part.start, part.shape)[:, :, None] - Z.T) / scale[..., None]
            yield _integrals(kernel, rows, p[rows], e, lengths[rows], kind, part, Z)


def _integrals(
    kernel: Radial,
    rows: Array,
    p: Array,
    e: Array,
    lengths: Array,
    kind: int,
    paths: Paths,
    Z: Array,
) -> PathIntegrals:
    xp = namespace(p)
    a, beta = (p * p).sum(axis=1)[:, None], (p[:, None, :] @ e)[:, 0]
    if kind == 0:
        centre, nearest = xp.zeros(beta.shape), e
        b0 = squared_distances(paths.start, Z, kernel.lengthscale) + 0.0 * beta
        b1 = 2.0 * beta
    else:
        centre = xp.minimum(xp.maximum(-beta / xp.maximum(a, 1e-300), 0.0), 1.0)
        nearest = e + p[:, :, None] * centre[:, None, :]
        # Within the path u_c and p are orthogonal; at an end r² grows along it.
        b1 = 2.0 * (p[:, None, :] @ nearest)[:, 0]
        b1 = xp.where(centre <= 0.0, xp.maximum(b1, 0.0), xp.where(centre >= 1.0, b1, 0.0))
        b0 = (nearest * nearest).sum(axis=1)
    if kind < 2:
        B, C, D = _shared(kernel, a, b0, b1, centre, float(lengths.max()))
    else:
        shape = beta.shape
        flat = [(xp.zeros(shape) + part).ravel() for part in (a, b0, b1, centre, lengths[:, None])]
        B0, B1, B2, C, D0, D1 = (part.reshape(shape) for part in _graded(kernel, *flat))
        B, D = (B0, B1, B2), (D0, D1)
    return PathIntegrals(rows, p, nearest, B, C, D)


def _shared(
    kernel: Radial, a: Array, b0: Array, b1: Array, centre: Array, length: float
) -> tuple[tuple[Array, Array, Array], Array, tuple[Array, Array]]:
    """Integrate with nodes that all rows and points share."""
    xp, gaussian = namespace(b0), isinstance(kernel, SquaredExponential)
    B0, B1, B2, C, D0, D1 = (xp.zeros(b0.shape) for _ in range(6))
    rule = shared_rule(length, gaussian=gaussian)
    for s, weight in zip(*(part.tolist() for part in rule), strict=True):
        v = s - centre
        r2 = a * v
        r2 += b1
        r2 *= v
        r2 += b0
        if not gaussian:
            first, second = derivatives(kernel, xp.maximum(r2, 0.0), (1, 2))
            first, second = weight * first, (s * weight) * second
            C += s * first
        else:
            r2 *= -0.5
            xp.exp(r2, out=r2)
            r2 *= -weight
            first = r2
            second = -s * first
        D0 += first
        B0 += second
        second *= v
        B1 += second
        second *= v
        B2 += second
        first *= v
        D1 += first
    return (B0, B1, B2), -B0 if gaussian else C, (D0, D1)


def _graded(
    kernel: Radial, a: Array, b0: Array, b1: Array, centre: Array, length: Array
) -> list[Array]:
    """Integrate along P paths, (P,) each, with panels of their own."""
    xp = namespace(a)
    results = [xp.empty(len(a)) for _ in range(6)]
    for some in blocks(len(a), 64.0 * 1200, a):
        own_a, own_0, own_1 = a[some], b0[some], b1[some]
        count = len(own_a)
        # In units of the kernel's shortest scale.
        distance = xp.sqrt(own_0) * length[some] / xp.sqrt(xp.maximum(own_a, 1e-300))
        nodes = graded_nodes(centre[some], length[some], distance)
        r2 = own_a[nodes.owner][:, None] * nodes.v
        r2 = (r2 + own_1[nodes.owner][:, None]) * nodes.v + own_0[nodes.owner][:, None]
        r2 = xp.maximum(r2, 0.0)
        counts = kernel.profile(xp.min(r2, axis=1)) > NOTHING
        nodes = type(nodes)(*(part[counts] for part in nodes))
        first, second = derivatives(kernel, r2[counts], (1, 2))
        first, second = nodes.weights * first, nodes.weights * nodes.s * second
        v = nodes.v
        values = (second, second * v, second * v * v, nodes.s * first, first, first * v)
        for result, value in zip(results, values, strict=True):
            result[some] = nodes.sums(value, count)
    return results
