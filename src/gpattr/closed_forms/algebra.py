"""Rules that hold for every operator, because operators are linear: constant, scaled, added and selecting kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from gpattr._array import Array, namespace
from gpattr.closed_forms.table import Rule
from gpattr.kernels import Constant, Kernel, Scale, Select, Sum

RuleOf = Callable[[Kernel], Rule]


def constant(kernel: Constant, rule_of: RuleOf) -> Rule:
    """A constant function: every operator here differentiates, so all is zero."""

    def zeros(sites: Any, *shape: int) -> Array:
        return namespace(*vars(sites).values()).zeros((*sites.shape, *shape))

    return Rule(
        cross=lambda sites, Z: zeros(sites, len(Z)),
        estimate=lambda sites, Z, w: (zeros(sites, w.shape[1]), namespace(Z).zeros(sites.shape[0])),
        auto=lambda sites: zeros(sites, sites.shape[1]),
        between=lambda sites, other: zeros(sites, sites.shape[1]),
        bound=lambda sites, Z, w: namespace(Z).zeros(sites.shape[0]),
    )


def scale(kernel: Scale, rule_of: RuleOf) -> Rule:
    """𝒜(σ²k) = σ² 𝒜k."""
    rule, variance = rule_of(kernel.kernel), kernel.variance
    return Rule(
        cross=lambda *args: variance * rule.cross(*args),
        estimate=lambda *args: tuple(variance * part for part in rule.estimate(*args)),  # pyright: ignore[reportArgumentType]
        auto=lambda *args: variance * rule.auto(*args),
        between=lambda *args: variance * rule.between(*args),
        methods=rule.methods,
        bound=(lambda *args: variance * bound(*args)) if (bound := rule.bound) else None,
    )


def total(kernel: Sum, rule_of: RuleOf) -> Rule:
    """𝒜(k₁ + k₂) = 𝒜k₁ + 𝒜k₂."""
    rules = [rule_of(part) for part in kernel.kernels]

    def added(verb: str) -> Callable[..., Array]:
        return lambda *args: reduce(add, (getattr(rule, verb)(*args) for rule in rules))

    def estimate(*args: Any) -> tuple[Array, Array]:
        values, errors = zip(*(rule.estimate(*args) for rule in rules), strict=True)
        return reduce(add, values), reduce(add, errors)

    return Rule(
        cross=added("cross"),
        estimate=estimate,
        auto=added("auto"),
        between=added("between"),
        bound=added("bound") if all(rule.bound for rule in rules) else None,
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

    def cross(sites: Any, Z: Array) -> Array:
        return spread(rule.cross(sites.select(features), Z[:, features]), sites.shape[1])

    def estimate(sites: Any, Z: Array, w: Array) -> tuple[Array, Array]:
        value, error = rule.estimate(sites.select(features), Z[:, features], w)
        return spread(value, sites.shape[1]), error

    bound = rule.bound
    return Rule(
        cross=cross,
        estimate=estimate,
        bound=(lambda sites, Z, w: bound(sites.select(features), Z[:, features], w)) if bound else None,
        auto=lambda sites: spread_both(rule.auto(sites.select(features)), sites.shape[1]),
        between=lambda sites, other: spread_both(rule.between(sites.select(features), other.select(features)), sites.shape[1]),
        methods=rule.methods,
    )


ALGEBRA: dict[type[Kernel], Callable[[Any, RuleOf], Rule]] = {
    Constant: constant,
    Scale: scale,
    Sum: total,
    Select: select,
}
