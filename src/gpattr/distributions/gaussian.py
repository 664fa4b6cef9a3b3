"""Gaussian: a normal distribution in each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from gpattr._core.array import Array, to_numpy
from gpattr._core.memory import blocks
from gpattr._core.normal import (
    check_level,
    prob_positive,
    rank_shares,
    roots,
    share_ties,
    standard_draws,
)
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import check_flag
from gpattr.distributions.base import MOMENTS, Distribution, diagonal, linear_moments
from gpattr.distributions.marginals import Marginals
from gpattr.distributions.positions import position


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Distribution):
    """N(mean, cov) in each row: ``mean`` (n, q), ``var`` (n, q), ``cov`` (n, q, q).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.distributions import Gaussian
    >>> attributions = Gaussian(np.array([[1.0, 0.0]]), var=np.array([[0.25, 1.0]]))
    >>> attributions.prob_positive().round(2)
    array([[0.98, 0.5 ]])
    >>> attributions.interval(0.95)[0].round(2)
    array([[ 0.02, -1.96]])
    """

    mean: Array
    var: Array | None = None
    cov: Array | None = None

    arrays = MOMENTS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.var is None and self.cov is not None:
            self._set("var", diagonal(self.cov))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        tail = 0.5 * (1.0 - check_level(level))
        mean, half = to_numpy(self.mean), -ndtri(tail) * np.sqrt(to_numpy(self.need("var")))
        return mean - half, mean + half

    def prob_positive(self) -> np.ndarray:
        return prob_positive(to_numpy(self.mean), to_numpy(self.need("var")))

    def prob_greater(self, i: int, j: int) -> np.ndarray:
        mean, C, q = to_numpy(self.mean), to_numpy(self.need("cov")), self.shape[1]
        a, b = position("i", i, q), position("j", j, q)
        var = C[:, a, a] + C[:, b, b] - 2.0 * C[:, a, b]
        return prob_positive(mean[:, a] - mean[:, b], np.maximum(var, 0.0))

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> np.ndarray:
        """Return P(number has rank r), (n, q, q) with the rank last, from ``n_samples`` draws.

        The same standard draws serve every row, so a row's answer does not depend on the others.
        Ranks go by absolute size, or by signed value with ``absolute=False``. Exact ties share
        their ranks evenly.
        """
        check_flag("absolute", absolute)
        normal = standard_draws("n_samples", n_samples, self.shape[1], random_state)
        return self._ranks_in(normal, absolute)

    def _ranks_in(self, normal: np.ndarray, absolute: bool) -> np.ndarray:
        """Return the rank probabilities in draws made of standard ones, ``normal`` (s, q)."""
        mean, var, factors = (
            to_numpy(self.mean),
            to_numpy(self.need("var")),
            roots(to_numpy(self.need("cov"))),
        )
        n, q = self.shape
        result = np.empty((n, q, q))
        for rows in blocks(n, 40.0 * len(normal) * q):
            draws = mean[rows, None, :] + normal @ factors[rows].transpose(0, 2, 1)  # (r, s, q)
            result[rows] = rank_shares(np.abs(draws) if absolute else draws)
        return share_ties(result, np.abs(mean) if absolute else mean, var)

    def sample(self, n: int = 1, random_state: RandomLike = None) -> np.ndarray:
        rows, q = self.shape
        normal = standard_draws("n", n, rows * q, random_state).reshape(n, rows, q)
        return self._drawn(normal)

    def _drawn(self, normal: np.ndarray) -> np.ndarray:
        """Return the draws made of standard ones, ``normal`` (s, n, q)."""
        factors = roots(to_numpy(self.need("cov")))
        return to_numpy(self.mean) + np.einsum("rij,nrj->nri", factors, normal)

    def linear(self, G: Any) -> Gaussian:
        return Gaussian(*linear_moments(self._combination(G), self.mean, self.var, self.cov))

    def marginals(self) -> Marginals:
        return Marginals(np.ones(1), to_numpy(self.mean)[None], to_numpy(self.need("var"))[None])
