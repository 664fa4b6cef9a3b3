"""Kernels as sums of products over features: k = Σₜ scaleₜ ∏ⱼ kₜⱼ(xⱼ, zⱼ).

Squared exponentials, periodic kernels and all kernels of a single feature are such products.
Linear, polynomial and additive kernels are sums of them. Matérn and rational quadratic kernels of
several features are not: as mixtures of squared exponentials they have some forty terms, whose
pairs take ten times as long as quasi-random integration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import comb, factorial, prod
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr.kernels import (
    Constant,
    FullAdditive,
    Kernel,
    Linear,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scale,
    Select,
    SquaredExponential,
    Sum,
)
from gpattr.kernels.rational_quadratic import GAUSSIAN
from gpattr.kernels.white import has_white
from gpattr.sobol.inputs import Inputs

MOST_TERMS = 256


@dataclass(frozen=True, eq=False)
class Term:
    """scale · exp(−½ Σᵢ precisionᵢ (xᵢ − zᵢ)²) · the product of ``others``.

    ``precision`` (C,) has one entry per column; ``others`` are (feature, kernel, columns).
    """

    scale: float
    precision: Array
    others: tuple[tuple[int, Kernel, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, eq=False)
class Terms:
    """A ``kernel`` as a sum of terms."""

    kernel: Kernel
    terms: tuple[Term, ...]
    columns: tuple[tuple[int, ...], ...]

    @cached_property
    def scales(self) -> Array:
        """The scale of each term, (T,)."""
        return np.array([term.scale for term in self.terms])

    @cached_property
    def seen(self) -> Array:
        """Which term sees which feature, (T, D)."""
        return np.array([[self._sees(t, j) for j in range(len(self.columns))] for t in self.terms])

    def _sees(self, term: Term, j: int) -> bool:
        gaussian = bool(term.precision[list(self.columns[j])].any())
        return gaussian or any(feature == j for feature, _, _ in term.others)

    def factor(self, t: int, j: int, A: Array, B: Array) -> Array:
        """Return the factor of feature j, (n, m), for its columns A (n, c) and B (m, c)."""
        term, columns = self.terms[t], self.columns[j]
        precision = term.precision[list(columns)]
        value = np.ones((len(A), len(B)))
        if precision.any():
            root = np.sqrt(precision)
            value = np.exp(-0.5 * _squared(A * root, B * root))
        for feature, kernel, some in term.others:
            if feature == j:
                local = [columns.index(column) for column in some]
                value *= kernel(A[:, local], B[:, local])
        return value

    def diagonal(self, t: int, j: int, A: Array) -> Array:
        """Return the factor of feature j at (x, x), (n,)."""
        value = np.ones(len(A))
        for feature, kernel, some in self.terms[t].others:
            if feature == j:
                value *= kernel.diagonal(A[:, [self.columns[j].index(c) for c in some]])
        return value

    def gaussian(self, t: int, j: int) -> float | None:
        """Return the length-scale of a factor that is a squared exponential of one column."""
        term, columns = self.terms[t], self.columns[j]
        if len(columns) != 1 or any(feature == j for feature, _, _ in term.others):
            return None
        return float(term.precision[columns[0]]) ** -0.5

    def products(self, features: list[int], A: Array, B: Array) -> Iterator[Array]:
        """Yield for each term the product of these features' factors, (n, m), at rows A, B."""
        columns = [c for j in features for c in self.columns[j]]
        for term in self.terms:
            root = np.sqrt(term.precision[columns])
            value = np.ones((len(A), len(B)))
            if root.any():
                value = np.exp(-0.5 * _squared(A[:, columns] * root, B[:, columns] * root))
            for feature, kernel, some in term.others:
                if feature in features:
                    value *= kernel(A[:, list(some)], B[:, list(some)])
            yield value


def _squared(A: Array, B: Array) -> Array:
    """Return squared distances from differences, which keep their digits."""
    total = np.zeros((len(A), len(B)))
    for i in range(A.shape[1]):
        difference = np.subtract.outer(A[:, i], B[:, i])
        difference *= difference
        total += difference
    return total


def terms_of(kernel: Kernel, inputs: Inputs) -> Terms | None:
    """Return a kernel as a sum of products over features; None where it is not known to be one."""
    owner = np.full(inputs.n_columns, -1)
    for j, columns in enumerate(inputs.columns):
        owner[list(columns)] = j
    terms = _Split(owner).terms(kernel, tuple(range(inputs.n_columns)))
    return None if terms is None else Terms(kernel, tuple(terms), inputs.columns)


class _Split:
    """Kernels as sums of terms, given the feature of each column."""

    def __init__(self, owner: Array) -> None:
        self.owner = owner
        self.one = Term(1.0, np.zeros(len(owner)))

    def terms(self, kernel: Kernel, columns: tuple[int, ...]) -> list[Term] | None:
        """Return a kernel of these columns as a sum of terms."""
        if isinstance(kernel, Sum):
            parts = [self.terms(part, columns) for part in kernel.kernels]
            found = None if None in parts else [term for part in parts for term in part or []]
        elif isinstance(kernel, Product):
            found = self._product(kernel, columns)
        elif isinstance(kernel, Scale):
            inner = self.terms(kernel.kernel, columns)
            scale = kernel.variance
            found = inner and [replace(term, scale=scale * term.scale) for term in inner]
        elif isinstance(kernel, Select):
            found = self.terms(kernel.kernel, tuple(columns[i] for i in kernel.features))
        else:
            found = self._leaf(kernel, columns)
        return None if found is None or len(found) > MOST_TERMS else found

    def _product(self, kernel: Product, columns: tuple[int, ...]) -> list[Term] | None:
        """Return a product; sums that see one feature are factors of it, and not multiplied out."""
        parts = [self._alone(part, columns) or self.terms(part, columns) for part in kernel.kernels]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or prod(map(len, known)) > MOST_TERMS:
            return None
        return [self.multiplied(chosen) for chosen in product(*known)]

    def _alone(self, kernel: Kernel, columns: tuple[int, ...]) -> list[Term] | None:
        """Return a sum that sees one feature as one term; None for other kernels."""
        if isinstance(kernel, Scale):
            inner = self._alone(kernel.kernel, columns)
            return inner and [replace(inner[0], scale=kernel.variance * inner[0].scale)]
        if not isinstance(kernel, Sum) or has_white(kernel):
            return None
        seen = sorted(_seen(kernel, len(columns)))
        some = tuple(columns[i] for i in seen)
        places = self._places(some)
        if len(places) != 1:
            return None
        (feature,) = places
        return [replace(self.one, others=((feature, _narrowed(kernel, seen), some),))]

    def multiplied(self, chosen: tuple[Term, ...]) -> Term:
        """Return the product of terms."""
        return Term(
            prod(term.scale for term in chosen),
            sum((term.precision for term in chosen), np.zeros(len(self.owner))),
            tuple(other for term in chosen for other in term.others),
        )

    def _leaf(self, kernel: Kernel, columns: tuple[int, ...]) -> list[Term] | None:
        """Return a leaf as a sum of terms."""
        if has_white(kernel):
            return None
        if isinstance(kernel, RationalQuadratic) and kernel.alpha > GAUSSIAN:
            kernel = SquaredExponential(kernel.lengthscale, kernel.variance)
        if type(kernel) is Constant:
            return [replace(self.one, scale=kernel.variance)]
        if type(kernel) is SquaredExponential:
            return [self._squared_exponential(kernel.lengthscale, kernel.variance, columns)]
        places = self._places(columns)
        if len(places) == 1:
            (feature,) = places
            return [replace(self.one, others=((feature, kernel, columns),))]
        return self._several(kernel, columns, places)

    def _several(
        self, kernel: Kernel, columns: tuple[int, ...], places: dict[int, list[int]]
    ) -> list[Term] | None:
        """Return a kernel of several features as a sum of terms."""
        if type(kernel) is Periodic:
            others = tuple(self._periodic(kernel, columns, places))
            return [replace(self.one, scale=kernel.variance, others=others)]
        if type(kernel) is Linear or type(kernel) is Polynomial:
            return self._polynomial(kernel, columns, places)
        if type(kernel) is FullAdditive:
            return self._additive(kernel, columns)
        return None

    def _places(self, columns: tuple[int, ...]) -> dict[int, list[int]]:
        """Return the places, among these columns, of each feature."""
        places: dict[int, list[int]] = {}
        for i, column in enumerate(columns):
            places.setdefault(int(self.owner[column]), []).append(i)
        return places

    def _squared_exponential(
        self, lengthscale: Any, variance: float, columns: tuple[int, ...]
    ) -> Term:
        precision = np.zeros(len(self.owner))
        precision[list(columns)] = np.broadcast_to(
            np.asarray(lengthscale, dtype=np.float64) ** -2.0, (len(columns),)
        )
        return Term(float(variance), precision)

    def _periodic(
        self, kernel: Periodic, columns: tuple[int, ...], places: dict[int, list[int]]
    ) -> Iterator[tuple[int, Kernel, tuple[int, ...]]]:
        for feature, some in places.items():
            part = Periodic(_taken(kernel.lengthscale, some), _taken(kernel.period, some))
            yield feature, part, tuple(columns[i] for i in some)

    def _polynomial(
        self, kernel: Linear | Polynomial, columns: tuple[int, ...], places: dict[int, list[int]]
    ) -> list[Term] | None:
        """Return (c + Σⱼ bⱼ)^p = Σ p!/(n₀!∏nⱼ!) c^n₀ ∏ bⱼ^nⱼ, bⱼ linear kernels of features."""
        degree = kernel.degree if isinstance(kernel, Polynomial) else 1
        offset = kernel.offset if isinstance(kernel, Polynomial) else 0.0
        if comb(degree + len(places), degree) > MOST_TERMS:
            return None
        linear = {
            feature: Linear(_taken(kernel.variance, some)) for feature, some in places.items()
        }
        mine = {feature: tuple(columns[i] for i in some) for feature, some in places.items()}
        terms = []
        for powers in _powers(degree, len(places), exact=offset == 0.0):
            rest = degree - sum(powers)
            size = factorial(degree) / prod(map(factorial, powers)) / factorial(rest)
            others = tuple(
                (feature, linear[feature], mine[feature])
                for feature, power in zip(places, powers, strict=True)
                for _ in range(power)
            )
            terms.append(replace(self.one, scale=size * offset**rest, others=others))
        return terms

    def _additive(self, kernel: FullAdditive, columns: tuple[int, ...]) -> list[Term] | None:
        sizes = [float(size) for size in kernel.order_variances]
        count = sum(comb(len(columns), n + 1) for n, size in enumerate(sizes) if size > 0)
        if count > MOST_TERMS:
            return None
        factors = [self._leaf(base, (c,)) for base, c in zip(kernel.bases, columns, strict=True)]
        known = [factor[0] for factor in factors if factor is not None and len(factor) == 1]
        if len(known) < len(factors):
            return None
        return [
            replace(whole, scale=whole.scale * size)
            for n, size in enumerate(sizes)
            if size > 0
            for some in combinations(known, n + 1)
            for whole in [self.multiplied(some)]
        ]


def _seen(kernel: Kernel, width: int) -> set[int]:
    """Return the columns, of so many, on which a kernel depends."""
    if isinstance(kernel, Select):
        return {kernel.features[i] for i in _seen(kernel.kernel, len(kernel.features))}
    if isinstance(kernel, (Sum, Product, Scale)):
        return set().union(*(_seen(part, width) for part in kernel.parts().values()))
    return set() if isinstance(kernel, Constant) else set(range(width))


def _narrowed(kernel: Kernel, columns: list[int]) -> Kernel:
    """Return a sum of selections as a function of the columns that it sees."""
    if isinstance(kernel, Select):
        return Select(kernel.kernel, [columns.index(i) for i in kernel.features])
    if isinstance(kernel, (Sum, Product, Scale)):
        return kernel.map_parts(lambda part: _narrowed(part, columns))
    return kernel


def _taken(value: Any, places: list[int]) -> Any:
    """Return a parameter as some of the columns see it."""
    array = np.asarray(value)
    return array[places] if array.ndim else value


def _powers(degree: int, count: int, *, exact: bool) -> Iterator[tuple[int, ...]]:
    """Yield the exponents of all monomials of a degree, or with ``exact`` False up to it."""
    if count == 0:
        if degree == 0 or not exact:
            yield ()
        return
    for first in range(degree + 1):
        for rest in _powers(degree - first, count - 1, exact=exact):
            yield (first, *rest)
