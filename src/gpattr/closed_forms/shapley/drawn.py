"""Baselines that are drawn, each player from its own columns: means of factors over them.

    log E kⱼ(bⱼ, zⱼ) and log E kⱼ(bⱼ, b'ⱼ) for independent draws b and b'

They are all that a product needs to know of a background set, and do not depend on the rows that
are explained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpattr._core.array import Array, namespace
from gpattr._core.memory import blocks
from gpattr.operators import Coalitions

Logs = Callable[[Array, Array], Array]  # log kⱼ(x, z), (p, ...), for x, z (D, ...)


@dataclass(eq=False)
class Draws:
    """Means of the factors ``logs`` over a drawn baseline; those at the data are remembered."""

    logs: Logs
    at: tuple[Array, Array, Array] | None = None
    twice: tuple[Array, Array] | None = None

    def means(self, sites: Coalitions, Z: Array) -> Array:
        """Return log E kⱼ(bⱼ, zⱼ), (p, m)."""
        known = self.at
        if known is None or known[0] is not sites.start or known[1] is not Z:
            known = self.at = (sites.start, Z, self.means_at(sites, Z))
        return known[2]

    def means_at(self, sites: Coalitions, Z: Array) -> Array:
        """Return the same for points that are not asked for again."""
        b, (K, D) = sites.start.T[:, :, None], sites.start.shape
        parts = [
            log_mean(self.logs(b, Z[some].T[:, None, :]), sites.weights, axis=1)
            for some in blocks(len(Z), 24.0 * D * K, Z)
        ]
        return namespace(Z).concatenate(parts, axis=1)

    def mean_of_means(self, sites: Coalitions) -> Array:
        """Return log E kⱼ(bⱼ, b'ⱼ), (p,)."""
        known = self.twice
        if known is None or known[0] is not sites.start:
            inner = self.means_at(sites, sites.start)
            known = self.twice = (sites.start, log_mean(inner, sites.weights, axis=1))
        return known[1]


def log_mean(logs: Array, weights: Array, axis: int) -> Array:
    """Return log Σₖ wₖ exp(logsₖ) along an axis."""
    xp = namespace(logs)
    shape = [1] * logs.ndim
    shape[axis] = -1
    highest = xp.max(logs, axis=axis)
    shifted = xp.exp(logs - highest[(slice(None),) * axis + (None,)])
    return highest + xp.log((shifted * weights.reshape(shape)).sum(axis))
