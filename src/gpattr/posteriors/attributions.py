"""Attributions: what a posterior answers, a distribution with its numerical evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpattr._core.array import Array
from gpattr.distributions import Distribution, Mixture


@dataclass(frozen=True, eq=False)
class Attributions:
    """𝒜f at n rows: the joint ``distribution`` of its q outputs in each of them.

    ``error`` (n,) bounds the error of the mean that the evaluation makes; ``method`` says how it
    was evaluated. ``cov_error`` (n,) bounds the error of the entries of ``cov``, and so of ``var``,
    rounding included.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> operator = gpattr.operators.IntegratedGradients([0.0, 0.0])
    >>> attributions = model.posterior_.apply(operator, X)
    >>> attributions.distribution.mean.shape, attributions.error.shape, attributions.method
    ((30, 2), (30,), 'closed form')
    """

    distribution: Distribution
    error: Array
    method: str
    cov_error: Array | None = None

    @property
    def mean(self) -> Array:
        """The mean, (n, q)."""
        return self.distribution.mean

    @property
    def var(self) -> Array | None:
        """The variances, (n, q), if they were asked for."""
        return self.distribution.var

    @property
    def cov(self) -> Array | None:
        """The covariances between outputs, (n, q, q), if they were asked for."""
        return self.distribution.cov

    @property
    def components(self) -> Mixture | None:
        """The mixture that this is; None for a single Gaussian."""
        return self.distribution if isinstance(self.distribution, Mixture) else None

    def linear(self, G: Array, uncertainty: str) -> Attributions:
        """Return the sums Σᵢ Gᵢⱼ𝒜ᵢf for G (q, k), with covariances only if these are asked for."""
        distribution = self.distribution.linear(G)
        widest = float(abs(G).sum(axis=0).max())
        return replace(
            self,
            distribution=distribution if uncertainty == "cov" else distribution.without_cov(),
            error=self.error * widest,
            cov_error=None if self.cov_error is None else self.cov_error * widest**2,
        )
