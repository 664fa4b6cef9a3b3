"""Derivatives of radial kernels by r²/2, of which derivatives by the inputs are made."""

from __future__ import annotations

from functools import singledispatch

from gpattr._core.array import Array, namespace
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Radial,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.kernels.matern import ROOT5

TINY = 1e-60  # where r⁻³ diverges, and is multiplied by r⁴
INSTEAD = 'attribution="shapley" has interactions for every kernel'


@singledispatch
def derivatives(kernel: Radial, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    """Return ψₖ, the k-th derivatives of the kernel of variance 1 by r²/2, at r²."""
    raise UnsupportedModelError(
        f"IntegratedHessians of {type(kernel).__name__}: there is no formula; {INSTEAD}"
    )


@derivatives.register
def _gaussian(kernel: SquaredExponential, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    value = kernel.profile(r2)
    return [value if order % 2 == 0 else -value for order in orders]


@derivatives.register
def _rational(kernel: RationalQuadratic, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    """ψₖ = (−1)ᵏ Πⱼ (1 + j/α) (1 + r²/2α)^(−α−k), j < k."""
    value, alpha = kernel.profile(r2), kernel.alpha
    ratio = 1.0 / (1.0 + r2 / (2.0 * alpha))
    result = {0: value}
    for order in range(1, max(orders) + 1):
        value = value * ratio * -(1.0 + (order - 1) / alpha)
        result[order] = value
    return [result[order] for order in orders]


@derivatives.register
def _matern52(kernel: Matern52, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    xp = namespace(r2)
    s = xp.maximum(ROOT5 * xp.sqrt(r2), TINY)
    decay = xp.exp(-s)
    formulas = {
        1: lambda: (-5.0 / 3.0) * (1.0 + s) * decay,
        2: lambda: (25.0 / 3.0) * decay,
        3: lambda: (-125.0 / 3.0) * decay / s,
        4: lambda: (625.0 / 3.0) * (1.0 + s) * decay / (s * s * s),
    }
    return [formulas[order]() for order in orders]


@derivatives.register
def _matern(kernel: Matern, r2: Array, orders: tuple[int, ...]) -> list[Array]:
    return [kernel.derivative(r2, order) for order in orders]


def require_second_derivatives(kernel: Radial) -> None:
    """Raise `UnsupportedModelError` for functions that are not twice differentiable."""
    rough = isinstance(kernel, (Matern12, Matern32))
    if rough or (isinstance(kernel, Matern) and kernel.nu <= 2.0):
        name = f"Matern(nu={kernel.nu:g})" if isinstance(kernel, Matern) else type(kernel).__name__
        raise UnsupportedModelError(
            f"IntegratedHessians of {name}: its functions are not twice differentiable, and the"
            " variance of their integrated Hessians does not exist (it diverges); use a Matérn"
            f" kernel with nu > 2, such as Matern52, or {INSTEAD}"
        )
