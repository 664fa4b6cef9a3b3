"""Resolution of kernels for Shapley values: product, series, scale mixture, or values at corners.

A kernel is multiplied out into terms, each a product of leaves on some columns. A term whose leaves
are factors of single players is a product (positive factors) or a series (any sign). Radial kernels
of several players, which are no products, are mixtures of squared exponentials, which are. Kernels
that are none of these are evaluated at coalitions: all of them if players are few, sampled ones
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr.bases import Basis
from gpattr.closed_forms.algebra import added
from gpattr.closed_forms.quadrature.fixed_rules import PERMUTATIONS
from gpattr.closed_forms.resolution import formulas_for
from gpattr.closed_forms.shapley.corners import (
    all_coalitions,
    corner_formulas,
    sampled_coalitions,
)
from gpattr.closed_forms.shapley.factors import LOG_PROFILES, factor_of, variance_of
from gpattr.closed_forms.shapley.integrals import formulas, mean_formulas
from gpattr.closed_forms.shapley.interaction_corners import (
    interaction_basis,
    interaction_kernel,
    interaction_mean,
)
from gpattr.closed_forms.shapley.interactions import interaction_formulas
from gpattr.closed_forms.shapley.mixtures import (
    MIXTURE,
    Leaf,
    MixtureError,
    bounded,
    certified,
    components,
    mixture_of,
    scaled_formulas,
)
from gpattr.closed_forms.shapley.product import PositiveProduct
from gpattr.closed_forms.shapley.series import series_expectation, series_formulas
from gpattr.closed_forms.table import (
    BASES,
    KERNEL_SCHEMES,
    KERNELS,
    MEANS,
    Formulas,
    register,
    register_mean,
)
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Kernel,
    Select,
)
from gpattr.kernels.factors import Factor, KernelProduct, multiplied_out
from gpattr.means import Constant as ConstantMean
from gpattr.means import Mean
from gpattr.operators import Coalitions, Expectation, Players, Shapley, ShapleyInteractions
from gpattr.operators.players import MOST_PLAYERS

# Players up to which a radial kernel is evaluated at all coalitions rather than mixed: between two
# rows there are 4^p pairs of coalitions, between a row and a point 2^p.
FEW, SEVERAL = 6, 9
MOST_TERMS = 512

# Formulas of each operator for a product of positive factors.
ENGINES: dict[type[Shapley], Callable[[Any, PositiveProduct], Formulas]] = {
    Shapley: lambda operator, product: formulas(product),
    Expectation: lambda operator, product: mean_formulas(product),
    ShapleyInteractions: interaction_formulas,
}

SERIES = {Shapley: series_formulas, Expectation: series_expectation}


def kernel_formulas(operator: Shapley, kernel: Kernel) -> Formulas:
    """Return the formulas of Shapley values, or of an expectation, for any kernel."""
    found, players = structured_formulas(operator, kernel), operator.players
    if isinstance(operator, ShapleyInteractions):
        mixed = found is not None and MIXTURE in found.methods and not operator.independent
        few = mixed and len(players.seen) <= SEVERAL  # enumeration is exact, and faster
        return interaction_kernel(operator, kernel) if found is None or few else found
    if found is not None and (MIXTURE not in found.methods or operator.independent):
        return found
    if found is not None:
        return _with_enumeration(found, kernel, players)
    if operator.independent:
        raise UnsupportedModelError(
            f"baseline: Marginals need a kernel that is a product over features, a sum of such"
            f" products, or a Matérn or rational quadratic kernel; {type(kernel).__name__} is none"
            " of them. Use Baselines(rows)"
        )
    if len(players.seen) <= MOST_PLAYERS:
        return corner_formulas(kernel, all_coalitions(players))
    return corner_formulas(kernel, sampled_coalitions(players, PERMUTATIONS))


def _with_enumeration(found: Formulas, kernel: Kernel, players: Players) -> Formulas:
    """Return mixtures with covariances with data from all coalitions, where these are few."""
    if len(players.seen) > SEVERAL:
        return found
    exact = corner_formulas(kernel, all_coalitions(players))
    return replace(
        exact,
        prior_cov=found.prior_cov,
        between=found.between,
        methods=exact.methods | found.methods,
    )


def structured_formulas(operator: Shapley, kernel: Kernel) -> Formulas | None:
    """Return formulas from the structure of a kernel; None where it has none."""
    columns = tuple(range(len(operator.players.owner)))
    terms = multiplied_out(kernel) or [KernelProduct(1.0, (Factor(kernel, columns),))]
    parts = [
        _term_formulas(
            operator, term.scale, [(leaf, some or columns) for leaf, some, _ in term.factors]
        )
        for term in terms
    ]
    found = [part for part in parts if part is not None]
    return added(found) if len(found) == len(parts) else None


def _term_formulas(operator: Shapley, scale: float, leaves: list[Leaf]) -> Formulas | None:
    """Return the formulas of a product of leaves; None where it is not one over players."""
    players = operator.players
    if not leaves:
        return formulas_for(operator, Constant(scale))
    factors = [factor_of(leaf, columns, players) for leaf, columns in leaves]
    known = tuple(factor for factor in factors if factor is not None)
    if len(known) == len(factors):
        variance = scale * prod(variance_of(factor.kernel) for factor in known)
        return ENGINES[type(operator)](operator, PositiveProduct(variance, known, players.count))
    radial = [i for i, (leaf, _) in enumerate(leaves) if _is_mixture(leaf) and factors[i] is None]
    if not radial:
        series = SERIES.get(type(operator))
        return None if series is None else series(scale, leaves, players)
    if not operator.independent and len(players.seen) <= FEW:
        return None  # exact, and faster
    return _mixed(operator, scale, leaves, radial)


def _is_mixture(leaf: Kernel) -> bool:
    return type(leaf) in LOG_PROFILES


def _mixed(
    operator: Shapley, scale: float, leaves: list[Leaf], radial: list[int]
) -> Formulas | None:
    """Return the formulas of a term of which some leaves are mixtures of squared exponentials."""
    if not all(bounded(leaf) for leaf, _ in leaves):
        return None
    expansions = [(mixture_of(leaves[i][0]), *leaves[i]) for i in radial]
    if prod(len(mixture.scales) for mixture, _, _ in expansions) > MOST_TERMS:
        return None
    terms = [(scale, [leaf for i, leaf in enumerate(leaves) if i not in radial])]
    for mixture, leaf, columns in expansions:
        terms = [
            (scale * size, [*term, *part])
            for scale, term in terms
            for size, part in components(mixture, leaf, columns)
        ]
    parts = [_term_formulas(operator, *term) for term in terms]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    whole = added(found)
    if type(operator) is Shapley and len(leaves) == 1:
        whole = scaled_formulas(whole, scale, *expansions[0], operator.players)
    errors = [MixtureError(mixture, leaf, columns) for mixture, leaf, columns in expansions]
    return certified(whole, errors, leaves, scale, operator.absolute_weight)


def select_formulas(operator: Shapley, kernel: Select) -> Formulas:
    """Return the formulas of a kernel on some columns: players stay what they are."""
    features = list(kernel.features)
    inner = formulas_for(operator.select(features), kernel.kernel)

    def bound(sites: Any, Z: Array, w: Array) -> Array:
        assert inner.bound is not None
        return inner.bound(sites.select(features), Z[:, features], w)

    return Formulas(
        cross=lambda sites, Z: inner.cross(sites.select(features), Z[:, features]),
        contract=lambda sites, Z, w: inner.contract(sites.select(features), Z[:, features], w),
        prior_cov=lambda sites: inner.prior_cov(sites.select(features)),
        between=lambda sites, other: inner.between(sites.select(features), other.select(features)),
        methods=inner.methods,
        bound=None if inner.bound is None else bound,
    )


def sampled_formulas(
    operator: Shapley, kernel: Kernel, method: str, pairs: int, exact: Formulas
) -> Formulas:
    """Return the formulas of Shapley values by antithetic permutations, for comparison."""
    if operator.independent:
        raise UnsupportedModelError(
            'method: "permutations" needs a baseline of points; Marginals are not supported'
        )
    return corner_formulas(kernel, sampled_coalitions(operator.players, pairs))


def constant_mean(kernel: Constant, sites: Coalitions, Z: Array) -> Array:
    """Return the covariance of E f(b) with f for a constant kernel, (n, 1, m)."""
    return namespace(Z).zeros((len(sites.stop), 1, len(Z))) + kernel.variance


def constant_means(kernel: Constant, sites: Coalitions, other: Coalitions) -> Array:
    """Return the variance of E f(b) for a constant kernel, (n, 1, 1)."""
    return namespace(sites.stop).zeros((len(sites.stop), 1, 1)) + kernel.variance


def constant_prior_mean(mean: ConstantMean, sites: Coalitions) -> Array:
    """Return the mean of a constant, (n, 1)."""
    return namespace(sites.stop).zeros((len(sites.stop), 1)) + mean.value


register(Expectation, Constant, cross=constant_mean, between=constant_means)
register_mean(Expectation, ConstantMean, constant_prior_mean)
for kind in (Shapley, Expectation, ShapleyInteractions):
    KERNELS[kind, Kernel] = kernel_formulas
    KERNELS[kind, Select] = select_formulas
BASES[ShapleyInteractions, Basis] = interaction_basis
MEANS[ShapleyInteractions, Mean] = interaction_mean
KERNEL_SCHEMES[Shapley] = sampled_formulas
