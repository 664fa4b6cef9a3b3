"""Kernels as sums of products of a kernel of some columns and a kernel of the others.

    k(x, z) = Σₜ uₜ(x_S, z_S) vₜ(x_R, z_R) ∏ gₜ(r)

The last factor is a radial kernel that sees columns of both, if the term has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr.closed_forms.derivatives import differentiate
from gpattr.closed_forms.shapley.factors import LOG_PROFILES
from gpattr.kernels import Kernel, Product, Radial, Scale, Select
from gpattr.kernels.base import Places, of_columns
from gpattr.kernels.factors import Factor, KernelProduct, multiplied_out, separated


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
        return of_columns(self.kernel.lengthscale, own)


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
    rest = tuple(j for j in range(d) if j not in columns)
    terms: list[Term] = []
    left: list[Kernel] = []
    for whole in multiplied_out(kernel) or [KernelProduct(1.0, (Factor(kernel, None),))]:
        parts = separated(whole, (columns, rest)) or ()
        found = [_term(part, columns, rest) for part in parts]
        known = [term for term in found if term is not None]
        if found and len(known) == len(found):
            terms += known
        else:
            leaves = [factor.whole for factor in whole.factors]
            product = leaves[0] if len(leaves) == 1 else Product(*leaves)
            left.append(product if whole.scale == 1.0 else Scale(product, whole.scale))
    return terms, left


def _term(product: KernelProduct, columns: Places, rest: Places) -> Term | None:
    """Return a product; None if several kernels see columns of both parts, or one is not radial."""
    u, v, joint = Part(), Part(), None
    for kernel, seen, group in product.factors:
        places = range(len(columns) + len(rest)) if seen is None else seen
        inside, outside = (
            tuple(i for i, j in enumerate(places) if j in some) for some in (columns, rest)
        )
        own = tuple(columns.index(places[i]) for i in inside)
        others = tuple(rest.index(places[i]) for i in outside)
        if group == 0:
            u *= Part(((kernel, own),))
        elif group == 1:
            v *= Part(((kernel, others),))
        elif joint is None and type(kernel) in LOG_PROFILES:
            joint = Joint(kernel, own, others, inside, outside)  # pyright: ignore[reportArgumentType]
        else:
            return None
    return Term(product.scale, u, v, joint)
