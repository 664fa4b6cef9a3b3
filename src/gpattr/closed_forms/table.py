"""The table itself: (operator, kernel) → formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gpattr._core.array import EPS, Array, namespace
from gpattr.kernels import Kernel
from gpattr.operators import Operator, Sites


class Bounded(NamedTuple):
    """An array (n, ...) and a bound (n,) on the error of its entries.

    Of covariances with data, (n, d, m), it is the Euclidean length, over the m points, of what
    bounds the error of each: that times the length of weights bounds the error of a weighted sum.
    """

    value: Array
    error: Array


@dataclass(frozen=True)
class Rule:
    """What one operator makes of one kernel, at n sites. The kernel is bound in.

    Z (m, d) are points, w (m, q) weights. `between` pairs the k-th site of one batch with the k-th
    of the other."""

    cross: Callable[[Sites, Array], Bounded]  # (sites, Z) -> (n, d, m)
    estimate: Callable[[Sites, Array, Array], Bounded]  # (sites, Z, w) -> cross @ w, (n, d, q)
    auto: Callable[[Sites], Bounded]  # (sites) -> (n, d, d)
    between: Callable[[Any, Any], Bounded]  # (sites, sites) -> (n, d, d)
    methods: frozenset[str] = frozenset({"closed form"})
    bound: Callable[[Sites, Array, Array], Array] | None = (
        None  # the error of estimate, where it is known without the value
    )


CLOSED_FORMS: dict[tuple[type[Operator], type[Kernel]], Callable[[Any], Rule]] = {}


def register(
    operator: type[Operator],
    kernel: type[Kernel],
    *,
    cross: Callable[..., Array],
    auto: Callable[..., Array],
    between: Callable[..., Array],
    cross_dot: Callable[..., Array] | None = None,
    error: Callable[..., Array] | None = None,
    method: str = "closed form",
) -> None:
    """Enter the formulas of a pair; each takes the kernel first, then what `Rule` says, and returns
    an array or `Bounded`.

    Without ``cross_dot`` the generic one contracts ``cross``. ``error`` bounds the error of
    ``cross_dot``; without it, and for what comes as an array, the bound is that of rounding."""

    def bind(k: Kernel) -> Rule:
        def estimate(sites: Sites, Z: Array, w: Array) -> Bounded:
            terms = cross(k, sites, Z) if cross_dot is None or error is None else None
            terms = terms.value if isinstance(terms, Bounded) else terms
            value = cross_dot(k, sites, Z, w) if cross_dot else terms @ w  # pyright: ignore[reportOptionalOperand]
            return Bounded(value, error(k, sites, Z, w) if error else rounding(terms, w))

        def with_error(sites: Sites, Z: Array) -> Bounded:
            terms = cross(k, sites, Z)
            if isinstance(terms, Bounded):
                return terms
            # The bound for one point, as often as there are points.
            unit = namespace(Z).zeros((1, 1)) + 1.0
            return (
                Bounded(terms, error(k, sites, Z[:1], unit) * len(Z) ** 0.5)
                if error
                else rounded_cross(terms)
            )

        return Rule(
            cross=with_error,
            estimate=estimate,
            auto=lambda sites: rounded(auto(k, sites)),
            between=lambda sites, other: rounded(between(k, sites, other)),
            methods=frozenset({method}),
            bound=partial(error, k) if error else None,
        )

    CLOSED_FORMS[operator, kernel] = bind


def rounded(value: Array | Bounded) -> Bounded:
    """Return prior covariances (n, d, d) with a bound on their rounding, unless they have a bound."""
    if isinstance(value, Bounded):
        return value
    xp = namespace(value)
    return Bounded(value, 64 * EPS * xp.max(xp.abs(value), axis=(1, 2)))


def rounded_cross(value: Array) -> Bounded:
    """Return covariances with data, (n, d, m), with a bound on their rounding."""
    largest = namespace(value).max(abs(value), axis=1)
    return Bounded(value, 32 * EPS * (largest * largest).sum(axis=1) ** 0.5)


def rounding(terms: Array, w: Array) -> Array:
    """Return a bound, (n,), on the rounding of terms (n, d, m) @ w (m, q): 32 ε times the sum of
    absolute values.
    """
    xp = namespace(terms, w)
    return 32 * EPS * xp.max(xp.abs(terms) @ xp.abs(w), axis=(1, 2))
