"""Starts and bounds of the hyperparameters, in units in which they are of order one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import numbers
from gpattr.estimators.evidence.marginal_likelihood import NOISE, Values
from gpattr.estimators.hyperparameters import trainable
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import (
    Categorical,
    Constant,
    Kernel,
    Product,
    Radial,
    Select,
    SquaredExponential,
)

# As multiples of the start's order of magnitude: wide enough for any data, narrow enough
# for float64.
DEFAULT_BOUNDS = {
    "lengthscale": (1e-2, 1e4),
    "variance": (1e-4, 1e4),
    "period": (0.2, 5.0),
    NOISE: (1e-6, 1e1),
}
OTHER_BOUNDS = (1e-4, 1e4)
FIXED = "fixed"
CONSTANT = 1e-13  # share of its largest value up to which the spread of a column is rounding
NOISE_SHARE = 0.2  # of the targets' variance, to start with


Labels = tuple[tuple[int, ...], ...]  # columns of each category


@dataclass(frozen=True)
class Units:
    """The units of training: ``std`` (d,) of the features and ``unit`` of the targets.

    Both are in the user's units. The columns of ``labels``, one tuple for each category, stay as
    they are.
    """

    std: np.ndarray
    unit: float
    labels: Labels = ()

    @classmethod
    def of_data(cls, X: Array, y: Array, labels: Labels = ()) -> Units:
        """Return standard deviations as units, 1 for a constant column or target."""
        std, unit = std_of(X), float(std_of(y[:, None])[0]) or 1.0
        return cls.of_std(std, unit, labels)

    @classmethod
    def of_std(cls, std: np.ndarray, unit: float, labels: Labels = ()) -> Units:
        """Return these units, 1 for constant columns and the columns of ``labels``."""
        if not 1e-140 < unit < 1e140:
            raise InvalidInputError(
                "y: expected targets whose square float64 can hold, got a standard deviation of"
                f" {unit:.0e}; rescale them"
            )
        std = np.where(std > 0, std, 1.0)
        std[[i for group in labels for i in group]] = 1.0
        return cls(std, unit, labels)

    @property
    def numbers(self) -> list[int]:
        """The columns that are not of labels."""
        return sorted(set(range(len(self.std))) - {i for group in self.labels for i in group})

    def middle(self, mean: Array) -> Array:
        """Return the vector to subtract from inputs with this ``mean``: zero for labels."""
        if not self.labels:
            return mean
        keep = np.isin(np.arange(len(self.std)), self.numbers)
        return mean * namespace(mean).asarray(keep.astype(np.float64))

    def inside(self, X: Array) -> Array:
        """Return centred inputs in the units of training."""
        return (X - self.middle(X.mean(axis=0))) / namespace(X).asarray(self.std)

    def of(self, name: str) -> Any:
        """Return one unit of this hyperparameter in the user's units."""
        if self.labels and name.endswith("lengthscale"):  # of `mixed_kernel`
            return self.std[self.numbers] if name.startswith("0__") and self.numbers else 1.0
        units = {"lengthscale": self.std, "variance": self.unit**2, NOISE: self.unit**2}
        return units.get(name.split("__")[-1], 1.0)


def std_of(X: Array) -> np.ndarray:
    """Return the standard deviation of each column, exactly 0 for a constant column."""
    X = to_numpy(X)
    size = np.abs(X).max(axis=0)
    # Of order one, so that squares stay in range.
    centred = np.divide(X, size, out=np.zeros_like(X), where=size > 0)
    std = centred.std(axis=0)
    return np.where(std > CONSTANT, std, 0.0) * size


def default_kernel(units: Units, kind: type[Radial] | None = None) -> Kernel:
    """Return the ARD kernel of this kind where training starts, in the user's units.

    Standardised points lie about √(2d) apart; length-scales of 0.6 √d correlate a point with
    its neighbours only. Where there are labels, it is a `mixed_kernel`.
    """
    if units.labels:
        return mixed_kernel(units, kind or SquaredExponential)
    return (kind or SquaredExponential)(
        lengthscale=0.6 * len(units.std) ** 0.5 * units.std, variance=units.unit**2
    )


def mixed_kernel(units: Units, kind: type[Radial]) -> Kernel:
    """Return a kernel of numbers times kernels of the labels of each category, to start from."""
    numbers, variance = units.numbers, units.unit**2
    d = len(numbers) + len(units.labels)
    first: Kernel = Constant(variance)
    if numbers:
        scales = 0.6 * d**0.5 * units.std[numbers]
        first = Select(kind(lengthscale=scales, variance=variance), numbers)
    # Two rows with different labels then have the correlation exp(−0.4/d).
    return Product(first, *(Select(Categorical(1.6 * d**0.5), group) for group in units.labels))


def scaled(kernel: Kernel, units: Units, *, inwards: bool) -> Kernel:
    """Return the kernel with hyperparameters in the units of training, or the user's."""
    values = {}
    for name, value in trainable(kernel).items():
        value = value / units.of(name) if inwards else value * units.of(name)
        values[name] = value if np.ndim(kernel.get_params()[name]) else float(value[0])
    return kernel.with_params(**values)


def bounds_for(
    start: Values,
    units: Units,
    given: Mapping[str, Any] | None,
    target_variance: float,
    *,
    own_start: bool,
) -> dict[str, np.ndarray]:
    """Return lower and upper bounds, (2, size), of every hyperparameter in the units of training.

    A start of our own moves inside the user's bounds; a user's start must lie inside them. One that
    is ``"fixed"`` has no bounds.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"bounds: expected a dictionary {{name: (lower, upper)}}, got {given!r}"
        )
    for name in given:
        if name not in start:
            raise InvalidInputError(
                f"bounds: expected hyperparameters among {list(start)}, got {name!r}"
            )
    free = {name: value for name, value in start.items() if not is_fixed(name, given)}
    for name, value in free.items():
        if not (value > 0).all():
            raise InvalidInputError(
                f"kernel: {name} can be trained from values larger than 0 only, got {value.min()}; "
                f'keep it with bounds={{"{name}": "fixed"}}'
            )
    result = {}
    for name, value in free.items():
        if name not in given:
            result[name] = _default_bounds(name, value, target_variance)
            continue
        result[name] = _user_bounds(name, given[name], value, units.of(name))
        if not (own_start or name == NOISE):
            _check_inside(name, value, result[name], units)
    return result


def _default_bounds(name: str, value: np.ndarray, target_variance: float) -> np.ndarray:
    kind = name.split("__")[-1]
    start = value if name != NOISE else value / NOISE_SHARE
    ends = np.outer(DEFAULT_BOUNDS.get(kind, OTHER_BOUNDS), start)
    if kind == "variance":  # a start far below the targets' own variance must be able to reach it
        ends[1] = np.maximum(ends[1], DEFAULT_BOUNDS["variance"][1] * target_variance)
    return ends


def _check_inside(name: str, value: np.ndarray, ends: np.ndarray, units: Units) -> None:
    outside = (value < ends[0]) | (value > ends[1])
    if outside.any():
        back = np.broadcast_to(units.of(name), value.shape)[outside][0]
        low, high, at = (float(part[outside][0] * back) for part in (ends[0], ends[1], value))
        raise InvalidInputError(
            f"bounds: {name!r} starts at {at:.4g}, outside of ({low:.4g}, {high:.4g}); move the"
            " start inside"
        )


def starts_from(start: Values, n_restarts: int, random_state: RandomLike) -> list[Values]:
    """Return the start, and restarts drawn within a factor of ten around it."""
    generator = random_generator(random_state)
    draws = [
        {
            name: value * 10.0 ** generator.uniform(-1, 1, value.shape)
            for name, value in start.items()
        }
        for _ in range(n_restarts)
    ]
    return [start, *draws]


def is_fixed(name: str, bounds: Mapping[str, Any] | None) -> bool:
    """Return whether the user keeps a hyperparameter as it is."""
    given = (bounds or {}).get(name)
    return isinstance(given, str) and given == FIXED


def _user_bounds(name: str, given: Any, value: np.ndarray, unit: Any) -> np.ndarray:
    try:
        lower, upper = (to_numpy(numbers("bounds", end)) for end in given)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"bounds: expected (lower, upper) or 'fixed' for {name!r}, got {given!r}"
        ) from None
    for end in (lower, upper):
        if end.size not in (1, len(value)):
            raise InvalidInputError(
                f"bounds: expected one number or {len(value)} for {name!r}, got {end.size}"
            )
    ends = np.stack([np.broadcast_to(end / unit, value.shape) for end in (lower, upper)])
    if not (np.isfinite(ends).all() and (ends[0] > 0).all() and (ends[0] <= ends[1]).all()):
        raise InvalidInputError(f"bounds: expected 0 < lower <= upper for {name!r}, got {given!r}")
    return ends
