"""Radial kernels: functions of one scaled distance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace, squared_distances
from gpattr._core.validation import check_per_feature, positive, positive_scalar
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Radial(Kernel):
    """k(x, x') = σ² g(r), r² = Σᵢ ((xᵢ − xᵢ')/ℓᵢ)².

    ``lengthscale`` ℓ is one number or one per feature (ARD), in the units of the inputs;
    ``variance`` σ² is in the units of the squared target. A radial kernel is its profile g with
    h(r) = g'(r)/r, from which all derivatives follow.

    Examples
    --------
    >>> from gpattr.kernels import Matern52, Radial, SquaredExponential
    >>> issubclass(Matern52, Radial), SquaredExponential([1.0, 2.0]).lengthscale
    (True, array([1., 2.]))
    """

    lengthscale: float | Array = 1.0
    variance: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("lengthscale", "variance")
    one_sided: ClassVar[bool] = True  # g is analytic in r ≥ 0, though perhaps not in r²
    even: ClassVar[bool] = False  # g is analytic in r²

    @property
    def stationary(self) -> bool:
        return True

    @property
    def kink_floor(self) -> float:
        """The radius within which odd powers of r are too small to affect an integral."""
        return 0.0

    @property
    def digits(self) -> float:
        """The accuracy required of an ellipse of analyticity that excludes singularities of g."""
        return 14.0

    @property
    def core(self) -> float:
        """g is singular at r² = −core."""
        return 0.0

    @property
    def steep(self) -> bool:
        """Whether g may fall as fast as a squared exponential."""
        return self.core > 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale))
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    @abstractmethod
    def profile(self, r2: Array) -> Array:
        """Return g at squared distances r²."""

    @abstractmethod
    def slope(self, r2: Array) -> Array:
        """Return h(r) = g'(r)/r at squared distances r²."""

    @abstractmethod
    def curvature(self, r2: Array) -> Array:
        """Return h'(r)/r at squared distances r²: the factor of uᵢuⱼ in second derivatives."""

    def profiles(self, r2: Array, second: bool) -> tuple[Array, Array, Array | None]:
        """Return g, h and, with ``second``, h'/r at squared distances r²."""
        return self.profile(r2), self.slope(r2), self.curvature(r2) if second else None

    def __call__(self, X: Array, Z: Array) -> Array:
        r2 = squared_distances(X, Z, self.lengthscale, smooth=self.even)
        return self.variance * self.profile(r2)

    def diagonal(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.variance)

    def n_lengthscales(self, step: Array) -> Array:
        xp = namespace(step)
        whitened = step / xp.asarray(self.lengthscale)
        return xp.sqrt((whitened * whitened).sum(axis=-1))

    def check_features(self, d: int) -> None:
        check_per_feature("lengthscale", self.lengthscale, d)
