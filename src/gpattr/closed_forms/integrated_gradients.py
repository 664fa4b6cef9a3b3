"""Formulas of integrated gradients for kernels and means without a closed form of their own.

Products are multiplied out where every term has a closed form; the rest is integrated.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from gpattr._core.array import EPS, namespace
from gpattr.closed_forms.algebra import added_terms, closed_terms
from gpattr.closed_forms.linear_factors import factorised, linear_factor_formulas
from gpattr.closed_forms.quadrature.fixed_rules import fixed_rule
from gpattr.closed_forms.quadrature.numeric import integrated_mean, quadrature
from gpattr.closed_forms.resolution import formulas_for
from gpattr.closed_forms.table import KERNEL_SCHEMES, KERNELS, Bounded, Formulas, register_mean
from gpattr.kernels import Kernel, Product
from gpattr.means import Linear, Mean
from gpattr.operators import IntegratedGradients, Paths


def product_formulas(operator: IntegratedGradients, kernel: Product) -> Formulas | None:
    """Return the formulas of a product that was multiplied out; None where it cannot be."""
    terms = None if kernel.polynomial_degree is not None else closed_terms(kernel)
    if not terms:
        found = factorised(kernel)
        return None if found is None else linear_factor_formulas(found, quadrature(kernel))
    leaves = [factor for term in terms for factor in term.factors if len(term.factors) == 1]
    methods = {name for leaf in leaves for name in formulas_for(operator, leaf.whole).methods}
    whole = added_terms(terms, partial(formulas_for, operator))
    return replace(whole, methods=frozenset(methods | {"closed form"}))


def any_mean(mean: Mean, paths: Paths) -> Bounded:
    """Return (xᵢ − bᵢ)∫∂ᵢm dt along each path by quadrature, with its error."""
    xp, step = namespace(paths.stop), paths.step
    value, error = (xp.asarray(part) for part in integrated_mean(mean, paths))
    # What a rule has missed altogether shows here: attributions must add up to m(x) − m(b).
    change = mean(paths.stop) - mean(xp.broadcast_to(paths.start, step.shape))
    gap = xp.abs(value.sum(axis=1) - change)
    return Bounded(value, error + gap)


def linear_mean(mean: Linear, paths: Paths) -> Bounded:
    """Return coefficientᵢ(xᵢ − bᵢ)."""
    xp = namespace(paths.stop)
    value = xp.asarray(mean.coefficients) * paths.step
    return Bounded(value, 3 * EPS * xp.max(xp.abs(value), axis=1))


KERNELS[IntegratedGradients, Product] = product_formulas
KERNELS[IntegratedGradients, Kernel] = lambda operator, kernel: quadrature(kernel)
KERNEL_SCHEMES[IntegratedGradients] = lambda operator, *rule: fixed_rule(*rule)
register_mean(IntegratedGradients, Mean, any_mean, method="quadrature")
register_mean(IntegratedGradients, Linear, linear_mean)
