"""Draws: a distribution known by a sample of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import check_count, check_level, rank_shares, share_ties
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import check_flag
from gpattr.distributions.base import (
    MOMENTS,
    Dimensions,
    Distribution,
    as_array,
    diagonal,
    linear_moments,
    owned,
)
from gpattr.distributions.marginals import points
from gpattr.distributions.positions import position
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Distribution):
    """A sample ``draws`` (S, n, q), joint over the numbers of a row.

    ``mean``, ``var`` and ``cov`` may be given where they are known better than by the draws; mean
    and variances come from the draws otherwise. Intervals and probabilities always come from the
    draws; `standard_error` and `interval_error` give their Monte-Carlo error.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.distributions import Draws
    >>> draws = np.random.default_rng(0).normal(1.0, 0.1, size=(1000, 1, 2))
    >>> Draws(draws).mean.round(1)
    array([[1., 1.]])
    """

    draws: Array
    mean: Array = None
    cov: Array | None = None
    var: Array | None = None

    required = ("draws",)
    arrays: ClassVar[Mapping[str, Dimensions]] = {"draws": ("draw", "row", "entry"), **MOMENTS}

    def __post_init__(self) -> None:
        shape = tuple(as_array("draws", self.draws).shape)
        if len(shape) != 3 or shape[0] < 2:
            raise InvalidInputError(
                "draws: expected at least 2, in an array (draws, rows, features), got the shape"
                f" {shape}"
            )
        super().__post_init__()
        if self.mean is None:
            self._set("mean", owned(self.draws.mean(0)))
        if self.var is None:
            self._set("var", _variances(self.draws) if self.cov is None else diagonal(self.cov))

    def standard_error(self) -> np.ndarray:
        """Return the standard error of the mean of the draws, (n, q).

        The draws agree with ``mean`` to about this.
        """
        draws = to_numpy(self.draws)
        return draws.std(axis=0, ddof=1) / np.sqrt(len(draws))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        tail = 0.5 * (1.0 - check_level(level))
        lower, upper = np.quantile(to_numpy(self.draws), [tail, 1.0 - tail], axis=0)
        return lower, upper

    def interval_error(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard errors of both ends of the interval, each (n, q).

        The number of draws below a quantile q is binomial: half the distance between the quantiles
        one standard deviation of that share, √(q(1 − q)/S), to either side.
        """
        tail = 0.5 * (1.0 - check_level(level))
        margin = np.sqrt(tail * (1.0 - tail) / len(self.draws))
        around = np.clip(
            [tail - margin, tail + margin, 1.0 - tail - margin, 1.0 - tail + margin], 0.0, 1.0
        )
        a, b, c, d = np.quantile(to_numpy(self.draws), around, axis=0)
        return 0.5 * (b - a), 0.5 * (d - c)

    def cdf(self, x: Any) -> np.ndarray:
        """Return the share of the draws that are x or less, with x broadcasting against (n, q)."""
        x = points(x, self.shape)
        draws = to_numpy(self.draws)
        extra = max(0, x.ndim - 2)
        return (draws.reshape(len(draws), *[1] * extra, *self.shape) <= x).mean(axis=0)

    def prob_positive(self) -> np.ndarray:
        """Return P(number > 0), (n, q): the share of the draws, with ½ for draws that are zero."""
        return _share_above(to_numpy(self.draws))

    def prob_greater(self, i: int, j: int) -> np.ndarray:
        draws, q = to_numpy(self.draws), self.shape[1]
        return _share_above(draws[:, :, position("i", i, q)] - draws[:, :, position("j", j, q)])

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> np.ndarray:
        """Return P(number has rank r), (n, q, q) with the rank last, from the draws.

        ``n_samples`` and ``random_state`` are not used: the draws are already there.
        """
        size = np.abs if check_flag("absolute", absolute) else np.asarray
        (n, q), draws = self.shape, to_numpy(self.draws)
        ranks = np.empty((n, q, q))
        for rows in blocks(n, 40.0 * len(draws) * q):
            ranks[rows] = rank_shares(size(draws[:, rows]).swapaxes(0, 1))
        return share_ties(ranks, size(to_numpy(self.mean)), draws.var(axis=0))

    def sample(self, n: int = 1, random_state: RandomLike = None) -> np.ndarray:
        """Return n of the draws, chosen at random with replacement, (n, rows, q)."""
        check_memory("n: the draws", (check_count("n", n), *self.shape), "use fewer draws or rows")
        chosen = random_generator(random_state).integers(len(self.draws), size=n)
        return to_numpy(self.draws)[chosen]

    def linear(self, G: Any) -> Draws:
        G = self._combination(G)
        mean, var, cov = linear_moments(G, self.mean, self.var, self.cov)
        return Draws(owned(self.draws @ G), mean, cov, var)


def _variances(draws: Array) -> Array:
    return owned(((draws - draws.mean(0)) ** 2).sum(0) / (len(draws) - 1))


def _share_above(draws: np.ndarray) -> np.ndarray:
    return (draws > 0).mean(axis=0) + 0.5 * (draws == 0).mean(axis=0)
