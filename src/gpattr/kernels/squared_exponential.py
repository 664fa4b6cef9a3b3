"""The squared-exponential kernel, isotropic or with one length-scale per feature (ARD)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpattr._array import Array, namespace, squared_distances
from gpattr._validation import positive, positive_scalar
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class SquaredExponential(Kernel):
    """k(x, x') = σ² exp(−½ Σᵢ ((xᵢ − xᵢ')/ℓᵢ)²).

    ``lengthscale`` ℓ is one number or one per feature, in the units of the inputs; ``variance`` σ² is in the units of the squared
    target. Other libraries call this kernel RBF.
    """

    lengthscale: float | Array = 1.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale))
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    def __call__(self, X: Array, Z: Array) -> Array:
        xp = namespace(X, Z)
        return self.variance * xp.exp(-0.5 * squared_distances(X, Z, self.lengthscale))

    def diagonal(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.variance)

    def span(self, step: Array) -> Array:
        xp = namespace(step)
        whitened = step / xp.asarray(self.lengthscale)
        return xp.sqrt((whitened * whitened).sum(axis=1))

    def check_features(self, d: int) -> None:
        if np.ndim(self.lengthscale) == 1 and len(np.asarray(self.lengthscale)) != d:
            raise InvalidInputError(
                f"lengthscale: expected one number or {d} (one per feature), got {len(np.asarray(self.lengthscale))}"
            )
