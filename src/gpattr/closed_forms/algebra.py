"""Rules that hold for every operator, because operators are linear: constant, scaled, added and
selecting kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.table import Bounded, Rule
from gpattr.kernels import Constant, Kernel, Scale, Select, Sum

RuleOf = Callable[[Kernel], Rule]


def constant(kernel: Constant, rule_of: RuleOf) -> Rule:
    """A constant function: every operator here differentiates, so all is zero."""

    def zeros(sites: Any, *shape: int) -> Bounded:
        xp = namespace(*vars(sites).values())
        return Bounded(xp.zeros((*sites.shape, *shape)), xp.zeros(sites.shape[0]))

    return Rule(
        cross=lambda sites, Z: zeros(sites, len(Z)),
        estimate=lambda sites, Z, w: zeros(sites, w.shape[1]),
        auto=lambda sites: zeros(sites, sites.shape[1]),
        between=lambda sites, other: zeros(sites, sites.shape[1]),
        bound=lambda sites, Z, w: namespace(Z).zeros(sites.shape[0]),
    )


def scale(kernel: Scale, rule_of: RuleOf) -> Rule:
    """𝒜(σ²k) = σ² 𝒜k."""
    rule, variance = rule_of(kernel.kernel), kernel.variance

    def scaled(verb: str) -> Callable[..., Bounded]:
        return lambda *args: Bounded(*(variance * part for part in getattr(rule, verb)(*args)))

    return Rule(
        cross=scaled("cross"),
        estimate=scaled("estimate"),
        auto=scaled("auto"),
        between=scaled("between"),
        methods=rule.methods,
        bound=(lambda *args: variance * bound(*args)) if (bound := rule.bound) else None,
    )


def total(kernel: Sum, rule_of: RuleOf) -> Rule:
    """𝒜(k₁ + k₂) = 𝒜k₁ + 𝒜k₂."""
    rules = [rule_of(part) for part in kernel.kernels]

    def added(verb: str) -> Callable[..., Bounded]:
        def verb_of_sum(*args: Any) -> Bounded:
            values, errors = zip(*(getattr(rule, verb)(*args) for rule in rules), strict=True)
            return Bounded(reduce(add, values), reduce(add, errors))

        return verb_of_sum

    bounds = [rule.bound for rule in rules if rule.bound]
    return Rule(
        cross=added("cross"),
        estimate=added("estimate"),
        auto=added("auto"),
        between=added("between"),
        bound=(lambda *args: reduce(add, (bound(*args) for bound in bounds)))
        if len(bounds) == len(rules)
        else None,
        methods=frozenset().union(*(rule.methods for rule in rules)),
    )


def select(kernel: Select, rule_of: RuleOf) -> Rule:
    """Features the kernel does not see get nothing; the others what the inner kernel gives them."""
    rule, features = rule_of(kernel.kernel), list(kernel.features)

    def spread(values: Array, d: int) -> Array:
        result = namespace(values).zeros((values.shape[0], d, values.shape[2]))
        result[:, features] = values
        return result

    def spread_both(values: Array, d: int) -> Array:
        inner = namespace(values).swapaxes(spread(values, d), 1, 2)
        return namespace(values).swapaxes(spread(inner, d), 1, 2)

    def cross(sites: Any, Z: Array) -> Bounded:
        value, error = rule.cross(sites.select(features), Z[:, features])
        return Bounded(spread(value, sites.shape[1]), error)

    def estimate(sites: Any, Z: Array, w: Array) -> Bounded:
        value, error = rule.estimate(sites.select(features), Z[:, features], w)
        return Bounded(spread(value, sites.shape[1]), error)

    def auto(sites: Any) -> Bounded:
        value, error = rule.auto(sites.select(features))
        return Bounded(spread_both(value, sites.shape[1]), error)

    def between(sites: Any, other: Any) -> Bounded:
        value, error = rule.between(sites.select(features), other.select(features))
        return Bounded(spread_both(value, sites.shape[1]), error)

    bound = rule.bound
    return Rule(
        cross=cross,
        estimate=estimate,
        bound=(lambda sites, Z, w: bound(sites.select(features), Z[:, features], w))
        if bound
        else None,
        auto=auto,
        between=between,
        methods=rule.methods,
    )


ALGEBRA: dict[type[Kernel], Callable[[Any, RuleOf], Rule]] = {
    Constant: constant,
    Scale: scale,
    Sum: total,
    Select: select,
}
