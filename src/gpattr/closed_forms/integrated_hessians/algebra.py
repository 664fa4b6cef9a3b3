"""Integrated Hessians of selecting kernels and of products, and what is not supported."""

from __future__ import annotations

from functools import cache
from typing import NoReturn

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.integrated_hessians.profiles import INSTEAD
from gpattr.closed_forms.products import added_terms, closed_terms
from gpattr.closed_forms.resolution import formulas_for
from gpattr.closed_forms.table import KERNELS, Bounded, Formulas
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Kernel, Product, Select
from gpattr.operators import IntegratedHessians, Paths
from gpattr.operators.pairs import pairs_within


def select(operator: IntegratedHessians, kernel: Select) -> Formulas:
    """Return Γ of a kernel on some features: pairs with any other feature have none."""
    features = list(kernel.features)

    @cache
    def places(d: int) -> tuple[int, list[int], Formulas]:
        """Return the number of pairs, which of them the kernel sees, and its formulas for these."""
        pairs = tuple(operator.pairs_for(d))
        here, inner = pairs_within(pairs, features)
        # An operator needs a pair; of none the result is left out.
        chosen = operator.replaced(operator.points[:, features], inner or ((0, 0),))
        return len(pairs), here, formulas_for(chosen, kernel.kernel)

    def scattered(value: Bounded, d: int) -> Bounded:
        """Return (n, q, ·) for values (n, q', ·) of the pairs that the kernel sees."""
        q, here, _ = places(d)
        result = namespace(value.value).zeros((value.value.shape[0], q, value.value.shape[2]))
        if here:
            result[:, here] = value.value[:, : len(here)]
        return Bounded(result, value.error)

    def scattered_twice(value: Bounded, d: int) -> Bounded:
        q, here, _ = places(d)
        result = namespace(value.value).zeros((value.value.shape[0], q, q))
        if here:
            result[:, [[place] for place in here], here] = value.value[:, : len(here), : len(here)]
        return Bounded(result, value.error)

    def inner(paths: Paths) -> tuple[Formulas, Paths, int]:
        d = paths.shape[1]
        return places(d)[2], paths.select(features), d

    def cross(paths: Paths, Z: Array) -> Bounded:
        own, some, d = inner(paths)
        return scattered(own.cross(some, Z[:, features]), d)

    def contract(paths: Paths, Z: Array, w: Array) -> Bounded:
        own, some, d = inner(paths)
        return scattered(own.contract(some, Z[:, features], w), d)

    def prior_cov(paths: Paths) -> Bounded:
        own, some, d = inner(paths)
        return scattered_twice(own.prior_cov(some), d)

    def between(paths: Paths, other: Paths) -> Bounded:
        own, some, d = inner(paths)
        return scattered_twice(own.between(some, other.select(features)), d)

    return Formulas(cross, contract, prior_cov, between)


def product(operator: IntegratedHessians, kernel: Product) -> Formulas:
    """Return the formulas of a product that was multiplied out; refuse other products by name."""
    terms = None if kernel.polynomial_degree is not None else closed_terms(kernel)
    if not terms:
        refuse(operator, kernel)

    whole = added_terms(terms)

    @cache
    def on(d: int) -> Formulas:
        return formulas_for(operator, whole(d))

    for term in terms:  # what is not supported is refused before any work is done
        for factor in term.factors:
            formulas_for(operator, factor.whole)
    return Formulas(
        cross=lambda paths, Z: on(paths.shape[1]).cross(paths, Z),
        contract=lambda paths, Z, w: on(paths.shape[1]).contract(paths, Z, w),
        prior_cov=lambda paths: on(paths.shape[1]).prior_cov(paths),
        between=lambda paths, other: on(paths.shape[1]).between(paths, other),
    )


def refuse(operator: IntegratedHessians, kernel: Kernel) -> NoReturn:
    """Raise `UnsupportedModelError`: there is no formula for this kernel."""
    name = repr(kernel) if isinstance(kernel, Product) else type(kernel).__name__
    raise UnsupportedModelError(
        f"IntegratedHessians of {name}: there is no formula; {INSTEAD}, and"
        " gpattr.closed_forms.register adds a formula"
    )


KERNELS[IntegratedHessians, Select] = select
KERNELS[IntegratedHessians, Product] = product
KERNELS[IntegratedHessians, Kernel] = refuse
