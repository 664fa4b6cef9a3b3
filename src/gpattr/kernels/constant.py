"""The constant kernel: an unknown offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive_scalar
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Constant(Kernel):
    """k(x, x') = σ²: a constant function of unknown value, which has no attributions.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Constant
    >>> Constant(2.0)(np.zeros((1, 1)), np.ones((2, 1)))
    array([[2., 2.]])
    """

    variance: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("variance",)

    @property
    def stationary(self) -> bool:
        return True

    @property
    def polynomial_degree(self) -> int:
        return 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    def __call__(self, X: Array, Z: Array) -> Array:
        return namespace(X, Z).full((X.shape[0], Z.shape[0]), self.variance)

    def diagonal(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.variance)

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass
