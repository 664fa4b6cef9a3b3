"""Products of kernels with a closed form: every term a squared exponential or a polynomial.

SE × SE is SE with the inverse squared length-scales added, feature by feature.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from gpattr.kernels import Constant, Kernel, Product, Scale, Select, SquaredExponential, Sum

MOST_TERMS = 64
Term = list[Kernel]


def multiplied_out(kernel: Kernel) -> list[Term] | None:
    """Return the kernel as a sum of products of leaves; None if there are too many terms.

    Scales become `Constant` factors.
    """
    if isinstance(kernel, Sum):
        parts = [multiplied_out(part) for part in kernel.kernels]
        terms = None if None in parts else [term for part in parts for term in part or []]
    elif isinstance(kernel, Product):
        parts = [multiplied_out(part) for part in kernel.kernels]
        if None in parts or prod(len(part or []) for part in parts) > MOST_TERMS:
            return None
        terms = [
            [leaf for term in chosen for leaf in term]
            for chosen in product(*(part or [] for part in parts))
        ]
    elif isinstance(kernel, Scale):
        inner = multiplied_out(kernel.kernel)
        terms = inner and [[Constant(kernel.variance), *term] for term in inner]
    elif isinstance(kernel, Select):
        inner = multiplied_out(kernel.kernel)
        terms = inner and [[_selected(leaf, kernel.features) for leaf in term] for term in inner]
    else:
        terms = [[kernel]]
    return None if terms is None or len(terms) > MOST_TERMS else terms


def closed_terms(kernel: Product) -> list[tuple[float, Term]] | None:
    """Return the terms of a product, each a scale and leaves; None if one has no closed form."""
    terms = []
    for term in multiplied_out(kernel) or [[kernel]]:
        scale = prod(leaf.variance for leaf in term if isinstance(leaf, Constant))
        leaves = [leaf for leaf in term if not isinstance(leaf, Constant)]
        gaussian = all(isinstance(_inner(leaf), SquaredExponential) for leaf in leaves)
        polynomial = all(leaf.polynomial_degree is not None for leaf in leaves)
        if len(leaves) > 1 and not (gaussian or polynomial):
            return None
        if len(leaves) == 1 and isinstance(leaves[0], Product):
            return None
        terms.append((scale, leaves))
    return terms


def merged(leaves: Term, d: int) -> Kernel:
    """Return the product of leaves as one kernel on d features; squared exponentials become one."""
    if len(leaves) == 1:
        return leaves[0]
    if not all(isinstance(_inner(leaf), SquaredExponential) for leaf in leaves):
        return Product(*leaves)
    precision, variance = np.zeros(d), 1.0
    for leaf in leaves:
        inner = _inner(leaf)
        assert isinstance(inner, SquaredExponential)
        features = list(leaf.features) if isinstance(leaf, Select) else list(range(d))
        precision[features] += np.asarray(inner.lengthscale) ** -2.0
        variance *= inner.variance
    seen = np.flatnonzero(precision)
    return Select(SquaredExponential(precision[seen] ** -0.5, variance), seen.tolist())


def _inner(leaf: Kernel) -> Kernel:
    return leaf.kernel if isinstance(leaf, Select) else leaf


def _selected(leaf: Kernel, features: tuple[int, ...]) -> Kernel:
    if isinstance(leaf, Constant):
        return leaf
    if isinstance(leaf, Select):
        return Select(leaf.kernel, [features[i] for i in leaf.features])
    return Select(leaf, features)
