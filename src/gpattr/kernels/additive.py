"""The full additive kernel of Duvenaud, Nickisch and Rasmussen (2011)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.validation import as_vector, read_only, unlabelled
from gpattr.exceptions import InvalidInputError
from gpattr.kernels.algebra import degrees_of, require_kernel
from gpattr.kernels.base import Kernel, Kink, Pieces, Places


@dataclass(frozen=True, eq=False, init=False)
class FullAdditive(Kernel):
    """k(x, x') = Σₙ σₙ² eₙ(z₁, …, z_d) with zᵢ = kᵢ(xᵢ, xᵢ'): interactions of every order.

    The cost grows with d times the number of orders; there are no 2^d terms. ``bases`` are
    one-dimensional kernels kᵢ, one for each feature; ``order_variances`` σ₁², σ₂², … at most d of
    them, not negative. The elementary symmetric polynomials eₙ come from the recurrence
    eₙ ← eₙ + zᵢeₙ₋₁, which adds positive terms.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import FullAdditive, SquaredExponential
    >>> kernel = FullAdditive([SquaredExponential()] * 2, order_variances=[1.0, 0.5])
    >>> kernel.diagonal(np.zeros((1, 2)))  # z₁ + z₂ + ½ z₁z₂, with z = 1
    array([2.5])
    """

    bases: tuple[Kernel, ...]
    order_variances: Array

    trainable: ClassVar[tuple[str, ...]] = ("order_variances",)

    def __init__(self, bases: Sequence[Kernel], order_variances: Any) -> None:
        if isinstance(bases, Kernel) or not isinstance(bases, Sequence) or not len(bases):
            raise InvalidInputError(
                f"bases: expected a sequence of kernels, one per feature, got {bases!r}"
            )
        for i, base in enumerate(bases):
            require_kernel("bases", base)
            try:
                base.check_features(1)
            except InvalidInputError as error:
                raise InvalidInputError(
                    f"bases: expected one-dimensional kernels, but that of feature {i}: {error}"
                ) from None
        variances = to_numpy(
            as_vector("order_variances", unlabelled("order_variances", order_variances))
        )
        if not 1 <= len(variances) <= len(bases):
            raise InvalidInputError(
                f"order_variances: expected 1 to {len(bases)} (at most one per feature), got"
                f" {len(variances)}"
            )
        if (variances < 0).any() or not (variances > 0).any():
            raise InvalidInputError(
                "order_variances: expected variances, 0 or larger and not all 0, got"
                f" {variances.tolist()}"
            )
        object.__setattr__(self, "bases", tuple(bases))
        object.__setattr__(self, "order_variances", read_only(variances))

    @property
    def stationary(self) -> bool:
        return all(base.stationary for base in self.bases)

    @property
    def polynomial_degree(self) -> int | None:
        degrees = degrees_of(self.bases)
        return None if degrees is None else sum(sorted(degrees)[-len(self.order_variances) :])

    @property
    def smooth(self) -> bool:
        return all(base.smooth for base in self.bases)

    def kinks(self) -> tuple[Kink, ...]:
        return tuple(
            kink._replace(features=(i,))
            for i, base in enumerate(self.bases)
            for kink in base.kinks()
        )

    def orders(self, z: Sequence[Array]) -> list[Array]:
        """Return e₁(z), e₂(z), … for base values z of any one shape."""
        xp = namespace(z[0])
        orders = len(self.order_variances)
        e = [xp.zeros_like(z[0]) for _ in range(orders)]  # e[n] is e of order n + 1
        for value in z:
            for n in range(orders - 1, 0, -1):
                e[n] += value * e[n - 1]
            e[0] += value
        return e

    def combine(self, z: Sequence[Array]) -> Array:
        """Return Σₙ σₙ² eₙ(z) for base values z of any one shape."""
        return reduce(
            add,
            (
                variance * e
                for variance, e in zip(self.order_variances.tolist(), self.orders(z), strict=True)
            ),
        )

    def __call__(self, X: Array, Z: Array) -> Array:
        same = X is Z
        columns = [(X[:, i : i + 1], Z[:, i : i + 1]) for i in range(len(self.bases))]
        return self.combine(
            [base(x, x if same else z) for base, (x, z) in zip(self.bases, columns, strict=True)]
        )

    def diagonal(self, X: Array) -> Array:
        return self.combine([base.diagonal(X[:, i : i + 1]) for i, base in enumerate(self.bases)])

    def n_lengthscales(self, step: Array) -> Array:
        spans = [base.n_lengthscales(step[..., i : i + 1]) for i, base in enumerate(self.bases)]
        return namespace(step).sqrt(sum(span * span for span in spans))

    def split(self, inside: Places, outside: Places) -> Pieces:
        """Σₙ σₙ² eₙ(S ∪ R) = Σⱼ eⱼ(S) Σₙ σₙ² eₙ₋ⱼ(R)."""
        one, two = ([self.bases[i] for i in some] for some in (inside, outside))
        variances = np.concatenate([[0.0], self.order_variances])
        pieces: Pieces = []
        for j in range(min(len(one), len(variances) - 1) + 1):
            own = [(_additive(one, np.eye(len(one))[j - 1][:j])[1], inside)] if j else []
            if variances[j] > 0:
                pieces.append((float(variances[j]), [*own]))
            orders = variances[j + 1 :][: len(two)]
            if (orders > 0).any():
                scale, rest = _additive(two, orders)
                pieces.append((scale, [*own, (rest, outside)]))
        return pieces

    def check_features(self, d: int) -> None:
        if len(self.bases) != d:
            raise InvalidInputError(f"bases: expected {d} (one per feature), got {len(self.bases)}")

    def check_derivatives(self, X: Array) -> None:
        for i, base in enumerate(self.bases):
            base.check_derivatives(X[:, i : i + 1])

    def __repr__(self) -> str:
        kinds = {repr(base) for base in self.bases}
        inside = (
            f"{len(self.bases)} × {kinds.pop()}"
            if len(kinds) == 1
            else ", ".join(map(repr, self.bases))
        )
        return (
            f"FullAdditive([{inside}],"
            f" order_variances={np.array2string(self.order_variances, threshold=6)})"
        )


def _additive(bases: list[Kernel], variances: Array) -> tuple[float, Kernel]:
    """Return a scale and a kernel, which is the base itself if there is one."""
    if len(bases) == 1:
        return float(variances[0]), bases[0]
    return 1.0, FullAdditive(bases, variances)
