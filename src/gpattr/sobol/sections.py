"""Kernel sections: covariances between values of f that are averaged over some of the features.

f_S(x_S) = E[f | x_S] averages over the features that are not ``free``. For k = Σₜ ∏ⱼ kₜⱼ

    Cov[f_S(x), f_T(z)] = Σₜ ∏_{S∩T} kⱼ(x, z) ∏_{S∖T} mⱼ(x) ∏_{T∖S} mⱼ(z) ∏_{neither} cⱼ

A posterior draw of f (`Conditioning`) is split into what its values at M sites explain and the
rest. With the posterior covariance C and e = C_MM + nugget = ΛΛᵀ

    f = μ + C(·, sites)Λ⁻ᵀζ + rest,    ζ ~ N(0, I)

Sites are quasi-random points, and averages E[f | x_i] over all features but one player's, which
decide about first-order indices. The rest enters variances by its expectation: means over draws are
exact for any sites, the spread is a little too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpattr._core.array import Array, cholesky, product, solve_lower_rows, solve_upper
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.sobol import gaussian_moments
from gpattr.sobol.inputs import Empirical, Inputs
from gpattr.sobol.terms import Rule, Terms, rule_for

OUTER = 64  # nodes for double integrals of factors that have no closed form
# Degree of the polynomial that stands for m at rows other than data, which only draws use.
DEGREE = 160
POINTS = 128  # quasi-random points
AVERAGES, MOST_AVERAGES = 8, 160  # sites of each player, and of all
NUGGET = 1e-3  # of the variance of each site: keeps loadings small, and takes little of the spread


@dataclass(frozen=True, eq=False)
class SectionSites:
    """Rows (n, C) at which f is taken, averaged over all features but the ``free`` ones."""

    rows: Array
    free: frozenset[int]
    means: Array  # (T, D, n): mⱼ of every term at the rows; 1 where it is not needed

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> SectionSites:
        return SectionSites(self.rows[rows], self.free, self.means[:, :, rows])


@dataclass(frozen=True, eq=False)
class Sections:
    """Moments of the factors of ``terms`` against ``inputs``, for factors centred at ``points``."""

    terms: Terms
    inputs: Inputs
    points: Array  # (m, C)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of terms and of features."""
        return len(self.terms.terms), len(self.inputs.columns)

    @cached_property
    def everything(self) -> frozenset[int]:
        """All features."""
        return frozenset(range(self.shape[1]))

    @cached_property
    def rules(self) -> list[Rule]:
        """The rule of each feature."""
        return [
            rule_for(self.terms, j, distribution, self.points[:, list(columns)])
            for j, (distribution, columns) in enumerate(
                zip(self.inputs.distributions, self.inputs.columns, strict=True)
            )
        ]

    def mean(self, t: int, j: int, values: Array) -> Array:
        """Return m(z) of a factor, (n,), at values (n, c) of its feature."""
        if not self.terms.seen[t, j]:
            return np.ones(len(values))
        lengthscale, distribution = self.terms.gaussian(t, j), self.inputs.distributions[j]
        if lengthscale is not None and gaussian_moments.known(distribution):
            return gaussian_moments.mean(distribution, lengthscale, values[:, 0])
        rule = self.rules[j]
        return rule.weights @ self.terms.factor(t, j, rule.nodes, values)

    @cached_property
    def doubles(self) -> Array:
        """c = ∬k dP dP of every factor, (T, D)."""
        return np.array(
            [[self._double(t, j) for j in range(self.shape[1])] for t in range(self.shape[0])]
        )

    @cached_property
    def diagonals(self) -> Array:
        """∫k(x, x) dP of every factor, (T, D)."""
        return np.array(
            [
                [
                    float(rule.weights @ self.terms.diagonal(t, j, rule.nodes))
                    for j, rule in enumerate(self.rules)
                ]
                for t in range(self.shape[0])
            ]
        )

    def _double(self, t: int, j: int) -> float:
        if not self.terms.seen[t, j]:
            return 1.0
        lengthscale, distribution = self.terms.gaussian(t, j), self.inputs.distributions[j]
        if lengthscale is not None and gaussian_moments.known(distribution):
            return gaussian_moments.double(distribution, lengthscale)
        # The outer integrand, m, is smooth; the inner rule breaks at its nodes.
        outer = self.rules[j] if isinstance(distribution, Empirical) else None
        nodes, weights = (
            distribution.nodes(OUTER) if outer is None else (outer.nodes, outer.weights)
        )
        inner = outer or rule_for(self.terms, j, distribution, nodes)
        return float(inner.weights @ self.terms.factor(t, j, inner.nodes, nodes) @ weights)

    def sites(self, rows: Array, free: frozenset[int], *, exact: bool = True) -> SectionSites:
        """Return sites with the means that sections of them need, interpolated if not ``exact``."""
        means = np.ones((*self.shape, len(rows)))
        for j in free:
            values = rows[:, list(self.inputs.columns[j])]
            for t in range(self.shape[0]):
                means[t, j] = (self.mean if exact else self.averages)(t, j, values)
        return SectionSites(rows, free, means)

    def averages(self, t: int, j: int, values: Array) -> Array:
        """Return m(z) of a factor, (n,), interpolated where it would be a long sum."""
        few = len(values) <= DEGREE or values.shape[1] > 1
        return (self.mean if few or not self._long(t, j) else self._interpolated)(t, j, values)

    def _long(self, t: int, j: int) -> bool:
        """Return whether m of a factor is a sum over a rule."""
        closed = gaussian_moments.known(self.inputs.distributions[j])
        return bool(self.terms.seen[t, j]) and not (closed and self.terms.gaussian(t, j))

    def _interpolated(self, t: int, j: int, values: Array) -> Array:
        low, high = float(values.min()), float(values.max())
        half = 0.5 * (high - low) or 1.0

        def at(x: Array) -> Array:
            return self.mean(t, j, (low + half * (1.0 + x))[:, None])

        series = np.polynomial.chebyshev.chebinterpolate(at, DEGREE)
        return np.polynomial.chebyshev.chebval((values[:, 0] - low) / half - 1.0, series)

    def between(self, one: SectionSites, two: SectionSites) -> Array:
        """Return the prior covariances between sites, (n, m)."""
        if one.free == two.free == self.everything:
            return self.terms.kernel(one.rows, two.rows)
        both = sorted(one.free & two.free)
        neither = sorted(self.everything - one.free - two.free)
        left, right = sorted(one.free - two.free), sorted(two.free - one.free)
        total = np.zeros((len(one), len(two)))
        products = self.terms.products(both, one.rows, two.rows)
        for (t, term), value in zip(enumerate(self.terms.terms), products, strict=True):
            value *= (term.scale * self.doubles[t, neither].prod()) * one.means[t, left].prod(
                axis=0
            )[:, None]
            value *= two.means[t, right].prod(axis=0)
            total += value
        return total

    def variance(self, free: frozenset[int]) -> float:
        """Return E Var[f_S] before data, ∫Cov[f_S(x), f_S(x)] dP."""
        some, rest = sorted(free), sorted(self.everything - free)
        values = self.diagonals[:, some].prod(axis=1) * self.doubles[:, rest].prod(axis=1)
        return float(np.array([term.scale for term in self.terms.terms]) @ values)


def drawn_sites(
    inputs: Inputs, generator: np.random.Generator
) -> list[tuple[Array, frozenset[int]]]:
    """Return rows and free features of the sites: points, and averages for each player."""
    everything = frozenset(range(len(inputs.columns)))
    groups = [(inputs.points(POINTS, generator), everything)]
    seen = [members for members in inputs.members if members]
    count = min(AVERAGES, MOST_AVERAGES // max(len(seen), 1))
    if len(seen) > 1 and count > 1:
        groups += [(inputs.points(count, generator), frozenset(members)) for members in seen]
    return groups


@dataclass(frozen=True, eq=False)
class Conditioning:
    """A posterior whose draws are split at ``groups`` of sites; ``data`` are its own inputs."""

    posterior: FunctionSpacePosterior
    sections: Sections
    data: SectionSites
    groups: tuple[SectionSites, ...]

    @cached_property
    def whitened(self) -> Array:
        """The rows L⁻¹ diag(w) Cov[f(Z), sites], (M, m)."""
        return self.solve(
            np.concatenate([self.sections.between(g, self.data) for g in self.groups])
        )

    @cached_property
    def root(self) -> Array:
        """The Cholesky factor Λ of the posterior covariance of the sites, (M, M)."""
        prior = np.block(
            [[self.sections.between(one, two) for two in self.groups] for one in self.groups]
        )
        cov = prior - self.explained(self.whitened, self.whitened)
        least = 1e-13 * prior.diagonal() + 1e-300
        cov = 0.5 * (cov + cov.T)
        size = np.sqrt(np.maximum(cov.diagonal(), least))
        unit, nugget = cov / size[:, None] / size, NUGGET
        while True:
            try:
                return size[:, None] * cholesky(unit + nugget * np.eye(len(cov)))
            except np.linalg.LinAlgError:
                nugget *= 10.0

    def solve(self, k: Array) -> Array:
        """Return the rows L⁻¹ diag(w) k, (n, m)."""
        return self.posterior.solve(np.ascontiguousarray(k))

    def explained(self, one: Array, two: Array) -> Array:
        """Return V(I − RRᵀ)V′ᵀ for whitened rows."""
        value, root = product(one, two.T), self.posterior.root
        if root is not None:
            value -= product(product(one, root), product(two, root).T)
        return value

    @cached_property
    def trend(self) -> Array:
        """The loadings −W G of uncertain constants on the data, (m, p); none without a trend."""
        trend = self.posterior.trend
        if trend is None:
            return np.zeros((len(self.data), 0))
        return -product(trend.weights, trend.root)

    @cached_property
    def loadings(self) -> Array:
        """The coefficients of sections at data and sites, (m + M, M), that multiply ζ."""
        V, R, w = self.whitened.T, self.posterior.root, self.posterior.column_scale
        V = V if R is None else V - product(R, product(R.T, V))
        at_data = -solve_upper(self.posterior.factor, np.asfortranarray(V))
        at_data = at_data if w is None else at_data * w[:, None]
        return np.concatenate(
            [solve_lower_rows(self.root, np.ascontiguousarray(at_data)), self._inverse_root]
        )

    @cached_property
    def _inverse_root(self) -> Array:
        """Λ⁻ᵀ, (M, M)."""
        return solve_upper(self.root, np.eye(len(self.root)))

    @cached_property
    def inverse(self) -> Array:
        """B = diag(w) L⁻ᵀ (I − RRᵀ) L⁻¹ diag(w), (m, m)."""
        m, R, w = len(self.data), self.posterior.root, self.posterior.column_scale
        V = solve_upper(self.posterior.factor, np.eye(m))  # L⁻ᵀ
        B = product(V, V.T)
        if R is not None:
            B -= product(product(V, R), product(V, R).T)
        return B if w is None else B * w[:, None] * w

    def columns(self, sites: SectionSites) -> tuple[Array, Array, Array]:
        """Return mean and loadings of f at sites, (n, 1 + M + p), explained variance and |k||α|."""
        k = self.sections.between(sites, self.data)
        mean, size = (
            product(k, self.posterior.alpha),
            product(np.abs(k), np.abs(self.posterior.alpha)),
        )
        by_trend = product(k, self.trend)
        V = self.solve(k)
        prior = np.concatenate([self.sections.between(sites, g) for g in self.groups], axis=1)
        loads = solve_lower_rows(self.root, prior - self.explained(V, self.whitened))
        explained = (V * V).sum(axis=1)
        if self.posterior.root is not None:
            explained -= (product(V, self.posterior.root) ** 2).sum(axis=1)
        return np.concatenate([mean[:, None], loads, by_trend], axis=1), explained, size

    def means(self, sites: SectionSites) -> Array:
        """Return the posterior mean of f at sites, (n,), without the prior's constant."""
        return product(self.sections.between(sites, self.data), self.posterior.alpha)
