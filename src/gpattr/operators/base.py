"""The operator protocol, and the sites on which operators act."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from gpattr._core.arguments import Checked, an_array, instance, positions, some_rows
from gpattr._core.array import Array, namespace
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.operators.affine_map import AffineMap


class Sites(Checked, ABC):
    """Places where functionals act: points for a gradient, paths for integrated gradients.

    There is one site per row.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import Points, Sites
    >>> sites = Points(np.arange(6.0).reshape(3, 2))
    >>> isinstance(sites, Sites), sites[1:].shape
    (True, (2, 2))
    """

    checks: ClassVar[Any] = {"rows": positions, "features": positions}

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number of sites and of features, (n, d)."""

    @property
    @abstractmethod
    def like(self) -> Array:
        """An array of the library and on the device that these sites live on."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Self:
        """Return the sites of these rows (a slice or an index array)."""

    @classmethod
    @abstractmethod
    def stack(cls, batches: Sequence[Any]) -> Self:
        """Return the sites of several batches, one after the other."""

    @abstractmethod
    def select(self, features: Array) -> Self:
        """Return the sites as seen by a kernel that depends on these features only."""


def check_batches(kind: type[Sites], batches: Any) -> None:
    """Raise `InvalidInputError` unless these are batches of sites of one kind."""
    listed = isinstance(batches, (list, tuple)) and bool(batches)
    if not listed or not all(isinstance(batch, kind) for batch in batches):
        raise InvalidInputError(f"batches: expected a list of {kind.__name__}, got {batches!r}")


@dataclass(frozen=True, eq=False)
class Reference:
    """The points that an operator compares rows with: ``points`` (k, d).

    There is one for each row where it is ``per_row``; otherwise they are averaged with ``weights``
    (k,), equal to 1 for a single point; where they are ``independent``, features are drawn from
    them independently of each other.

    Examples
    --------
    >>> from gpattr.operators import IntegratedGradients
    >>> IntegratedGradients([0.0, 1.0]).reference.points
    array([[0., 1.]])
    """

    points: Array
    weights: Array
    per_row: bool = False
    independent: bool = False


class Operator(Checked, ABC):
    """A linear map from functions f to numbers at every row, 𝒜f(xₙ).

    ``axes`` are the names of its output dimensions after the row: ("feature",) for one number per
    feature, ("feature", "feature") for one per pair, () for a single number. Inside, outputs are
    flat: q is the product of their sizes. ``methods`` are the values of ``method=`` it accepts.

    ``vanishes_on_constants`` says that 𝒜1 = 0; ``dummy`` that the output of a feature is 0 for
    functions that do not depend on it (the dummy axiom); ``additive`` that the values of several
    columns that encode one feature add up to the feature's.

    Examples
    --------
    >>> from gpattr.operators import IntegratedGradients
    >>> operator = IntegratedGradients([0.0, 0.0])
    >>> operator.axes, operator.vanishes_on_constants, operator.dummy
    (('feature',), True, True)
    """

    axes: ClassVar[tuple[str, ...]] = ("feature",)
    methods: ClassVar[tuple[str, ...]] = ("auto", "exact")
    vanishes_on_constants: ClassVar[bool] = False
    dummy: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    checks: ClassVar[Any] = {
        "X": some_rows,
        "rows": positions,
        "units": instance(AffineMap, "a gpattr AffineMap"),
        "like": an_array,
        "encoding": some_rows,
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not isinstance(cls.axes, tuple):
            raise InvalidInputError(
                f"{cls.__name__}: expected `axes` to be a tuple of names, got {cls.axes!r}"
            )

    @abstractmethod
    def terms(self, X: Array) -> list[tuple[float, Sites]]:
        """Return weights and sites: 𝒜f(xₙ) is the weighted sum of elementary functionals."""

    def rows(self, rows: Any) -> Operator:
        """Return the operator for these rows of X only (a slice or an index array).

        An operator that holds something for each row must define it: rows are taken by blocks.
        """
        return self

    def sizes(self, d: int) -> tuple[int, ...]:
        """Return the sizes of the axes for d features."""
        for axis in self.axes:
            if axis != "feature":
                raise UnsupportedModelError(
                    f"{type(self).__name__}: expected `sizes` to give the size of the axis {axis!r}"
                )
        return (d,) * len(self.axes)

    def size(self, d: int) -> int:
        """Return the number q of outputs for d features."""
        return math.prod(self.sizes(d))

    @property
    def jumps(self) -> tuple[int, ...]:
        """The positions of features that jump: categories, which have nothing in between."""
        return ()

    @property
    def coordinates(self) -> Mapping[str, Sequence[str | float]]:
        """Labels along axes other than "feature", by axis; positions for axes without them."""
        return {}

    @property
    def reference(self) -> Reference | None:
        """The reference of rows, if 𝒜f adds up to the difference of f; None otherwise."""
        return None

    def in_units(self, units: AffineMap) -> Operator:
        """Return the operator of g, for f(x) = g(u(x)) behind the affine map u."""
        raise UnsupportedModelError(
            f"{type(self).__name__}: it does not define `in_units` and `pull_back`, so it is not"
            " supported behind scaled or selected inputs"
        )

    def pull_back(self, units: AffineMap, like: Array) -> Array:
        """Return the matrix (Q, q) by which the Q outputs for g become the q for f = g∘u."""
        raise UnsupportedModelError(
            f"{type(self).__name__}: it does not define `in_units` and `pull_back`, so it is not"
            " supported behind scaled or selected inputs"
        )

    def why_inexact(self) -> str:
        """Return a remark for the error where `method="exact"` is refused."""
        return ""

    def encoded(self, encoding: Array) -> Operator:
        """Return the operator to ask of a function of encoded columns; see `gather`."""
        return self

    def gather(self, encoding: Array) -> Array:
        """Return the matrix (Q, q) by which outputs of columns become outputs of features.

        ``encoding`` (D, d) says which of D encoded columns belong to which of d features.
        """
        if "feature" in self.axes and not self.additive:
            raise UnsupportedModelError(
                f"{type(self).__name__}: its values of several columns do not add up to that of a"
                " feature, so it is not supported for models with encoded columns"
            )
        return over_axes(self, encoding)


def over_axes(operator: Operator, matrix: Array) -> Array:
    """Return a matrix (D, d) between features as one between the flat outputs of an operator.

    It acts on every axis called "feature", and other axes stay: the Kronecker product.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.operators import Gradient, over_axes
    >>> over_axes(Gradient(), np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[1., 0.],
           [0., 2.]])
    """
    if not isinstance(operator, Operator):
        raise InvalidInputError(f"operator: expected a gpattr operator, got {operator!r}")
    some_rows("matrix", matrix)
    xp = namespace(matrix)
    result = xp.full((1, 1), 1.0)
    for axis, size in zip(operator.axes, operator.sizes(matrix.shape[1]), strict=True):
        factor = matrix if axis == "feature" else xp.eye(size)
        (a, b), (c, d) = result.shape, factor.shape
        result = (result[:, None, :, None] * factor[None, :, None, :]).reshape(a * c, b * d)
    return result
