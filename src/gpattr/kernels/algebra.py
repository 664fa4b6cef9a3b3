"""Composite kernels: Scale, Sum, Product, Select."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, index, mul
from typing import Any, ClassVar, Self

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive, positive_scalar
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.base import Kernel, Kink


@dataclass(frozen=True, eq=False)
class Scale(Kernel):
    """k(x, x') = σ² k₁(x, x').

    Examples
    --------
    >>> from gpattr.kernels import Matern52
    >>> 3.0 * Matern52()
    Scale(kernel=Matern52(lengthscale=1.0, variance=1.0), variance=3.0)
    """

    kernel: Kernel
    variance: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("variance",)
    pointwise: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_kernel("kernel", self.kernel)
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    @property
    def stationary(self) -> bool:
        return self.kernel.stationary

    @property
    def polynomial_degree(self) -> int | None:
        return self.kernel.polynomial_degree

    @property
    def smooth(self) -> bool:
        return self.kernel.smooth

    def kinks(self) -> tuple[Kink, ...]:
        return self.kernel.kinks()

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.variance * self.kernel(X, Z)

    def diagonal(self, X: Array) -> Array:
        return self.variance * self.kernel.diagonal(X)

    def n_lengthscales(self, step: Array) -> Array:
        return self.kernel.n_lengthscales(step)

    def check_features(self, d: int) -> None:
        self.kernel.check_features(d)


@dataclass(frozen=True, eq=False, init=False)
class _Several(Kernel):
    """The base of sums and products: parts of the same kind are flattened."""

    kernels: tuple[Kernel, ...]

    pointwise: ClassVar[bool] = True

    def __init__(self, *kernels: Kernel) -> None:
        for kernel in kernels:
            require_kernel("kernels", kernel)
        if not kernels:
            raise InvalidInputError(
                f"kernels: expected at least one in a {type(self).__name__}, got none"
            )
        flat = (
            part
            for kernel in kernels
            for part in (kernel.kernels if type(kernel) is type(self) else (kernel,))
        )
        object.__setattr__(self, "kernels", tuple(flat))

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        return cls(*fields["kernels"])

    @property
    def stationary(self) -> bool:
        return all(kernel.stationary for kernel in self.kernels)

    @property
    def smooth(self) -> bool:
        return all(kernel.smooth for kernel in self.kernels)

    def kinks(self) -> tuple[Kink, ...]:
        return tuple(kink for kernel in self.kernels for kink in kernel.kinks())

    def check_features(self, d: int) -> None:
        for kernel in self.kernels:
            kernel.check_features(d)


@dataclass(frozen=True, eq=False, init=False)
class Sum(_Several):
    """k(x, x') = k₁(x, x') + k₂(x, x') + …: independent functions added.

    Nested sums are flattened.

    Examples
    --------
    >>> from gpattr.kernels import Constant, SquaredExponential
    >>> SquaredExponential() + Constant(10.0)
    SquaredExponential(lengthscale=1.0, variance=1.0) + Constant(variance=10.0)
    """

    @property
    def polynomial_degree(self) -> int | None:
        degrees = degrees_of(self.kernels)
        return None if degrees is None else max(degrees)

    def __call__(self, X: Array, Z: Array) -> Array:
        return reduce(add, (kernel(X, Z) for kernel in self.kernels))

    def diagonal(self, X: Array) -> Array:
        return reduce(add, (kernel.diagonal(X) for kernel in self.kernels))

    def n_lengthscales(self, step: Array) -> Array:
        xp = namespace(step)
        return reduce(xp.maximum, (kernel.n_lengthscales(step) for kernel in self.kernels))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@dataclass(frozen=True, eq=False, init=False)
class Product(_Several):
    """k(x, x') = k₁(x, x') k₂(x, x') …; nested products are flattened.

    Examples
    --------
    >>> from gpattr.kernels import Linear, Periodic
    >>> Linear() * Periodic(period=7.0)
    Linear(variance=1.0) * Periodic(lengthscale=1.0, period=7.0, variance=1.0)
    """

    @property
    def polynomial_degree(self) -> int | None:
        degrees = degrees_of(self.kernels)
        return None if degrees is None else sum(degrees)

    def __call__(self, X: Array, Z: Array) -> Array:
        return reduce(mul, (kernel(X, Z) for kernel in self.kernels))

    def diagonal(self, X: Array) -> Array:
        return reduce(mul, (kernel.diagonal(X) for kernel in self.kernels))

    def n_lengthscales(self, step: Array) -> Array:
        xp = namespace(step)
        return xp.sqrt(sum(kernel.n_lengthscales(step) ** 2 for kernel in self.kernels))

    def __repr__(self) -> str:
        return " * ".join(
            f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel) for kernel in self.kernels
        )


def separable(kernel: Callable[..., Kernel], lengthscale: Any, **params: Any) -> Product:
    """Return the product Πᵢ kᵢ(xᵢ, xᵢ') of one-dimensional kernels with ``lengthscale`` ℓᵢ (d,).

    Only the squared exponential is the same as its radial form; ``separable(Matern52, [1.0, 2.0])``
    is a kernel of its own. Every factor has the other parameters.

    Examples
    --------
    >>> from gpattr.kernels import Matern52, separable
    >>> len(separable(Matern52, [1.0, 2.0]).parts())
    2
    """
    scales = np.asarray(positive("lengthscale", lengthscale))
    if scales.ndim == 0:
        raise InvalidInputError(
            f"lengthscale: expected one for each feature, got one number, {float(scales)}"
        )
    try:
        factors = [kernel(lengthscale=float(scale), **params) for scale in scales]
    except TypeError as error:
        raise InvalidInputError(
            f"kernel: expected a kernel class with a length-scale, such as Matern52: {error}"
        ) from None
    return Product(*(Select(factor, [i]) for i, factor in enumerate(factors)))


@dataclass(frozen=True, eq=False)
class Select(Kernel):
    """k(x, x') = k₁(x[features], x'[features]): a kernel on some columns, given by position.

    Examples
    --------
    >>> from gpattr.kernels import Select, SquaredExponential
    >>> kernel = Select(SquaredExponential(), [0]) + Select(SquaredExponential(), [1])
    >>> len(kernel.parts())  # f(x) = f₁(x₁) + f₂(x₂)
    2
    """

    kernel: Kernel
    features: tuple[int, ...]

    def __init__(self, kernel: Kernel, features: Sequence[int]) -> None:
        require_kernel("kernel", kernel)
        try:
            if any(isinstance(i, (bool, np.bool_)) for i in features):  # a mask is not positions
                raise TypeError
            chosen = tuple(index(i) for i in features)
        except TypeError:
            raise InvalidInputError(
                f"features: expected column positions (integers), got {features!r}"
            ) from None
        if not chosen or min(chosen) < 0 or len(set(chosen)) != len(chosen):
            raise InvalidInputError(
                "features: expected different column positions, 0 or larger, at least one; got"
                f" {list(chosen)}"
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "features", chosen)

    @property
    def stationary(self) -> bool:
        return self.kernel.stationary

    @property
    def polynomial_degree(self) -> int | None:
        return self.kernel.polynomial_degree

    @property
    def smooth(self) -> bool:
        return self.kernel.smooth

    def kinks(self) -> tuple[Kink, ...]:
        inner = self.kernel.kinks()
        return tuple(
            kink._replace(
                features=(
                    self.features
                    if kink.features is None
                    else tuple(self.features[i] for i in kink.features)
                )
            )
            for kink in inner
        )

    def __call__(self, X: Array, Z: Array) -> Array:
        columns = self.columns(X)
        return self.kernel(columns, columns if X is Z else self.columns(Z))

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(self.columns(X))

    def n_lengthscales(self, step: Array) -> Array:
        return self.kernel.n_lengthscales(self.columns(step))

    def columns(self, x: Array) -> Array:
        """Return the columns of x, (..., d), that the kernel sees, (..., len(features))."""
        return x[..., list(self.features)]

    def check_features(self, d: int) -> None:
        if max(self.features) >= d:
            raise InvalidInputError(
                f"features: column {max(self.features)} is selected, but the inputs have {d}"
                " columns"
            )
        self.kernel.check_features(len(self.features))

    def check_derivatives(self, X: Array) -> None:
        self.kernel.check_derivatives(self.columns(X))


def degrees_of(kernels: Sequence[Kernel]) -> list[int] | None:
    """Return the polynomial degrees of kernels; None if one is not a polynomial."""
    degrees = [kernel.polynomial_degree for kernel in kernels]
    found = [degree for degree in degrees if degree is not None]
    return found if len(found) == len(degrees) else None


def require_kernel(name: str, kernel: object) -> None:
    """Raise `InvalidInputError` unless this is a kernel."""
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"{name}: expected a gpattr kernel, got {type(kernel).__name__}")
