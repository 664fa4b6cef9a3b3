"""The choice of eigenfunctions and box that a kernel needs.

A basis of m functions on [−L, L] has frequencies up to πm/2L, and its walls affect functions at a
distance of 2(L − S) from the data, which lie in [−S, S]. So a kernel needs, to a share δ of
its variance,

    L ≥ S + ℓ r/2  with g(r) = δ,      m ≥ (2L/π) q/ℓ  with P(|v| > q) = δ

for v drawn from its spectral density in one dimension with ℓ = 1.

For δ = 1 % this is the advice of Riutort-Mayol et al. (2023), to a few per cent, and it extends to
any kernel of known density.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfc, ndtri, stdtrit

from gpattr._core.array import Array, namespace, product, to_numpy
from gpattr._core.memory import blocks
from gpattr._core.validation import Names
from gpattr.bases import Basis, Combined, Hilbert
from gpattr.bases.spectral import mixing, smoothness
from gpattr.estimators.evidence.hilbert import prior_variances, radial_terms
from gpattr.estimators.evidence.squared_exponentials import Leaf
from gpattr.estimators.hyperparameters import trainable
from gpattr.kernels import Kernel, Radial, RationalQuadratic, SquaredExponential

# Shares of the prior variance that may be missing: the smallest affordable one is chosen.
SHARES = tuple(10.0**-k for k in (6, 5, 4, 3))
ENOUGH = 1e-2  # the share that every design must reach
AFFORDABLE, MOST = 800, 2000  # functions: with no effect on training time, and the maximum
# Half-ranges: with a longer length-scale a function is straight on the data; no box need be larger.
LONGEST = 10.0
SHORTEST = 1e-3  # half-ranges
FARTHEST = 1e8
NARROWEST = 1.2  # a box is larger than the data by at least this factor


def reach(kernel: Radial, share: float) -> float:
    """Return the distance, in ℓ, at which the correlation has fallen to ``share``; at most 10⁸."""
    return _first_zero(lambda r: float(kernel.profile(np.array(r * r))) - share)


def cutoff(kernel: Radial, share: float) -> float:
    """Return the frequency, in 1/ℓ, beyond which this share of the 1-d spectrum lies, up to 10⁸."""
    if isinstance(kernel, SquaredExponential):
        return float(-ndtri(0.5 * share))
    if isinstance(kernel, RationalQuadratic):
        factors = np.maximum(mixing(kernel, (np.arange(2000) + 0.5) / 2000), 1e-100)
        return _first_zero(lambda q: float(erfc(q / (math.sqrt(2.0) * factors)).mean()) - share)
    return float(-stdtrit(2.0 * smoothness(kernel), 0.5 * share))


def _first_zero(f: Callable[[float], float]) -> float:
    if f(FARTHEST) > 0:  # tails heavier than any box
        return FARTHEST
    return float(brentq(f, 0.0, FARTHEST))  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True)
class Design:
    """Numbers of functions and boundary factors of a term of a kernel, one per feature."""

    n_basis: tuple[int, ...]
    boundary: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of functions."""
        return math.prod(self.n_basis)


def design_for(
    leaf: Leaf[Radial],
    extent: Array,
    share: float,
    *,
    slack: float = 1.0,
    boundary: Any = None,
    n_basis: Any = None,
) -> Design:
    """Return the design of a term, to ``share`` of its variance, for data of half-range ``extent``.

    ``extent`` has one entry for each feature of the term. ``slack`` makes room for length-scales
    shorter and longer by that factor. Fixed values are kept: ``boundary`` and ``n_basis``, one for
    each feature.
    """
    kernel = leaf.kernel
    scale = np.broadcast_to(np.asarray(kernel.lengthscale), extent.shape)
    if boundary is None:
        boundary = np.maximum(
            1.0 + 0.5 * reach(kernel, share) * np.minimum(slack * scale / extent, LONGEST),
            NARROWEST,
        )
    if n_basis is None:
        most = 2.0 * boundary * extent / math.pi * cutoff(kernel, share) * slack / scale
        n_basis = np.ceil(most).clip(2, MOST)
    return Design(tuple(int(m) for m in n_basis), tuple(float(c) for c in boundary))


def supported(leaf: Leaf[Radial], design: Design, extent: Array) -> tuple[Array, Array]:
    """Return the shortest and longest length-scales, (d,) each, that a design represents."""
    kernel = leaf.kernel
    factors, numbers = np.array(design.boundary), np.array(design.n_basis)
    shortest = 2.0 * factors * extent / math.pi * cutoff(kernel, ENOUGH) / numbers
    longest = np.minimum(2.0 * (factors - 1.0) / reach(kernel, ENOUGH), LONGEST) * extent
    return shortest, longest


def within(designs: list[Design], most: int) -> list[Design]:
    """Return designs of at most ``most`` functions in all, each reduced by the same factor."""
    while sum(design.size for design in designs) > most:
        designs = [
            replace(design, n_basis=tuple(max(2, int(0.95 * m)) for m in design.n_basis))
            for design in designs
        ]
        if all(max(design.n_basis) <= 2 for design in designs):
            break
    return designs


@dataclass(frozen=True)
class Plan:
    """The range of the data, ``centre`` ± ``extent`` (d,), and the user's choices, if any.

    These are ``n_basis`` and ``boundary``, None where not fixed.
    """

    centre: Array
    extent: Array
    n_basis: Any = None
    boundary: Any = None

    @classmethod
    def of(cls, X: Array, n_basis: Any, boundary: Any, domain: Any) -> Plan:
        """Return the plan for rows X, and all others in the ``domain`` (2, d).

        A feature that does not vary has extent 1.
        """
        low, high = to_numpy(X).min(axis=0), to_numpy(X).max(axis=0)
        if domain is not None:
            low, high = np.minimum(low, domain[0]), np.maximum(high, domain[1])
        extent = 0.5 * (high - low)
        return cls(low + extent, np.where(extent > 0, extent, 1.0), n_basis, boundary)

    def designs(self, leaves: list[Leaf[Radial]], slack: float) -> list[Design]:
        """Return the finest designs that are affordable, with the user's fixed sizes."""
        designs = []
        for share in (*SHARES, ENOUGH):
            designs = [self._design(leaf, share, slack) for leaf in leaves]
            if sum(design.size for design in designs) <= AFFORDABLE:
                break
        return designs if self.n_basis is not None else within(designs, MOST)

    def _design(self, leaf: Leaf[Radial], share: float, slack: float) -> Design:
        columns = self.columns(leaf)
        boundary, number = (
            None if given is None else np.broadcast_to(given, self.extent.shape)[columns]
            for given in (self.boundary, self.n_basis)
        )
        return design_for(
            leaf, self.extent[columns], share, slack=slack, boundary=boundary, n_basis=number
        )

    def columns(self, leaf: Leaf[Radial]) -> list[int]:
        """Return the positions of the features a term sees."""
        return list(range(len(self.centre)) if leaf.columns is None else leaf.columns)

    def limits(self, leaves: list[Leaf[Radial]], designs: list[Design]) -> dict[str, Array]:
        """Return the bounds of length-scales, (2, size), that a basis chosen for them represents.

        A basis that the user fixed sets no limits; the diagnostics show where it is too small.
        """
        result = {}
        for leaf, design in zip(leaves, designs, strict=True):
            extent = self.extent[self.columns(leaf)]
            low, high = supported(leaf, design, extent)
            low = low if self.n_basis is None else SHORTEST * extent
            high = np.maximum(high if self.boundary is None else LONGEST * extent, low)
            if np.ndim(leaf.kernel.lengthscale) == 0:
                low, high = low.max(keepdims=True), np.maximum(high.min(), low.max(keepdims=True))
            result[f"{leaf.prefix}lengthscale"] = np.stack([low, high])
        return result

    def is_bound(self, kernel: Kernel, limits: dict[str, Array]) -> bool:
        """Return whether a length-scale ended at a limit of the basis that another basis lifts."""
        values = trainable(kernel)
        for leaf in radial_terms(kernel):
            name = f"{leaf.prefix}lengthscale"
            low, high = limits[name]
            short = (values[name] < 1.01 * low) & (self.n_basis is None)
            long = (values[name] > 0.99 * high) & (
                high < 0.99 * LONGEST * self.extent[self.columns(leaf)]
            )
            if (short | (long & (self.boundary is None))).any():
                return True
        return False

    def basis(
        self, leaves: list[Leaf[Radial]], designs: list[Design], names: Names | None
    ) -> tuple[Basis, list[Hilbert]]:
        """Return the basis of all terms together, and the basis of each."""
        parts, columns, d = [], [], len(self.centre)
        for leaf, design in zip(leaves, designs, strict=True):
            at = self.columns(leaf)
            half = np.array(design.boundary) * self.extent[at]
            labels = tuple(f"column {i}" if names is None else f"column {names[i]!r}" for i in at)
            parts.append(Hilbert(self.centre[at], half, design.n_basis, self.extent[at], labels))
            columns.append(tuple(at))
        whole = len(parts) == 1 and columns[0] == tuple(range(d))
        return (parts[0] if whole else Combined(tuple(parts), tuple(columns), d)), parts

    def diagnose(self, kernel: Kernel, designs: list[Design], X: Array) -> list[dict[str, Any]]:
        """Return, for each term, the largest relative error of its prior variance at rows X."""
        leaves, at, report = radial_terms(kernel), 0, []
        _, parts = self.basis(leaves, designs, None)
        variances = prior_variances(kernel, parts)[0]
        for leaf, design, part in zip(leaves, designs, parts, strict=True):
            columns = self.columns(leaf)
            extent = self.extent[columns]
            share = variances[at : at + len(part)] / (leaf.factor * leaf.kernel.variance)
            at += len(part)
            worst = 0.0
            for rows in blocks(len(X), 32.0 * len(part), X):
                worst = max(
                    worst,
                    float(
                        abs(
                            product(part(X[rows][:, columns]) ** 2, namespace(X).asarray(share))
                            - 1.0
                        ).max()
                    ),
                )
            wide = np.maximum(design.boundary, design_for(leaf, extent, ENOUGH).boundary)
            need = design_for(leaf, extent, ENOUGH, boundary=wide)
            used = {"n_basis": design.n_basis, "boundary": design.boundary}
            needed = {"n_basis_needed": need.n_basis, "boundary_needed": need.boundary}
            report.append({"features": tuple(columns), "prior_error": worst, **used, **needed})
        return report
