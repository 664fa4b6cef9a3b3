"""The table itself: (operator, kernel) → formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpattr._array import EPS, Array, namespace
from gpattr.kernels import Kernel
from gpattr.operators import Operator, Sites


@dataclass(frozen=True)
class Rule:
    """What one operator makes of one kernel, at n sites. The kernel is bound in.

    Z (m, d) are points, w (m, q) weights. `between` pairs the k-th site of one batch with the k-th of the other.
    """

    cross: Callable[[Sites, Array], Array]  # (sites, Z) -> (n, d, m)
    cross_dot: Callable[[Sites, Array, Array], Array]  # (sites, Z, w) -> (n, d, q), without forming (n, d, m)
    auto: Callable[[Sites], Array]  # (sites) -> (n, d, d)
    between: Callable[[Any, Any], Array]  # (sites, sites) -> (n, d, d)
    error: Callable[[Sites, Array, Array], Array]  # (sites, Z, w) -> (n,), bound on the error of cross_dot
    methods: frozenset[str] = frozenset({"closed form"})


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
) -> None:
    """Enter the formulas of a pair; each takes the kernel first, then what `Rule` says.

    Without ``cross_dot`` the generic one contracts ``cross``; without ``error`` the rounding of that sum is the bound.
    """

    def bind(k: Kernel) -> Rule:
        bound = partial(cross, k)
        return Rule(
            cross=bound,
            cross_dot=partial(cross_dot, k) if cross_dot else lambda sites, Z, w: bound(sites, Z) @ w,
            auto=partial(auto, k),
            between=partial(between, k),
            error=partial(error, k) if error else lambda sites, Z, w: rounding(bound(sites, Z), w),
        )

    CLOSED_FORMS[operator, kernel] = bind


def rounding(terms: Array, w: Array) -> Array:
    """Return a bound, (n,), on the rounding of terms (n, d, m) @ w (m, q): 32 ε times the sum of absolute values."""
    xp = namespace(terms, w)
    return 32 * EPS * xp.max(xp.abs(terms) @ xp.abs(w), axis=(1, 2))
