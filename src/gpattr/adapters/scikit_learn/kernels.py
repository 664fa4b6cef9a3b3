"""Translation of scikit-learn's kernels."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters.translation import Here, KernelTable, combined, rule
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
    if vanishes(kernel):
        raise UnsupportedModelError(f"kernel: this {type(kernel).__name__} is zero everywhere")
    return KERNELS.translate(kernel, d)


def _other(kernel: Any, here: Here) -> Kernel:
    name, module = type(kernel).__name__, type(kernel).__module__
    if module.startswith("sklearn."):
        raise here.refusal(f"scikit-learn's {name} is not supported")
    raise here.refusal(
        f"{module}.{name}, which is not scikit-learn's, is not supported;"
        " gpattr.kernels.Function takes a kernel with its derivatives"
    )


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


def _sum(kernel: Any, here: Here) -> Kernel:
    parts: list[Any] = [here.part(part) for part in (kernel.k1, kernel.k2) if not vanishes(part)]
    return reduce(add, parts)


def _pairwise(kernel: Any, here: Here) -> Kernel:
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


def _matern(kernel: Any, here: Here) -> Kernel:
    if kernel.nu in MATERN:
        return MATERN[kernel.nu](kernel.length_scale)
    if kernel.nu <= 1:
        raise UnsupportedModelError(
            f"kernel: functions of a Matern with nu={kernel.nu:g} have no gradients; only nu=0.5"
            " is supported, for prediction"
        )
    return Matern(kernel.length_scale, nu=kernel.nu)


def _periodic(kernel: Any, here: Here) -> Kernel:
    here.require_one_column("ExpSineSquared")
    return Periodic(kernel.length_scale, kernel.periodicity)


def _dot_product(kernel: Any, here: Here) -> Kernel:
    return Linear() + Constant(kernel.sigma_0**2) if kernel.sigma_0**2 else Linear()


def _power(kernel: Any, here: Here) -> Kernel:
    return _powered(kernel.kernel, float(kernel.exponent), here)


def _powered(kernel: Any, exponent: float, here: Here) -> Kernel:
    """Return kernel**exponent: in closed form where its family allows, else a repeated product."""
    name = type(kernel).__name__
    if name == "Exponentiation":
        return _powered(kernel.kernel, exponent * float(kernel.exponent), here)
    if name == "Product":
        return _powered(kernel.k1, exponent, here) * _powered(kernel.k2, exponent, here)
    if exponent > 0 and name == "ConstantKernel":
        return Constant(kernel.constant_value**exponent)
    if exponent > 0 and name == "RBF":
        return SquaredExponential(np.asarray(kernel.length_scale) / exponent**0.5)
    if exponent > 0 and name == "ExpSineSquared" and here.d == 1:
        return Periodic(kernel.length_scale / exponent**0.5, kernel.periodicity)
    if exponent > 0 and name == "RationalQuadratic":
        return RationalQuadratic(kernel.length_scale / exponent**0.5, alpha=kernel.alpha * exponent)
    power = here.whole_power(f"{name} to the power", exponent, "power")
    # Without an offset it is a product of linear kernels.
    if name == "DotProduct" and power > 1 and kernel.sigma_0**2:
        return Polynomial(degree=power, offset=kernel.sigma_0**2)
    return reduce(mul, [here.part(kernel)] * power)


KERNELS = KernelTable(
    "scikit-learn's",
    {
        "RBF": rule(SquaredExponential, lengthscale="length_scale"),
        "Matern": _matern,
        "RationalQuadratic": rule(RationalQuadratic, lengthscale="length_scale", alpha="alpha"),
        "ExpSineSquared": _periodic,
        "DotProduct": _dot_product,
        "ConstantKernel": rule(Constant, variance="constant_value"),
        "WhiteKernel": rule(White, variance="noise_level"),
        "PairwiseKernel": _pairwise,
        "Sum": _sum,
        "Product": combined(mul, "k1", "k2"),
        # exp(−Σᵢ ℓᵢ[xᵢ ≠ x'ᵢ]) of scikit-optimize: of columns of 0 and 1, a squared exponential
        "HammingKernel": rule(
            SquaredExponential, lengthscale=("length_scale", lambda rates: (2.0 * rates) ** -0.5)
        ),
        "Exponentiation": _power,
    },
    other=_other,
)
