"""Prior means: what the model expects before it sees data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpattr._array import Array, namespace, to_numpy
from gpattr._frozen import Frozen
from gpattr._validation import as_vector, numbers, read_only, unlabelled
from gpattr.exceptions import InvalidInputError


class Mean(Frozen, ABC):
    """A prior mean m(x): values and gradients."""

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """Return m at the rows of X, (n,)."""

    @abstractmethod
    def gradient(self, X: Array) -> Array:
        """Return ∂m/∂xᵢ at the rows of X, (n, d)."""

    def check_features(self, d: int) -> None:
        """Raise `InvalidInputError` if the mean cannot act on inputs with d features."""


@dataclass(frozen=True)
class Zero(Mean):
    """m(x) = 0."""

    def __call__(self, X: Array) -> Array:
        return namespace(X).zeros(X.shape[0])

    def gradient(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)


@dataclass(frozen=True)
class Constant(Mean):
    """m(x) = value."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _one_number("value", self.value))

    def __call__(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.value)

    def gradient(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)


@dataclass(frozen=True, eq=False)
class Linear(Mean):
    """m(x) = intercept + Σᵢ coefficientᵢ xᵢ."""

    coefficients: Array
    intercept: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "coefficients", read_only(to_numpy(as_vector("coefficients", unlabelled("coefficients", self.coefficients))))
        )
        object.__setattr__(self, "intercept", _one_number("intercept", self.intercept))

    def __call__(self, X: Array) -> Array:
        return X @ namespace(X).asarray(self.coefficients) + self.intercept

    def gradient(self, X: Array) -> Array:
        xp = namespace(X)
        return xp.broadcast_to(xp.asarray(self.coefficients), X.shape)

    def check_features(self, d: int) -> None:
        if len(self.coefficients) != d:
            raise InvalidInputError(f"coefficients: expected {d} (one per feature), got {len(self.coefficients)}")


@dataclass(frozen=True)
class Function(Mean):
    """m(x) = value(x), any differentiable function, given with its gradient.

    ``function`` maps rows (n, d) to values (n,), ``derivative`` maps rows (n, d) to gradients (n, d).
    """

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]

    def __post_init__(self) -> None:
        for name in ("function", "derivative"):
            if not callable(getattr(self, name)):
                raise InvalidInputError(f"{name}: expected a callable, got {type(getattr(self, name)).__name__}")

    def __call__(self, X: Array) -> Array:
        return _checked("function", self.function(X), (X.shape[0],))

    def gradient(self, X: Array) -> Array:
        return _checked("derivative", self.derivative(X), tuple(X.shape))


def _one_number(name: str, value: float) -> float:
    array = numbers(name, value)
    if array.ndim or not np.isfinite(array):
        raise InvalidInputError(f"{name}: expected one finite number, got {value if array.ndim == 0 else array.shape}")
    return float(array)


def _checked(name: str, result: Array, shape: tuple[int, ...]) -> Array:
    array = numbers(name, result)
    if tuple(array.shape) != shape:
        raise InvalidInputError(f"{name}: expected an array of shape {shape} from the prior mean, got {tuple(array.shape)}")
    if not namespace(array).isfinite(array).all():
        raise InvalidInputError(f"{name}: expected finite numbers from the prior mean, got NaN or infinity")
    return array
