"""The evidence of a Hilbert-space model, from sums over rows that are taken once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr.bases import Hilbert
from gpattr.bases.spectral import log_spectral_density
from gpattr.estimators.evidence.marginal_likelihood import NOISE
from gpattr.estimators.evidence.squared_exponentials import summands
from gpattr.estimators.evidence.weights import fit_weights
from gpattr.estimators.sums import Sums
from gpattr.kernels import Kernel

NEGLIGIBLE = (
    -80.0
)  # below e^−80 of the largest, a prior variance is as good as none, and keeps divisions in range


def prior_variances(kernel: Kernel, parts: list[Hilbert]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the prior variances S(ω)/Πᵢ Lᵢ of the weights, (p,).

    Their relative derivatives by log ℓ come with them, term by term."""
    values, slopes = [], []
    for leaf, basis in zip(summands(kernel), parts, strict=True):
        value, slope = log_spectral_density(leaf.kernel, basis.frequencies)  # pyright: ignore[reportArgumentType]
        values.append(value - np.log(basis.half_width).sum() + np.log(leaf.factor))
        slopes.append(slope)
    logs = np.concatenate(values)
    return np.exp(np.maximum(logs, logs.max() + NEGLIGIBLE)), slopes


@dataclass(frozen=True)
class HilbertEvidence:
    """log p(y) as a function of kernel and noise, for the sums over rows of a basis of these parts."""

    sums: Sums
    parts: list[Hilbert]
    noise: float | None
    free_mean: bool

    def __call__(self, kernel: Kernel, noise: float | None) -> tuple[float, dict[str, Any]]:
        """Return log p(y) and its derivatives by log θ, including the noise if it is free."""
        level = self.noise if noise is None else noise
        assert level is not None
        variances, slopes = prior_variances(kernel, self.parts)
        fit = fit_weights(self.sums, _like(variances, self.sums), level, free_mean=self.free_mean)
        by_variance, by_noise = fit.gradient(fit.inverse())
        by_variance = to_numpy(by_variance)
        gradient: dict[str, Any] = {}
        at = 0
        for leaf, slope in zip(summands(kernel), slopes, strict=True):
            here = by_variance[at : at + len(slope)]
            at += len(slope)
            for name in (f"{leaf.prefix}variance", *leaf.scales):
                gradient[name] = gradient.get(name, 0.0) + float(here.sum())
            by_lengthscale = product(here, slope)
            scalar = np.ndim(leaf.kernel.lengthscale) == 0  # pyright: ignore[reportAttributeAccessIssue]
            gradient[f"{leaf.prefix}lengthscale"] = (
                float(by_lengthscale.sum()) if scalar else by_lengthscale
            )
        if noise is not None:
            gradient[NOISE] = by_noise
        return fit.log_marginal_likelihood, gradient


def _like(variances: np.ndarray, sums: Sums) -> Array:
    return namespace(sums.ones).asarray(variances)
