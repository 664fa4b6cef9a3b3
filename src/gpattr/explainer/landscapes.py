"""Landscapes: a quantity of a model as a function of rows, with its gradient.

For a mixture of models k with weights w, means μₖ and variances σₖ², a quantity of moments has

    μ = Σ wₖμₖ,    σ² = Σ wₖ(σₖ² + μₖ²) − μ²
    ∇q = Σ wₖ (∂q/∂μ ∇μₖ + ∂q/∂σ² (∇σₖ² + 2(μₖ − μ)∇μₖ))

and the gradient of an expectation over f is the mean of the models' gradients. The part by the
mean, ∂q/∂μ ∇μ, and the part by the variance are kept apart: "exploit" and "explore".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from gpattr._core.array import EPS, Array, to_numpy
from gpattr.encoders import Encoder
from gpattr.exceptions import UnsupportedModelError
from gpattr.posteriors import Posterior
from gpattr.quantities import Acquisition, MomentQuantity
from gpattr.quantities.base import LOG_MEAN, MOMENTS


class Slopes(NamedTuple):
    """The gradient in parts, (parts, n, d), and the error of its products with steps.

    The error of a product with a step is ``value_error`` (n,), plus the error of each part, its
    ``relative_error`` (parts, n) times the product.
    """

    gradient: np.ndarray
    value_error: np.ndarray
    relative_error: np.ndarray


@dataclass(frozen=True, eq=False)
class MomentLandscape:
    """A ``quantity`` of the mean and the standard deviation of a ``posterior``, of columns."""

    posterior: Posterior
    quantity: MomentQuantity
    parts: tuple[str, ...] = ("exploit", "explore")

    def value(self, X: Array) -> np.ndarray:
        means, stds = self.moments(X)
        return self.at(means, stds)

    def posterior_mean(self, X: Array) -> np.ndarray:
        """Return the mean of the posterior at the rows of X, (n,)."""
        return to_numpy(self.posterior.predict(X))

    def moments(self, X: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and the standard deviations of the models, (K, n) each.

        A variance within rounding of zero is zero, as it is at training rows without noise.
        """
        found = [part.predict(X, return_std=True) for _, part in self.posterior.components]
        means, stds = (np.stack([to_numpy(each[i]) for each in found]) for i in (0, 1))
        return means, np.where(stds**2 > self._noise(X), stds, 0.0)

    def _noise(self, X: Array) -> np.ndarray:
        """Return the possible rounding of the models' variances, (K, n)."""
        parts = self.posterior.components
        return np.stack([to_numpy(part.rounding_of_variance(X)) for _, part in parts])

    def at(self, means: np.ndarray, stds: np.ndarray) -> np.ndarray:
        """Return q, (n,), from the means and the standard deviations of the models, (K, n)."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            if self.quantity.over_models == MOMENTS:
                mean, var = self._total(means, stds**2)
                return self.quantity.value(mean, np.sqrt(var))
            each = np.stack([self.quantity.value(*both) for both in zip(means, stds, strict=True)])
            if self.quantity.over_models == LOG_MEAN:
                return np.asarray(logsumexp(each, axis=0, b=self._weights[:, None]))
            return self._weights @ each

    def value_error(self, X: Array) -> np.ndarray:
        means, stds = self.moments(X)
        noise = self._noise(X)
        _, by_variance = self._rates(means, np.maximum(stds**2, noise))
        return (np.abs(by_variance) * noise).sum(axis=0)

    def slopes(self, X: Array) -> Slopes:
        X = self.posterior.rows("X", X)
        found = [part.slopes(X) for _, part in self.posterior.components]
        means, variances, gradients, covs = (np.stack(each) for each in zip(*found, strict=True))
        noise = self._noise(X)
        # Below the rounding of a variance nothing is known about it.
        variances = np.maximum(variances, noise)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            return self._slopes(means, variances, gradients, covs, noise)

    def _slopes(
        self,
        means: np.ndarray,
        variances: np.ndarray,
        gradients: np.ndarray,
        covs: np.ndarray,
        noise: np.ndarray,
    ) -> Slopes:
        """Return the gradient from the moments of the models and their gradients."""
        by_mean, by_variance = self._rates(means, variances)
        between = np.zeros_like(means)
        if self.quantity.over_models == MOMENTS:
            between = 2.0 * by_variance * (means - self._weights @ means)
        gradient = np.stack(
            [
                np.einsum("kn,kni->ni", by_mean, gradients),
                np.einsum("kn,kni->ni", 2.0 * by_variance, covs)
                + np.einsum("kn,kni->ni", between, gradients),
            ]
        )
        # A slope of the variance is as wrong as the variance that it is divided by.
        relative = np.zeros((2, means.shape[1]))
        relative[1] = (noise / variances).max(axis=0)
        return Slopes(gradient, (np.abs(by_variance) * noise).sum(axis=0), relative)

    def _rates(self, means: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return wₖ ∂q/∂μ and wₖ ∂q/∂σ² of each model, (K, n) each."""
        weights = self._weights[:, None]
        if self.quantity.over_models == MOMENTS:
            mean, var = self._total(means, variances)
            by_mean, by_variance = self.quantity.slopes(mean, np.sqrt(var))
            return weights * by_mean, weights * by_variance
        stds = np.sqrt(variances)
        rates = [self.quantity.slopes(*both) for both in zip(means, stds, strict=True)]
        by_mean, by_variance = (np.stack([each[i] for each in rates]) for i in (0, 1))
        if self.quantity.over_models == LOG_MEAN:
            each = np.stack([self.quantity.value(*both) for both in zip(means, stds, strict=True)])
            weights = weights * np.exp(each - logsumexp(each, axis=0, b=weights))
        return weights * by_mean, weights * by_variance

    def _total(self, means: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of the mixture, (n,) each."""
        mean = self._weights @ means
        return mean, self._weights @ (variances + (means - mean) ** 2)

    @property
    def _weights(self) -> np.ndarray:
        return np.array([weight for weight, _ in self.posterior.components])


@dataclass(frozen=True, eq=False)
class AcquisitionLandscape:
    """An acquisition function as a function of rows, of which some may be encoded."""

    quantity: Acquisition
    encoder: Encoder | None = None
    parts: tuple[str, ...] = ("",)

    def value(self, X: Array) -> np.ndarray:
        rows = to_numpy(X)
        if self.encoder is None:
            return self.quantity.value(rows)
        try:
            codes = self.encoder.decode(rows).to_numpy(dtype=np.float64)
        except (TypeError, ValueError):
            raise UnsupportedModelError(
                f"quantity: the {self.quantity.words('')} takes numbers, and the model was trained"
                " on a table with texts or dates"
            ) from None
        return self.quantity.value(codes)

    def value_error(self, X: Array) -> np.ndarray:
        return 8.0 * self.quantity.precision * np.abs(self.value(X))

    def slopes(self, X: Array) -> Slopes:
        if self.encoder is not None:
            raise UnsupportedModelError(
                f"quantity: the {self.quantity.words('')} has no gradient between categories; use"
                ' attribution="shapley"'
            )
        gradient = self.quantity.gradient(to_numpy(X))
        coarse = np.full((1, len(gradient)), 64.0 * max(self.quantity.precision - EPS, 0.0))
        return Slopes(gradient[None], np.zeros(len(gradient)), coarse)


Landscape = MomentLandscape | AcquisitionLandscape


def landscape(posterior: Posterior, quantity: Any) -> Landscape:
    """Return a quantity of a posterior, a function of columns, as a function of rows."""
    if isinstance(quantity, Acquisition):
        return AcquisitionLandscape(quantity, posterior.encoder)
    return MomentLandscape(posterior.in_columns, quantity)
