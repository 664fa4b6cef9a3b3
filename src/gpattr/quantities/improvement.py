"""Improvement over the best value so far: expected, its logarithm, and its probability.

With s = 1, or −1 where less is better, and u = s(μ − best)/σ:

    EI = σ Φ(u) γ(u),      PI = Φ(u),      γ = φ(u)/Φ(u) + u
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from gpattr._core.readable_numbers import readable
from gpattr._core.validation import check_flag, finite_scalar
from gpattr.quantities.base import LOG_MEAN, MEAN, MomentQuantity
from gpattr.special.improvement import hazard, log_expected_improvement, mean_improvement

ROOT_2_PI = 2.5066282746310002


@dataclass(frozen=True)
class _Improvement(MomentQuantity):
    """The gain over ``best``, in the units of the target; with ``maximize=False`` the loss."""

    over_models: ClassVar[str] = MEAN
    name: ClassVar[str]

    best: float
    maximize: bool = True

    def __post_init__(self) -> None:
        finite_scalar("best", self.best)
        check_flag("maximize", self.maximize)

    def words(self, what: str) -> str:
        side = "" if self.maximize else "below "
        return f"{self.name} of the {what} over {side}{readable(float(self.best))}"

    @property
    def sign(self) -> float:
        """1, or −1 where less is better."""
        return 1.0 if self.maximize else -1.0

    def gain(self, mean: np.ndarray) -> np.ndarray:
        """Return s(μ − best), the gain if the mean were true."""
        return self.sign * (mean - self.best)

    def _standard(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return u; ±∞ where σ = 0, and 0 where the gain is 0 as well."""
        gain = self.gain(mean)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return np.where((std > 0) | (gain != 0), gain / std, 0.0)


class ExpectedImprovement(_Improvement):
    """q = E[max(f − ``best``, 0)]; with ``maximize=False`` E[max(best − f, 0)].

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X, prior = np.array([[0.0], [1.0]]), gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> quantity = gpattr.quantities.ExpectedImprovement(best=0.5)
    >>> ex = gpattr.Explainer(posterior, quantity=quantity)([[9.0]])  # far from the data
    >>> ex.predictions.round(2)
    array([0.2])
    """

    name = "expected improvement"

    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        u = self._standard(mean, std)
        finite = np.where(np.isfinite(u), u, 0.0)
        spread = std * ndtr(finite) * mean_improvement(finite)
        return np.where(np.isfinite(u), spread, np.maximum(self.gain(mean), 0.0))

    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u = self._standard(mean, std)
        return self.sign * ndtr(u), 0.5 * _density(u) / std


class LogExpectedImprovement(_Improvement):
    """q = log E[max(f − ``best``, 0)], also where the expectation itself underflows.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X, prior = np.array([[0.0], [1.0]]), gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> quantity = gpattr.quantities.LogExpectedImprovement(best=100.0)
    >>> gpattr.Explainer(posterior, quantity=quantity)([[0.5]]).predictions.shape
    (1,)
    """

    over_models = LOG_MEAN
    name = "log expected improvement"

    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        u, gain = self._standard(mean, std), self.gain(mean)
        with np.errstate(divide="ignore"):
            spread = np.log(std) + log_expected_improvement(np.where(np.isfinite(u), u, 0.0))
            return np.where(np.isfinite(u), spread, np.log(np.maximum(gain, 0.0)))

    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u = self._standard(mean, std)
        rate = 1.0 / (std * mean_improvement(u))
        return self.sign * rate, 0.5 * hazard(u) * rate / std


class ProbabilityOfImprovement(_Improvement):
    """q = P(f > ``best``); with ``maximize=False`` P(f < best).

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X, prior = np.array([[0.0], [1.0]]), gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> quantity = gpattr.quantities.ProbabilityOfImprovement(best=0.0)
    >>> ex = gpattr.Explainer(posterior, quantity=quantity)([[9.0]])  # far from the data
    >>> ex.predictions.round(2)
    array([0.5])
    """

    name = "probability of improvement"

    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return ndtr(self._standard(mean, std))

    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        u = self._standard(mean, std)
        density = _density(u)
        return self.sign * density / std, -0.5 * np.where(density > 0, u, 0.0) * density / std**2


def _density(u: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.exp(-0.5 * u * u) / ROOT_2_PI
