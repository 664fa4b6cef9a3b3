"""The algebra of kernels, which holds for every operator because operators are linear.

Constant, scaled, added and selecting kernels are resolved here, once for all operators.

A product has a closed form where every term is a squared exponential or a polynomial
(`closed_terms`): SE × SE is SE with the inverse squared length-scales added, feature by feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, reduce
from operator import add
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import (
    Categorical,
    Constant,
    Kernel,
    Product,
    Scale,
    Select,
    SquaredExponential,
    Sum,
)
from gpattr.kernels.factors import KernelProduct, multiplied_out
from gpattr.operators import Operator

Resolve = Callable[[Kernel], Formulas]


def constant(operator: Operator, kernel: Constant, resolve: Resolve) -> Formulas | None:
    """Return zeros where 𝒜1 = 0; other operators have a formula of their own."""
    if not operator.vanishes_on_constants:
        return None

    def zeros(sites: Any, *shape: int) -> Bounded:
        xp, (n, d) = namespace(sites.like), sites.shape
        return Bounded(xp.zeros((n, operator.size(d), *shape)), xp.zeros(n))

    def square(sites: Any) -> Bounded:
        return zeros(sites, operator.size(sites.shape[1]))

    return Formulas(
        cross=lambda sites, Z: zeros(sites, len(Z)),
        contract=lambda sites, Z, w: zeros(sites, w.shape[1]),
        prior_cov=square,
        between=lambda sites, other: square(sites),
        bound=lambda sites, Z, w: namespace(Z).zeros(sites.shape[0]),
    )


def scale(operator: Operator, kernel: Scale, resolve: Resolve) -> Formulas:
    """𝒜(σ²k) = σ² 𝒜k."""
    inner, variance = resolve(kernel.kernel), kernel.variance

    def scaled(verb: Callable[..., Bounded]) -> Callable[..., Bounded]:
        def scaled_verb(*args: Any) -> Bounded:
            value, error = verb(*args)
            return Bounded(variance * value, variance * error)

        return scaled_verb

    bound = inner.bound
    return Formulas(
        cross=scaled(inner.cross),
        contract=scaled(inner.contract),
        prior_cov=scaled(inner.prior_cov),
        between=scaled(inner.between),
        methods=inner.methods,
        bound=None if bound is None else lambda *args: variance * bound(*args),
        pair_cost=inner.pair_cost,
    )


def total(operator: Operator, kernel: Sum, resolve: Resolve) -> Formulas:
    """𝒜(k₁ + k₂) = 𝒜k₁ + 𝒜k₂."""
    return added([resolve(part) for part in kernel.kernels])


def added(parts: list[Formulas]) -> Formulas:
    """Return the formulas of a sum of kernels from its parts' formulas."""

    def summed(verbs: list[Callable[..., Bounded]]) -> Callable[..., Bounded]:
        def summed_verb(*args: Any) -> Bounded:
            value, error = verbs[0](*args)
            for verb in verbs[1:]:
                more, bound = verb(*args)
                value, error = value + more, error + bound
            return Bounded(value, error)

        return summed_verb

    bounds = [part.bound for part in parts if part.bound is not None]
    known = len(bounds) == len(parts)
    return Formulas(
        cross=summed([part.cross for part in parts]),
        contract=summed([part.contract for part in parts]),
        prior_cov=summed([part.prior_cov for part in parts]),
        between=summed([part.between for part in parts]),
        bound=(lambda *args: reduce(add, (bound(*args) for bound in bounds))) if known else None,
        methods=frozenset().union(*(part.methods for part in parts)),
        pair_cost=max(part.pair_cost for part in parts),
    )


def select(operator: Operator, kernel: Select, resolve: Resolve) -> Formulas | None:
    """Outputs of features that the kernel ignores are zero; the others are the inner kernel's."""
    if "feature" in operator.axes and not operator.dummy:
        return None  # such an operator has a formula for the selecting kernel itself, or none
    inner, features = resolve(kernel.kernel), list(kernel.features)
    places = cache(lambda d: (operator.size(d), positions(operator, features, d), inner))

    def bound(sites: Any, Z: Array, w: Array) -> Array:
        assert inner.bound is not None
        return inner.bound(sites.select(features), Z[:, features], w)

    return replace(
        scattered(features, places),
        methods=inner.methods,
        bound=None if inner.bound is None else bound,
        pair_cost=inner.pair_cost,
    )


def scattered(
    features: list[int], places: Callable[[int], tuple[int, list[int], Formulas]]
) -> Formulas:
    """Return formulas on d features from the formulas of a kernel that sees some of them.

    ``places(d)`` are the number of outputs, the outputs that the kernel does not leave zero, and
    the formulas with these first.
    """

    def once(value: Bounded, d: int) -> Bounded:
        """Return (n, q, ·) for values (n, q', ·) of the outputs seen."""
        q, here, _ = places(d)
        result = namespace(value.value).zeros((value.value.shape[0], q, value.value.shape[2]))
        result[:, here] = value.value[:, : len(here)]
        return Bounded(result, value.error)

    def twice(value: Bounded, d: int) -> Bounded:
        q, here, _ = places(d)
        result = namespace(value.value).zeros((value.value.shape[0], q, q))
        if here:
            own = value.value[:, : len(here), : len(here)]
            result[:, [[place] for place in here], here] = own
        return Bounded(result, value.error)

    def inner(sites: Any) -> tuple[Formulas, Any, int]:
        d = sites.shape[1]
        return places(d)[2], sites.select(features), d

    def cross(sites: Any, Z: Array) -> Bounded:
        own, some, d = inner(sites)
        return once(own.cross(some, Z[:, features]), d)

    def contract(sites: Any, Z: Array, w: Array) -> Bounded:
        own, some, d = inner(sites)
        return once(own.contract(some, Z[:, features], w), d)

    def prior_cov(sites: Any) -> Bounded:
        own, some, d = inner(sites)
        return twice(own.prior_cov(some), d)

    def between(sites: Any, other: Any) -> Bounded:
        own, some, d = inner(sites)
        return twice(own.between(some, other.select(features)), d)

    return Formulas(cross, contract, prior_cov, between)


def positions(operator: Operator, features: list[int], d: int) -> list[int]:
    """Return the positions of an operator's outputs on these features among all on d features."""
    sizes = operator.sizes(d)
    each = [
        features if axis == "feature" else list(range(size))
        for axis, size in zip(operator.axes, sizes, strict=True)
    ]
    flat = np.arange(operator.size(d)).reshape(sizes)
    return flat[np.ix_(*each)].ravel().tolist() if each else [0]


ALGEBRA: dict[type[Kernel], Callable[[Operator, Any, Resolve], Formulas | None]] = {
    Categorical: lambda operator, kernel, resolve: resolve(kernel.polynomial()),
    Constant: constant,
    Scale: scale,
    Sum: total,
    Select: select,
}


def closed_terms(kernel: Product) -> list[KernelProduct] | None:
    """Return the terms of a product; None if one has no closed form."""
    terms = multiplied_out(kernel)
    for term in terms or ():
        leaves = [factor.kernel for factor in term.factors]
        gaussian = all(isinstance(leaf, SquaredExponential) for leaf in leaves)
        polynomial = all(leaf.polynomial_degree is not None for leaf in leaves)
        if len(leaves) > 1 and not (gaussian or polynomial):
            return None
    return terms


def added_terms(terms: list[KernelProduct], resolve: Resolve) -> Formulas:
    """Return the formulas of the sum of the terms.

    Which squared exponentials meet depends on the number of features.
    """

    @cache
    def on(d: int) -> Formulas:
        parts = [
            Scale(_merged(term, d), term.scale) if term.factors else Constant(term.scale)
            for term in terms
        ]
        return resolve(Sum(*parts))

    return Formulas(
        cross=lambda sites, Z: on(sites.shape[1]).cross(sites, Z),
        contract=lambda sites, Z, w: on(sites.shape[1]).contract(sites, Z, w),
        prior_cov=lambda sites: on(sites.shape[1]).prior_cov(sites),
        between=lambda sites, other: on(sites.shape[1]).between(sites, other),
    )


def _merged(term: KernelProduct, d: int) -> Kernel:
    """Return the factors as one kernel on d features; squared exponentials become one."""
    if len(term.factors) == 1:
        return term.factors[0].whole
    precision, variance = np.zeros(d), 1.0
    for kernel, columns, _ in term.factors:
        if not isinstance(kernel, SquaredExponential):
            return Product(*(factor.whole for factor in term.factors))
        precision[slice(None) if columns is None else list(columns)] += (
            np.asarray(kernel.lengthscale) ** -2.0
        )
        variance *= kernel.variance
    seen = np.flatnonzero(precision)
    return Select(SquaredExponential(precision[seen] ** -0.5, variance), seen.tolist())
