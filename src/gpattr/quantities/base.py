"""The quantity protocol: a number at every row that is a property of the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from gpattr._core.arguments import Checked, instance


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
        """Return its name, for a model that predicts ``what``: "predicted price"."""
