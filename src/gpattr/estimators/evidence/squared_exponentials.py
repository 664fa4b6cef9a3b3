"""Training of sums of squared exponentials, the most frequent case, in place.

A kernel matrix takes one product, its gradient two. A kernel built of sums, scales and selections
of squared exponentials and constants is a weighted sum of leaves: k(x, x') = Σ_f c_f
k_f(x[columns_f], x'[columns_f]). Other kernels use `hyperparameters.likelihood_gradient`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from gpattr._core.array import Array, namespace, product, symmetric_exponential, symmetric_product
from gpattr.estimators.hyperparameters import WIDE
from gpattr.kernels import Constant, Kernel, Radial, Scale, Select, SquaredExponential, Sum

K = TypeVar("K", bound=Kernel)


@dataclass(frozen=True)
class Leaf(Generic[K]):
    """One term of the sum: ``kernel`` on ``columns`` (None: all), times ``factor``.

    The factor is the product of the named ``scales``.
    """

    kernel: K
    prefix: str
    columns: tuple[int, ...] | None
    factor: float
    scales: tuple[str, ...]

    def inputs(self, X: Array) -> Array:
        """Return the columns this leaf sees."""
        return X if self.columns is None else X[:, list(self.columns)]

    def whitened(self, X: Array) -> Array:
        """Return the inputs in length-scales, W = X/ℓ, where the kernel has any."""
        scale = self.kernel.lengthscale if isinstance(self.kernel, Radial) else 1.0
        return self.inputs(X) / namespace(X).asarray(scale)

    def values(self, X: Array) -> Array:
        """Return c k(X, X), (n, n), for centred X, of which the upper triangle is meant."""
        xp = namespace(X)
        W = self.whitened(X)
        if isinstance(self.kernel, SquaredExponential) and not _is_wide(W):
            # One matrix product gives the whole exponent: w·w' − ½‖w‖² − ½‖w'‖² + log c.
            half, one = -0.5 * (W * W).sum(axis=1)[:, None], xp.zeros((len(X), 1)) + 1.0
            amplitude = float(np.log(self.factor * self.kernel.variance))
            return symmetric_exponential(
                xp.concatenate([W.T, half.T + amplitude, one.T]).T,
                xp.concatenate([W.T, one.T, half.T]),
            )
        return self.factor * self.kernel(self.inputs(X), self.inputs(X))


def leaves(kernel: Kernel) -> list[Leaf[Kernel]] | None:
    """Return the leaves of a kernel, if all are squared exponentials and constants; else None."""
    found = summands(kernel)
    return (
        found
        if all(isinstance(leaf.kernel, (SquaredExponential, Constant)) for leaf in found)
        else None
    )


def summands(kernel: Kernel) -> list[Leaf[Kernel]]:
    """Return the terms of a kernel built of sums, scales and selections; others are one term."""

    def descend(
        k: Kernel,
        prefix: str,
        columns: tuple[int, ...] | None,
        factor: float,
        scales: tuple[str, ...],
    ) -> Iterator[Leaf[Kernel]]:
        if not isinstance(k, (Sum, Scale, Select)):
            yield Leaf(k, prefix, columns, factor, scales)
            return
        if isinstance(k, Scale):
            factor, scales = factor * k.variance, (*scales, f"{prefix}variance")
        if isinstance(k, Select):
            columns = k.features if columns is None else tuple(columns[i] for i in k.features)
        for name, part in k.parts().items():
            yield from descend(part, f"{prefix}{name}__", columns, factor, scales)

    return list(descend(kernel, "", None, 1.0, ()))


def gradient_of_leaves(
    terms: list[Leaf[Kernel]], X: Array, alpha: Array, inverse: Array, values: Array | None
) -> dict[str, Any]:
    """Return ∂ log p(y)/∂ log θ = ½ Σ (ααᵀ − A⁻¹)∘∂K/∂ log θ for every hyperparameter θ.

    ``inverse`` is A⁻¹ = (K + noise)⁻¹, whose upper triangle is read; ``values`` is K where the
    kernel has a single leaf, and is overwritten. With G = (ααᵀ − A⁻¹)∘K and W = X/ℓ, all
    length-scales together take two matrix products:

        ∂/∂ log ℓᵢ = Σₙ (G1)ₙ Wₙᵢ² − Wᵢᵀ(GW)ᵢ,     ∂/∂ log σ² = ½ 1ᵀG1.
    """
    xp = namespace(X)
    gradient: dict[str, Any] = {}
    for leaf in terms:
        K = leaf.values(X) if values is None else values
        lengthscale = leaf.kernel.lengthscale if isinstance(leaf.kernel, Radial) else None
        W = leaf.whitened(X)
        ones = xp.zeros((len(X), 1)) + 1.0
        right = xp.concatenate([W.T, ones.T]).T
        slope = _pairwise_slope(K, alpha, inverse, W) if _is_wide(W) else None
        # (ααᵀ∘K)V = α∘K(α∘V) needs no matrix of its own; A⁻¹∘K takes the place of K.
        GV = alpha[:, None] * symmetric_product(K, alpha[:, None] * right)
        K *= inverse
        GV -= symmetric_product(K, right)
        GW, G1 = GV[:, :-1], GV[:, -1]
        amplitude = 0.5 * float(G1.sum())
        for name in (f"{leaf.prefix}variance", *leaf.scales):
            gradient[name] = gradient.get(name, 0.0) + amplitude
        if lengthscale is not None:
            slope = product(G1, W * W) - (W * GW).sum(axis=0) if slope is None else slope
            gradient[f"{leaf.prefix}lengthscale"] = slope if np.ndim(lengthscale) else slope.sum()
    return gradient


def _is_wide(W: Array) -> bool:
    """Return whether rows span so many length-scales that squared norms lose near distances."""
    return float((W * W).sum(axis=1).max()) > WIDE


def _pairwise_slope(K: Array, alpha: Array, inverse: Array, W: Array) -> Array:
    """Return ½ Σₙₘ Gₙₘ (Wₙᵢ − Wₘᵢ)² from differences: slower, for data of many length-scales."""
    xp = namespace(W)
    upper = xp.triu(K * (alpha[:, None] * alpha - inverse), 1)
    return xp.stack([(upper * (w[:, None] - w) ** 2).sum() for w in W.T])
