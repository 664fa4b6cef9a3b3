"""Basis functions as products of factors of players: powers, sines, and waves.

Functions are taken by slices: monomials and eigenfunctions one by one, sine and cosine of a wave
together as its imaginary and its real part.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from gpattr._core.array import Array, namespace, product
from gpattr.bases import Basis, Fourier, Hilbert, Monomials
from gpattr.closed_forms.shapley.differences import Pair

Columns = tuple[int, ...]


class BasisFactors(ABC):
    """The functions of a basis as ``count`` products; in each at most ``degree`` columns vary.

    A product is one function, or two.
    """

    functions: int
    count: int
    degree: int

    @abstractmethod
    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        """Return the factor of a player's columns at rows X (n, d), for some functions, (n, f)."""

    @abstractmethod
    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        """Return the same at rows and at baselines, (n, d) or (1, d)."""

    def parts(self, value: Array) -> list[tuple[int, Array]]:
        """Return the functions that products are, each with where it stands in the basis."""
        return [(0, value)]


class PowerFactors(BasisFactors):
    """Monomials: powers of each column."""

    def __init__(self, basis: Monomials) -> None:
        self.basis, self.functions = basis, len(basis)
        self.count, self.degree = len(basis), basis.degree

    def _by_power(self, first: Any, column: int, some: slice, one: Any) -> list[Any]:
        """Return powers 0, 1, … of a value up to the highest that these functions have."""
        powers = [one]
        for _ in range(int(self.basis.powers[some, column].max())):
            powers.append(powers[-1] * first)
        return powers

    def _gathered(self, powers: list[Array], column: int, some: slice) -> Array:
        places = self.basis.powers[some, column].astype(int).tolist()
        return namespace(powers[0]).stack(powers, axis=1)[:, places]

    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        u, result = self.basis.local(X), None
        for column in columns:
            ones = 0.0 * u[:, column] + 1.0
            powers = self._by_power(u[:, column], column, some, ones)
            factor = self._gathered(powers, column, some)
            result = factor if result is None else result * factor
        return result

    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        xp, basis, result = namespace(X), self.basis, None
        u, v, step = basis.local(X), basis.local(B), X - B
        step = step if basis.scale is None else step / xp.asarray(basis.scale)
        for column in columns:
            first = Pair.exact(0.5 * u[:, column] + 0.5 * v[:, column], step[:, column])
            ones = 0.0 * first.mean + 1.0
            powers = self._by_power(first, column, some, Pair(ones, 0.0 * ones, ones, 0.0 * ones))
            parts = zip(*((p.mean, p.step, p.size, p.slack) for p in powers), strict=True)
            factor = Pair(*(self._gathered(list(part), column, some) for part in parts))
            result = factor if result is None else result * factor
        assert result is not None
        return result


class SineFactors(BasisFactors):
    """Eigenfunctions of the Laplacian: a sine of each column, sin a − sin b = 2 cos(·) sin(·)."""

    def __init__(self, basis: Hilbert) -> None:
        self.basis, self.functions = basis, len(basis)
        self.count, self.degree = len(basis), basis.n_features

    def _table(self, u: Array, column: int, some: slice, function: Callable[..., Any]) -> Any:
        """Return a function of ωu for every frequency of a column, for some functions, (n, f)."""
        basis = self.basis
        omega = np.arange(1.0, basis.n_basis[column] + 1.0)
        omega = omega * (0.5 * math.pi / basis.half_width[column])
        places = (basis.indices[some, column].astype(int) - 1).tolist()
        return function(u[:, column, None] * namespace(u).asarray(omega))[:, places]

    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        xp, result = namespace(X), None
        u = X - xp.asarray(self.basis.lower)
        for column in columns:
            factor = self._table(u, column, some, xp.sin)
            result = factor if result is None else result * factor
        return result

    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        xp, result = namespace(X), None
        lower = xp.asarray(self.basis.lower)
        middle, half = 0.5 * (X - lower) + 0.5 * (B - lower), 0.5 * (X - B)
        for column in columns:
            sine, cosine = (self._table(middle, column, some, f) for f in (xp.sin, xp.cos))
            rise, level = (self._table(half, column, some, f) for f in (xp.sin, xp.cos))
            factor = Pair.exact(sine * level, 2.0 * cosine * rise)
            result = factor if result is None else result * factor
        assert result is not None
        return result


class WaveFactors(BasisFactors):
    """Sines and cosines: exp(i v·(x − o)), e^{ia} − e^{ib} = 2i sin((a − b)/2) e^{i(a + b)/2}."""

    def __init__(self, basis: Fourier) -> None:
        self.basis, self.functions = basis, len(basis)
        self.count, self.degree = len(basis.frequencies), basis.n_features

    def _phases(self, difference: Array, columns: Columns, some: slice) -> Array:
        V = namespace(difference).asarray(self.basis.frequencies[some][:, list(columns)])
        return product(difference[:, list(columns)] + 0.0, V.T + 0.0)

    def _local(self, X: Array) -> Array:
        origin = self.basis.origin
        return X if origin is None else X - namespace(X).asarray(origin)

    def values(self, X: Array, columns: Columns, some: slice) -> Array:
        return namespace(X).exp(1j * self._phases(self._local(X), columns, some))

    def pair(self, X: Array, B: Array, columns: Columns, some: slice) -> Pair:
        xp = namespace(X)
        half = self._phases(0.5 * (X - B), columns, some)
        middle = self._phases(0.5 * self._local(X) + 0.5 * self._local(B), columns, some)
        wave = xp.exp(1j * middle)
        rise = 2.0 * xp.sin(half)
        return Pair(xp.cos(half) * wave, 1j * (rise * wave), 1.0 + 0.0 * half, abs(rise))

    def parts(self, value: Array) -> list[tuple[int, Array]]:
        return [(0, value.imag), (self.count, value.real)]


KINDS: dict[type[Basis], Callable[[Any], BasisFactors]] = {
    Monomials: PowerFactors,
    Hilbert: SineFactors,
    Fourier: WaveFactors,
}
