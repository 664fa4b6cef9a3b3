"""The three tables of formulas: (operator, kernel), (operator, basis) and (operator, mean).

An entry is found by exact types. One for the base class (`Kernel`, `Basis`, `Mean`) is the
operator's fallback: it serves every kernel, basis or mean without an entry of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gpattr._core.array import EPS, Array, namespace, product
from gpattr.bases import Basis
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.operators import Operator


class Bounded(NamedTuple):
    """An array (n, ...) and a bound (n,) on the error of its entries.

    Of covariances with data, (n, q, m), it is the Euclidean length, over the m points, of the
    bounds of each error: times the length of weights it bounds the error of a weighted sum.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import Bounded
    >>> value, error = Bounded(np.array([1.0, 2.0]), np.array([1e-16, 2e-16]))
    >>> value
    array([1., 2.])
    """

    value: Array
    error: Array


@dataclass(frozen=True)
class Formulas:
    """Formulas of one operator for one kernel at n sites: q numbers each.

    Z (m, d) are points, w (m, k) weights. `between` pairs the i-th site of one batch with the i-th
    of the other. Sites are of the kind that the operator's `terms` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import formulas_for
    >>> from gpattr.kernels import Linear
    >>> from gpattr.operators import Gradient, Points
    >>> formulas = formulas_for(Gradient(), Linear())
    >>> formulas.cross(Points(np.array([[0.0]])), np.array([[2.0], [3.0]])).value
    array([[[2., 3.]]])
    """

    cross: Callable[[Any, Array], Bounded]  # (sites, Z) -> (n, q, m)
    contract: Callable[[Any, Array, Array], Bounded]  # (sites, Z, w) -> cross @ w, (n, q, k)
    prior_cov: Callable[[Any], Bounded]  # (sites) -> (n, q, q)
    between: Callable[[Any, Any], Bounded]  # (sites, sites) -> (n, q, q)
    methods: frozenset[str] = frozenset({"closed form"})
    # The error of contract, where it is known without the value.
    bound: Callable[[Any, Array, Array], Array] | None = None
    # What `between` costs for a pair of sites besides its q² entries, in entries.
    pair_cost: float = 500.0


@dataclass(frozen=True)
class BasisFormulas:
    """Formulas of one operator for the p functions of one basis at n sites.

    ``contract`` returns Σⱼ wⱼ𝒜φⱼ and Σⱼ |wⱼ𝒜φⱼ| before anything cancels, (n, q) each. ``error``
    bounds what is left beside rounding, (n,), if there is anything.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Monomials
    >>> from gpattr.closed_forms import basis_formulas_for
    >>> from gpattr.operators import Gradient, Points
    >>> formulas = basis_formulas_for(Gradient(), Monomials([[2]]))
    >>> formulas.images(Points(np.array([[3.0]])))
    array([[[6.]]])
    """

    images: Callable[[Any], Array]  # (sites) -> (n, q, p)
    contract: Callable[[Any, Array], tuple[Array, Array]]  # (sites, w (p,))
    method: str = "closed form"
    error: Callable[[Any, Array], Array] | None = None  # (sites, w (p,)) -> (n,)


@dataclass(frozen=True)
class MeanFormulas:
    """Formulas of one operator for one prior mean at n sites: (n, q).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import mean_formulas_for
    >>> from gpattr.means import Linear
    >>> from gpattr.operators import Gradient, Points
    >>> mean_formulas_for(Gradient(), Linear([1.0, 2.0])).apply(Points(np.zeros((1, 2)))).value
    array([[1., 2.]])
    """

    apply: Callable[[Any], Bounded]
    methods: frozenset[str] = frozenset()


# An entry makes the formulas of one operator for one kernel, basis or mean.
KERNELS: dict[tuple[type[Operator], type[Kernel]], Callable[[Any, Any], Formulas | None]] = {}
BASES: dict[tuple[type[Operator], type[Basis]], Callable[[Any, Any], BasisFormulas]] = {}
MEANS: dict[tuple[type[Operator], type[Mean]], Callable[[Any, Any], MeanFormulas]] = {}

# Schemes with a number of steps: (operator, kernel or basis, method, steps, exact formulas).
KERNEL_SCHEMES: dict[type[Operator], Callable[[Any, Kernel, str, int, Formulas], Formulas]] = {}
BASIS_SCHEMES: dict[type[Operator], Callable[[Any, Basis, str, int | None], BasisFormulas]] = {}


def register(
    operator: type[Operator],
    kernel: type[Kernel],
    *,
    cross: Callable[..., Array | Bounded],
    between: Callable[..., Array | Bounded],
    prior_cov: Callable[..., Array | Bounded] | None = None,
    cross_dot: Callable[..., Array] | None = None,
    error: Callable[..., Array] | None = None,
    method: str = "closed form",
) -> None:
    """Enter the formulas of an operator for a class of kernels, or for every kernel (`Kernel`).

    Each takes the kernel first, then the arguments of `Formulas`, and returns an array or
    `Bounded`. Without ``cross_dot`` the generic one contracts ``cross``, without ``prior_cov`` it
    is ``between`` of a site with itself. ``error`` bounds the error of ``cross_dot``; without it,
    and for plain arrays, the bound is for rounding only.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import cross, register
    >>> from gpattr.kernels import Linear
    >>> from gpattr.operators import Gradient
    >>> class Slope(Gradient):
    ...     pass
    >>> def with_data(kernel, sites, Z):  # ∂(x·z)/∂x = z
    ...     return np.broadcast_to(Z.T, (len(sites.X), *Z.T.shape))
    >>> def of_rows(kernel, one, two):
    ...     return np.broadcast_to(np.eye(one.X.shape[1]), (len(one.X), *2 * one.X.shape[1:]))
    >>> register(Slope, Linear, cross=with_data, between=of_rows)
    >>> cross(Slope(), Linear(), np.zeros((1, 1)), np.array([[2.0], [3.0]]))
    array([[[2., 3.]]])
    """
    entry = _Entry(cross, between, prior_cov, cross_dot, error, method)
    KERNELS[operator, kernel] = entry.formulas_for


@dataclass(frozen=True)
class _Entry:
    """Arguments of `register`: formulas that take the kernel first."""

    cross: Callable[..., Array | Bounded]
    between: Callable[..., Array | Bounded]
    prior_cov: Callable[..., Array | Bounded] | None
    cross_dot: Callable[..., Array] | None
    error: Callable[..., Array] | None
    method: str

    @property
    def ours(self) -> bool:
        """Whether the formulas are the library's own."""
        return str(self.cross.__module__).partition(".")[0] == "gpattr"

    def formulas_for(self, operator: Operator, kernel: Kernel) -> Formulas:
        """Return the formulas with the kernel bound in."""
        between = self.between
        own = self.prior_cov or (lambda kernel, sites: between(kernel, sites, sites))
        return Formulas(
            cross=partial(self.bounded_cross, kernel),
            contract=partial(self.contract, kernel),
            prior_cov=lambda sites: rounded(own(kernel, sites)),
            between=lambda sites, other: rounded(between(kernel, sites, other)),
            methods=frozenset({self.method}),
            bound=partial(self.error, kernel) if self.error else None,
        )

    def bounded_cross(self, kernel: Kernel, sites: Any, Z: Array) -> Bounded:
        """Return covariances with data, (n, q, m), with a bound on their errors."""
        values = self.cross(kernel, sites, Z)
        if isinstance(values, Bounded):
            return values if self.ours else Bounded(values.value + 0.0, values.error + 0.0)
        if not self.ours:  # posteriors work in place, and users may keep what they return
            values = values + 0.0
        if self.error is None:
            return rounded_cross(values)
        # The bound for one point, as often as there are points.
        unit = namespace(Z).zeros((1, 1)) + 1.0
        return Bounded(values, self.error(kernel, sites, Z[:1], unit) * len(Z) ** 0.5)

    def contract(self, kernel: Kernel, sites: Any, Z: Array, w: Array) -> Bounded:
        """Return cross @ w, (n, q, k), from the covariances themselves only where it must."""
        if self.cross_dot is not None and self.error is not None:
            return Bounded(self.cross_dot(kernel, sites, Z, w), self.error(kernel, sites, Z, w))
        values = self.cross(kernel, sites, Z)
        values = values.value if isinstance(values, Bounded) else values
        _check_dimensions("cross", values, "(n, q, m)")
        value = values @ w if self.cross_dot is None else self.cross_dot(kernel, sites, Z, w)
        bound = rounding(values, w) if self.error is None else self.error(kernel, sites, Z, w)
        return Bounded(value, bound)


def register_basis(
    operator: type[Operator], basis: type[Basis], images: Callable[[Any, Any], Array]
) -> None:
    """Enter an operator's formulas for a class of bases, or for every basis (`Basis`).

    ``images(basis, sites)`` returns 𝒜φⱼ at the sites, (n, q, p).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Basis
    >>> from gpattr.closed_forms import apply_to_basis, register_basis
    >>> from gpattr.operators import Gradient
    >>> class Square(Basis):
    ...     n_features = 1
    ...
    ...     def __len__(self):
    ...         return 1
    ...
    ...     def __call__(self, X):
    ...         return X * X
    >>> def slope(basis, sites):
    ...     return 2.0 * sites.X[:, :, None]
    >>> register_basis(Gradient, Square, slope)
    >>> apply_to_basis(Gradient(), Square(), np.array([[3.0]]))
    array([[[6.]]])
    """

    def bind(operator: Operator, b: Basis) -> BasisFormulas:
        def contract(sites: Any, w: Array) -> tuple[Array, Array]:
            values = images(b, sites)
            return product(values, w), product(abs(values), abs(w))

        return BasisFormulas(partial(images, b), contract)

    BASES[operator, basis] = bind


def register_mean(
    operator: type[Operator],
    mean: type[Mean],
    apply: Callable[[Any, Any], Array | Bounded],
    *,
    method: str = "closed form",
) -> None:
    """Enter an operator's formulas for a class of prior means, or for every mean (`Mean`).

    ``apply(mean, sites)`` returns 𝒜m at the sites, (n, q), as an array or `Bounded`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.closed_forms import apply_to_mean, register_mean
    >>> from gpattr.means import Mean
    >>> from gpattr.operators import Gradient
    >>> class Wave(Mean):
    ...     def __call__(self, X):
    ...         return np.sin(X).sum(axis=1)
    ...
    ...     def gradient(self, X):
    ...         return np.cos(X)
    >>> register_mean(Gradient, Wave, lambda mean, sites: mean.gradient(sites.X))
    >>> apply_to_mean(Gradient(), Wave(), np.zeros((1, 2))).value
    array([[1., 1.]])
    """

    def bind(operator: Operator, m: Mean) -> MeanFormulas:
        def bounded(sites: Any) -> Bounded:
            value = apply(m, sites)
            if isinstance(value, Bounded):
                return value
            xp = namespace(value)
            return Bounded(value, EPS * xp.max(xp.abs(value), axis=1))

        names = frozenset() if method == "closed form" else frozenset({method})
        return MeanFormulas(bounded, names)

    MEANS[operator, mean] = bind


def rounded(value: Array | Bounded) -> Bounded:
    """Return prior covariances (n, q, q) with a bound: their own, or one on rounding."""
    if isinstance(value, Bounded):
        return value
    _check_dimensions("between", value, "(n, q, q)")
    xp = namespace(value)
    return Bounded(value, 64 * EPS * xp.max(xp.abs(value), axis=(1, 2)))


def _check_dimensions(formula: str, value: Array, expected: str) -> None:
    if len(value.shape) != 3:
        raise InvalidInputError(
            f"{formula}: expected an array {expected} from this formula, got the shape"
            f" {tuple(value.shape)}"
        )


def rounded_cross(value: Array) -> Bounded:
    """Return covariances with data, (n, q, m), with a bound on their rounding."""
    _check_dimensions("cross", value, "(n, q, m)")
    largest = namespace(value).max(abs(value), axis=1)
    return Bounded(value, 32 * EPS * (largest * largest).sum(axis=1) ** 0.5)


def rounding(terms: Array, w: Array) -> Array:
    """Return a bound, (n,), on the rounding of terms (n, q, m) @ w: 32 ε Σ|terms||w|."""
    xp = namespace(terms, w)
    return 32 * EPS * xp.max(xp.abs(terms) @ xp.abs(w), axis=(1, 2))
