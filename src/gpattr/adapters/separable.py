"""Kernels that are a product of one kernel for each feature: ∏ᵢ k(xᵢ, x'ᵢ; ℓᵢ)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from gpattr.kernels import Constant, Kernel, Select, SquaredExponential


def product_of(kind: Callable[[float], Kernel], rates: Any) -> Kernel:
    """Return ∏ᵢ k(xᵢ, x'ᵢ; 1/rateᵢ) over the features whose ``rates`` (d,) are not zero.

    ``kind`` makes a kernel of one feature from its length-scale.
    """
    rates = np.asarray(rates, dtype=np.float64)
    if len(rates) == 1 and rates[0] > 0:
        return kind(float(1.0 / rates[0]))
    parts: list[Any] = [
        Select(kind(float(1.0 / rate)), [i]) for i, rate in enumerate(rates) if rate > 0
    ]
    return reduce(mul, parts) if parts else Constant(1.0)


def squared_exponential(rates: Any) -> Kernel:
    """Return exp(−½ Σᵢ (rateᵢ (xᵢ − x'ᵢ))²) over the features whose ``rates`` (d,) are not zero."""
    rates = np.asarray(rates, dtype=np.float64)
    used = np.flatnonzero(rates > 0)
    if not len(used):
        return Constant(1.0)
    kernel = SquaredExponential(1.0 / rates[used])
    return kernel if len(used) == len(rates) else Select(kernel, used.tolist())
