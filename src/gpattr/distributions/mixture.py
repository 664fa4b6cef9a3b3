"""Mixture: a weighted set of normal distributions in each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.normal import check_level, standard_draws
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import check_flag
from gpattr.distributions.base import (
    MOMENTS,
    Dimensions,
    Distribution,
    diagonal,
    linear_moments,
    owned,
)
from gpattr.distributions.gaussian import Gaussian
from gpattr.distributions.marginals import Marginals
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Distribution):
    """Σₖ weightₖ N(meanₖ, covₖ) in each row, with the same ``weights`` (K,) in all of them.

    ``means`` and ``variances`` are (K, n, q), ``covs`` (K, n, q, q). ``mean``, ``var`` and ``cov``
    are the mixture's, by total variance unless they are given.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.distributions import Mixture
    >>> means = np.array([[[0.0]], [[2.0]]])  # two models, one row, one feature
    >>> mixture = Mixture(np.array([0.5, 0.5]), means, np.ones_like(means))
    >>> mixture.mean, mixture.var
    (array([[1.]]), array([[2.]]))
    """

    weights: Array
    means: Array
    variances: Array | None = None
    covs: Array | None = None
    mean: Array = field(default=None, kw_only=True)
    var: Array | None = field(default=None, kw_only=True)
    cov: Array | None = field(default=None, kw_only=True)

    required = ("weights", "means")
    arrays: ClassVar[Mapping[str, Dimensions]] = {
        "means": ("component", "row", "entry"),
        "weights": ("component",),
        "variances": ("component", "row", "entry"),
        "covs": ("component", "row", "entry", "entry"),
        **MOMENTS,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = to_numpy(self.weights)
        if not ((weights >= 0).all() and abs(weights.sum() - 1.0) <= 1e-9):
            raise InvalidInputError(
                f"weights: expected numbers of 0 or more that sum to 1, got {weights.tolist()}"
            )
        if self.variances is None and self.covs is not None:
            self._set("variances", diagonal(self.covs))
        for name, total in (("mean", _mean), ("var", _var), ("cov", _cov)):
            if vars(self)[name] is None:
                self._set(name, total(self))

    def components(self) -> list[tuple[float, Gaussian]]:
        """Return the Gaussians with their weights."""
        parts = (self.means, self.variances, self.covs)
        return [
            (weight, Gaussian(*(None if part is None else part[k] for part in parts)))
            for k, weight in enumerate(to_numpy(self.weights).tolist())
        ]

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        tail, marginals = 0.5 * (1.0 - check_level(level)), self.marginals()
        return marginals.quantile(tail), marginals.quantile(1.0 - tail)

    def prob_positive(self) -> np.ndarray:
        return self._averaged(Gaussian.prob_positive)

    def prob_greater(self, i: int, j: int) -> np.ndarray:
        return self._averaged(lambda part: part.prob_greater(i, j))

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> np.ndarray:
        """Return P(number has rank r), (n, q, q) with the rank last, from ``n_samples`` draws.

        The same standard draws serve every row and every component.
        """
        check_flag("absolute", absolute)
        normal = standard_draws("n_samples", n_samples, self.shape[1], random_state)
        return self._averaged(lambda part: part._ranks_in(normal, absolute))

    def sample(self, n: int = 1, random_state: RandomLike = None) -> np.ndarray:
        """Return n draws, (n, rows, q), joint within a row, all rows of one component."""
        rows, q = self.shape
        generator = random_generator(random_state)
        normal = standard_draws("n", n, rows * q, generator).reshape(n, rows, q)
        parts = self.components()
        if len(parts) == 1:
            return parts[0][1]._drawn(normal)
        counts = generator.multinomial(n, [weight for weight, _ in parts])
        ends = np.cumsum(counts)[:-1]
        pieces = zip(parts, np.split(normal, ends), strict=True)
        return generator.permutation(np.concatenate([part._drawn(z) for (_, part), z in pieces]))

    def linear(self, G: Any) -> Mixture:
        G = self._combination(G)
        means, variances, covs = linear_moments(G, self.means, self.variances, self.covs)
        mean, var, cov = linear_moments(G, self.mean, self.var, self.cov)
        return Mixture(self.weights, means, variances, covs, mean=mean, var=var, cov=cov)

    def marginals(self) -> Marginals:
        return Marginals(*map(to_numpy, (self.weights, self.means, self.need("variances"))))

    def _averaged(self, question: Callable[[Gaussian], np.ndarray]) -> np.ndarray:
        """Return a probability of a Gaussian, averaged over the components."""
        total = np.zeros(())
        for weight, part in self.components():
            total = total + weight * question(part)
        return np.minimum(total, 1.0)  # weights add up to 1 within rounding


def _mean(mixture: Mixture) -> Array:
    return _average(mixture, mixture.means)


def _var(mixture: Mixture) -> Array | None:
    if mixture.variances is None:
        return None
    return _average(mixture, mixture.variances + (mixture.means - mixture.mean) ** 2)


def _cov(mixture: Mixture) -> Array | None:
    if mixture.covs is None:
        return None
    apart = mixture.means - mixture.mean
    return _average(mixture, mixture.covs + apart[..., :, None] * apart[..., None, :])


def _average(mixture: Mixture, parts: Array) -> Array:
    xp = namespace(parts)
    return owned(xp.tensordot(xp.asarray(mixture.weights), parts, axes=1))
