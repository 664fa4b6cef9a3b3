"""Kernels of transformed inputs or outputs: deep kernels, input warping, varying amplitude."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpattr._core import autodiff
from gpattr._core.array import Array, namespace
from gpattr._core.validation import numbers, require_derivative, returned
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.algebra import require_kernel
from gpattr.kernels.base import Kernel, Kink


@dataclass(frozen=True, eq=False)
class Warped(Kernel):
    """k(x, x') = k₁(φ(x), φ(x')): a kernel on features φ(x), for example of a neural network.

    ``map`` takes rows (n, d) to (n, D), ``jacobian`` takes rows to ∂φⱼ/∂xᵢ, (n, D, d). A PyTorch
    module or function needs no jacobian; of a module a frozen copy in float64 is kept, so training
    it further does not change the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential, Warped
    >>> def jacobian(X):
    ...     return (1.0 / X)[:, None, :]
    >>> kernel = Warped(SquaredExponential(), np.log, jacobian)  # of one positive feature
    >>> kernel(np.array([[1.0]]), np.array([[1.0], [np.e]])).round(3)
    array([[1.   , 0.607]])
    """

    kernel: Kernel
    map: Callable[[Array], Array] = field(repr=False)
    jacobian: Callable[[Array], Array] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_kernel("kernel", self.kernel)
        _require_callables(self, "map", "jacobian")
        if self.jacobian is None:
            object.__setattr__(self, "map", autodiff.own_copy("map", self.map))

    def features(self, x: Array) -> Array:
        """Return φ(x), (..., D), for inputs (..., d)."""
        rows = x.reshape(-1, x.shape[-1])
        phi = self.map(rows) if self.jacobian is not None else autodiff.value("map", self.map, rows)
        phi = numbers("map", phi)
        if phi.ndim != 2:
            raise InvalidInputError(
                f"map: expected an array of shape ({len(rows)}, D), got {tuple(phi.shape)}"
            )
        D = phi.shape[1]
        return returned("map", phi, (len(rows), D)).reshape(*x.shape[:-1], D)

    def slopes(self, x: Array) -> Array:
        """Return ∂φⱼ/∂xᵢ, (..., D, d), for inputs (..., d)."""
        rows = x.reshape(-1, x.shape[-1])
        J = (
            self.jacobian(rows)
            if self.jacobian is not None
            else autodiff.jacobian("map", self.map, rows)
        )
        D = self.features(rows[:1]).shape[1]
        return returned("jacobian", J, (*rows.shape[:1], D, rows.shape[1])).reshape(
            *x.shape[:-1], D, rows.shape[1]
        )

    def __call__(self, X: Array, Z: Array) -> Array:
        phi = self.features(X)
        return self.kernel(phi, phi if X is Z else self.features(Z))

    def diagonal(self, X: Array) -> Array:
        return self.kernel.diagonal(self.features(X))

    @property
    def smooth(self) -> bool:
        return self.kernel.smooth

    def n_lengthscales(self, step: Array) -> Array:
        # The step alone does not determine it: quadrature adapts.
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass

    def check_derivatives(self, X: Array) -> None:
        self.kernel.check_features(self.features(X[:1]).shape[1])
        if self.jacobian is not None and not getattr(self.map, "exact", False):
            require_derivative("jacobian", "map", self.features, self.slopes, X)
        self.kernel.check_derivatives(self.features(X))


@dataclass(frozen=True, eq=False)
class Rescaled(Kernel):
    """k(x, x') = s(x) k₁(x, x') s(x'): a function whose amplitude varies over the inputs.

    ``factor`` s takes rows (n, d) to (n,), ``gradient`` to ∂s/∂xᵢ, (n, d); a PyTorch function needs
    no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import Rescaled, SquaredExponential
    >>> kernel = Rescaled(SquaredExponential(), lambda X: X[:, 0], lambda X: np.ones_like(X))
    >>> kernel.diagonal(np.array([[1.0], [3.0]]))
    array([1., 9.])
    """

    kernel: Kernel
    factor: Callable[[Array], Array] = field(repr=False)
    gradient: Callable[[Array], Array] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        require_kernel("kernel", self.kernel)
        _require_callables(self, "factor", "gradient")
        if self.gradient is None:
            object.__setattr__(self, "factor", autodiff.own_copy("factor", self.factor))

    def scales(self, x: Array) -> Array:
        """Return s(x), (...), for inputs (..., d)."""
        rows = x.reshape(-1, x.shape[-1])
        s = (
            self.factor(rows)
            if self.gradient is not None
            else autodiff.value("factor", self.factor, rows)
        )
        return returned("factor", s, (len(rows),)).reshape(x.shape[:-1])

    def slopes(self, x: Array) -> Array:
        """Return ∂s/∂xᵢ, (..., d), for inputs (..., d)."""
        rows = x.reshape(-1, x.shape[-1])
        s = (
            self.gradient(rows)
            if self.gradient is not None
            else autodiff.jacobian("factor", self.factor, rows)
        )
        return returned("gradient", s, tuple(rows.shape)).reshape(x.shape)

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.scales(X)[:, None] * self.kernel(X, Z) * self.scales(Z)

    def diagonal(self, X: Array) -> Array:
        return self.scales(X) ** 2 * self.kernel.diagonal(X)

    @property
    def smooth(self) -> bool:
        return self.kernel.smooth

    def kinks(self) -> tuple[Kink, ...]:
        return self.kernel.kinks()

    def n_lengthscales(self, step: Array) -> Array:
        return self.kernel.n_lengthscales(step)

    def check_features(self, d: int) -> None:
        self.kernel.check_features(d)

    def check_derivatives(self, X: Array) -> None:
        if self.gradient is not None:
            require_derivative("gradient", "factor", self.scales, self.slopes, X)
        self.kernel.check_derivatives(X)


def _require_callables(kernel: Kernel, function: str, derivative: str) -> None:
    if not callable(getattr(kernel, function)):
        raise InvalidInputError(
            f"{function}: expected a function, got {type(getattr(kernel, function)).__name__}"
        )
    given = getattr(kernel, derivative)
    if given is not None and not callable(given):
        raise InvalidInputError(
            f"{derivative}: expected a function or None, got {type(given).__name__}"
        )
