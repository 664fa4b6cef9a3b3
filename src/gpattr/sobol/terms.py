"""Kernels as sums of products over features: k = Σₜ scaleₜ ∏ⱼ kₜⱼ(xⱼ, zⱼ).

Squared exponentials, periodic kernels and all kernels of a single feature are such products.
Linear, polynomial and additive kernels are sums of them. Matérn and rational quadratic kernels of
several features are not: as mixtures of squared exponentials they have some forty terms, whose
pairs take ten times as long as quasi-random integration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpattr._core.array import Array
from gpattr.kernels import Kernel, SquaredExponential
from gpattr.kernels.factors import KernelProduct, factors
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
    found = None if has_white(kernel) else factors(kernel, inputs.columns, MOST_TERMS)
    if found is None:
        return None
    terms = tuple(_term(product, inputs.n_columns) for product in found)
    return Terms(kernel, terms, inputs.columns)


def _term(product: KernelProduct, width: int) -> Term:
    """Return a product over features with its squared exponentials as one."""
    scale, precision, others = product.scale, np.zeros(width), []
    for kernel, columns, feature in product.factors:
        assert columns is not None
        assert feature is not None
        if type(kernel) is SquaredExponential:
            scale *= float(kernel.variance)
            precision[list(columns)] += np.asarray(kernel.lengthscale) ** -2.0
        else:
            others.append((feature, kernel, columns))
    return Term(scale, precision, tuple(others))
