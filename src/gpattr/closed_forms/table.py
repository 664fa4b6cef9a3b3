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
    estimate: Callable[[Sites, Array, Array], tuple[Array, Array]]  # (sites, Z, w) -> cross @ w, (n, d, q), its error, (n,)
    auto: Callable[[Sites], Array]  # (sites) -> (n, d, d)
    between: Callable[[Any, Any], Array]  # (sites, sites) -> (n, d, d)
    methods: frozenset[str] = frozenset({"closed form"})
    bound: Callable[[Sites, Array, Array], Array] | None = None  # the error of estimate, where it is known without the value


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
    """Enter the formulas of a pair; each takes the kernel first, then what `Rule` says.

    Without ``cross_dot`` the generic one contracts ``cross``; without ``error`` the rounding of that sum is the bound.
    """

    def bind(k: Kernel) -> Rule:
        def estimate(sites: Sites, Z: Array, w: Array) -> tuple[Array, Array]:
            terms = cross(k, sites, Z) if cross_dot is None or error is None else None
            value = cross_dot(k, sites, Z, w) if cross_dot else terms @ w  # pyright: ignore[reportOptionalOperand]
            return value, error(k, sites, Z, w) if error else rounding(terms, w)

        return Rule(
            cross=partial(cross, k),
            estimate=estimate,
            auto=partial(auto, k),
            between=partial(between, k),
            methods=frozenset({method}),
            bound=partial(error, k) if error else None,
        )

    CLOSED_FORMS[operator, kernel] = bind


def rounding(terms: Array, w: Array) -> Array:
    """Return a bound, (n,), on the rounding of terms (n, d, m) @ w (m, q): 32 ε times the sum of absolute values."""
    xp = namespace(terms, w)
    return 32 * EPS * xp.max(xp.abs(terms) @ xp.abs(w), axis=(1, 2))
