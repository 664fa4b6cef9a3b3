"""The evidence of a Hilbert-space model, from sums over rows that are taken once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr.bases import Hilbert
from gpattr.bases.spectral import log_spectral_density
from gpattr.estimators.evidence.marginal_likelihood import NOISE
from gpattr.estimators.evidence.squared_exponentials import Leaf, summands
from gpattr.estimators.evidence.weights import fit_weights
from gpattr.estimators.sums import Sums
from gpattr.kernels import Kernel, Radial

# Prior variances below e^−80 of the largest are negligible; this floor keeps divisions in range.
NEGLIGIBLE = -80.0


def radial_terms(kernel: Kernel) -> list[Leaf[Radial]]:
    """Return the terms of a kernel, all of which must be radial."""
    terms = summands(kernel)
    assert all(isinstance(leaf.kernel, Radial) for leaf in terms)
    return cast("list[Leaf[Radial]]", terms)


def prior_variances(kernel: Kernel, parts: list[Hilbert]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the prior variances S(ω)/Πᵢ Lᵢ of the weights, (p,).

    Their relative derivatives by log ℓ come with them, term by term.
    """
    values, slopes = [], []
    for leaf, basis in zip(radial_terms(kernel), parts, strict=True):
        value, slope = log_spectral_density(leaf.kernel, basis.frequencies)
        values.append(value - np.log(basis.half_width).sum() + np.log(leaf.factor))
        slopes.append(slope)
    logs = np.concatenate(values)
    return np.exp(np.maximum(logs, logs.max() + NEGLIGIBLE)), slopes


@dataclass(frozen=True)
class HilbertEvidence:
    """log p(y) as a function of kernel and noise, from sums over rows of a basis of parts."""

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
        for leaf, slope in zip(radial_terms(kernel), slopes, strict=True):
            here = by_variance[at : at + len(slope)]
            at += len(slope)
            for name in (f"{leaf.prefix}variance", *leaf.scales):
                gradient[name] = gradient.get(name, 0.0) + float(here.sum())
            by_lengthscale = product(here, slope)
            scalar = np.ndim(leaf.kernel.lengthscale) == 0
            gradient[f"{leaf.prefix}lengthscale"] = (
                float(by_lengthscale.sum()) if scalar else by_lengthscale
            )
        if noise is not None:
            gradient[NOISE] = by_noise
        return fit.log_marginal_likelihood, gradient


def _like(variances: np.ndarray, sums: Sums) -> Array:
    return namespace(sums.ones).asarray(variances)
