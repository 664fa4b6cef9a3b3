"""Shapley values of basis functions: products over players, or values at corners.

Monomials, eigenfunctions and waves are products of factors of any sign, complex ones for waves. The
functions of any other basis are evaluated at coalitions, sampled ones if players are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gpattr._core.array import Array, namespace, product
from gpattr._core.memory import blocks
from gpattr.bases import Basis, Combined
from gpattr.closed_forms.quadrature.fixed_rules import PERMUTATIONS
from gpattr.closed_forms.resolution import basis_formulas_for
from gpattr.closed_forms.shapley.basis_factors import KINDS
from gpattr.closed_forms.shapley.basis_products import at_baselines, images_of, tiles
from gpattr.closed_forms.shapley.corners import (
    Design,
    all_coalitions,
    sampled_coalitions,
    sampling_error,
)
from gpattr.closed_forms.table import BASES, BASIS_SCHEMES, BasisFormulas
from gpattr.exceptions import UnsupportedModelError
from gpattr.operators import Coalitions, Expectation, Players, Shapley
from gpattr.operators.players import MOST_PLAYERS


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


def design_of(players: Players, pairs: int = PERMUTATIONS) -> Design:
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


def corner_basis(operator: Shapley, basis: Basis, design: Design | None = None) -> BasisFormulas:
    """Return the formulas of Shapley values for any basis, from its values at coalitions."""
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
        xp = namespace(sites.stop)
        weights = xp.asarray(chosen.weights)
        result = xp.empty((len(sites.stop), len(weights), len(basis)))
        for rows, values in by_rows(sites):
            result[rows] = weights @ values
        result *= sites.moving[:, :, None]
        return result

    def contract(sites: Coalitions, w: Array) -> tuple[Array, Array]:
        xp = namespace(sites.stop)
        weights = xp.asarray(chosen.weights)
        total, size = (xp.empty((len(sites.stop), len(weights))) for _ in range(2))
        for rows, values in by_rows(sites):
            total[rows] = product(product(values, w), weights.T + 0.0)
            # The weights of a player have absolute values that add up to 2.
            size[rows] = 2.0 * xp.max(product(abs(values), abs(w)), axis=1)[:, None]
        return total * sites.moving, size

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
