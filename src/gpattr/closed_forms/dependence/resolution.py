"""Resolution of partial dependence: formulas for a kernel, by the structure of the kernel."""

from __future__ import annotations

from gpattr.closed_forms.algebra import ALGEBRA, added
from gpattr.closed_forms.dependence.points import point_formulas
from gpattr.closed_forms.dependence.products import CurveTerm, product_formulas, split
from gpattr.closed_forms.dependence.radial import radial_formulas
from gpattr.closed_forms.derivatives import require_derivatives
from gpattr.closed_forms.table import KERNELS, Formulas
from gpattr.kernels import Kernel
from gpattr.operators import PartialDependence


def kernel_formulas(operator: PartialDependence, kernel: Kernel) -> Formulas:
    """Return the formulas of partial dependence for any kernel."""
    if operator.direction is not None:
        require_derivatives(kernel)
    terms, left = split(kernel, operator.features, operator.width)
    if operator.direction is not None and any(term.joint and term.u.kernels for term in terms):
        terms, left = [], [kernel]  # a slope of a product of both
    parts = [_term_formulas(operator, term) for term in terms]
    return added([*parts, *(point_formulas(operator, part) for part in left)])


def _term_formulas(operator: PartialDependence, term: CurveTerm) -> Formulas:
    if term.joint is None:
        return product_formulas(term)
    return radial_formulas(operator, term)


for kind in (Kernel, *ALGEBRA):
    KERNELS[PartialDependence, kind] = kernel_formulas
