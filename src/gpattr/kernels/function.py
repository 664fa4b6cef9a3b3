"""A user-defined kernel, given as functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpattr._core import autodiff
from gpattr._core.array import Array, to_numpy
from gpattr._core.validation import positive_scalar, require_derivative, returned
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Function(Kernel):
    """k(x, x') = value(x, x'), any twice differentiable user-defined kernel.

    Each function takes x and x' of shapes (..., d) that broadcast, and acts on the last axis:
    ``value`` returns k, (...), ``gradient`` ∂k/∂xᵢ, (..., d), and ``mixed`` ∂²k/∂xᵢ∂x'ⱼ, (..., d,
    d). A PyTorch function needs neither of the last two: it is differentiated automatically.
    ``lengthscale`` is a hint, the distance over which k changes.

    Examples
    --------
    >>> import torch
    >>> from gpattr.kernels import Function
    >>> def value(x, y):
    ...     return torch.exp((x * y).sum(-1))
    >>> kernel = Function(value)  # PyTorch differentiates it
    >>> kernel(torch.zeros(1, 2), torch.ones(1, 2)).tolist()
    [[1.0]]
    """

    value: Callable[[Array, Array], Array] = field(repr=False)
    gradient: Callable[[Array, Array], Array] | None = field(default=None, repr=False)
    mixed: Callable[[Array, Array], Array] | None = field(default=None, repr=False)
    lengthscale: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "gradient", "mixed"):
            given = getattr(self, name)
            if not callable(given) and (name == "value" or given is not None):
                raise InvalidInputError(f"{name}: expected a function, got {type(given).__name__}")
        if (self.gradient is None) != (self.mixed is None):
            missing = "gradient" if self.gradient is None else "mixed"
            raise InvalidInputError(
                f"{missing}: expected gradient and mixed together, or neither for a PyTorch"
                " function"
            )
        if self.lengthscale is not None:
            object.__setattr__(
                self, "lengthscale", positive_scalar("lengthscale", self.lengthscale)
            )
        if self.gradient is None:
            object.__setattr__(self, "value", autodiff.own_copy("value", self.value))

    def values(self, x: Array, y: Array) -> Array:
        """Return k for x and y, (..., d), that broadcast."""
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))[:-1]
        k = (
            self.value(x, y)
            if self.gradient is not None
            else autodiff.value("value", self.value, x, y)
        )
        return returned("value", k, shape)

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.values(X[:, None, :], Z)

    def diagonal(self, X: Array) -> Array:
        return self.values(X, X)

    def n_lengthscales(self, step: Array) -> Array:
        return (step * step).sum(axis=-1) ** 0.5 / (self.lengthscale or np.inf)

    def check_features(self, d: int) -> None:
        pass

    def check_derivatives(self, X: Array) -> None:
        gradient, mixed = self.gradient, self.mixed
        if gradient is None or mixed is None:
            return
        rows = to_numpy(X)[:8]
        # Pairs from far apart to close, as the scale of the kernel is unknown.
        width = max(float(np.ptp(rows, axis=0).max()), float(np.abs(rows).max()) * 1e-9, 1e-9)
        y = rows + width * 10.0 ** -np.linspace(0.0, 4.0, len(rows))[:, None]
        require_derivative(
            "gradient", "value", lambda x: self.values(x, y), lambda x: gradient(x, y), X
        )
        # ∂/∂y of the gradient: k is symmetric, so its transpose is ∂/∂x of the gradient at (y, x).
        require_derivative(
            "mixed",
            "gradient",
            lambda x: returned("gradient", gradient(y, x), y.shape),
            lambda x: mixed(y, x),
            X,
        )
