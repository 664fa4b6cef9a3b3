"""The abstract kernel: a frozen value that can be evaluated, compared, and combined with ``+`` and
``*``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gpattr._core.arguments import Checked, an_array, arrays, some_rows, vectors
from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.validation import check_count, check_flag
from gpattr.exceptions import InvalidInputError


class Kink(NamedTuple):
    """Where derivatives of a kernel are not smooth: at r = 0, r being the distance in these
    features and length-scales.

    ``features`` None means all. Within the radius ``floor`` the kink is too small to matter to an
    integral. Where it is not ``one_sided``, derivatives are not even smooth in r ≥ 0."""

    features: tuple[int, ...] | None
    lengthscale: float | Array
    floor: float
    one_sided: bool = True


@dataclass(frozen=True, eq=False)
class Kernel(Checked, Frozen, ABC):
    """A covariance function k(x, x').

    Kernels know values, and their own shape: whether they are stationary, polynomial, or have
    kinks. What operators such as integrated gradients make of a kernel is written in
    `gpattr.closed_forms`, one function for each pair."""

    checks: ClassVar[Any] = {
        "X": some_rows,
        "Z": some_rows,
        "x": vectors,
        "y": vectors,
        "step": vectors,
        "difference": vectors,
        "r2": an_array,
        "z": arrays,
        "d": check_count,
        "deep": check_flag,
        "second": check_flag,
    }
    trainable: ClassVar[
        tuple[str, ...]
    ] = ()  # the hyperparameters that training can change; all are positive
    stationary: ClassVar[Any] = False  # whether k(x, x') depends on x − x' only

    __array_ufunc__ = None  # so that a NumPy scalar times a kernel asks the kernel

    @property
    def polynomial_degree(self) -> int | None:
        """The degree of the polynomial that k(x, x') is in each of x and x'; None if it is none."""
        return None

    def kinks(self) -> tuple[Kink, ...]:
        """Return where derivatives are not smooth."""
        return ()

    @property
    def singular(self) -> bool:
        """Whether derivatives at x = x' are not even smooth to one side: Matérn kernels but for ν =
        3/2, 5/2.
        """
        own = any(not kink.one_sided for kink in self.kinks())
        return own or any(part.singular for part in self.parts().values())

    @property
    def smooth(self) -> bool:
        """Whether derivatives are smooth at x = x'; a warped kernel may not be, though it cannot
        say where its kinks are.
        """
        return not self.kinks()

    @abstractmethod
    def __call__(self, X: Array, Z: Array) -> Array:
        """Return the covariances k(xₙ, zₘ), (n, m), of the rows of X (n, d) and Z (m, d)."""

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Return the variances k(xₙ, xₙ), (n,)."""

    @abstractmethod
    def n_lengthscales(self, step: Array) -> Array:
        """Return how many length-scales each step (n, d) covers, (n,): quadrature chooses its
        panels by it.
        """

    @abstractmethod
    def check_features(self, d: int) -> None:
        """Raise `InvalidInputError` if the kernel cannot act on inputs with d features."""

    def check_derivatives(self, X: Array) -> None:
        """Raise `InvalidInputError` if derivatives that the user gave are not those of the values,
        at a few rows of X.
        """
        for part in self.parts().values():
            part.check_derivatives(X)

    def parts(self) -> dict[str, Kernel]:
        """Return the inner kernels by the prefix of their parameters: ``"kernel"``, or ``"0"``,
        ``"1"``, … of several.
        """
        found: dict[str, Kernel] = {}
        for name, value in self._fields().items():
            if isinstance(value, Kernel):
                found[name] = value
            elif isinstance(value, tuple):
                found |= {str(i): part for i, part in enumerate(value) if isinstance(part, Kernel)}
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; those of inner kernels as ``kernel__name``, of the i-th of
        several as ``i__name``.
        """
        params = self._fields()
        for prefix, kernel in self.parts().items() if deep else ():
            params |= {f"{prefix}__{key}": inside for key, inside in kernel.get_params().items()}
        return params

    def with_params(self, **params: Any) -> Self:
        """Return the kernel with some parameters replaced; names as in `get_params`."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise InvalidInputError(f"{name}: expected one of {sorted(known)}")
        fields = self._fields()
        nested: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if rest:
                nested.setdefault(head, {})[rest] = value
            else:
                fields[name] = value
        for head, changes in nested.items():
            if head in fields:
                fields[head] = fields[head].with_params(**changes)
            else:
                (name,) = (
                    name
                    for name, value in fields.items()
                    if isinstance(value, tuple) and isinstance(value[0], Kernel)
                )
                parts = list(fields[name])
                parts[int(head)] = parts[int(head)].with_params(**changes)
                fields[name] = tuple(parts)
        return self._build(fields)

    def __sklearn_clone__(self) -> Self:
        return self  # frozen: a copy could not differ

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _build(self, fields: dict[str, Any]) -> Self:
        return type(self)(**fields)

    def __add__(self, other: Kernel | float) -> Kernel:
        from gpattr.kernels.algebra import Sum
        from gpattr.kernels.constant import Constant

        if isinstance(other, Real):
            other = Constant(variance=float(other))
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Kernel | float) -> Kernel:
        return (
            self if isinstance(other, Real) and other == 0 else self + other
        )  # so that sum(kernels) works

    def __mul__(self, other: Kernel | float) -> Kernel:
        from gpattr.kernels.algebra import Product, Scale
        from gpattr.kernels.constant import Constant

        if isinstance(other, Constant):
            other = other.variance
        if isinstance(self, Constant) and isinstance(other, Kernel):
            return Scale(other, variance=self.variance)
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scale(self, variance=other) if isinstance(other, Real) else NotImplemented  # pyright: ignore[reportArgumentType]

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Kernel):
            return NotImplemented
        theirs = other._fields()
        return all(np.array_equal(value, theirs[name]) for name, value in self._fields().items())

    def __hash__(self) -> int:
        hashable = (
            value.tobytes() if isinstance(value, np.ndarray) else value
            for value in self._fields().values()
        )
        return hash((type(self), *hashable))
