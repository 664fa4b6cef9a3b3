"""Paths and points as radial kernels see them: whitened, from a near origin, in chunks by length.

With p = (x − b)/ℓ and e = (b − z)/ℓ, a path is ‖e + t p‖² = a t² + 2β t + c, a = p·p, β = p·e,
c = e·e. Everything is computed from differences x − b, b − z, x − z, so data far from the origin
lose nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpattr._core.array import Array, chunk_rows, namespace, product, share, squared_distances
from gpattr.kernels import Radial
from gpattr.operators import Paths
from gpattr.special.gaussian import rows_by_length

Arguments = tuple[Array, Array, Array, Array | None]  # of moments: a, β, c₀, c₁

REACH = 32.0  # length-scales within which different baselines share an origin


@dataclass(frozen=True)
class Geometry:
    """Paths and points seen from one origin o: e = (b − o)/ℓ + (o − z)/ℓ.

    Products with e are then matrix products.
    """

    kernel: Radial
    paths: Paths
    Z: Array
    rows: Array  # which rows of the call these are, (n,)
    step: Array  # p = (x − b)/ℓ, (n, d)
    a: Array  # p·p, (n,)
    E: Array  # (o − z)/ℓ, (m, d)
    shift: Array | None  # (b − o)/ℓ, (n, d); None where the origin is the one baseline
    c0: Array  # ‖(b − z)/ℓ‖², (m,) or (n, m)

    @classmethod
    def of(cls, kernel: Radial, paths: Paths, Z: Array, rows: Array) -> Geometry:
        scale = namespace(Z).asarray(kernel.lengthscale)
        shared = paths.shared_start
        origin = paths.start[0] if shared else paths.start.mean(axis=0)
        step = paths.step / scale
        c0 = squared_distances(paths.start, Z, scale)
        shift = None if shared else (paths.start - origin) / scale
        a, E = (step * step).sum(axis=1), (origin - Z) / scale
        return cls(kernel, paths, Z, rows, step, a, E, shift, c0[0] if shared else c0)

    def for_chunks(self, work: Callable[[Array, Arguments], None]) -> None:
        """Call ``work`` with row numbers, by length of path, and the arguments of their moments.

        These are a, β, c₀ and c₁. Threads share the chunks.
        """

        def one(chunk: tuple[Array, bool]) -> None:
            rows, is_short = chunk
            beta = product(self.step[rows], self.E.T)
            if self.shift is not None:
                beta += (self.step[rows] * self.shift[rows]).sum(axis=1)[:, None]
            c1 = (
                None
                if is_short
                else squared_distances(self.paths.stop[rows], self.Z, self.kernel.lengthscale)
            )
            work(rows, (self.a[rows], beta, self.c0 if self.c0.ndim == 1 else self.c0[rows], c1))

        chunk = 2 * chunk_rows(self.Z, len(self.Z))  # shorter ones would wait for the interpreter
        share(one, list(rows_by_length(self.a, chunk)), self.Z)


def neighbourhoods(kernel: Radial, paths: Paths, Z: Array) -> Iterator[Geometry]:
    """Yield the paths that start within 32 length-scales of each other in every feature.

    Mostly these are all of them. They share an origin; paths that start far apart must not, or e
    would lose ε times their distance.
    """
    xp = namespace(paths.start)
    starts = paths.start / xp.asarray(kernel.lengthscale)
    everything = xp.arange(paths.shape[0])
    if paths.shared_start:
        yield Geometry.of(kernel, paths, Z, everything)
        return
    todo = [everything]
    while todo:
        rows = todo.pop()
        low, high = xp.min(starts[rows], axis=0), xp.max(starts[rows], axis=0)
        widest = int((high - low).argmax())
        if high[widest] - low[widest] <= REACH:
            yield Geometry.of(kernel, paths[rows], Z, rows)
        else:
            right = starts[rows, widest] > 0.5 * (low[widest] + high[widest])
            todo += [rows[right], rows[~right]]


def from_moments(
    kernel: Radial,
    paths: Paths,
    Z: Array,
    moments: Callable[..., tuple[Array, Array]],
    factor: float,
) -> Array:
    """Return factor · pᵢ (eᵢ M₀ + pᵢ M₁), (n, d, m), for the moments of each path and point."""
    result = namespace(Z).empty((*paths.shape, len(Z)))
    for g in neighbourhoods(kernel, paths, Z):
        # By features: products along columns would take twice as long.
        features = namespace(Z).empty(Z.shape[::-1])
        features[:] = g.E.T

        def fill(rows: Array, arguments: Arguments, g: Geometry = g, E: Array = features) -> None:
            xp = namespace(Z)
            M0, M1 = (moment[:, None, :] for moment in moments(*arguments))
            size = min(len(rows), chunk_rows(Z, 2 * len(Z)) + 1)
            space = xp.empty((2, size, *E.shape))
            for some in (slice(start, start + size) for start in range(0, len(rows), size)):
                here = rows[some]
                step, (part, more) = g.step[here][:, :, None], space[:, : len(here)]
                xp.multiply(M0[some], E, out=part)  # (r, d, m)
                if g.shift is not None:
                    part += xp.multiply(M0[some], g.shift[here][:, :, None], out=more)
                part += xp.multiply(M1[some], step, out=more)
                part *= factor * step
                result[g.rows[here]] = part

        g.for_chunks(fill)
    return result


def closest_approach(p: Array, q: Array, e: Array) -> tuple[Array, Array]:
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
