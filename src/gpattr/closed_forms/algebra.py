"""The algebra of kernels, which holds for every operator because operators are linear.

Constant, scaled, added and selecting kernels are resolved here, once for all operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from operator import add
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.table import Bounded, Formulas
from gpattr.kernels import Categorical, Constant, Kernel, Scale, Select, Sum
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
    """Return the formulas of a sum of kernels from those of its parts."""

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
    places = cache(lambda d: (operator.size(d), positions(operator, features, d)))

    def scattered(values: Array, d: int) -> Array:
        """Return (n, q, ·) for values (n, q', ·) of the features seen."""
        q, here = places(d)
        result = namespace(values).zeros((values.shape[0], q, values.shape[2]))
        result[:, here] = values
        return result

    def scattered_twice(values: Array, d: int) -> Array:
        q, here = places(d)
        result = namespace(values).zeros((values.shape[0], q, q))
        result[:, [[place] for place in here], here] = values
        return result

    def cross(sites: Any, Z: Array) -> Bounded:
        value, error = inner.cross(sites.select(features), Z[:, features])
        return Bounded(scattered(value, sites.shape[1]), error)

    def contract(sites: Any, Z: Array, w: Array) -> Bounded:
        value, error = inner.contract(sites.select(features), Z[:, features], w)
        return Bounded(scattered(value, sites.shape[1]), error)

    def prior_cov(sites: Any) -> Bounded:
        value, error = inner.prior_cov(sites.select(features))
        return Bounded(scattered_twice(value, sites.shape[1]), error)

    def between(sites: Any, other: Any) -> Bounded:
        value, error = inner.between(sites.select(features), other.select(features))
        return Bounded(scattered_twice(value, sites.shape[1]), error)

    def bound(sites: Any, Z: Array, w: Array) -> Array:
        assert inner.bound is not None
        return inner.bound(sites.select(features), Z[:, features], w)

    known = None if inner.bound is None else bound
    return Formulas(
        cross, contract, prior_cov, between, inner.methods, known, pair_cost=inner.pair_cost
    )


def positions(operator: Operator, features: list[int], d: int) -> list[int]:
    """Return where the outputs of an operator on these features stand among those on d features."""
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
