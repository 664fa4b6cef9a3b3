"""Kernels as sums of products over features: k = Σₜ scaleₜ ∏ⱼ kₜⱼ(xⱼ, zⱼ).

Squared exponentials, periodic kernels and all kernels of a single feature are such products.
Linear, polynomial and additive kernels are sums of them. Matérn and rational quadratic kernels of
several features are not: as mixtures of squared exponentials they have some forty terms, whose
pairs take ten times as long as quasi-random integration.

A quadrature rule for the factors of a feature (`rule_for`) integrates products of two factors, k(x,
z) k′(x, z′), at all the points z where the factors are centred. For squared exponentials the number
of nodes follows from a bound; for other factors it grows until integrals stop changing, with breaks
at the points where factors have kinks there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpattr._core.array import EPS, Array
from gpattr.kernels import Kernel, Radial, RationalQuadratic, SquaredExponential
from gpattr.kernels.factors import KernelProduct, factors
from gpattr.kernels.white import has_white
from gpattr.sobol.inputs import Distribution, Empirical, Inputs, Normal, Tied, Uniform
from gpattr.special.quadrature import gauss_legendre

MOST_TERMS = 256
REACH = 9.5  # standard deviations beyond which a normal distribution has less than 1e-20
STEP = 0.72  # of the trapezoidal rule, in widths of the narrowest Gaussian: error exp(−2π²/STEP²)
LARGEST = 64  # nodes of a rule without panels
AGREED = 2e-13
MOST_NODES = 4096


@dataclass(frozen=True, eq=False)
class ProductTerm:
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
    terms: tuple[ProductTerm, ...]
    columns: tuple[tuple[int, ...], ...]

    @cached_property
    def scales(self) -> Array:
        """The scale of each term, (T,)."""
        return np.array([term.scale for term in self.terms])

    @cached_property
    def seen(self) -> Array:
        """A mask of the features that each term sees, (T, D)."""
        return np.array([[self._sees(t, j) for j in range(len(self.columns))] for t in self.terms])

    def _sees(self, term: ProductTerm, j: int) -> bool:
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


def _term(product: KernelProduct, width: int) -> ProductTerm:
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
    return ProductTerm(scale, precision, tuple(others))


@dataclass(frozen=True, eq=False)
class Rule:
    """Nodes (K, c) and weights (K,), with an ``error`` beyond rounding, of the largest values."""

    nodes: Array
    weights: Array
    error: float = 0.0


def rule_for(terms: Terms, j: int, distribution: Distribution, points: Array) -> Rule:
    """Return a rule for feature j, whose factors are centred at ``points`` (m, c)."""
    widths = [terms.gaussian(int(t), j) for t in np.flatnonzero(terms.seen[:, j])]
    narrow = None if None in widths else min((w for w in widths if w is not None), default=np.inf)
    if isinstance(distribution, Empirical):
        return _empirical(distribution, narrow, points)
    if narrow is not None and isinstance(distribution, Uniform):
        return _uniform(distribution, narrow, points)
    if narrow is not None and isinstance(distribution, Normal):
        return _normal(distribution, narrow)
    return _measured(terms, j, distribution, points)


def _empirical(distribution: Empirical, narrow: float | None, points: Array) -> Rule:
    """Return the values, or for squared exponentials the fewer nodes of a Gauss rule for them."""
    values, weights = distribution.values, distribution.weights
    if narrow is not None and distribution.width == 1:
        low, high = float(values.min()), float(values.max())
        count = nodes_needed(low, high, narrow, points)
        if count < min(len(values), 2 * LARGEST):
            nodes, weights = discrete_gauss(values[:, 0], weights, count)
            return Rule(nodes[:, None], weights)
    return Rule(values, weights)


def nodes_needed(
    low: float, high: float, lengthscale: float, points: Array, digits: float = 38.0
) -> int:
    """Return how many Gauss nodes integrate products of squared exponentials to exp(−digits).

    On [−1, 1] a product is exp(−A(t − t₀)²). With semi-axes a, b of the ellipse ρ it grows there by
    at most exp(A b² + A((|t₀| − 1)² − (|t₀| − a)²)₊) over its largest value on the interval, and
    the error of n nodes is at most (64/15) times that growth × ρ^(−2n)/(1 − ρ⁻²), for every ρ.
    """
    half = 0.5 * (high - low)
    if half <= 0:
        return 1
    # √A and √A t₀, in length-scales, which stay numbers where an interval is tiny.
    width = np.float64(half) / lengthscale
    centre = max(width, np.abs(points - (low + half)).max(initial=0.0) / lengthscale)
    rho = 1.0 + np.logspace(-3, 6, 400)
    a, b = 0.5 * (rho + 1.0 / rho), 0.5 * (rho - 1.0 / rho)
    near = a * width < centre
    slope = np.where(
        near, (a - 1.0) * width * (2.0 * centre - (a + 1.0) * width), (centre - width) ** 2
    )
    grown = (width * b) ** 2 + slope
    wanted = grown + digits - np.log1p(-(rho**-2.0)) + np.log1p(width * centre)
    return int(min(np.ceil(float((wanted / (2.0 * np.log(rho))).min())), 10**6)) + 1


def discrete_gauss(values: Array, weights: Array, count: int) -> tuple[Array, Array]:
    """Return the Gauss rule (count,) of a discrete measure, by Lanczos with orthogonalisation."""
    scale = float(np.abs(values - values.mean()).max()) or 1.0
    middle = float(values.mean())
    x = (values - middle) / scale
    basis = np.zeros((count + 1, len(x)))
    basis[0] = np.sqrt(weights)
    diagonal, off = np.zeros(count), np.zeros(count)
    for k in range(count):
        v = x * basis[k]
        diagonal[k] = v @ basis[k]
        for _ in range(2):
            v -= basis[: k + 1].T @ (basis[: k + 1] @ v)
        off[k] = np.linalg.norm(v)
        if off[k] < 1e-14:  # the measure has no more points
            count = k + 1
            break
        basis[k + 1] = v / off[k]
    T = np.diag(diagonal[:count]) + np.diag(off[: count - 1], 1) + np.diag(off[: count - 1], -1)
    nodes, vectors = np.linalg.eigh(T)
    return middle + scale * nodes, vectors[0] ** 2


def _uniform(distribution: Uniform, narrow: float, points: Array) -> Rule:
    low, high = float(distribution.low), float(distribution.high)
    count = nodes_needed(low, high, narrow, points)
    if count <= LARGEST:
        return Rule(*distribution.nodes(count))
    panels = int(min(np.ceil((high - low) / (4.0 * narrow)), MOST_NODES)) or 1
    t, w = gauss_legendre(32, panels)
    return Rule((low + (high - low) * t)[:, None], w)


def _normal(distribution: Normal, narrow: float) -> Rule:
    """Return the trapezoidal rule, which converges exponentially for Gaussians."""
    mean, std = float(distribution.mean), float(distribution.std)
    step = STEP / float(np.hypot(1.0, 2.0**0.5 * std / narrow))
    count = int(min(np.ceil(REACH / step), 16 * MOST_NODES))
    t = step * np.arange(-count, count + 1)
    weights = np.exp(-0.5 * t * t)
    return Rule((mean + std * t)[:, None], weights / weights.sum())


def _measured(terms: Terms, j: int, distribution: Distribution, points: Array) -> Rule:
    """Return a rule with as many nodes as it takes for integrals to stop changing."""
    before, rule, change = None, None, np.inf
    for nodes, weights in _finer(distribution, _kinks(terms, j, points)):
        rule, now = Rule(nodes, weights), _integrals(terms, j, points, nodes, weights)
        if before is not None:
            change = float((np.abs(now - before).max(axis=1) / _sizes(now)).max())
            if change < AGREED:
                break
        before = now
    assert rule is not None
    return Rule(rule.nodes, rule.weights, change if change > 8 * EPS else 0.0)


def _sizes(values: Array) -> Array:
    return np.maximum(np.abs(values).max(axis=1), 1e-300)


def _integrals(terms: Terms, j: int, points: Array, nodes: Array, weights: Array) -> Array:
    """Return m(z) and M(z, z) of every term, (2T, m), at some of the points."""
    some = points[:: max(1, len(points) // 64)]
    found = []
    for t in np.flatnonzero(terms.seen[:, j]):
        values = terms.factor(int(t), j, nodes, some)
        found += [weights @ values, weights @ (values * values)]
    return np.array(found)


def _kinks(terms: Terms, j: int, points: Array) -> Array | None:
    """Return the points if a factor has kinks there, and they are numbers."""
    kernels = [kernel for term in terms.terms for i, kernel, _ in term.others if i == j]
    smooth = (SquaredExponential, RationalQuadratic)
    kinked = any(
        not leaf.smooth or (isinstance(leaf, Radial) and not isinstance(leaf, smooth))
        for kernel in kernels
        for leaf in kernel.leaves()
    )
    return np.unique(points[:, 0]) if kinked and points.shape[1] == 1 else None


def _finer(distribution: Distribution, breaks: Array | None) -> Iterator[tuple[Array, Array]]:
    """Yield finer and finer rules."""
    if isinstance(distribution, Tied):
        for nodes, weights in _finer(distribution.base, None):
            yield (nodes - distribution.shift) / distribution.scale, weights
        return
    if not isinstance(distribution, (Uniform, Normal)):
        for count in (16, 32, 64, 128, 256):
            yield distribution.nodes(count)
        return
    if isinstance(distribution, Uniform):
        low, high, density = float(distribution.low), float(distribution.high), None
    else:
        mean, std = float(distribution.mean), float(distribution.std)
        low, high, density = mean - REACH * std, mean + REACH * std, (mean, std)
    if breaks is not None:
        inner = breaks[(breaks > low) & (breaks < high)]
        for order, panels in ((4, 8), (6, 16), (8, 32), (12, 64), (20, 64)):
            edges = np.union1d(inner, np.linspace(low, high, panels + 1))
            yield _on_panels(edges, order, density)
        return
    for panels in (2, 4, 8, 16, 32, 64, 128, 256):
        yield _on_panels(np.linspace(low, high, panels + 1), 16, density)


def _on_panels(
    edges: Array, order: int, density: tuple[float, float] | None
) -> tuple[Array, Array]:
    t, w = gauss_legendre(order)
    widths = np.diff(edges)
    x = (edges[:-1, None] + widths[:, None] * t).ravel()
    weights = (widths[:, None] * w).ravel()
    if density is not None:
        mean, std = density
        u = (x - mean) / std
        weights = weights * np.exp(-0.5 * u * u)
    return x[:, None], weights / weights.sum()
