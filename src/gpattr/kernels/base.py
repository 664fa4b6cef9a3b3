"""The abstract kernel: frozen, evaluated by calling it, combined with ``+`` and ``*``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from gpattr._core.arguments import (
    Checked,
    a_function,
    an_array,
    arrays,
    instance,
    some_rows,
    vectors,
)
from gpattr._core.array import Array
from gpattr._core.frozen import Frozen
from gpattr._core.validation import check_count, check_flag
from gpattr.exceptions import InvalidInputError

if TYPE_CHECKING:
    from gpattr.kernels.factors import KernelProduct


Places = tuple[int, ...]  # positions of columns
# A sum of products of kernels, each with a scale; a kernel comes with the positions it sees.
Pieces = list[tuple[float, list[tuple["Kernel", Places]]]]


def _check_places(name: str, value: Any) -> None:
    whole = isinstance(value, Sequence) and all(type(i) is int and i >= 0 for i in value)
    if not whole or len(set(value)) < len(value):
        raise InvalidInputError(f"{name}: expected different column positions, got {value!r}")


class Kink(NamedTuple):
    """A set on which derivatives of a kernel are not smooth: r = 0 in these features.

    r is the distance in units of ``lengthscale``; ``features`` None means all. Within the radius
    ``floor`` the kink is too small to affect an integral. If it is not ``one_sided``, derivatives
    are not even smooth in r ≥ 0.

    Examples
    --------
    >>> from gpattr.kernels import Matern32
    >>> list(Matern32(2.0).kinks())
    [Kink(features=None, lengthscale=2.0, floor=1e-06, one_sided=True)]
    """

    features: tuple[int, ...] | None
    lengthscale: float | Array
    floor: float
    one_sided: bool = True


@dataclass(frozen=True, eq=False)
class Kernel(Checked, Frozen, ABC):
    """A covariance function k(x, x').

    A kernel computes values and describes itself: whether it is stationary, polynomial, or has
    kinks. How operators such as integrated gradients act on it is written in
    `gpattr.closed_forms`, one function for each pair.

    A kernel made of others holds them in fields, one kernel or a tuple of kernels in each; `parts`,
    `map_parts`, `walk` and `leaves` follow from that. A class that stores them otherwise overrides
    `parts` and `map_parts`.

    Examples
    --------
    >>> from gpattr.kernels import Linear, SquaredExponential
    >>> kernel = SquaredExponential(2.0) + 0.5 * Linear()
    >>> [type(leaf).__name__ for leaf in kernel.leaves()]
    ['SquaredExponential', 'Linear']
    """

    checks: ClassVar[Any] = {
        "inside": _check_places,
        "outside": _check_places,
        "X": some_rows,
        "Z": some_rows,
        "x": vectors,
        "y": vectors,
        "step": vectors,
        "difference": vectors,
        "r2": an_array,
        "z": arrays,
        "function": a_function,
        "prefix": instance(str, "text"),
        "d": check_count,
        "deep": check_flag,
        "second": check_flag,
    }
    # Hyperparameters that training can change; all are positive.
    trainable: ClassVar[tuple[str, ...]] = ()
    # Whether k(x, x') depends on nothing but the values of its parts at the same x and x'.
    pointwise: ClassVar[bool] = False

    __array_ufunc__ = None  # so that a NumPy scalar times a kernel calls the kernel's __rmul__

    @property
    def stationary(self) -> bool:
        """Whether k(x, x') depends on x − x' only."""
        return False

    @property
    def polynomial_degree(self) -> int | None:
        """The degree of k(x, x') as a polynomial in each of x and x'; None if it is not one."""
        return None

    @property
    def differentiated(self) -> str:
        """The name of another library's kernel that is differentiated automatically, or ""."""
        return ""

    def kinks(self) -> tuple[Kink, ...]:
        """Return where derivatives are not smooth."""
        return ()

    @property
    def singular(self) -> bool:
        """Whether derivatives at x = x' are not even smooth from one side, as for Matérn-1/2."""
        own = any(not kink.one_sided for kink in self.kinks())
        return own or any(part.singular for part in self.parts().values())

    @property
    def smooth(self) -> bool:
        """Whether derivatives are smooth at x = x'; False also for kinks at unknown positions."""
        return not self.kinks()

    @abstractmethod
    def __call__(self, X: Array, Z: Array) -> Array:
        """Return the covariances k(xₙ, zₘ), (n, m), of the rows of X (n, d) and Z (m, d)."""

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Return the variances k(xₙ, xₙ), (n,)."""

    @abstractmethod
    def n_lengthscales(self, step: Array) -> Array:
        """Return how many length-scales each step (n, d) covers, (n,): quadrature uses it."""

    @abstractmethod
    def check_features(self, d: int) -> None:
        """Raise `InvalidInputError` if the kernel cannot act on inputs with d features."""

    def split(self, inside: Places, outside: Places) -> Pieces | None:
        """Return k as a sum of products over two sets of its columns, Σ scale ∏ kernels.

        Every kernel sees columns of one set. None where k is not known to be such a sum.
        """
        return None

    def factors(self, groups: Sequence[Places]) -> list[KernelProduct] | None:
        """Return k = Σₜ scaleₜ ∏_g kₜ_g over groups of columns; None where it is no such sum.

        Examples
        --------
        >>> from gpattr.kernels import Linear, SquaredExponential
        >>> terms = (SquaredExponential() * Linear()).factors([(0,), (1,)])
        >>> len(terms), terms[0].factors[0]
        (2, Factor(kernel=SquaredExponential(lengthscale=1.0, variance=1.0), columns=(0,), group=0))
        """
        from gpattr.kernels.factors import factors

        if not isinstance(groups, Sequence):
            raise InvalidInputError(f"groups: expected groups of columns, got {groups!r}")
        for group in groups:
            _check_places("groups", group)
        columns = sorted(column for group in groups for column in group)
        if not columns or columns != list(range(len(columns))):
            raise InvalidInputError(
                f"groups: expected every column, counted from 0, in one group, got {groups!r}"
            )
        self.check_features(len(columns))
        return factors(self, groups)

    def check_derivatives(self, X: Array) -> None:
        """Raise `InvalidInputError` if user-defined derivatives disagree with values at X."""
        for part in self.parts().values():
            part.check_derivatives(X)

    def parts(self) -> dict[str, Kernel]:
        """Return the inner kernels by name: of the field, or ``"0"``, ``"1"``, … in a tuple."""
        found: dict[str, Kernel] = {}
        for name, value in self._fields().items():
            if isinstance(value, Kernel):
                found[name] = value
            elif isinstance(value, tuple):
                found |= {str(i): part for i, part in enumerate(value) if isinstance(part, Kernel)}
        return found

    def map_parts(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        """Return the kernel with ``function`` applied to each of its parts; a leaf is unchanged."""
        if not self.parts():
            return self
        return self._from_fields(_replaced(self._fields(), lambda _, part: function(part)))

    def walk(self, prefix: str = "") -> Iterator[tuple[str, Kernel]]:
        """Yield this kernel and all kernels inside, each with the prefix of its parameters' names.

        Prefixes are as in `get_params`, after the given one; a kernel comes before its parts.
        """
        yield prefix, self
        for name, part in self.parts().items():
            yield from part.walk(f"{prefix}{name}__")

    def leaves(self) -> Iterator[Kernel]:
        """Yield the kernels inside that have no parts, this kernel if it has none."""
        return (kernel for _, kernel in self.walk() if not kernel.parts())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; of parts as ``kernel__name``, or ``0__name``, …"""
        kernels = self.walk() if deep else [("", self)]
        return {
            f"{prefix}{name}": value
            for prefix, kernel in kernels
            for name, value in kernel._fields().items()
        }

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

        def changed(name: str, part: Kernel) -> Kernel:
            return part.with_params(**nested[name]) if name in nested else part

        return self._from_fields(_replaced(fields, changed))

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        """Return a kernel of this class, given all its fields by name."""
        return cls(**fields)

    def __sklearn_clone__(self) -> Self:
        return self  # frozen: a copy could not differ

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __add__(self, other: Kernel | float) -> Kernel:
        from gpattr.kernels.algebra import Sum
        from gpattr.kernels.constant import Constant

        if isinstance(other, Real):
            other = Constant(variance=float(other))
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Kernel | float) -> Kernel:
        # So that sum(kernels), which starts from 0, works.
        return self if isinstance(other, Real) and other == 0 else self + other

    def __mul__(self, other: Kernel | float) -> Kernel:
        from gpattr.kernels.algebra import Product, Scale
        from gpattr.kernels.constant import Constant

        if isinstance(other, Constant):
            other = other.variance
        if isinstance(self, Constant) and isinstance(other, Kernel):
            return Scale(other, variance=self.variance)
        if isinstance(other, Kernel):
            return Product(self, other)
        number: Any = other
        return Scale(self, variance=number) if isinstance(other, Real) else NotImplemented

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


def _replaced(fields: dict[str, Any], function: Callable[[str, Kernel], Kernel]) -> dict[str, Any]:
    """Return fields of a kernel with ``function(name, part)`` in place of every part."""

    def replaced(name: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(
                function(str(i), part) if isinstance(part, Kernel) else part
                for i, part in enumerate(value)
            )
        return function(name, value) if isinstance(value, Kernel) else value

    return {name: replaced(name, value) for name, value in fields.items()}


def of_columns(parameter: Any, places: Places) -> Any:
    """Return a parameter, one number or one per column, as some of the columns see it."""
    values = np.asarray(parameter)
    return values[list(places)] if values.ndim else parameter
