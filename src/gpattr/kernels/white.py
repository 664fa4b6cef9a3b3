"""White noise as a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gpattr._core.array import Array, namespace
from gpattr._core.validation import positive_scalar
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels.algebra import Product, Scale, Select, Sum
from gpattr.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class White(Kernel):
    """k(x, x') = σ² if x and x' are the same observation, else 0.

    Posteriors fold it into their noise: predictions and explanations are of the function without
    it. Two arrays are the same observations only if they are the same object.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential, White
    >>> from gpattr.posteriors import ExactPosterior
    >>> X = np.array([[0.0], [1.0]])
    >>> posterior = ExactPosterior(SquaredExponential() + White(0.1), X, X[:, 0], noise=0.0)
    >>> posterior.kernel
    SquaredExponential(lengthscale=1.0, variance=1.0)
    """

    variance: float = 1.0

    trainable: ClassVar[tuple[str, ...]] = ("variance",)

    @property
    def stationary(self) -> bool:
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive_scalar("variance", self.variance))

    def __call__(self, X: Array, Z: Array) -> Array:
        xp = namespace(X, Z)
        return self.variance * xp.eye(X.shape[0]) if X is Z else xp.zeros((X.shape[0], Z.shape[0]))

    def diagonal(self, X: Array) -> Array:
        return namespace(X).full(X.shape[0], self.variance)

    def n_lengthscales(self, step: Array) -> Array:
        return namespace(step).zeros(step.shape[:-1])

    def check_features(self, d: int) -> None:
        pass


def has_white(kernel: Kernel) -> bool:
    """Return whether the kernel, or one inside it, is white noise."""
    return any(isinstance(part, White) for _, part in kernel.walk())


def fold_white(kernel: Kernel, X: Array) -> tuple[Kernel | None, Array]:
    """Return the kernel without white noise, None if nothing is left, and the noise at X."""
    if not has_white(kernel):
        return kernel, namespace(X).zeros(X.shape[0])
    if isinstance(kernel, White):
        return None, kernel.diagonal(X)
    if isinstance(kernel, (Scale, Select)):
        inner = kernel.columns(X) if isinstance(kernel, Select) else X
        smooth, noise = fold_white(kernel.kernel, inner)
        return (
            smooth and kernel.map_parts(lambda _: smooth),
            kernel.variance * noise if isinstance(kernel, Scale) else noise,
        )
    if isinstance(kernel, (Sum, Product)):
        parts = [fold_white(part, X) for part in kernel.kernels]
        smooth = [part for part, _ in parts if part is not None]
        if isinstance(kernel, Sum):
            whole = Sum(*smooth) if len(smooth) > 1 else smooth[0] if smooth else None
            return whole, sum(noise for _, noise in parts)
        # (s₁ + n₁)(s₂ + n₂) = s₁s₂ + n₁(s₂ + n₂) + s₁n₂, and so on.
        value, total = 1.0, 0.0
        for part, noise in parts:
            own = 0.0 if part is None else part.diagonal(X)
            value, total = value * own, total * (own + noise) + value * noise
        return Product(*smooth) if len(smooth) == len(parts) else None, total
    raise UnsupportedModelError(
        f"kernel: White inside {type(kernel).__name__} is not supported; add it outside, or give"
        " noise"
    )
