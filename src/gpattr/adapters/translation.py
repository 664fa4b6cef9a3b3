"""Tables by which kernels of other libraries become ours.

A table has a rule for each class of a library, by its name. Most rules only say which kernel of
ours it is, and which of its attributes our parameters are:

    "RatQuad": rule(RationalQuadratic, lengthscale="ls", alpha="alpha")
    "Add": combined(add, "parts")

Others are functions of the kernel and of `Here`, by which they read parameters and translate parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter
from typing import Any

import numpy as np

from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Polynomial, Select


def value(parameter: Any) -> Any:
    """Return a parameter in float64: a float, or an array of several numbers."""
    array = np.asarray(parameter).astype(np.float64)  # some fail if asked for a dtype at once
    return float(array.reshape(-1)[0]) if array.size == 1 else array


@dataclass(frozen=True)
class KernelTable:
    """The kernels of a ``library``, such as "GPy's", by the names of their classes.

    ``read(kernel, attribute, here)`` returns a parameter; ``here.state`` is whatever kernels of
    the library cannot be read without, such as the place in a batch. ``columns(kernel, d)`` are the
    columns that a kernel sees, of those that are not ``whole``: they see all. ``other`` is the
    rule for kernels that have none, or are not of the ``module``. In errors a kernel is the
    ``argument``.
    """

    library: str
    rules: Mapping[str, Rule]
    argument: str = "kernel"
    module: str | tuple[str, ...] = ""
    read: Callable[[Any, str, Here], Any] = lambda kernel, name, _: value(attrgetter(name)(kernel))
    columns: Callable[[Any, int], Sequence[int]] | None = None
    whole: tuple[str, ...] = ()
    other: Rule | None = None
    name_of: Callable[[Any], str] = lambda kernel: type(kernel).__name__

    def translate(self, kernel: Any, d: int, state: Any = None, *, select: bool = True) -> Kernel:
        """Return a kernel of d columns; unless told to ``select``, of the columns that it sees."""
        name, home = self.name_of(kernel), type(kernel).__module__
        own = home.startswith(self.module)
        found = (self.rules.get(name) if own else None) or self.other
        if found is None:
            what = f"{self.library} {name}" if own else f"{home}.{name}"
            raise UnsupportedModelError(f"{self.argument}: {what} is not supported")
        every = list(range(d))
        features = every
        if self.columns is not None and name not in self.whole and select:
            features = list(self.columns(kernel, d))
        inner = found(kernel, Here(self, features, d, state))
        return inner if features == every else Select(inner, features)


@dataclass(frozen=True)
class Here:
    """The place where a rule is applied: a kernel that sees ``columns`` of ``width``."""

    table: KernelTable
    columns: Sequence[int]
    width: int
    state: Any

    @property
    def d(self) -> int:
        """The number of columns that the kernel sees."""
        return len(self.columns)

    def value(self, kernel: Any, attribute: str) -> Any:
        """Return a parameter of a kernel."""
        return self.table.read(kernel, attribute, self)

    def part(self, kernel: Any, d: int | None = None, *, select: bool = True) -> Kernel:
        """Return a kernel inside of this one, of all of its columns unless told."""
        return self.table.translate(kernel, d or self.d, self.state, select=select)

    def refusal(self, reason: str) -> UnsupportedModelError:
        """Return the error for a kernel that cannot be translated."""
        return UnsupportedModelError(f"{self.table.argument}: {reason}")

    def whole_power(self, what: str, power: float, word: str) -> int:
        """Return a power as a whole number, 1 or more; raise for others."""
        if power != round(power) or power < 1:
            raise self.refusal(f"{what} {power:g} is not supported; {word}s are 1, 2, 3, …")
        return int(power)

    def require_one_column(self, what: str) -> None:
        """Raise for a function of distance that is a kernel on a line only."""
        if self.d > 1:
            raise self.refusal(
                f"{what} of {self.d} features is a function of their distance and not positive"
                " definite"
            )


Rule = Callable[[Any, Here], Kernel]
Parameter = str | tuple[str, Callable[[Any], Any]]


def rule(kind: Callable[..., Kernel], **parameters: Parameter) -> Rule:
    """Return the rule for a kernel of a ``kind`` of ours.

    ``parameters`` are ours by the attributes of theirs, or by (attribute, function of it).
    """

    def translated(kernel: Any, here: Here) -> Kernel:
        found = {}
        for name, source in parameters.items():
            attribute, change = (source, None) if isinstance(source, str) else source
            theirs = here.value(kernel, attribute)
            found[name] = theirs if change is None else change(theirs)
        return kind(**found)

    return translated


def combined(combine: Callable[[Any, Any], Any], *attributes: str) -> Rule:
    """Return the rule for a sum or a product of an attribute's kernels, or of several's."""

    def translated(kernel: Any, here: Here) -> Kernel:
        parts = [getattr(kernel, attribute) for attribute in attributes]
        parts = parts if len(parts) > 1 else parts[0]
        return reduce(combine, [here.part(part) for part in parts])

    return translated


def polynomial(degree: int, offset: float, variance: Any = 1.0) -> Kernel:
    """Return (σ²x·x' + c)^degree, of the degree 1 with c = 0 too."""
    if degree > 1:
        return Polynomial(variance, degree=degree, offset=offset)
    return Linear(variance) + Constant(offset)


def twice(value: Any) -> Any:
    """Return 2ℓ: where sin² has the factor ½, as ours has 2."""
    return 2.0 * np.asarray(value)
