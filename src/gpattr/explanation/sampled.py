"""SampledExplanation: attributions whose distribution is known by draws, as those of a probability
are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.memory import blocks, check_memory
from gpattr._core.normal import check_count, check_level, random_generator, rank_shares, share_ties
from gpattr._core.validation import check_flag
from gpattr.distributions.marginals import Mixture
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.explanation.explanation import Explanation, feature_index


@dataclass(frozen=True, eq=False, repr=False)
class SampledExplanation(Explanation):
    """Attributions that are not Gaussian: their means are integrals, known to ``error``; the rest
    is estimated from draws.

    ``draws`` (S, n, d) are joint over the features of a row. ``var``, ``cov``, intervals and
    probabilities are those of the draws; `standard_error` and `interval_error` say how far these
    few draws can be off. ``draw_error`` (n,) is the root mean square of the completeness gaps of a
    row's draws: the error of their own integrals."""

    draws: Array = field(kw_only=True)
    draw_error: Array = field(kw_only=True)

    def __post_init__(self) -> None:
        draws = np.shape(self.draws)
        if len(draws) != 3 or draws[0] < 2:
            raise InvalidInputError(
                "draws: expected at least 2, in an array (draws, rows, features), got the shape"
                f" {draws}"
            )
        super().__post_init__()

    def dimensions(self) -> dict[str, tuple[str, ...]]:
        return super().dimensions() | {"draws": ("draw", "row", "feature"), "draw_error": ("row",)}

    def standard_error(self) -> Array:
        """Return the standard error of the mean of the draws, (n, d): the draws agree with
        ``values`` to about this.
        """
        return self.draws.std(axis=0, ddof=1) / np.sqrt(len(self.draws))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the lower and upper ends, each (n, d), of the central credible intervals:
        quantiles of the draws.
        """
        tail = 0.5 * (1.0 - check_level(level))
        lower, upper = np.quantile(self.draws, [tail, 1.0 - tail], axis=0)
        return lower, upper

    def interval_error(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the standard errors of both ends of the interval, each (n, d).

        How many draws lie below a quantile q is binomial: half the distance between the quantiles
        one standard deviation of that share, √(q(1 − q)/S), to either side."""
        tail = 0.5 * (1.0 - check_level(level))
        margin = np.sqrt(tail * (1.0 - tail) / len(self.draws))
        around = np.clip(
            [tail - margin, tail + margin, 1.0 - tail - margin, 1.0 - tail + margin], 0.0, 1.0
        )
        a, b, c, d = np.quantile(self.draws, around, axis=0)
        return 0.5 * (b - a), 0.5 * (d - c)

    def prob_positive(self) -> Array:
        """Return P(attribution > 0), (n, d): the share of the draws, with ½ for those that are
        zero.
        """
        return _share_above(self.draws)

    def prob_greater(self, i: str | int, j: str | int) -> Array:
        """Return P(attribution of i > attribution of j) in each row, (n,): the share of the draws."""
        a, b = feature_index(i, self.feature_names), feature_index(j, self.feature_names)
        return _share_above(self.draws[:, :, a] - self.draws[:, :, b])

    def rank_probabilities(
        self, n_samples: int | None = None, random_state: Any = 0, absolute: bool = True
    ) -> Array:
        """Return P(feature has rank r), (n, d, d) with the rank last, rank 0 the largest, from the
        draws.

        ``n_samples`` and ``random_state`` are not needed: the draws are there. Features that are
        surely tied share their ranks."""
        size = np.abs if check_flag("absolute", absolute) else np.asarray
        ranks = np.concatenate(
            [rank_shares(size(self.draws[:, rows]).swapaxes(0, 1)) for rows in self._blocks()]
        )
        return share_ties(ranks, size(self.values), self.draws.var(axis=0))

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Return n of the draws, chosen at random with replacement, (n, rows, d)."""
        check_memory("n: the draws", (check_count("n", n), *self.shape), "use fewer draws or rows")
        return self.draws[random_generator(random_state).integers(len(self.draws), size=n)]

    def mixture(self) -> Mixture:
        raise UnsupportedModelError(
            "mixture: these attributions are known by draws, not as a mixture of Gaussians"
        )

    def _blocks(self) -> Iterator[slice]:
        return blocks(len(self), 40.0 * len(self.draws) * self.shape[1])

    def _grouped(self, G: Array) -> dict[str, Array]:
        return {"draws": self.draws @ G}


def _share_above(draws: Array) -> Array:
    return (draws > 0).mean(axis=0) + 0.5 * (draws == 0).mean(axis=0)
