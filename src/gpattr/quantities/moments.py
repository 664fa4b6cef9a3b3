"""Standard deviation and variance of a prediction, and its confidence bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpattr._core.readable_numbers import readable
from gpattr._core.validation import finite_scalar
from gpattr.exceptions import InvalidInputError
from gpattr.quantities.base import MomentQuantity


@dataclass(frozen=True)
class StandardDeviation(MomentQuantity):
    """q = σ, the standard deviation of the latent function, in the units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.array([[0.0], [1.0]])
    >>> prior = gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> explainer = gpattr.Explainer(posterior, quantity=gpattr.quantities.StandardDeviation())
    >>> explainer([[9.0]]).predictions.round(2)  # far from the data
    array([1.])
    """

    of_mean = False

    def words(self, what: str) -> str:
        return f"standard deviation of the {what}"

    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return std + 0.0

    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(std), 0.5 / std


@dataclass(frozen=True)
class Variance(MomentQuantity):
    """q = σ², the variance of the latent function, in squared units of the target.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.array([[0.0], [1.0]])
    >>> prior = gpattr.kernels.SquaredExponential(variance=4.0)
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> explainer = gpattr.Explainer(posterior, quantity=gpattr.quantities.Variance())
    >>> explainer([[9.0]]).predictions.round(2)  # far from the data
    array([4.])
    """

    of_mean = False

    def words(self, what: str) -> str:
        return f"variance of the {what}"

    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return std**2

    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(std), np.ones_like(std)


LARGEST = 1e100  # so that nothing overflows


@dataclass(frozen=True)
class _ConfidenceBound(MomentQuantity):
    """q = μ ± κσ, for ``kappa`` κ of 0 or more."""

    separable: ClassVar[bool] = True
    side: ClassVar[str]
    sign: ClassVar[float]

    kappa: float

    def __post_init__(self) -> None:
        if not 0 <= finite_scalar("kappa", self.kappa) <= LARGEST:
            raise InvalidInputError(
                f"kappa: expected a number of standard deviations, 0 to {LARGEST:.0e}, got"
                f" {self.kappa}"
            )

    def words(self, what: str) -> str:
        return f"{self.side} confidence bound (κ = {readable(float(self.kappa))}) of the {what}"

    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        return mean + self.sign * self.kappa * std

    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones_like(std), 0.5 * self.sign * self.kappa / std


class UpperConfidenceBound(_ConfidenceBound):
    """q = μ + κσ, for ``kappa`` κ of 0 or more: to be maximised.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X, prior = np.array([[0.0], [1.0]]), gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> quantity = gpattr.quantities.UpperConfidenceBound(kappa=2.0)
    >>> ex = gpattr.Explainer(posterior, quantity=quantity)([[9.0]])  # far from the data
    >>> ex.predictions.round(2), sorted(ex.parts)
    (array([2.]), ['exploit', 'explore'])
    """

    side, sign = "upper", 1.0


class LowerConfidenceBound(_ConfidenceBound):
    """q = μ − κσ, for ``kappa`` κ of 0 or more: to be minimised.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X, prior = np.array([[0.0], [1.0]]), gpattr.kernels.SquaredExponential()
    >>> posterior = gpattr.posteriors.ExactPosterior(prior, X, X[:, 0], noise=0.01)
    >>> quantity = gpattr.quantities.LowerConfidenceBound(kappa=2.0)
    >>> ex = gpattr.Explainer(posterior, quantity=quantity)([[9.0]])  # far from the data
    >>> ex.predictions.round(2)
    array([-2.])
    """

    side, sign = "lower", -1.0
