"""Translation of scikit-learn's kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SquaredExponential,
    White,
)

MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52, np.inf: SquaredExponential}


def translate(kernel: Any, d: int) -> Kernel:
    """Return a fitted scikit-learn kernel on d features; raise for one without an equivalent."""
    name = type(kernel).__name__
    if name not in KERNELS:
        library = type(kernel).__module__.startswith("sklearn.")
        raise UnsupportedModelError(
            f"kernel: scikit-learn's {name} is not supported"
            if library
            else f"kernel: {type(kernel).__module__}.{name}, which is not scikit-learn's, is not"
            " supported; gpattr.kernels.Function takes a kernel with its derivatives"
        )
    if vanishes(kernel):
        raise UnsupportedModelError(f"kernel: this {name} is zero everywhere")
    return KERNELS[name](kernel, d)


def vanishes(kernel: Any) -> bool:
    """Return whether a kernel is zero everywhere, as noise of the level 0 is."""
    name = type(kernel).__name__
    if name == "WhiteKernel":
        return kernel.noise_level == 0
    if name == "ConstantKernel":
        return kernel.constant_value == 0
    if name == "Exponentiation":
        return kernel.exponent > 0 and vanishes(kernel.kernel)
    if name == "Product":
        return vanishes(kernel.k1) or vanishes(kernel.k2)
    return name == "Sum" and vanishes(kernel.k1) and vanishes(kernel.k2)


def _sum(kernel: Any, d: int) -> Kernel:
    parts: list[Any] = [translate(part, d) for part in (kernel.k1, kernel.k2) if not vanishes(part)]
    return reduce(add, parts)


def _pairwise(kernel: Any, d: int) -> Kernel:
    """One of `sklearn.metrics.pairwise`: γ is used by those that have it."""
    options = dict(kernel.pairwise_kernels_kwargs or {})
    gamma = float(kernel.gamma)
    if kernel.metric == "linear" and not options:
        return Linear()
    if kernel.metric == "rbf" and not options:
        return SquaredExponential((0.5 / gamma) ** 0.5)
    if kernel.metric in ("poly", "polynomial") and set(options) <= {"degree", "coef0"}:
        degree, offset = float(options.get("degree", 3)), float(options.get("coef0", 1))
        if degree == round(degree) and degree > 1 and offset > 0:
            return Polynomial(gamma, degree=int(degree), offset=offset)
    raise UnsupportedModelError(
        f"kernel: PairwiseKernel with metric='{kernel.metric}'"
        f"{f' and {options}' if options else ''} is not supported; supported are 'linear', 'rbf'"
        " and 'poly' with a positive coef0"
    )


def _matern(kernel: Any, d: int) -> Kernel:
    if kernel.nu in MATERN:
        return MATERN[kernel.nu](kernel.length_scale)
    if kernel.nu <= 1:
        raise UnsupportedModelError(
            f"kernel: functions of a Matern with nu={kernel.nu:g} have no gradients; only nu=0.5"
            " is supported, for prediction"
        )
    return Matern(kernel.length_scale, nu=kernel.nu)


def _periodic(kernel: Any, d: int) -> Kernel:
    if d > 1:
        raise UnsupportedModelError(
            f"kernel: ExpSineSquared of {d} features is a function of their distance and not"
            " positive definite"
        )
    return Periodic(kernel.length_scale, kernel.periodicity)


def _hamming(kernel: Any, d: int) -> Kernel:
    """exp(−Σᵢ ℓᵢ[xᵢ ≠ x'ᵢ]) of scikit-optimize: of columns of 0 and 1, a squared exponential."""
    rates = np.asarray(kernel.length_scale, dtype=np.float64)
    return SquaredExponential((2.0 * rates) ** -0.5)


def _power(kernel: Any, exponent: float, d: int) -> Kernel:
    """Return kernel**exponent: in closed form where its family allows, else a repeated product."""
    name = type(kernel).__name__
    if name == "Exponentiation":
        return _power(kernel.kernel, exponent * float(kernel.exponent), d)
    if name == "Product":
        return _power(kernel.k1, exponent, d) * _power(kernel.k2, exponent, d)
    if exponent > 0 and name == "ConstantKernel":
        return Constant(kernel.constant_value**exponent)
    if exponent > 0 and name == "RBF":
        return SquaredExponential(np.asarray(kernel.length_scale) / exponent**0.5)
    if exponent > 0 and name == "ExpSineSquared" and d == 1:
        return Periodic(kernel.length_scale / exponent**0.5, kernel.periodicity)
    if exponent > 0 and name == "RationalQuadratic":
        return RationalQuadratic(kernel.length_scale / exponent**0.5, alpha=kernel.alpha * exponent)
    if exponent != round(exponent) or exponent < 1:
        raise UnsupportedModelError(
            f"kernel: {name} to the power {exponent:g} is not supported; powers are 1, 2, 3, …"
        )
    # Without an offset it is a product of linear kernels.
    if name == "DotProduct" and exponent > 1 and kernel.sigma_0**2:
        return Polynomial(degree=int(exponent), offset=kernel.sigma_0**2)
    part = translate(kernel, d)
    return reduce(mul, [part] * int(exponent)) if exponent > 1 else part


KERNELS: dict[str, Callable[[Any, int], Kernel]] = {
    "RBF": lambda kernel, d: SquaredExponential(kernel.length_scale),
    "Matern": _matern,
    "RationalQuadratic": lambda kernel, d: RationalQuadratic(
        kernel.length_scale, alpha=kernel.alpha
    ),
    "ExpSineSquared": _periodic,
    "DotProduct": lambda kernel, d: (
        Linear() + Constant(kernel.sigma_0**2) if kernel.sigma_0**2 else Linear()
    ),
    "ConstantKernel": lambda kernel, d: Constant(kernel.constant_value),
    "WhiteKernel": lambda kernel, d: White(kernel.noise_level),
    "PairwiseKernel": _pairwise,
    "Sum": _sum,
    "Product": lambda kernel, d: translate(kernel.k1, d) * translate(kernel.k2, d),
    "HammingKernel": _hamming,
    "Exponentiation": lambda kernel, d: _power(kernel.kernel, float(kernel.exponent), d),
}
