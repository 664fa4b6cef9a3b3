"""Shapley values of functions that are products over players, in tiles of rows and functions."""

from __future__ import annotations

from collections.abc import Iterator

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.shapley.basis_factors import BasisFactors
from gpattr.closed_forms.shapley.differences import Pair
from gpattr.closed_forms.shapley.ring import Ring, Series
from gpattr.closed_forms.shapley.signed_integrals import leave_one_out, sizes
from gpattr.operators import Coalitions

TILE = 2**18  # numbers of one kind, for all players of a tile of rows and functions
MOST = 2**12
ONE = Ring([])  # plain products


def images_of(factors: BasisFactors, sites: Coalitions) -> tuple[Array, Array]:
    """Return the Shapley values of all functions, (n, players, p), and of products their size.

    ε times the size, (n, count), is what rounding does to any of them.
    """
    xp, n = namespace(sites.stop), len(sites.stop)
    result = xp.zeros((n, sites.players.count, factors.functions))
    size = xp.zeros((n, factors.count))
    for rows, some, values, lost in tiles(factors, sites):
        size[rows, some] = lost
        for player, value in zip(sites.players.seen, values, strict=True):
            for first, part in factors.parts(value):
                result[rows, player, first + some.start : first + some.stop] = part
    return result, size


def tiles(
    factors: BasisFactors, sites: Coalitions
) -> Iterator[tuple[slice, slice, list[Array], Array]]:
    """Yield rows, functions, the Shapley values of each player, (r, f), and their size, (r, f)."""
    players, n = sites.players, len(sites.stop)
    degree = min(factors.degree, len(players.seen))
    pairs = max(1, min(MOST, TILE // len(players.seen)))
    width = min(factors.count, pairs)
    for left in range(0, factors.count, width):
        some = slice(left, min(left + width, factors.count))
        drawn = None if sites.weights is None else at_baselines(factors, sites, some)
        height = max(1, pairs // width)
        for low in range(0, n, height):
            rows = slice(low, min(low + height, n))
            here = sites[rows]
            parts: list[Series] = []
            for place, columns in enumerate(players.members):
                if drawn is None:
                    pair = factors.pair(here.stop, here.start, columns, some)
                else:
                    pair = Pair.of(factors.values(here.stop, columns, some), drawn[place])
                parts.append({0: pair})
            yield rows, some, leave_one_out(parts, ONE, degree), sizes(parts, ONE)


def at_baselines(factors: BasisFactors, sites: Coalitions, some: slice) -> list[Array]:
    """Return the factors of players at baselines, (n or 1, f), or averaged over draws, (1, f)."""
    values = [factors.values(sites.start, columns, some) for columns in sites.players.members]
    if sites.weights is None:
        return values
    weights = sites.weights[:, None]
    return [(weights * value).sum(axis=0)[None] for value in values]
