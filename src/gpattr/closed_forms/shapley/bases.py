"""Shapley values of basis functions: products over players, or values at corners.

Monomials, eigenfunctions and waves are products of factors of any sign, complex ones for waves. The
functions of any other basis are evaluated at coalitions, sampled ones if players are many.

Functions are taken by slices: monomials and eigenfunctions one by one, sine and cosine of a wave
together as its imaginary and its real part.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.bases import Basis, Combined, Fourier, Hilbert, Monomials
from gpattr.closed_forms.quadrature.fixed_rules import PERMUTATIONS
from gpattr.closed_forms.resolution import basis_formulas_for
from gpattr.closed_forms.shapley.corners import (
    CoalitionDesign,
    all_coalitions,
    averaged,
    sampled_coalitions,
    sampling_error,
)
from gpattr.closed_forms.shapley.signed_factors import Pair
from gpattr.closed_forms.shapley.signed_integrals import Ring, Series, leave_one_out, sizes
from gpattr.closed_forms.table import BASES, BASIS_SCHEMES, BasisFormulas
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Coalitions, Expectation, Players, Shapley
from gpattr.operators.players import MOST_PLAYERS

Columns = tuple[int, ...]
TILE = 2**18  # numbers of one kind, for all players of a tile of rows and functions
MOST = 2**12
ONE = Ring([])  # plain products


class BasisFactors(ABC):
    """The functions of a basis as ``count`` products; in each at most ``degree`` columns vary.

    A product is one function, or two.
    """

    functions: int
    count: int
    degree: int

    @abstractmethod
    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        """Return the factor of a player's columns at rows X (n, d), for some functions, (n, f)."""

    @abstractmethod
    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        """Return the values at rows and at baselines, (n, d) or (1, d)."""

    def parts(self, value: Array) -> list[tuple[int, Array]]:
        """Return the functions that products are, each with where it stands in the basis."""
        return [(0, value)]


class PowerFactors(BasisFactors):
    """Monomials: powers of each column."""

    def __init__(self, basis: Monomials) -> None:
        self.basis, self.functions = basis, len(basis)
        self.count, self.degree = len(basis), basis.degree

    def _by_power(self, first: Any, column: int, some: slice, one: Any) -> list[Any]:
        """Return powers 0, 1, … of a value up to the highest that these functions have."""
        powers = [one]
        for _ in range(int(self.basis.powers[some, column].max())):
            powers.append(powers[-1] * first)
        return powers

    def _gathered(self, powers: list[Array], column: int, some: slice) -> Array:
        places = self.basis.powers[some, column].astype(int).tolist()
        return namespace(powers[0]).stack(powers, axis=1)[:, places]

    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        u, result = self.basis.local(X), None
        for column in columns:
            ones = 0.0 * u[:, column] + 1.0
            powers = self._by_power(u[:, column], column, some, ones)
            factor = self._gathered(powers, column, some)
            result = factor if result is None else result * factor
        return result

    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        xp, basis, result = namespace(X), self.basis, None
        u, v, step = basis.local(X), basis.local(B), X - B
        step = step if basis.scale is None else step / xp.asarray(basis.scale)
        for column in columns:
            first = Pair.exact(0.5 * u[:, column] + 0.5 * v[:, column], step[:, column])
            ones = 0.0 * first.mean + 1.0
            powers = self._by_power(first, column, some, Pair(ones, 0.0 * ones, ones, 0.0 * ones))
            parts = zip(*((p.mean, p.step, p.size, p.slack) for p in powers), strict=True)
            factor = Pair(*(self._gathered(list(part), column, some) for part in parts))
            result = factor if result is None else result * factor
        assert result is not None
        return result


class SineFactors(BasisFactors):
    """Eigenfunctions of the Laplacian: a sine of each column, sin a − sin b = 2 cos(·) sin(·)."""

    def __init__(self, basis: Hilbert) -> None:
        self.basis, self.functions = basis, len(basis)
        self.count, self.degree = len(basis), basis.n_features

    def _table(self, u: Array, column: int, some: slice, function: Callable[..., Any]) -> Any:
        """Return a function of ωu for every frequency of a column, for some functions, (n, f)."""
        basis = self.basis
        omega = np.arange(1.0, basis.n_basis[column] + 1.0)
        omega = omega * (0.5 * math.pi / basis.half_width[column])
        places = (basis.indices[some, column].astype(int) - 1).tolist()
        return function(u[:, column, None] * namespace(u).asarray(omega))[:, places]

    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        xp, result = namespace(X), None
        u = X - xp.asarray(self.basis.lower)
        for column in columns:
            factor = self._table(u, column, some, xp.sin)
            result = factor if result is None else result * factor
        return result

    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        xp, result = namespace(X), None
        lower = xp.asarray(self.basis.lower)
        middle, half = 0.5 * (X - lower) + 0.5 * (B - lower), 0.5 * (X - B)
        for column in columns:
            sine, cosine = (self._table(middle, column, some, f) for f in (xp.sin, xp.cos))
            rise, level = (self._table(half, column, some, f) for f in (xp.sin, xp.cos))
            factor = Pair.exact(sine * level, 2.0 * cosine * rise)
            result = factor if result is None else result * factor
        assert result is not None
        return result


class WaveFactors(BasisFactors):
    """Sines and cosines: exp(i v·(x − o)), e^{ia} − e^{ib} = 2i sin((a − b)/2) e^{i(a + b)/2}."""

    def __init__(self, basis: Fourier) -> None:
        self.basis, self.functions = basis, len(basis)
        self.count, self.degree = len(basis.frequencies), basis.n_features

    def _phases(self, difference: Array, columns: Columns, some: slice) -> Array:
        V = namespace(difference).asarray(self.basis.frequencies[some][:, list(columns)])
        return product(difference[:, list(columns)] + 0.0, V.T + 0.0)

    def _local(self, X: Array) -> Array:
        origin = self.basis.origin
        return X if origin is None else X - namespace(X).asarray(origin)

    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        return namespace(X).exp(1j * self._phases(self._local(X), columns, some))

    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        xp = namespace(X)
        half = self._phases(0.5 * (X - B), columns, some)
        middle = self._phases(0.5 * self._local(X) + 0.5 * self._local(B), columns, some)
        wave = xp.exp(1j * middle)
        rise = 2.0 * xp.sin(half)
        return Pair(xp.cos(half) * wave, 1j * (rise * wave), 1.0 + 0.0 * half, abs(rise))

    def parts(self, value: Array) -> list[tuple[int, Array]]:
        return [(0, value.imag), (self.count, value.real)]


KINDS: dict[type[Basis], Callable[[Any], BasisFactors]] = {
    Monomials: PowerFactors,
    Hilbert: SineFactors,
    Fourier: WaveFactors,
}


def images_of(factors: BasisFactors, sites: Coalitions) -> tuple[Array, Array]:
    """Return the Shapley values of all functions, (n, players, p), and of products their size.

    ε times the size, (n, count), is the rounding of any of them.
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


def product_basis(operator: Shapley, basis: Basis) -> BasisFormulas:
    """Return the formulas of Shapley values for functions that are products over columns."""
    factors = KINDS[type(basis)](basis)
    count = operator.players.count

    def images(sites: Coalitions) -> Array:
        basis.check_rows("baseline", sites.start)
        return images_of(factors, sites)[0]

    def contract(sites: Coalitions, w: Array) -> tuple[Array, Array]:
        basis.check_rows("baseline", sites.start)
        xp = namespace(sites.stop)
        total, size = (xp.zeros((len(sites.stop), count)) for _ in range(2))
        for rows, some, values, lost in tiles(factors, sites):
            for first, _ in factors.parts(values[0]):
                weights = w[first + some.start : first + some.stop]
                size[rows] += product(lost, abs(weights))[:, None]
            for player, value in zip(sites.players.seen, values, strict=True):
                for first, part in factors.parts(value):
                    weights = w[first + some.start : first + some.stop]
                    total[rows, player] += product(part + 0.0, weights)
        return total, size

    return BasisFormulas(images, contract)


def product_expectation(operator: Expectation, basis: Basis) -> BasisFormulas:
    """Return E φⱼ(b) for functions that are products over columns."""
    factors = KINDS[type(basis)](basis)

    def images(sites: Coalitions) -> Array:
        basis.check_rows("baseline", sites.start)
        xp, n = namespace(sites.stop), len(sites.stop)
        result = xp.zeros((n, 1, len(basis)))
        for some in blocks(factors.count, 64.0 * len(sites.start), sites.stop):
            value = 1.0
            for factor in at_baselines(factors, sites, some):
                value = value * factor
            for first, part in factors.parts(value):
                result[:, 0, first + some.start : first + some.stop] = part
        return result

    return _from_images(images)


def combined_basis(operator: Shapley, basis: Combined) -> BasisFormulas:
    """Return the formulas of several bases side by side, each on its columns."""
    parts = []
    for part, some in zip(basis.parts, basis.columns, strict=True):
        parts.append((basis_formulas_for(operator.select(some), part), list(some), len(part)))

    def images(sites: Coalitions) -> Array:
        values = [formulas.images(sites.select(some)) for formulas, some, _ in parts]
        return namespace(sites.stop).concatenate(values, axis=2)

    def contract(sites: Coalitions, w: Array) -> tuple[Array, Array]:
        total, size, at = 0.0, 0.0, 0
        for formulas, some, width in parts:
            value, absolute = formulas.contract(sites.select(some), w[at : at + width])
            total, size, at = total + value, size + absolute, at + width
        return total, size

    def error(sites: Coalitions, w: Array) -> Array:
        total, at = namespace(sites.stop).zeros(len(sites.stop)), 0
        for formulas, some, width in parts:
            if formulas.error is not None:
                total = total + formulas.error(sites.select(some), w[at : at + width])
            at += width
        return total

    inexact = any(formulas.error is not None for formulas, _, _ in parts)
    method = " + ".join(sorted({formulas.method for formulas, _, _ in parts}))
    return BasisFormulas(images, contract, method, error if inexact else None)


def design_of(players: Players, pairs: int = PERMUTATIONS) -> CoalitionDesign:
    """Return all coalitions of these players if they are few, sampled ones otherwise."""
    if len(players.seen) <= MOST_PLAYERS:
        return all_coalitions(players)
    return sampled_coalitions(players, pairs)


def refuse_marginals(operator: Shapley, what: object) -> None:
    """Raise `UnsupportedModelError` where a function of unknown structure meets marginals."""
    if operator.independent:
        raise UnsupportedModelError(
            f"baseline: Marginals are not supported for {type(what).__name__}, which is not known"
            " to be a product over features. Use Baselines(rows)"
        )


def corner_basis(
    operator: Shapley, basis: Basis, design: CoalitionDesign | None = None
) -> BasisFormulas:
    """Return the formulas for any basis, from its values at the coalitions of a design."""
    if design is None:
        refuse_marginals(operator, basis)
    chosen = design_of(operator.players) if design is None else design

    def by_rows(sites: Coalitions) -> Iterator[tuple[slice, Array]]:
        """Yield rows, and the basis at their coalitions, (r, c, p)."""
        basis.check_rows("baseline", sites.start)
        c, d = len(chosen.members), sites.shape[1]
        for rows in blocks(len(sites.stop), 16.0 * c * (len(basis) + d), sites.stop):
            corners = sites[rows].corners(chosen.members)
            yield rows, basis(corners.reshape(-1, d)).reshape(-1, c, len(basis))

    def images(sites: Coalitions) -> Array:
        xp, sites = namespace(sites.stop), averaged(sites)
        weights = xp.asarray(chosen.weights)
        result = xp.empty((len(sites.stop), len(weights), len(basis)))
        for rows, values in by_rows(sites):
            result[rows] = weights @ values
        result *= chosen.moving(sites)[:, :, None]
        return result

    def contract(sites: Coalitions, w: Array) -> tuple[Array, Array]:
        xp, sites = namespace(sites.stop), averaged(sites)
        weights = xp.asarray(chosen.weights.T + 0.0)
        total, size = (xp.empty((len(sites.stop), weights.shape[1])) for _ in range(2))
        for rows, values in by_rows(sites):
            total[rows] = product(product(values, w), weights)
            size[rows] = product(product(abs(values), abs(w)), abs(weights))
        return total * chosen.moving(sites), size

    def error(sites: Coalitions, w: Array) -> Array:
        result = namespace(sites.stop).empty(len(sites.stop))
        for rows, values in by_rows(sites):
            result[rows] = sampling_error(chosen, product(values, w).T[:, :, None])
        return result

    return BasisFormulas(images, contract, chosen.method, error if chosen.groups else None)


def value_at_baselines(operator: Expectation, basis: Basis) -> BasisFormulas:
    """Return φⱼ(b) for any basis."""
    refuse_marginals(operator, basis)

    def images(sites: Coalitions) -> Array:
        basis.check_rows("baseline", sites.start)
        shape = (len(sites.stop), 1, len(basis))
        return namespace(sites.stop).broadcast_to(basis(sites.start)[:, None, :], shape) + 0.0

    return _from_images(images)


def sampled_basis(operator: Shapley, basis: Basis, method: str, pairs: int | None) -> BasisFormulas:
    """Return the formulas by antithetic permutations, for comparison."""
    if operator.independent:
        raise UnsupportedModelError(
            'method: "permutations" needs a baseline of points; Marginals are not supported'
        )
    number = PERMUTATIONS if pairs is None else pairs
    return corner_basis(operator, basis, sampled_coalitions(operator.players, number))


def _from_images(images: Callable[[Any], Array]) -> BasisFormulas:
    def contract(sites: Any, w: Array) -> tuple[Array, Array]:
        values = images(sites)
        return product(values, w), product(abs(values), abs(w))

    return BasisFormulas(images, contract)


for known in KINDS:
    BASES[Shapley, known] = product_basis
    BASES[Expectation, known] = product_expectation
for kind in (Shapley, Expectation):
    BASES[kind, Combined] = combined_basis
BASES[Shapley, Basis] = corner_basis
BASES[Expectation, Basis] = value_at_baselines
BASIS_SCHEMES[Shapley] = sampled_basis
