"""Interactions of pairs of players, for products of positive factors.

Each output is an integral of derivatives of the multilinear extension along its diagonal,

    Φ_A = ∫ ∂_A f^M(t, …, t) dν_{|A|}(t),   A = {i, j}, or {i} on the diagonal of the matrix,

because Σⱼ ∂ᵢ∂ⱼf^M = d/dt ∂ᵢf^M and so Φᵢᵢ = φᵢ − ½(∂ᵢf^M(1) − ∂ᵢf^M(0)) for the Shapley index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from gpattr._core.array import EPS, Array, namespace
from gpattr.closed_forms.shapley.integrals import shared
from gpattr.closed_forms.shapley.product import PositiveProduct
from gpattr.closed_forms.table import Bounded
from gpattr.operators import Coalitions
from gpattr.special.diagonal import nodes_needed
from gpattr.special.quadrature import gauss_legendre

# Factors at the ends of the diagonal may vanish. They are divided by, where products without one
# factor are needed; so small a number changes no digit of what is left.
SMALLEST = 1e-30
TILE = 2**16  # values of outputs at pairs of a row and a point that stay in the cache


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
    """The factors h = level + s·slope of a multilinear extension, (p, r, k), for s = 2t − 1."""

    def __init__(self, c: Array, top: Array, index: str) -> None:
        self.level = 1.0 / (1.0 + abs(c))
        self.slope = c * self.level
        self.top, self.index = top, index
        spread = float(abs(self.slope).sum(axis=0).max())
        most = max(1, (len(c) + 1) // 2)
        # One more than for a Shapley value, for the factor 1 − t.
        self.nodes = min(most, nodes_needed(spread, len(c)) + 1)

    def at(self, size: int) -> Array:
        """Yield R = 2 slope/h (p, r, k) and F = weight · top · ∏h (r, k) for the nodes of ν."""
        xp = namespace(self.slope)
        for t, weight in zip(*diagonal_rule(self.index, size, self.nodes), strict=True):
            h = (2.0 * t - 1.0) * self.slope
            h += self.level
            if t in (0.0, 1.0):
                h = xp.maximum(h, SMALLEST)
            F = float(weight) * self.top * xp.prod(h, 0)
            yield 2.0 * self.slope / h, F


def interactions(c: Array, top: Array, outputs: Outputs, index: str) -> Array:
    """Return Φ of all outputs times ``top`` (r, k), (q, r, k), for contrasts c (p, r, k)."""
    xp, extension = namespace(c), _Extension(c, top, index)
    total = xp.zeros((len(outputs.pairs), *top.shape))
    if outputs.double:
        for R, F in extension.at(2):
            weighted = R * F
            for first, second, places in outputs.by_first:
                total[places] += weighted[first] * R[second]
    if outputs.single:
        own = [outputs.pairs[k][0] for k in outputs.single]
        total[outputs.single] = sum(R[own] * F for R, F in extension.at(1))
    return total


def interaction_sums(c: Array, top: Array, w: Array, outputs: Outputs, index: str) -> Array:
    """Return Σₖ wₖ Φ, (r, q), for weights w (k,), with one product of matrices for each node."""
    xp, extension = namespace(c), _Extension(c, top * w, index)
    total = xp.zeros((c.shape[1], len(outputs.pairs)))
    if outputs.double:
        left, right = (sorted({outputs.pairs[k][side] for k in outputs.double}) for side in (0, 1))
        matrix = xp.zeros((c.shape[1], len(left), len(right)))
        for R, F in extension.at(2):
            rows, columns = (xp.swapaxes(part, 0, 1) for part in (R[left] * F, R[right]))
            matrix += rows @ xp.swapaxes(columns, 1, 2)
        i = [left.index(outputs.pairs[k][0]) for k in outputs.double]
        j = [right.index(outputs.pairs[k][1]) for k in outputs.double]
        total[:, outputs.double] = matrix[:, i, j]
    if outputs.single:
        own = [outputs.pairs[k][0] for k in outputs.single]
        total[:, outputs.single] = sum((R[own] * F).sum(axis=2) for R, F in extension.at(1)).T
    return total


@dataclass(frozen=True, eq=False)
class InteractionCross:
    """Covariances of interactions with the function, for one product and some outputs."""

    kernel: PositiveProduct
    outputs: Outputs
    index: str

    def cross(self, sites: Coalitions, Z: Array) -> Bounded:
        """Return the covariances with f at Z, (n, q, m)."""
        n, m, outputs = len(sites.stop), len(Z), self.outputs
        result = namespace(Z).zeros((n, outputs.count, m))
        step = max(1, TILE // max(1, len(outputs.pairs)))

        def fill(rows: slice) -> None:
            for part in self.kernel.contrasts(sites, Z, rows):
                here = result[part.rows]
                for left in range(0, part.c.shape[2], step):
                    some = slice(left, left + step)
                    values = interactions(
                        part.c[:, :, some], part.top[:, some], outputs, self.index
                    )
                    low = part.points.start + left
                    here[:, list(outputs.places), low : low + values.shape[2]] = namespace(
                        Z
                    ).swapaxes(values, 0, 1)

        if outputs.pairs:
            shared(fill, n, m, Z)
        unit = namespace(Z).zeros((1, 1)) + 1.0
        return Bounded(result, self.bound(sites, Z[:1], unit) * m**0.5)

    def contract(self, sites: Coalitions, Z: Array, w: Array) -> Bounded:
        """Return the covariances with f at Z, times w (m, k) and added up, (n, q, k)."""
        outputs = self.outputs
        result = namespace(Z).zeros((len(sites.stop), outputs.count, w.shape[1]))

        def add(rows: slice) -> None:
            for part in self.kernel.contrasts(sites, Z, rows):
                for column in range(w.shape[1]):
                    result[part.rows, list(outputs.places), column] += interaction_sums(
                        part.c, part.top, w[part.points, column], outputs, self.index
                    )

        if outputs.pairs:
            shared(add, len(sites.stop), len(Z), Z)
        return Bounded(result, self.bound(sites, Z, w))

    def bound(self, sites: Coalitions, Z: Array, w: Array) -> Array:
        """Return a bound on rounding: |Φk(·, z)| ≤ σ √Var Φf ≤ σ² √3ωᵢ, a sum over m points."""
        xp, players = namespace(sites.stop), len(self.kernel.players)
        largest = xp.zeros(len(sites.stop)) + 2.0
        if sites.weights is None:
            largest = xp.minimum(xp.sqrt(3.0 * xp.max(self.kernel.falls(sites), axis=1)), 2.0)
        size = self.kernel.variance * abs(w).sum(axis=0).max() * largest
        return EPS * (32.0 + len(Z) ** 0.5 + 2.0 * players) * size
