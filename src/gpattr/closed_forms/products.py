"""Products of kernels with a closed form: every term a squared exponential or a polynomial.

SE × SE is SE with the inverse squared length-scales added, feature by feature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gpattr.kernels import Kernel, Product, Scale, Select, SquaredExponential, Sum
from gpattr.kernels.constant import Constant
from gpattr.kernels.factors import KernelProduct, multiplied_out


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


def added_terms(terms: list[KernelProduct]) -> Callable[[int], Sum]:
    """Return the sum of the terms, by the number of features, on which it depends what meets."""

    @cache
    def on(d: int) -> Sum:
        parts = [
            Scale(_merged(term, d), term.scale) if term.factors else Constant(term.scale)
            for term in terms
        ]
        return Sum(*parts)

    return on


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
