"""Confidence bounds: the mean, and a number of standard deviations above or below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpattr._core.readable_numbers import readable
from gpattr._core.validation import finite_scalar
from gpattr.exceptions import InvalidInputError
from gpattr.quantities.moments import MomentQuantity

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
    """q = μ + κσ, for ``kappa`` κ of 0 or more: what to maximise.

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
    """q = μ − κσ, for ``kappa`` κ of 0 or more: what to minimise.

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
