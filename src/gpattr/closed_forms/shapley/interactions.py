"""Interactions of pairs of players, for products of positive factors.

Each output is an integral of derivatives of the multilinear extension along its diagonal,

    Φ_A = ∫ ∂_A f^M(t, …, t) dν_{|A|}(t),   A = {i, j}, or {i} on the diagonal of the matrix,

because Σⱼ ∂ᵢ∂ⱼf^M = d/dt ∂ᵢf^M and so Φᵢᵢ = φᵢ − ½(∂ᵢf^M(1) − ∂ᵢf^M(0)) for the Shapley index.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from gpattr._core.array import EPS, Array, chunk_rows, is_tensor, namespace, product
from gpattr.closed_forms.shapley.integrals import shared
from gpattr.closed_forms.shapley.product import Contrast, PositiveProduct
from gpattr.closed_forms.table import Bounded
from gpattr.operators import Coalitions
from gpattr.special.diagonal import nodes_needed
from gpattr.special.quadrature import gauss_legendre

# Factors at the ends of the diagonal may vanish. They are divided by, where products without one
# factor are needed; so small a number changes no digit of what is left.
SMALLEST = 1e-30
TILE = 2**17  # values of outputs, or of factors at nodes, that stay in the cache
LARGE = 2**16  # multiplications of a product of matrices that has a call of its own
NODES = 10  # of a rule, for that count


@lru_cache(maxsize=256)
def diagonal_rule(index: str, size: int, q: int) -> tuple[Array, Array]:
    """Return nodes t and weights of ν for sets of ``size`` players, with q nodes inside [0, 1]."""
    t, w = gauss_legendre(q)
    if size == 2:
        return t, 0.5 * w if index == "shapley" else (1.0 - t) * w
    if index == "taylor":
        return np.zeros(1), np.ones(1)
    return np.concatenate([t, [0.0, 1.0]]), np.concatenate([w, [0.5, -0.5]])


@dataclass(frozen=True)
class Outputs:
    """Pairs of positions among a kernel's players, and where they stand among all outputs.

    Outputs with a player that the kernel does not depend on are zero, and are left out.
    """

    pairs: tuple[tuple[int, int], ...]
    places: tuple[int, ...]
    count: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]], players: Sequence[int]) -> Outputs:
        """Return the outputs of these pairs of players, for a kernel of some ``players``."""
        at = {player: position for position, player in enumerate(players)}
        places = tuple(k for k, (i, j) in enumerate(pairs) if i in at and j in at)
        return cls(tuple((at[pairs[k][0]], at[pairs[k][1]]) for k in places), places, len(pairs))

    @cached_property
    def single(self) -> list[int]:
        """Which of them are on the diagonal."""
        return [k for k, (i, j) in enumerate(self.pairs) if i == j]

    @cached_property
    def double(self) -> list[int]:
        """Which of them are off the diagonal."""
        return [k for k, (i, j) in enumerate(self.pairs) if i != j]

    @cached_property
    def by_first(self) -> list[tuple[int, list[int] | slice, list[int] | slice]]:
        """Pairs off the diagonal with the same first player: it, second players and positions."""
        groups: dict[int, list[int]] = {}
        for k in self.double:
            groups.setdefault(self.pairs[k][0], []).append(k)
        return [
            (first, _compact([self.pairs[k][1] for k in some]), _compact(some))
            for first, some in groups.items()
        ]


def _compact(places: list[int]) -> list[int] | slice:
    """Return consecutive positions as a slice, which takes no copy."""
    consecutive = places == list(range(places[0], places[0] + len(places)))
    return slice(places[0], places[0] + len(places)) if consecutive else places


class _Extension:
    """The factors h = level + s·slope of multilinear extensions, (p, r, k), for s = 2t − 1."""

    def __init__(self, c: Array, top: Array, index: str) -> None:
        self.level = 1.0 / (1.0 + abs(c))
        self.slope = c * self.level
        self.top, self.index = top, index
        spread = float(abs(self.slope).sum(axis=0).max())
        most = max(1, (len(c) + 1) // 2)
        # One more than for a Shapley value, for the factor 1 − t.
        self.nodes = min(most, nodes_needed(spread, len(c)) + 1)

    def at(self, size: int) -> tuple[Array, Array]:
        """Return R = 2 slope/h (Q, p, r, k) and F = weight · top · ∏h (Q, r, k) at nodes of ν."""
        xp = namespace(self.slope)
        t, weights = map(xp.asarray, diagonal_rule(self.index, size, self.nodes))
        h = (2.0 * t - 1.0)[:, None, None, None] * self.slope
        h += self.level
        h = xp.maximum(h, SMALLEST)
        return 2.0 * self.slope / h, weights[:, None, None] * self.top * xp.prod(h, 1)


def interactions(c: Array, top: Array, outputs: Outputs, index: str) -> Array:
    """Return Φ of all outputs times ``top`` (r, k), (q, r, k), for contrasts c (p, r, k)."""
    xp, extension = namespace(c), _Extension(c, top, index)
    total = xp.empty((len(outputs.pairs), *top.shape))
    if outputs.double:
        R, F = extension.at(2)
        weighted = R * F[:, None]
        for first, second, places in outputs.by_first:
            total[places] = xp.einsum("ark,ajrk->jrk", weighted[:, first], R[:, second])
    if outputs.single:
        R, F = extension.at(1)
        own = _compact([outputs.pairs[k][0] for k in outputs.single])
        total[outputs.single] = xp.einsum("ark,ajrk->jrk", F, R[:, own])
    return total


def interaction_sums(c: Array, top: Array, w: Array, outputs: Outputs, index: str) -> Array:
    """Return Σₖ wₖ Φ, (r, q, l), for contrasts c (p, r, k), ``top`` (r, k) and weights w (k, l).

    For pairs it is a product of matrices for each node and each of the l.
    """
    xp, extension = namespace(c), _Extension(c, top, index)
    total = xp.empty((c.shape[1], len(outputs.pairs), w.shape[1]))
    if outputs.double:
        left, right = (sorted({outputs.pairs[k][side] for k in outputs.double}) for side in (0, 1))
        i = [left.index(outputs.pairs[k][0]) for k in outputs.double]
        j = [right.index(outputs.pairs[k][1]) for k in outputs.double]
        matrix = xp.zeros((c.shape[1], len(left), len(right), w.shape[1]))
        for R, F in zip(*extension.at(2), strict=True):
            columns = xp.swapaxes(R[_compact(right)], 0, 1)
            for k in range(w.shape[1]):
                rows = xp.swapaxes(R[_compact(left)] * (F * w[:, k]), 0, 1)
                matrix[..., k] += row_products(rows, columns)
        total[:, outputs.double] = matrix[:, i, j]
    if outputs.single:
        R, F = extension.at(1)
        own = _compact([outputs.pairs[k][0] for k in outputs.single])
        values = product(xp.einsum("ark,ajrk->jrk", F, R[:, own]), w)
        total[:, outputs.single] = xp.swapaxes(values, 0, 1)
    return total


def row_products(left: Array, right: Array) -> Array:
    """Return the products of matrices left (r, a, k) and right (r, c, k), (r, a, c).

    Large ones are formed one by one: NumPy would start threads that spin for each of them.
    """
    xp = namespace(left)
    if is_tensor(left) or left.shape[1] * right.shape[1] * left.shape[2] < LARGE:
        return left @ xp.swapaxes(right, 1, 2)
    return xp.stack([product(one, two.T) for one, two in zip(left, right, strict=True)])


@dataclass(frozen=True, eq=False)
class InteractionCross:
    """Covariances of interactions with the function, for one product and some outputs."""

    kernel: PositiveProduct
    outputs: Outputs
    index: str

    def cross(self, sites: Coalitions, Z: Array) -> Bounded:
        """Return the covariances with f at Z, (n, q, m)."""
        n, m, outputs, xp = len(sites.stop), len(Z), self.outputs, namespace(Z)
        result = xp.zeros((n, outputs.count, m))
        places = _compact(list(outputs.places))

        def fill(rows: slice) -> None:
            for part in self._tiles(sites, Z, rows):
                values = interactions(part.c, part.top, outputs, self.index)
                result[part.rows, places, part.points] = xp.swapaxes(values, 0, 1)

        shared(fill, n, m, Z, max(1, len(outputs.pairs) // max(1, len(self.kernel.players))))
        unit = xp.zeros((1, 1)) + 1.0
        return Bounded(result, self.bound(sites, Z[:1], unit) * m**0.5)

    def contract(self, sites: Coalitions, Z: Array, w: Array) -> Bounded:
        """Return the covariances with f at Z, times w (m, l) and added up, (n, q, l)."""
        outputs = self.outputs
        result = namespace(Z).zeros((len(sites.stop), outputs.count, w.shape[1]))
        places = _compact(list(outputs.places))

        def add(rows: slice) -> None:
            for part in self.kernel.contrasts(sites, Z, rows) if outputs.pairs else ():
                weights = w[part.points]
                result[part.rows, places] += interaction_sums(
                    part.c, part.top, weights, outputs, self.index
                )

        shared(add, len(sites.stop), len(Z), Z)
        return Bounded(result, self.bound(sites, Z, w))

    def _tiles(self, sites: Coalitions, Z: Array, rows: slice) -> Iterator[Contrast]:
        """Yield the pairs of some rows with all points, so few that all outputs fit the cache."""
        if not self.outputs.pairs:
            return
        most = max(len(self.outputs.pairs), NODES * len(self.kernel.players))
        step = max(1, TILE * chunk_rows(Z, 2**15) // most)
        for part in self.kernel.contrasts(sites, Z, rows):
            r, k = part.top.shape
            wide = min(k, step)
            high = max(1, step // wide)
            for low, left in itertools.product(range(0, r, high), range(0, k, wide)):
                here, some = slice(low, min(low + high, r)), slice(left, min(left + wide, k))
                yield Contrast(
                    slice(part.rows.start + here.start, part.rows.start + here.stop),
                    slice(part.points.start + some.start, part.points.start + some.stop),
                    part.c[:, here, some],
                    part.top[here, some],
                )

    def bound(self, sites: Coalitions, Z: Array, w: Array) -> Array:
        """Return a bound on rounding: |Φk(·, z)| ≤ σ √Var Φf ≤ σ² √3ωᵢ, a sum over m points."""
        xp, players = namespace(sites.stop), len(self.kernel.players)
        largest = xp.zeros(len(sites.stop)) + 2.0
        if sites.weights is None:
            largest = xp.minimum(xp.sqrt(3.0 * xp.max(self.kernel.falls(sites), axis=1)), 2.0)
        size = self.kernel.variance * abs(w).sum(axis=0).max() * largest
        steps = 32.0 + len(Z) ** 0.5 + 2.0 * players + self.kernel.phases(sites, Z)
        return EPS * steps * size
