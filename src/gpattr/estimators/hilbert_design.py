"""How many eigenfunctions a kernel needs, on how large a box.

A basis of m functions on [−L, L] knows frequencies up to πm/2L, and functions on it feel its walls at a distance of 2(L − S) from
the data, which lie in [−S, S]. So a kernel needs, to a share δ of its variance,

    L ≥ S + ℓ r/2  with g(r) = δ,      m ≥ (2L/π) q/ℓ  with P(|v| > q) = δ for its spectral density in one dimension, ℓ = 1.

For δ = 1 % this is the advice of Riutort-Mayol et al. (2023), to a few per cent, and it extends to any kernel of known density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfc, ndtri, stdtrit

from gpattr._array import Array
from gpattr.bases import Basis, Combined, Hilbert
from gpattr.bases.spectral import SMOOTHNESS, mixing
from gpattr.estimators.squared_exponentials import Leaf
from gpattr.kernels import Radial, RationalQuadratic, SquaredExponential

SHARES = tuple(10.0**-k for k in (6, 5, 4, 3))  # of the prior variance, that may be missing: the smallest that is affordable
ENOUGH = 1e-2  # what a design must reach
AFFORDABLE, MOST = 800, 2000  # functions: what training does not feel, and what it can bear
LONGEST = 10.0  # half-ranges: a function with a longer length-scale is straight on the data, and does not need a larger box
NARROWEST = 1.2  # a box is larger than the data by at least this factor


def reach(kernel: Radial, share: float) -> float:
    """Return the distance, in length-scales, at which the correlation has fallen to ``share``."""
    return float(brentq(lambda r: float(kernel.profile(np.array(r * r))) - share, 0.0, 1e8))  # pyright: ignore[reportArgumentType]


def cutoff(kernel: Radial, share: float) -> float:
    """Return the frequency, in 1/ℓ, beyond which lies this share of the spectrum, in one dimension."""
    if isinstance(kernel, SquaredExponential):
        return float(-ndtri(0.5 * share))
    if isinstance(kernel, RationalQuadratic):
        factors = mixing(kernel, (np.arange(2000) + 0.5) / 2000)
        tail = lambda q: float(erfc(q / (math.sqrt(2.0) * factors)).mean()) - share  # noqa: E731
        return float(brentq(tail, 0.0, 1e8))  # pyright: ignore[reportArgumentType]
    return float(-stdtrit(2.0 * SMOOTHNESS[type(kernel)], 0.5 * share))


@dataclass(frozen=True)
class Design:
    """Numbers of functions and boundary factors of one term of a kernel, for each of its features."""

    n_basis: tuple[int, ...]
    boundary: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of functions."""
        return math.prod(self.n_basis)


def design_for(
    leaf: Leaf, extent: Array, share: float, *, slack: float = 1.0, boundary: Any = None, n_basis: Any = None
) -> Design:
    """Return what a term needs, to ``share`` of its variance, on data of half-range ``extent`` (one per feature it sees).

    ``slack`` makes room for length-scales shorter and longer by that factor. What is fixed beforehand is kept: ``boundary`` and
    ``n_basis``, one for each feature.
    """
    kernel = leaf.kernel
    assert isinstance(kernel, Radial)
    scale = np.broadcast_to(np.asarray(kernel.lengthscale), extent.shape)
    if boundary is None:
        boundary = np.maximum(1.0 + 0.5 * reach(kernel, share) * np.minimum(slack * scale / extent, LONGEST), NARROWEST)
    if n_basis is None:
        most = 2.0 * boundary * extent / math.pi * cutoff(kernel, share) * slack / scale
        n_basis = np.ceil(most).clip(2, MOST)
    return Design(tuple(int(m) for m in n_basis), tuple(float(c) for c in boundary))


def supported(leaf: Leaf, design: Design, extent: Array) -> tuple[Array, Array]:
    """Return the shortest and longest length-scales, (d,) each, that a design represents well enough."""
    kernel = leaf.kernel
    assert isinstance(kernel, Radial)
    factors, numbers = np.array(design.boundary), np.array(design.n_basis)
    shortest = 2.0 * factors * extent / math.pi * cutoff(kernel, ENOUGH) / numbers
    longest = np.minimum(2.0 * (factors - 1.0) / reach(kernel, ENOUGH), LONGEST) * extent
    return shortest, longest


def within(designs: list[Design], most: int) -> list[Design]:
    """Return designs with no more than ``most`` functions in all, each number of functions reduced by the same factor."""
    while sum(design.size for design in designs) > most:
        designs = [replace(design, n_basis=tuple(max(2, int(0.95 * m)) for m in design.n_basis)) for design in designs]
        if all(max(design.n_basis) <= 2 for design in designs):
            break
    return designs


def basis_of(
    leaves: list[Leaf], designs: list[Design], centre: Array, extent: Array, names: tuple[str, ...] | None
) -> tuple[Basis, list[Hilbert]]:
    """Return the basis of all terms together, and that of each."""
    d = len(centre)
    parts, columns = [], []
    for leaf, design in zip(leaves, designs, strict=True):
        seen = columns_of(leaf, d)
        at = list(seen)
        half = np.array(design.boundary) * extent[at]
        labels = None if names is None else tuple(names[i] for i in seen)
        parts.append(Hilbert(centre[at], half, design.n_basis, extent[at], labels))
        columns.append(seen)
    whole = len(parts) == 1 and columns[0] == tuple(range(d))
    return (parts[0] if whole else Combined(tuple(parts), tuple(columns), d)), parts


def columns_of(leaf: Leaf, d: int) -> tuple[int, ...]:
    """Return the positions of the features a term sees."""
    return tuple(range(d)) if leaf.columns is None else tuple(leaf.columns)
