"""Distribution: the joint distribution of a few numbers in each of many rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from gpattr._core.array import Array, is_tensor, namespace, to_numpy
from gpattr._core.frozen import Frozen
from gpattr._core.randomness import RandomLike
from gpattr._core.validation import beside, check_choice, numbers
from gpattr.distributions.marginals import Marginals
from gpattr.distributions.positions import listed, positions
from gpattr.exceptions import InvalidInputError, MissingUncertaintyError, UnsupportedModelError

D = TypeVar("D", bound="Distribution")
Dimensions = tuple[str, ...]
MOMENTS: dict[str, Dimensions] = {
    "mean": ("row", "entry"),
    "var": ("row", "entry"),
    "cov": ("row", "entry", "entry"),
}


class Distribution(Frozen, ABC):
    """The joint distribution of q numbers in each of n rows; rows are independent.

    ``mean`` is (n, q); ``var`` (n, q) and ``cov`` (n, q, q) are None where they were not computed.
    Arrays are NumPy arrays or PyTorch tensors; probabilities, intervals and draws are NumPy arrays.

    A subclass names its arrays and their dimensions in ``arrays``, and those that it cannot do
    without in ``required``: rows and entries are selected, joined and stored by these names.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.distributions import Distribution, Gaussian
    >>> both = Gaussian(np.array([[1.0, -2.0]]), cov=np.eye(2)[None])
    >>> isinstance(both, Distribution), both.shape
    (True, (1, 2))
    >>> both.linear(np.array([[1.0], [1.0]])).mean  # of the sum
    array([[-1.]])
    """

    arrays: ClassVar[Mapping[str, Dimensions]]
    required: ClassVar[tuple[str, ...]] = ("mean",)

    mean: Array
    var: Array | None
    cov: Array | None

    def __post_init__(self) -> None:
        sizes: dict[str, int] = {}
        for name, dimensions in self.arrays.items():
            value = vars(self)[name]
            if value is None and name not in self.required:
                continue
            array = as_array(name, value)
            if array.ndim != len(dimensions):
                expected = ", ".join(dimensions)
                raise InvalidInputError(
                    f"{name}: expected an array ({expected}), got the shape {tuple(array.shape)}"
                )
            for dimension, size in zip(dimensions, array.shape, strict=True):
                sizes.setdefault(dimension, size)
            expected = tuple(sizes[dimension] for dimension in dimensions)
            if tuple(array.shape) != expected:
                raise InvalidInputError(
                    f"{name}: expected the shape {expected}, got {tuple(array.shape)}"
                )
            self._set(name, array)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of numbers in each, (n, q)."""
        n, q = self.mean.shape
        return n, q

    def held(self) -> dict[str, Array]:
        """Return the arrays that were computed, by name."""
        parts = vars(self)
        return {name: parts[name] for name in self.arrays if parts[name] is not None}

    @abstractmethod
    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends, each (n, q), of the central credible intervals."""

    def cdf(self, x: Any) -> np.ndarray:
        """Return P(number ≤ x), with x broadcasting against (n, q)."""
        return self.marginals().cdf(x)

    @abstractmethod
    def prob_positive(self) -> np.ndarray:
        """Return P(number > 0), (n, q); ½ for a number that is exactly zero."""

    @abstractmethod
    def prob_greater(self, i: int, j: int) -> np.ndarray:
        """Return P(number i > number j) in each row, (n,)."""

    @abstractmethod
    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> np.ndarray:
        """Return P(number has rank r), (n, q, q) with the rank last, rank 0 the largest.

        Ranks go by absolute size, or by signed value with ``absolute=False``. Exact ties share
        their ranks evenly.
        """

    @abstractmethod
    def sample(self, n: int = 1, random_state: RandomLike = None) -> np.ndarray:
        """Return n draws, (n, rows, q), joint within a row."""

    @abstractmethod
    def linear(self: D, G: Any) -> D:
        """Return the distribution of the sums Σᵢ Gᵢⱼ·, for G (q, k)."""

    def marginals(self) -> Marginals:
        """Return the distribution of each number by itself, as a mixture of Gaussians."""
        raise UnsupportedModelError(
            "mixture: these attributions are known by draws, not as a mixture of Gaussians"
        )

    def shares_between(self) -> Array:
        """Return the share of each variance that comes from between components, (n, q)."""
        return self.marginals().between

    def standard_error(self) -> np.ndarray:
        """Return the standard error of the mean of the draws, (n, q)."""
        raise UnsupportedModelError(_without_draws("standard_error", self))

    def interval_error(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard errors of both ends of the interval, each (n, q)."""
        raise UnsupportedModelError(_without_draws("interval_error", self))

    def select(self: D, rows: Any, entries: Any) -> D:
        """Return the distribution of some entries in some rows, given by their positions."""
        n, q = self.shape
        chosen = {"row": positions("rows", rows, n), "entry": positions("entries", entries, q)}
        # What keeps its place is not copied.
        chosen = {
            dimension: index
            for (dimension, index), size in zip(chosen.items(), (n, q), strict=True)
            if not np.array_equal(index, np.arange(size))
        }

        def taken(dimensions: tuple[str, ...], array: Array) -> Array:
            for axis, dimension in enumerate(dimensions):
                if dimension in chosen:
                    array = owned(array[(slice(None),) * axis + (chosen[dimension],)])
            return array

        return self._with(taken)

    def without_cov(self: D) -> D:
        """Return the distribution without covariances, its variances kept."""
        kept = {
            name: array
            for name, array in self.held().items()
            if self.arrays[name].count("entry") < 2
        }
        return type(self)(**kept)

    def numpy(self: D) -> D:
        """Return the distribution with read-only NumPy arrays of float64: itself if it has them."""
        arrays = self.held().values()
        if all(type(array) is np.ndarray and not array.flags.writeable for array in arrays):
            return self
        return self._with(lambda _, array: read_only(array))

    @staticmethod
    def concatenate(parts: Iterable[Distribution]) -> Distribution:
        """Return distributions of one kind, row after row, as one."""
        parts = _checked_parts(parts)
        first, arrays = parts[0], {}
        for name, whole in first.held().items():
            pieces, dimensions = [part.held()[name] for part in parts], first.arrays[name]
            row = dimensions.index("row") if "row" in dimensions else None
            shapes = {tuple(np.delete(piece.shape, [] if row is None else row)) for piece in pieces}
            same = all(_equal(piece, whole) for piece in pieces) if row is None else True
            if len(shapes) > 1 or not same:
                raise InvalidInputError(
                    f"parts: expected distributions of the same numbers, but their {name} differ"
                )
            xp = namespace(*pieces)
            arrays[name] = whole if row is None else owned(xp.concatenate(pieces, axis=row))
        return type(first)(**arrays)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Distribution):
            return NotImplemented
        one, two = self.held(), other.held()
        return one.keys() == two.keys() and all(_equal(one[name], two[name]) for name in one)

    def __repr__(self) -> str:
        n, q = self.shape
        return f"{type(self).__name__}: {n:,} row{'s' * (n != 1)} of {q} number{'s' * (q != 1)}"

    def need(self, name: str) -> Array:
        """Return the array of this name; raise `MissingUncertaintyError` if it was not computed."""
        array = vars(self)[check_choice("name", name, tuple(vars(self)))]
        if array is None:
            raise missing(name)
        return array

    def _with(self: D, change: Callable[[tuple[str, ...], Array], Array]) -> D:
        """Return the distribution with ``change(dimensions, array)`` of every array."""
        arrays = {name: change(self.arrays[name], array) for name, array in self.held().items()}
        return type(self)(**arrays)

    def _set(self, name: str, value: Array | None) -> None:
        object.__setattr__(self, name, value)

    def _combination(self, G: Any) -> Array:
        """Return G (q, k) as an array of the library of ``mean``, on its device."""
        G = as_array("G", G)
        if G.ndim != 2 or len(G) != self.shape[1]:
            raise InvalidInputError(
                f"G: expected a matrix of {self.shape[1]} rows, one for each number, got the shape"
                f" {tuple(G.shape)}"
            )
        return beside("G", G, self.mean)


def linear_moments(
    G: Array, mean: Array, var: Array | None, cov: Array | None
) -> tuple[Array, Array | None, Array | None]:
    """Return mean, variances and covariances of the sums Σᵢ Gᵢⱼ·, of arrays (..., q)."""
    mean = owned(mean @ G)
    if cov is not None:
        cov = owned(G.T @ cov @ G)
        return mean, diagonal(cov), cov
    return mean, None if var is None else owned(_scaled(var, G)), None


def diagonal(cov: Array) -> Array:
    """Return the variances (..., q) of covariances (..., q, q), not below zero."""
    xp = namespace(cov)
    return owned(xp.maximum(xp.diagonal(cov, axis1=-2, axis2=-1), 0.0))


def missing(name: str) -> MissingUncertaintyError:
    """Return the error for an array that was not computed."""
    what, request = (
        ("the covariance between features", "cov")
        if name.startswith("cov")
        else ("variances", "std")
    )
    return MissingUncertaintyError(
        f"This needs {what}, which the explanation does not hold: explain with"
        f" uncertainty={request!r}"
    )


def owned(array: Array) -> Array:
    """Return an array that nobody else holds, marked as read-only if it is a NumPy array."""
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array


def read_only(array: Array) -> np.ndarray:
    """Return a read-only NumPy array of float64, a copy where somebody else may write into it."""
    found = np.asarray(to_numpy(array), dtype=np.float64)
    return owned(found.copy()) if found.flags.writeable else found


def _scaled(var: Array, G: Array) -> Array:
    """Return the variances of sums of at most one term each; other sums need covariances."""
    weights = to_numpy(G)
    if ((weights != 0).sum(axis=0) > 1).any():
        raise missing("cov")
    if not len(weights):
        return namespace(var).zeros((*var.shape[:-1], weights.shape[1]))
    term = np.abs(weights).argmax(axis=0)
    return var[..., term] * namespace(var).asarray(weights[term, np.arange(len(term))] ** 2)


def as_array(name: str, value: Any) -> Array:
    """Return an array of float64, the one that is given if it is one."""
    plain = isinstance(value, np.ndarray) and type(value) is np.ndarray
    if is_tensor(value) or (plain and value.dtype == np.float64):
        return value
    return numbers(name, value)


def _checked_parts(parts: Any) -> list[Distribution]:
    found = listed(parts)
    if not found or not all(isinstance(part, Distribution) for part in found):
        raise InvalidInputError(f"parts: expected distributions, got {parts!r}")
    first = found[0]
    for part in found:
        if type(part) is not type(first):
            raise InvalidInputError(
                f"parts: expected distributions of one kind, got a {type(first).__name__} and a"
                f" {type(part).__name__}"
            )
        if part.held().keys() != first.held().keys():
            raise InvalidInputError(
                f"parts: expected the same arrays in each, got {', '.join(first.held())} and"
                f" {', '.join(part.held())}"
            )
    return found


def _equal(one: Array, two: Array) -> bool:
    return np.array_equal(to_numpy(one), to_numpy(two), equal_nan=True)


def _without_draws(name: str, distribution: Distribution) -> str:
    return (
        f"{name}: expected attributions known by draws, whose errors shrink with their number; this"
        f" is a {type(distribution).__name__}"
    )
