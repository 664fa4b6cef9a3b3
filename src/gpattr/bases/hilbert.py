"""Eigenfunctions of the Laplacian on a box: the basis of Hilbert-space models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import index

import numpy as np

from gpattr._core.array import Array, namespace, to_numpy
from gpattr._core.memory import check_memory
from gpattr._core.validation import as_matrix, as_vector, check_names, positive, read_only
from gpattr.bases.base import Basis
from gpattr.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Hilbert(Basis):
    """φⱼ(x) = Πᵢ sin(ωⱼᵢ(xᵢ − cᵢ + Lᵢ)), ωⱼᵢ = π jᵢ/2Lᵢ, on the box |xᵢ − cᵢ| ≤ Lᵢ.

    All functions vanish at the sides of the box. (The literature divides them by √Lᵢ; here that is
    part of the weights, so that a change of units changes nothing.)

    ``centre`` c and ``half_width`` L are (d,); ``n_basis`` (d,) is the number of functions of each
    feature: all their products are in the basis, so that p = Πᵢ n_basisᵢ. ``extent`` (d,) is half
    the range of the data, from which an error computes the box that is needed, and ``labels`` are
    the names of the features in it. (Solin and Särkkä 2020; Riutort-Mayol et al. 2023.)

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.bases import Hilbert
    >>> basis = Hilbert(centre=[0.0, 0.0], half_width=[3.0, 3.0], n_basis=(4, 5))
    >>> len(basis), basis(np.zeros((2, 2))).shape
    (20, (2, 20))
    """

    centre: Array
    half_width: Array
    n_basis: tuple[int, ...]
    extent: Array | None = None
    labels: tuple[str, ...] | None = None
    indices: Array = field(init=False)

    def __post_init__(self) -> None:
        centre = read_only(to_numpy(as_vector("centre", self.centre)))
        d = len(centre)
        if not d:
            raise InvalidInputError(
                "centre: expected a number for each of at least one feature, got none"
            )
        half = to_numpy(
            as_vector("half_width", self.half_width, length=d, unit="numbers (one per feature)")
        )
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "half_width", positive("half_width", half))
        try:
            numbers = tuple(index(number) for number in self.n_basis)
        except TypeError:
            numbers = ()
        if len(numbers) != d or min(numbers) < 1:
            raise InvalidInputError(
                f"n_basis: expected {d} integers of 1 or more, got {self.n_basis!r}"
            )
        check_memory(
            f"n_basis: the {math.prod(numbers)} functions", (math.prod(numbers), d), "use fewer"
        )
        object.__setattr__(self, "n_basis", numbers)
        if self.extent is not None:
            extent = as_vector("extent", self.extent, length=d, unit="numbers (one per feature)")
            object.__setattr__(self, "extent", positive("extent", to_numpy(extent)))
        if self.labels is not None:
            object.__setattr__(self, "labels", check_names("labels", self.labels, d))
        grid = np.indices(numbers).reshape(d, -1).T + 1.0
        object.__setattr__(self, "indices", read_only(as_matrix("indices", grid)))

    @property
    def n_features(self) -> int:
        return len(self.centre)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def frequencies(self) -> Array:
        """ωⱼᵢ, the square roots of the eigenvalues, (p, d)."""
        return self.indices * (0.5 * math.pi / self.half_width)

    @property
    def lower(self) -> Array:
        """The corner c − L of the box, (d,)."""
        return self.centre - self.half_width

    def __call__(self, X: Array) -> Array:
        xp = namespace(X)
        u = X - xp.asarray(self.lower)
        result = xp.zeros((len(X), 1)) + 1.0
        for i, number in enumerate(self.n_basis):  # at most three features
            omega = xp.asarray(np.arange(1.0, number + 1.0) * (0.5 * math.pi / self.half_width[i]))
            sines = xp.sin(u[:, i, None] * omega)
            result = (result[:, :, None] * sines[:, None, :]).reshape(len(X), -1)
        return result

    def phase(self, X: Array) -> float:
        return float((0.5 * math.pi * np.array(self.n_basis)).sum() * 2.0)

    def check_rows(self, name: str, X: Array) -> None:
        offset = abs(to_numpy(X) - self.centre)
        outside = offset > self.half_width * (1.0 + 1e-12)
        if not outside.any():
            return
        row, i = map(int, np.argwhere(outside)[0])
        label = f"column {i}" if self.labels is None else self.labels[i]
        extent = self.half_width if self.extent is None else self.extent
        with np.errstate(over="ignore"):
            factor = float((offset / extent).max())
        needed = math.ceil(10.0 * factor + 0.5) / 10.0 if factor < 1e6 else factor
        low, high = (float(self.centre[i] + side * self.half_width[i]) for side in (-1, 1))
        raise InvalidInputError(
            f"{name}: row {row} has {float(to_numpy(X)[row, i]):.6g} in {label}, outside of the box"
            f" from {low:.6g} to {high:.6g} of the basis; fit again with"
            f" boundary={needed:.8g} or larger, or a domain= that contains it"
        )
