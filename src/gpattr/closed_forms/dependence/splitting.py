"""Kernels as sums of products of a kernel of some columns and a kernel of the others.

    k(x, z) = Σₜ uₜ(x_S, z_S) vₜ(x_R, z_R) ∏ gₜ(r)

The last factor is a radial kernel that sees columns of both, if the term has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb, prod
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.products import multiplied_out
from gpattr.closed_forms.shapley.factors import LOG_PROFILES
from gpattr.kernels import (
    Constant,
    FullAdditive,
    Kernel,
    Linear,
    Periodic,
    Polynomial,
    Product,
    Radial,
    Select,
    SquaredExponential,
)

Places = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """A product of ``kernels``, each with the positions it sees of some columns; 1 if none."""

    kernels: tuple[tuple[Kernel, Places], ...] = ()

    def __mul__(self, other: Part) -> Part:
        return Part(self.kernels + other.kernels)

    @property
    def kernel(self) -> Kernel | None:
        """The product as one kernel of these columns; None for 1."""
        parts = [Select(kernel, places) for kernel, places in self.kernels]
        return parts[0] if len(parts) == 1 else Product(*parts) if parts else None

    def __call__(self, X: Array, Z: Array) -> Array:
        """Return values at all pairs, (n, m)."""
        kernel = self.kernel
        if kernel is None:
            return namespace(Z).zeros((len(X), len(Z))) + 1.0
        return kernel(X, Z)

    def diagonal(self, X: Array) -> Array:
        """Return values at x = x', (n,)."""
        kernel = self.kernel
        return namespace(X).zeros(len(X)) + 1.0 if kernel is None else kernel.diagonal(X)

    def slopes(self, X: Array, Z: Array, direction: Array) -> Array:
        """Return derivatives at x along a direction, (n, m)."""
        kernel = self.kernel
        if kernel is None:
            return namespace(Z).zeros((len(X), len(Z)))
        return differentiate(kernel, X[:, None, :], Z).left @ direction

    def mixed_slopes(self, X: Array, Y: Array, direction: Array) -> Array:
        """Return derivatives at x and at y along a direction, (n, m)."""
        kernel = self.kernel
        if kernel is None:
            return namespace(X).zeros((len(X), len(Y)))
        return differentiate(kernel, X[:, None, :], Y, True).mixed @ direction @ direction


@dataclass(frozen=True, eq=False)
class Joint:
    """A radial ``kernel`` that sees columns of both parts, with its positions in each.

    Its own columns, in their order, are ``inside`` and ``outside``.
    """

    kernel: Radial
    u: Places
    v: Places
    inside: Places
    outside: Places

    def lengthscales(self, own: Places) -> Any:
        """Return the length-scales of some of its own columns."""
        scale = np.asarray(self.kernel.lengthscale)
        return scale if scale.ndim == 0 else scale[list(own)]

    def split(self, scale: float, weight: float) -> tuple[Part, Part]:
        """Return a squared exponential of ``scale`` times its length-scales, as a product."""
        return _squared_exponentials(self, scale, weight)


@dataclass(frozen=True, eq=False)
class Term:
    """``scale`` u(x_S, z_S) v(x_R, z_R), times a radial kernel of both, if there is a ``joint``."""

    scale: float
    u: Part = Part()
    v: Part = Part()
    joint: Joint | None = None

    @property
    def stationary(self) -> bool:
        return all(kernel.stationary for kernel, _ in self.u.kernels + self.v.kernels)


def split(kernel: Kernel, columns: Places, d: int) -> tuple[list[Term], list[Kernel]]:
    """Return a kernel of d columns as terms, and the parts of it that are no such products."""
    terms: list[Term] = []
    left: list[Kernel] = []
    for leaves in multiplied_out(kernel) or [[kernel]]:
        found = _split_product(leaves, columns, d)
        if found is None:
            left.append(leaves[0] if len(leaves) == 1 else Product(*leaves))
        else:
            terms += found
    return terms, left


def _split_product(leaves: Sequence[Kernel], columns: Places, d: int) -> list[Term] | None:
    scale = prod(float(leaf.variance) for leaf in leaves if isinstance(leaf, Constant))
    terms = [Term(scale)]
    for leaf in leaves:
        if isinstance(leaf, Constant):
            continue
        kernel, seen = leaf, tuple(range(d))
        if isinstance(leaf, Select):
            kernel, seen = leaf.kernel, leaf.features
        found = _split_leaf(kernel, seen, columns, d)
        if found is None or (found[0].joint is not None and terms[0].joint is not None):
            return None
        terms = [_multiplied(one, other) for one in terms for other in found]
    return terms


def _multiplied(one: Term, other: Term) -> Term:
    return Term(one.scale * other.scale, one.u * other.u, one.v * other.v, one.joint or other.joint)


def _split_leaf(kernel: Kernel, seen: Places, columns: Places, d: int) -> list[Term] | None:
    rest = [j for j in range(d) if j not in columns]
    u = tuple(columns.index(j) for j in seen if j in columns)
    v = tuple(rest.index(j) for j in seen if j not in columns)
    if not v:
        return [Term(1.0, u=Part(((kernel, u),)))]
    if not u:
        return [Term(1.0, v=Part(((kernel, v),)))]
    inside = tuple(i for i, j in enumerate(seen) if j in columns)
    outside = tuple(i for i, j in enumerate(seen) if j not in columns)
    joint = Joint(kernel, u, v, inside, outside)  # pyright: ignore[reportArgumentType]
    if type(kernel) in SPLITS:
        return SPLITS[type(kernel)](kernel, joint)
    if type(kernel) in LOG_PROFILES:
        return [Term(1.0, joint=joint)]
    return None


def _some(parameter: Any, own: Places) -> Any:
    """Return a parameter, one number or one per column, of some columns."""
    values = np.asarray(parameter)
    return float(values) if values.ndim == 0 else values[list(own)]


def _squared_exponentials(joint: Joint, scale: float, weight: float) -> tuple[Part, Part]:
    one = SquaredExponential(scale * joint.lengthscales(joint.inside), 1.0)
    two = SquaredExponential(scale * joint.lengthscales(joint.outside), weight)
    return Part(((one, joint.u),)), Part(((two, joint.v),))


def _squared_exponential(kernel: SquaredExponential, at: Joint) -> list[Term]:
    u, v = at.split(1.0, float(kernel.variance))
    return [Term(1.0, u, v)]


def _periodic(kernel: Periodic, at: Joint) -> list[Term]:
    one, two = (
        Periodic(_some(kernel.lengthscale, own), _some(kernel.period, own), variance)
        for own, variance in ((at.inside, 1.0), (at.outside, kernel.variance))
    )
    return [Term(1.0, Part(((one, at.u),)), Part(((two, at.v),)))]


def _linear(kernel: Linear, at: Joint) -> list[Term]:
    """Σ over both is the sum of both."""
    one, two = (Linear(_some(kernel.variance, own)) for own in (at.inside, at.outside))
    return [Term(1.0, u=Part(((one, at.u),))), Term(1.0, v=Part(((two, at.v),)))]


def _polynomial(kernel: Polynomial, at: Joint) -> list[Term]:
    """(a + b)ᵖ = Σⱼ C(p, j) aʲ bᵖ⁻ʲ with a = Σ_S, b = c + Σ_R."""
    one, variance = Linear(_some(kernel.variance, at.inside)), _some(kernel.variance, at.outside)
    terms = []
    for j in range(kernel.degree + 1):
        left = kernel.degree - j
        v = Part()
        if left:
            v = Part(((Polynomial(variance, degree=left, offset=kernel.offset), at.v),))
        terms.append(Term(float(comb(kernel.degree, j)), Part(((one, at.u),) * j), v))
    return terms


def _full_additive(kernel: FullAdditive, at: Joint) -> list[Term]:
    """Σₙ σₙ² eₙ(S ∪ R) = Σⱼ eⱼ(S) Σₙ σₙ² eₙ₋ⱼ(R)."""
    inside, outside = ([kernel.bases[i] for i in own] for own in (at.inside, at.outside))
    variances = np.concatenate([[0.0], np.asarray(kernel.order_variances)])
    terms = []
    for j in range(min(len(inside), len(variances) - 1) + 1):
        u = Part()
        if j:
            u = Part(((FullAdditive(inside, np.eye(len(inside))[j - 1][:j]), at.u),))
        if variances[j] > 0:
            terms.append(Term(float(variances[j]), u))
        orders = variances[j + 1 :][: len(outside)]
        if (orders > 0).any():
            terms.append(Term(1.0, u, Part(((FullAdditive(outside, orders), at.v),))))
    return terms


SPLITS: dict[type[Kernel], Callable[[Any, Joint], list[Term]]] = {
    SquaredExponential: _squared_exponential,
    Periodic: _periodic,
    Linear: _linear,
    Polynomial: _polynomial,
    FullAdditive: _full_additive,
}


def without_joint(term: Term, scale: float, weight: float) -> Term:
    """Return a term with a squared exponential in place of its radial kernel."""
    assert term.joint is not None
    u, v = term.joint.split(scale, weight)
    return replace(term, u=term.u * u, v=term.v * v, joint=None)
