"""The protocols of quantities: numbers at every row that are properties of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import Checked, an_array, instance

MOMENTS, MEAN, LOG_MEAN = "moments", "mean", "log mean"


class Quantity(Checked, ABC):
    """A number q(x) at every row, such as the standard deviation of a prediction.

    It is a property of the model, not of the unknown function: it is known, and its attributions
    are numbers without uncertainty.

    Examples
    --------
    >>> from gpattr.quantities import Quantity, StandardDeviation
    >>> isinstance(StandardDeviation(), Quantity), StandardDeviation().words("predicted price")
    (True, 'standard deviation of the predicted price')
    """

    checks: ClassVar[Any] = {"what": instance(str, "text")}

    @abstractmethod
    def words(self, what: str) -> str:
        """Return the quantity's name, for a model that predicts ``what``: "predicted price"."""


class MomentQuantity(Quantity):
    """A function q(μ, σ) of the mean and the standard deviation of a prediction.

    ``over_models`` names its value for a mixture of models: q of the mixture's own mean and
    standard deviation, ``"moments"``; the ``"mean"`` of the models' values, for an expectation; or
    the logarithm of the mean of their exponentials, ``"log mean"``.

    ``of_mean`` says that it depends on the mean, and not on the standard deviation alone;
    ``separable`` says that q(μ, σ) = a(μ) + b(σ), so that both have Shapley values of their own.

    Examples
    --------
    >>> from gpattr.quantities import MomentQuantity, UpperConfidenceBound
    >>> bound = UpperConfidenceBound(2.0)
    >>> isinstance(bound, MomentQuantity), bound.over_models, bound.separable
    (True, 'moments', True)
    """

    checks: ClassVar[Any] = Quantity.checks | {"mean": an_array, "std": an_array}
    over_models: ClassVar[str] = MOMENTS
    of_mean: ClassVar[bool] = True
    separable: ClassVar[bool] = False

    @abstractmethod
    def value(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """Return q at means and standard deviations, (n,) each, which may be 0."""

    @abstractmethod
    def slopes(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ∂q/∂μ and ∂q/∂σ², (n,) each, where σ > 0."""
