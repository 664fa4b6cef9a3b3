"""Draws of a function by values that are drawn: f given its values at some sites.

A posterior draw of f is split into what its values at M sites explain and the rest. With the
posterior covariance C and e = C_MM + nugget = ΛΛᵀ

    f = μ + C(·, sites)Λ⁻ᵀζ + rest,    ζ ~ N(0, I)

Sites are quasi-random points, and averages E[f | x_i] over all features but those of one player,
which decide about first-order indices. The rest enters variances by its expectation: means over
draws are exact for any sites, the spread is a little too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpattr._core.array import Array, cholesky, product, solve_lower_rows, solve_upper
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.sobol.inputs import Inputs
from gpattr.sobol.sections import Sections, Sites

POINTS = 128  # quasi-random points
AVERAGES, MOST_AVERAGES = 8, 160  # sites of each player, and of all
NUGGET = 1e-3  # of the variance of each site: keeps loadings small, and takes little of the spread


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
    data: Sites
    groups: tuple[Sites, ...]

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

    def columns(self, sites: Sites) -> tuple[Array, Array, Array]:
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

    def means(self, sites: Sites) -> Array:
        """Return the posterior mean of f at sites, (n,), without the prior's constant."""
        return product(self.sections.between(sites, self.data), self.posterior.alpha)
