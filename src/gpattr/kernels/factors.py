"""Kernels as sums of products of factors: k(x, z) = Σₜ scaleₜ ∏ᵢ kₜᵢ.

`multiplied_out` knows sums, products, scales and selections. `Kernel.split` says how one kernel
falls into products over two sets of its columns, which makes it a sum of products over any groups
of columns (`factors`, `separated`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from gpattr.kernels.algebra import Product, Scale, Select, Sum
from gpattr.kernels.base import Kernel, Places
from gpattr.kernels.constant import Constant
from gpattr.kernels.rational_quadratic import GAUSSIAN, RationalQuadratic
from gpattr.kernels.squared_exponential import SquaredExponential

MOST_TERMS = 64


class Factor(NamedTuple):
    """A ``kernel`` of some ``columns``, None for all, that belong to one ``group``, if to one."""

    kernel: Kernel
    columns: Places | None
    group: int | None = None

    @property
    def whole(self) -> Kernel:
        """The factor as a kernel of all columns."""
        return self.kernel if self.columns is None else Select(self.kernel, self.columns)


@dataclass(frozen=True, eq=False)
class KernelProduct:
    """``scale`` times the product of ``factors``."""

    scale: float = 1.0
    factors: tuple[Factor, ...] = ()

    def __mul__(self, other: KernelProduct) -> KernelProduct:
        return KernelProduct(self.scale * other.scale, self.factors + other.factors)


Terms = list[KernelProduct]


def factors(kernel: Kernel, groups: Sequence[Places], most: int = MOST_TERMS) -> Terms | None:
    """Return Σₜ scaleₜ ∏_g kₜ_g over groups of columns, each of which may have several factors.

    None where the kernel is not known to be such a sum of at most so many products. Sums of columns
    of one group are factors, and not multiplied out.
    """
    owner = _owners(groups)

    def kept(columns: Iterable[int]) -> bool:
        return len({owner[column] for column in columns}) == 1

    every = tuple(sorted(owner))
    parts = [
        separated(term, groups, most) for term in multiplied_out(kernel, most, every, kept) or ()
    ]
    terms = [term for part in parts for term in part or ()]
    known = parts and None not in parts and len(terms) <= most
    single = all(factor.group is not None for term in terms for factor in term.factors)
    return terms if known and single else None


def separated(
    term: KernelProduct, groups: Sequence[Places], most: int = MOST_TERMS
) -> Terms | None:
    """Return a product as a sum of products over groups; None if there are too many.

    Kernels that see several groups and do not split remain, with None as their group.
    """
    owner, found = _owners(groups), [[KernelProduct(term.scale)]]
    for kernel, columns, _ in term.factors:
        part = _by_group(kernel, tuple(sorted(owner)) if columns is None else columns, owner, most)
        if part is None:
            return None
        found.append(part)
    return _products(found, most)


def multiplied_out(
    kernel: Kernel,
    most: int = MOST_TERMS,
    columns: Places | None = None,
    kept: Callable[[Iterable[int]], bool] | None = None,
) -> Terms | None:
    """Return the kernel as a sum of products of leaves; None if there are too many terms.

    Sums in a product stay whole where ``kept`` says so of the columns they see.
    """

    def inner(part: Kernel) -> Terms | None:
        if kept is not None and columns is not None and isinstance(_unscaled(part), Sum):
            seen = sorted(_seen(part, len(columns)))
            some = tuple(columns[i] for i in seen)
            if kept(some):
                return [KernelProduct(1.0, (Factor(_narrowed(part, seen), some),))]
        return multiplied_out(part, most, columns, kept)

    if isinstance(kernel, Sum):
        parts = [multiplied_out(part, most, columns, kept) for part in kernel.kernels]
        terms = None if None in parts else [term for part in parts for term in part or ()]
    elif isinstance(kernel, Product):
        parts = [inner(part) for part in kernel.kernels]
        terms = None if None in parts else _products([part or [] for part in parts], most)
    elif isinstance(kernel, Scale):
        terms = multiplied_out(kernel.kernel, most, columns, kept)
        terms = terms and [KernelProduct(kernel.variance) * term for term in terms]
    elif isinstance(kernel, Select):
        own = kernel.features
        some = own if columns is None else tuple(columns[i] for i in own)
        terms = multiplied_out(kernel.kernel, most, some, kept)
    elif isinstance(kernel, Constant):
        terms = [KernelProduct(kernel.variance)]
    else:
        terms = [KernelProduct(1.0, (Factor(_simplest(kernel), columns),))]
    return None if terms is None or len(terms) > most else terms


def _products(parts: Sequence[Terms], most: int) -> Terms | None:
    """Return the product of sums; None if there are too many terms."""
    if prod(map(len, parts)) > most:
        return None
    return [prod(chosen, start=KernelProduct()) for chosen in product(*parts)]


def _by_group(kernel: Kernel, columns: Places, owner: dict[int, int], most: int) -> Terms | None:
    """Return a kernel as a sum of products over groups, one group split off after the other."""
    seen = sorted({owner[column] for column in columns})
    inside, outside = (
        tuple(i for i, column in enumerate(columns) if (owner[column] == seen[0]) is mine)
        for mine in (True, False)
    )
    # A class derived from another may have other values: it has to say itself how it splits.
    splits = len(seen) > 1 and "split" in vars(type(kernel))
    pieces = kernel.split(inside, outside) if splits else None
    if pieces is None:
        group = seen[0] if len(seen) == 1 else None
        return [KernelProduct(1.0, (Factor(_simplest(kernel), columns, group),))]
    terms: Terms = []
    for scale, chosen in pieces:
        parts = [
            _by_group(part, tuple(columns[i] for i in places), owner, most)
            for part, places in chosen
        ]
        known = [part for part in parts if part is not None]
        found = _products([[KernelProduct(scale)], *known], most)
        if found is None or len(known) < len(parts) or len(terms) + len(found) > most:
            return None
        terms += found
    return terms


def _owners(groups: Sequence[Places]) -> dict[int, int]:
    return {column: g for g, columns in enumerate(groups) for column in columns}


def _simplest(kernel: Kernel) -> Kernel:
    """Return a rational quadratic kernel that is a squared exponential to the last digit as one."""
    if isinstance(kernel, RationalQuadratic) and kernel.alpha > GAUSSIAN:
        return SquaredExponential(kernel.lengthscale, kernel.variance)
    return kernel


def _unscaled(kernel: Kernel) -> Kernel:
    return _unscaled(kernel.kernel) if isinstance(kernel, Scale) else kernel


def _seen(kernel: Kernel, width: int) -> set[int]:
    """Return the columns on which a kernel depends, of the given number."""
    if isinstance(kernel, Select):
        return {kernel.features[i] for i in _seen(kernel.kernel, len(kernel.features))}
    if isinstance(kernel, (Sum, Product, Scale)):
        return set().union(*(_seen(part, width) for part in kernel.parts().values()))
    return set() if isinstance(kernel, Constant) else set(range(width))


def _narrowed(kernel: Kernel, columns: list[int]) -> Kernel:
    """Return a sum of selections as a function of the columns that it sees."""
    if isinstance(kernel, Select):
        seen = sorted(_seen(kernel.kernel, len(kernel.features)))
        inner = _narrowed(kernel.kernel, seen)
        return Select(inner, [columns.index(kernel.features[i]) for i in seen]) if seen else inner
    if isinstance(kernel, (Sum, Product, Scale)):
        return kernel.map_parts(lambda part: _narrowed(part, columns))
    return kernel
