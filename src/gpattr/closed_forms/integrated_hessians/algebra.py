"""Integrated Hessians of selecting kernels and of products, and unsupported pairs."""

from __future__ import annotations

from functools import cache, partial
from typing import NoReturn

from gpattr.closed_forms.algebra import added_terms, closed_terms, scattered
from gpattr.closed_forms.integrated_hessians.path_integrals import INSTEAD
from gpattr.closed_forms.resolution import formulas_for
from gpattr.closed_forms.table import KERNELS, Formulas
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Kernel, Product, Select
from gpattr.operators import IntegratedHessians
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

    return scattered(features, places)


def product(operator: IntegratedHessians, kernel: Product) -> Formulas:
    """Return the formulas of a product that was multiplied out; refuse other products by name."""
    terms = None if kernel.polynomial_degree is not None else closed_terms(kernel)
    if not terms:
        refuse(operator, kernel)
    for term in terms:  # what is not supported is refused before any work is done
        for factor in term.factors:
            formulas_for(operator, factor.whole)
    return added_terms(terms, partial(formulas_for, operator))


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
