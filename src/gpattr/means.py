"""Prior means of Gaussian processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpattr._core.arguments import Checked, some_rows
from gpattr._core.array import Array, is_tensor, namespace, product, to_numpy
from gpattr._core.frozen import Frozen
from gpattr._core.validation import as_vector, check_count, numbers, read_only, returned, unlabelled
from gpattr.bases import Monomials
from gpattr.exceptions import InvalidInputError

__all__ = ["Constant", "Expansion", "Function", "Linear", "Mean", "Polynomial", "Zero"]


class Mean(Checked, Frozen, ABC):
    """A prior mean m(x): values and gradients.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.means import Constant, Mean
    >>> isinstance(Constant(1.0), Mean), Constant(1.0).gradient(np.ones((1, 2)))
    (True, array([[0., 0.]]))
    """

    checks: ClassVar[Any] = {"X": some_rows, "d": check_count}

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
    """m(x) = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.means import Zero
    >>> Zero()(np.ones((2, 3)))
    array([0., 0.])
    """

    def __call__(self, X: Array) -> Array:
        return namespace(X).zeros(X.shape[0])

    def gradient(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)


@dataclass(frozen=True)
class Constant(Mean):
    """m(x) = value.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.means import Constant
    >>> Constant(3.0)(np.zeros((2, 1)))
    array([3., 3.])
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _one_number("value", self.value))

    def __call__(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.value)

    def gradient(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)


class Expansion(Mean):
    """A mean that is linear in its coefficients, m(x) = Σⱼ βⱼ φⱼ(x), over monomials φⱼ.

    The coefficients are known, or uncertain with prior N(β, ``covariance``), or with a flat prior,
    ``covariance="flat"`` (universal kriging). Their uncertainty enters predictions and
    attributions.

    Examples
    --------
    >>> from gpattr.means import Expansion, Linear
    >>> mean = Linear([1.0, 2.0], covariance="flat")
    >>> isinstance(mean, Expansion), mean.beta
    (True, array([0., 1., 2.]))
    """

    covariance: Array | str | None

    @property
    @abstractmethod
    def beta(self) -> Array:
        """The coefficients, or their prior mean, (p,)."""

    @property
    @abstractmethod
    def basis(self) -> Monomials:
        """The functions φⱼ."""

    @abstractmethod
    def with_beta(self, beta: Array) -> Mean:
        """Return the mean with these coefficients, known."""

    def centred(self, X: Array) -> Expansion:
        """Return the same prior over functions with a basis that is well conditioned on rows X."""
        return self

    def precision(self) -> Array:
        """Return the inverse prior covariance of the coefficients, (p, p); zero if flat."""
        p = len(self.beta)
        return (
            np.zeros((p, p))
            if isinstance(self.covariance, str)
            else np.linalg.inv(np.asarray(self.covariance))
        )

    def __call__(self, X: Array) -> Array:
        return product(self.basis(X), namespace(X).asarray(self.beta))

    def gradient(self, X: Array) -> Array:
        return product(self.basis.gradient(X), namespace(X).asarray(self.beta))


@dataclass(frozen=True, eq=False)
class Linear(Expansion):
    """m(x) = intercept + Σᵢ coefficientᵢ (xᵢ − originᵢ), origin 0 unless it is given.

    ``covariance`` (d + 1, d + 1) belongs to intercept and coefficients, in this order, where they
    are uncertain; ``"flat"`` if nothing is known about them; None if they are known. A posterior
    with a flat prior puts the origin in the middle of its data, where intercept and slope can be
    distinguished however far away the data lie.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.means import Linear
    >>> Linear([1.0, 2.0], intercept=0.5)(np.ones((1, 2)))
    array([3.5])
    """

    coefficients: Array
    intercept: float = 0.0
    covariance: Array | str | None = None
    origin: Array | None = None

    def __post_init__(self) -> None:
        if self.origin is not None:
            origin = as_vector(
                "origin",
                self.origin,
                length=len(np.atleast_1d(self.coefficients)),
                unit="numbers (one per feature)",
            )
            object.__setattr__(self, "origin", read_only(to_numpy(origin)))
        object.__setattr__(
            self,
            "coefficients",
            read_only(
                to_numpy(as_vector("coefficients", unlabelled("coefficients", self.coefficients)))
            ),
        )
        object.__setattr__(self, "intercept", _one_number("intercept", self.intercept))
        object.__setattr__(
            self, "covariance", _covariance(self.covariance, len(self.coefficients) + 1)
        )

    @property
    def beta(self) -> Array:
        return np.concatenate([[self.intercept], self.coefficients])

    @property
    def basis(self) -> Monomials:
        return Monomials(np.eye(len(self.coefficients) + 1)[:, 1:], self.origin)

    def with_beta(self, beta: Array) -> Linear:
        beta = as_vector(
            "beta", beta, length=len(self.coefficients) + 1, unit="numbers (the intercept first)"
        )
        return Linear(beta[1:], float(beta[0]), origin=self.origin)

    def centred(self, X: Array) -> Linear:
        if not isinstance(self.covariance, str) or self.origin is not None:
            return self
        middle = to_numpy(X).mean(axis=0)
        return Linear(
            self.coefficients,
            self.intercept + float(self.coefficients @ middle),
            self.covariance,
            middle,
        )

    def __call__(self, X: Array) -> Array:
        return (
            product(self.basis.local(X), namespace(X).asarray(self.coefficients)) + self.intercept
        )

    def gradient(self, X: Array) -> Array:
        xp = namespace(X)
        return xp.broadcast_to(xp.asarray(self.coefficients), X.shape)

    def check_features(self, d: int) -> None:
        if len(self.coefficients) != d:
            raise InvalidInputError(
                f"coefficients: expected {d} (one per feature), got {len(self.coefficients)}"
            )


@dataclass(frozen=True, eq=False)
class Polynomial(Expansion):
    """m(x) = Σⱼ coefficientⱼ Πᵢ xᵢ^powersⱼᵢ, any polynomial.

    ``powers`` (p, d) are whole numbers, 0 or larger, such as ``PolynomialFeatures.powers_`` of
    scikit-learn. ``covariance`` (p, p) belongs to uncertain coefficients, ``"flat"`` if nothing is
    known about them, None if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.means import Polynomial
    >>> mean = Polynomial([1.0, 3.0], powers=[[2, 0], [1, 1]])  # x₁² + 3x₁x₂
    >>> mean(np.array([[2.0, 1.0]]))
    array([10.])
    """

    coefficients: Array
    powers: Array
    covariance: Array | str | None = None

    def __post_init__(self) -> None:
        powers = Monomials(self.powers).powers
        coefficients = as_vector(
            "coefficients",
            unlabelled("coefficients", self.coefficients),
            length=len(powers),
            unit="coefficients (one per row of powers)",
        )
        object.__setattr__(self, "powers", powers)
        object.__setattr__(self, "coefficients", read_only(to_numpy(coefficients)))
        object.__setattr__(self, "covariance", _covariance(self.covariance, len(powers)))

    @property
    def beta(self) -> Array:
        return self.coefficients

    @property
    def basis(self) -> Monomials:
        return Monomials(self.powers)

    def with_beta(self, beta: Array) -> Polynomial:
        return Polynomial(
            as_vector("beta", beta, length=len(self.powers), unit="coefficients"), self.powers
        )

    def check_features(self, d: int) -> None:
        if self.powers.shape[1] != d:
            raise InvalidInputError(
                f"powers: expected {d} columns (one per feature), got {self.powers.shape[1]}"
            )


@dataclass(frozen=True)
class Function(Mean):
    """m(x) = value(x), any differentiable function, given with its gradient.

    ``function`` maps rows (n, d) to values (n,), ``derivative`` maps rows (n, d) to gradients (n,
    d).

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.means import Function
    >>> mean = Function(lambda X: np.sin(X[:, 0]), lambda X: np.cos(X))
    >>> mean.gradient(np.zeros((1, 1)))
    array([[1.]])
    """

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]

    def __post_init__(self) -> None:
        for name in ("function", "derivative"):
            if not callable(getattr(self, name)):
                raise InvalidInputError(
                    f"{name}: expected a callable, got {type(getattr(self, name)).__name__}"
                )

    def __call__(self, X: Array) -> Array:
        return _in_library_of(X, returned("function", self.function(X), (X.shape[0],)))

    def gradient(self, X: Array) -> Array:
        return _in_library_of(X, returned("derivative", self.derivative(X), tuple(X.shape)))


def _in_library_of(X: Array, result: Array) -> Array:
    """Return a function's result as X's kind: a network makes tensors of NumPy's rows too."""
    return result if is_tensor(X) else to_numpy(result)


def _one_number(name: str, value: float) -> float:
    array = numbers(name, value)
    if array.ndim or not np.isfinite(array):
        raise InvalidInputError(
            f"{name}: expected one finite number, got {value if array.ndim == 0 else array.shape}"
        )
    return float(array)


def _covariance(value: Any, p: int) -> Array | str | None:
    if value is None or (isinstance(value, str) and value == "flat"):
        return value
    array = to_numpy(unlabelled("covariance", value)) if not isinstance(value, str) else None
    if array is None or array.shape != (p, p):
        got = repr(value) if array is None else f"an array of shape {array.shape}"
        raise InvalidInputError(
            f"covariance: expected an array of shape {(p, p)}, 'flat' or None, got {got}"
        )
    symmetric = np.isfinite(array).all() and np.allclose(array, array.T, rtol=1e-10, atol=0.0)
    if not symmetric or np.linalg.eigvalsh(array)[0] <= 0:
        raise InvalidInputError("covariance: expected a symmetric positive definite matrix")
    return read_only(array)
