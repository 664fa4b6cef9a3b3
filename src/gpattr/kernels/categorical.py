"""The kernel of a category's labels, given as one-hot columns: Categorical."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace, product
from gpattr._core.validation import positive_scalar
from gpattr.kernels.base import Kernel
from gpattr.kernels.polynomial import Polynomial


@dataclass(frozen=True, eq=False)
class Categorical(Kernel):
    """k(e, e') = ρ + (1 − ρ) e·e' with ρ = exp(−1/ℓ²), for one-hot columns e of one category.

    The values of a function at two different labels have the correlation ρ, whichever labels they
    are, as by a squared exponential of the columns with the length-scale ℓ. But functions are
    linear between labels: half-way between two of them a function is the mean of both, where the
    squared exponential with a short length-scale would know nothing. Multiply it with the kernel of
    the other columns, and give each its columns with `Select`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Categorical
    >>> labels = np.eye(3)
    >>> Categorical(1.0)(labels[:1], np.vstack([labels, [[0.5, 0.5, 0.0]]])).round(3)
    array([[1.   , 0.368, 0.368, 0.684]])
    """

    lengthscale: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("lengthscale",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive_scalar("lengthscale", self.lengthscale))

    @property
    def correlation(self) -> float:
        """The correlation ρ of the values at two labels."""
        return math.exp(-1.0 / self.lengthscale**2)

    @property
    def polynomial_degree(self) -> int:
        return 1

    def polynomial(self) -> Polynomial:
        """Return the same kernel as a polynomial, which formulas are entered for."""
        # Neither of the two may be 0, whatever rounding says.
        apart = max(-math.expm1(-1.0 / self.lengthscale**2), 1e-300)
        return Polynomial(apart, degree=1, offset=max(self.correlation, 1e-300))

    def __call__(self, X: Array, Z: Array) -> Array:
        apart = -math.expm1(-1.0 / self.lengthscale**2)
        return apart * product(X, Z.T) + self.correlation

    def diagonal(self, X: Array) -> Array:
        apart = -math.expm1(-1.0 / self.lengthscale**2)
        return apart * (X * X).sum(axis=1) + self.correlation

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass


def in_polynomials(kernel: Kernel) -> Kernel:
    """Return the kernel with a polynomial for each `Categorical` in it, which is the same."""
    if not any(isinstance(leaf, Categorical) for leaf in kernel.leaves()):
        return kernel
    if isinstance(kernel, Categorical):
        return kernel.polynomial()
    return kernel.map_parts(in_polynomials)
