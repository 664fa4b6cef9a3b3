"""How unsure a prediction is: its standard deviation and its variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr.quantities.moments import MomentQuantity


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
