"""Point: numbers known without uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.normal import check_count, check_level, rank_shares, share_ties
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import check_flag
from gpattr.distributions.base import MOMENTS, Dimensions, Distribution, owned
from gpattr.distributions.marginals import Marginals
from gpattr.distributions.positions import position


@dataclass(frozen=True, eq=False, repr=False)
class Point(Distribution):
    """All probability at ``mean`` (n, q): variances and covariances are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.distributions import Point
    >>> Point(np.array([[1.0, -1.0]])).prob_positive()
    array([[1., 0.]])
    """

    mean: Array
    var: Array = field(init=False)
    cov: Array = field(init=False)

    arrays: ClassVar[Mapping[str, Dimensions]] = {"mean": MOMENTS["mean"]}

    def __post_init__(self) -> None:
        super().__post_init__()
        (n, q), xp = self.shape, namespace(self.mean)
        zero = xp.zeros((1, 1, 1))  # broadcast, so that the covariance takes no memory
        self._set("var", owned(xp.broadcast_to(zero[0], (n, q))))
        self._set("cov", owned(xp.broadcast_to(zero, (n, q, q))))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the values themselves, as both ends of every interval."""
        check_level(level)
        return np.array(to_numpy(self.mean)), np.array(to_numpy(self.mean))

    def prob_positive(self) -> np.ndarray:
        """Return 0 for negative numbers, 1 for positive ones and ½ for zero, (n, q)."""
        return _positive(to_numpy(self.mean))

    def prob_greater(self, i: int, j: int) -> np.ndarray:
        mean, q = to_numpy(self.mean), self.shape[1]
        return _positive(mean[:, position("i", i, q)] - mean[:, position("j", j, q)])

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> np.ndarray:
        """Return 1 for the rank that each number has, (n, q, q); ties share their ranks evenly.

        ``n_samples`` and ``random_state`` are not used: nothing is drawn.
        """
        mean = to_numpy(self.mean)
        size = np.abs(mean) if check_flag("absolute", absolute) else mean
        return share_ties(rank_shares(size[:, None, :]), size, to_numpy(self.var))

    def sample(self, n: int = 1, random_state: RandomLike = None) -> np.ndarray:
        """Return the values n times, (n, rows, q)."""
        random_generator(random_state)
        check_memory("n: the draws", (check_count("n", n), *self.shape), "use fewer draws or rows")
        return np.repeat(to_numpy(self.mean)[None], n, axis=0)

    def linear(self, G: Any) -> Point:
        return Point(owned(self.mean @ self._combination(G)))

    def marginals(self) -> Marginals:
        return Marginals(np.ones(1), to_numpy(self.mean)[None], to_numpy(self.var)[None])

    def __getstate__(self) -> dict[str, Any]:
        return {"mean": self.mean}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__post_init__()


def _positive(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.sign(x))
