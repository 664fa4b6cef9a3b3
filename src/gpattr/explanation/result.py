"""Results: arrays with dimensions, text, frames and files, which all results share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from html import escape
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np

from gpattr._core import documents
from gpattr._core.array import Array, FloatArray
from gpattr._core.frozen import Frozen
from gpattr.distributions import Distribution
from gpattr.distributions.base import read_only

if TYPE_CHECKING:
    import pandas as pd

INTEGRATED_GRADIENTS = "integrated gradients"
SHAPLEY_VALUES = "Shapley values"
SHOWN = 10  # lines of a table
Dimensions = tuple[str, ...]
Table = tuple[list[str], list[list[str]]]  # header, lines
RowNames = tuple[str | int, ...]
T = TypeVar("T")


class Result(Frozen, ABC):
    """A frozen result with read-only arrays; its text is a heading, a table and notes."""

    DIMENSIONS: ClassVar[Mapping[str, Dimensions]] = {}  # of the arrays among the fields

    def __post_init__(self) -> None:
        for name in self.DIMENSIONS:
            if vars(self)[name] is not None:
                self._set(name, read_only(vars(self)[name]))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @abstractmethod
    def _heading(self) -> list[str]:
        """Return the title, and the lines below it."""

    def _table(self) -> Table | None:
        """Return the header and the lines of a table, the largest first; None for no table."""
        return None

    def _notes(self) -> list[str]:
        """Return the lines below the table."""
        return []

    def __repr__(self) -> str:
        return as_lines(self._heading(), self._table(), self._notes())

    def _repr_html_(self) -> str:
        table = self._table()
        if table is None:
            return f"<pre>{escape(repr(self))}</pre>"
        return as_html(self._heading(), table, self._notes())


class JointResult(Result):
    """A result whose numbers have a joint ``distribution``, which answers in their own shape.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> ex = gpattr.Explainer(model, baseline="zeros")([[1.0, 0.0], [1.0, -2.0]])
    """

    distribution: Any  # a Distribution, which subclasses may narrow

    @property
    def values(self) -> FloatArray:
        """The means."""
        return self._asked(lambda known: known.mean)

    @property
    def var(self) -> FloatArray | None:
        """The variances, in the shape of ``values``; None where they were not requested."""
        return self._asked(lambda known: known.var)

    @property
    def std(self) -> FloatArray | None:
        """The standard deviations, in the shape of ``values``; None where not requested."""
        return self._asked(lambda known: None if known.var is None else np.sqrt(known.var))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of the central credible intervals, shaped as ``values``.

        Examples
        --------
        >>> lower, upper = ex.interval(0.9)
        >>> bool((lower <= ex.values).all() and (ex.values <= upper).all())
        True
        """
        return self._asked(lambda known: known.interval(level))

    def prob_positive(self) -> FloatArray:
        """Return P(number > 0), shaped as ``values``.

        A number that is exactly zero with no variance gives ½: no evidence for either sign.

        Examples
        --------
        >>> ex.prob_positive().round(2)
        array([[1. , 0.5],
               [1. , 0. ]])
        """
        return self._asked(lambda known: known.prob_positive())

    def _asked(self, question: Callable[[Distribution], Any]) -> Any:
        """Return the distribution's answer, (n, q) or a pair of these, in our own shape."""
        answer = question(self.distribution)
        if isinstance(answer, tuple):
            return tuple(map(self._shaped, answer))
        return None if answer is None else self._shaped(answer)

    def _shaped(self, numbers: Array) -> Array:
        """Return numbers of the distribution, (n, q), in the shape of the result."""
        return numbers


class StoredResult(Result):
    """A result that can be written to a file and read back as an equal one.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> ex = gpattr.Explainer(model, baseline="zeros")([[1.0, 0.0], [1.0, -2.0]])
    """

    FORMATS: ClassVar[tuple[str, ...]]  # of files: the first is written, all are read

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the file that `save` writes, as JSON values.

        Examples
        --------
        >>> ex.to_dict()["feature_names"]
        ['x0', 'x1']
        """
        return self._content()

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Return the content of a file."""

    @classmethod
    @abstractmethod
    def _of_content(cls, content: Any) -> Any:
        """Return the result that the content of a file is."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON file; `load` restores the result to the last bit.

        Examples
        --------
        >>> ex.save("explanation.json")
        >>> gpattr.Explanation.load("explanation.json") == ex
        True
        """
        documents.write(self.FORMATS[0], self.to_dict(), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file written by `save`; a truncated or foreign file is refused."""
        return documents.read(cls.FORMATS, path, cls._of_content)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        one, two = vars(self), vars(other)
        return all(same(one[field.name], two[field.name]) for field in fields(self))  # pyright: ignore[reportArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class Forwarded(property, Generic[T]):
    """A property of a part of the result: ``Forwarded[int]("part.name", "Its docstring.")``."""

    def __init__(self, path: str, doc: str) -> None:
        find = attrgetter(path)
        super().__init__(lambda self: find(self), doc=doc)

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type | None = None) -> Forwarded[T]: ...

        @overload
        def __get__(self, instance: Any, owner: type | None = None) -> T: ...

        def __get__(self, instance: Any, owner: type | None = None) -> Any: ...


def same(one: Any, two: Any) -> bool:
    """Return whether two values of a field are equal, arrays number by number."""
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return np.array_equal(one, two, equal_nan=True)
    return type(one) is type(two) and bool(one == two)


def remark(attribution: str) -> str:
    """Return the name where it has to be mentioned: "" for integrated gradients, the default."""
    return "" if attribution == INTEGRATED_GRADIENTS else attribution


def counted(n: int, what: str) -> str:
    """Return a number of things in words: "1 row", "1,599 rows"."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def spread(result: JointResult, level: float) -> dict[str, Array]:
    """Return columns of a frame: standard deviations and intervals, or none."""
    if result.std is None:
        return {}
    lower, upper = result.interval(level)
    return {"std": result.std, "lower": lower, "upper": upper}


def long_frame(labels: Mapping[str, Sequence[Any]], columns: Mapping[str, Array]) -> pd.DataFrame:
    """Return one line for each combination of labels, the last running fastest."""
    import pandas as pd

    sizes = [len(names) for names in labels.values()]
    frame: dict[str, Any] = {}
    for k, (name, names) in enumerate(labels.items()):
        inner = np.repeat(np.asarray(names, dtype=object), math.prod(sizes[k + 1 :]))
        frame[name] = np.tile(inner, math.prod(sizes[:k]))
    return pd.DataFrame(frame | {name: np.ravel(array) for name, array in columns.items()})


def as_lines(heading: list[str], table: Table | None, notes: list[str]) -> str:
    """Return a heading, a table and notes as lines of text."""
    header, lines = table or ([], [])
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    aligned = [
        "  "
        + "  ".join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)),
            ]
        )
        for line in ([header, *lines] if table else [])
    ]
    return "\n".join(
        [*heading, *(line.rstrip() for line in aligned), *(f"  {note}" for note in notes)]
    )


def as_html(heading: list[str], table: Table, notes: list[str]) -> str:
    """Return a heading, a table and notes as HTML."""

    def line(cells: list[str], tag: str) -> str:
        sides = ["left"] + ["right"] * (len(cells) - 1)
        return "".join(
            f"<{tag} style='text-align:{s}'>{escape(c)}</{tag}>"
            for c, s in zip(cells, sides, strict=True)
        )

    header, lines = table
    title, *subtitle = heading
    body = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in lines)
    above, below = (
        "".join(f"<div>{escape(text)}</div>" for text in texts) for texts in (subtitle, notes)
    )
    shown = f"<table><thead><tr>{line(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(title)}</strong>{above}{shown}{below}</div>"
