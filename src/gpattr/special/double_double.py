"""Arithmetic with twice the digits of float64: sums of two numbers, hi + lo with |lo| ≤ ulp(hi)/2.

Products and sums are made of operations whose rounding errors are themselves numbers and are kept
(Dekker, Knuth), with a relative error of about 1e-31. A product of matrices is one of slices with
so few digits that float64 adds them up without rounding, so that it runs at the speed of
matrix products (Ozaki, Ogita, Oishi and Rump).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gpattr._core.array import Array, product

SPLITTER = 2.0**27 + 1.0
DIGITS = 53
SLICES = 4


@dataclass(frozen=True, eq=False)
class DoubleDouble:
    """An array hi + lo."""

    hi: Array
    lo: Array

    @classmethod
    def of(cls, values: Array) -> Self:
        """Return float64 numbers."""
        return cls(values, np.zeros_like(values))

    def __getitem__(self, places: object) -> DoubleDouble:
        return DoubleDouble(self.hi[places], self.lo[places])

    def __add__(self, other: DoubleDouble) -> DoubleDouble:
        total, error = _two_sum(self.hi, other.hi)
        return _renormalised(total, error + (self.lo + other.lo))

    def __sub__(self, other: DoubleDouble) -> DoubleDouble:
        return self + DoubleDouble(-other.hi, -other.lo)

    def __mul__(self, other: DoubleDouble) -> DoubleDouble:
        value, error = _two_product(self.hi, other.hi)
        return _renormalised(value, error + (self.hi * other.lo + self.lo * other.hi))

    def times(self, other: Array) -> DoubleDouble:
        """Return the product with float64 numbers."""
        value, error = _two_product(self.hi, other)
        return _renormalised(value, error + self.lo * other)

    def sum(self) -> DoubleDouble:
        """Return the sum over the last axis."""
        rest = self
        while (n := rest.hi.shape[-1]) > 1:
            half = n // 2
            pairs = rest[..., :half] + rest[..., half : 2 * half]
            if n % 2:
                last = rest[..., -1:]
                pairs = DoubleDouble(
                    np.concatenate([pairs.hi, last.hi], axis=-1),
                    np.concatenate([pairs.lo, last.lo], axis=-1),
                )
            rest = pairs
        return DoubleDouble(rest.hi.sum(axis=-1), rest.lo.sum(axis=-1))  # one number, or none


class Slices:
    """A matrix V (K, m) as a sum of matrices with few binary digits, largest first.

    Columns are rounded to ``rounding`` of their largest entry, some 80 binary digits.
    """

    def __init__(self, V: Array) -> None:
        digits = (DIGITS - int(np.ceil(np.log2(max(len(V), 2))))) // 2
        self.rounding = 2.0 ** (1 - SLICES * digits)
        self.parts: list[Array] = []
        for _ in range(SLICES):
            _, exponent = np.frexp(np.abs(V).max(axis=0, initial=0.0))
            # Adding and subtracting a number as large as this leaves the leading digits.
            shift = np.ldexp(0.75, exponent + (DIGITS - digits))
            head = (V + shift) - shift
            self.parts.append(head)
            V = V - head

    def gram(self, other: Slices, columns: slice) -> DoubleDouble:
        """Return VᵀW, (b, n), for some of the columns of V and another matrix W (K, n)."""
        total: DoubleDouble | None = None
        # The smallest first, so that they are not lost beside the others.
        for i in reversed(range(SLICES)):
            left = np.ascontiguousarray(self.parts[i][:, columns].T)
            for j in reversed(range(SLICES - i)):
                part = DoubleDouble.of(product(left, other.parts[j]))
                total = part if total is None else total + part
        assert total is not None
        return total


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    value = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return value, ((a1 * b1 - value) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = SPLITTER * a
    head = scaled - (scaled - a)
    return head, a - head


def _renormalised(hi: Array, lo: Array) -> DoubleDouble:
    total = hi + lo
    return DoubleDouble(total, lo - (total - hi))
