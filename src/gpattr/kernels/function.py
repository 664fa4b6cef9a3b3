"""A kernel of the user's own, given as functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpattr import _autodiff
from gpattr._array import EPS, Array, namespace, to_numpy
from gpattr._validation import positive_scalar, returned
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Function(Kernel):
    """k(x, x') = value(x, x'), any twice differentiable kernel of your own.

    Each function takes x and x' of shapes (..., d) that broadcast, and acts on the last axis: ``value`` returns k, (...),
    ``gradient`` ∂k/∂xᵢ, (..., d), and ``mixed`` ∂²k/∂xᵢ∂x'ⱼ, (..., d, d). A PyTorch function needs neither of the last two: it is
    differentiated automatically. ``lengthscale`` is a hint, the distance over which k changes.
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
            raise InvalidInputError(f"{missing}: expected gradient and mixed together, or neither for a PyTorch function")
        if self.lengthscale is not None:
            object.__setattr__(self, "lengthscale", positive_scalar("lengthscale", self.lengthscale))
        if self.gradient is None:
            object.__setattr__(self, "value", _autodiff.own_copy("value", self.value))

    def values(self, x: Array, y: Array) -> Array:
        """Return k for x and y, (..., d), that broadcast."""
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))[:-1]
        k = self.value(x, y) if self.gradient is not None else _autodiff.value("value", self.value, x, y)
        return returned("value", k, shape)

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.values(X[:, None, :], Z)

    def diagonal(self, X: Array) -> Array:
        return self.values(X, X)

    def span(self, step: Array) -> Array:
        return (step * step).sum(axis=-1) ** 0.5 / (self.lengthscale or np.inf)

    def check_features(self, d: int) -> None:
        pass

    def check_derivatives(self, X: Array) -> None:
        """Raise `InvalidInputError` if the given derivatives are not those of the values, at a few pairs of rows of X."""
        if self.gradient is None or self.mixed is None:
            return
        X = to_numpy(X)[:8]
        step = EPS ** (1 / 3) * max(float(np.ptp(X, axis=0).max()), float(np.abs(X).max()) * 1e-3, 1e-3)
        x, y = X, np.roll(X, 1, axis=0) + 0.1 * step * np.arange(X.shape[1])
        xp = namespace(X)
        for name, given, of in (("gradient", self.gradient, self.values), ("mixed", self.mixed, self.gradient)):
            shape = (*x.shape, x.shape[1]) if name == "mixed" else x.shape
            derivative = returned(name, given(x, y), tuple(shape))
            for i in range(x.shape[1]):
                move = step * np.eye(x.shape[1])[i]
                if name == "gradient":
                    numeric, analytic = (of(x + move, y) - of(x - move, y)) / (2 * step), derivative[:, i]
                else:
                    numeric, analytic = (of(x, y + move) - of(x, y - move)) / (2 * step), derivative[:, :, i]
                size = xp.abs(numeric).max() + xp.abs(self.values(x, y)).max()
                worst = float(xp.abs(numeric - analytic).max())
                if worst > 1e-4 * float(size):
                    of_what = "value" if name == "gradient" else "gradient"
                    raise InvalidInputError(
                        f"{name}: expected the derivative of {of_what}, but by feature {i} it differs from finite differences by "
                        f"{worst:.2g}"
                    )
