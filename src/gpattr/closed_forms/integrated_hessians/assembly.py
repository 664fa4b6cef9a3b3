"""Covariances of integrated Hessians, assembled from moments of a radial kernel along two paths.

With u = Σₐ cₐ(s, t) Vₐ the difference of two points in length-scales, ψₖ the k-th derivative of the
kernel by ‖u‖²/2, p and q the steps of the paths, and the weights A₁ = −ln s and A₂ = −s ln s,

    Cov[Γᵢⱼ, Γ'ₖₗ] = pᵢpⱼqₖqₗ∫∫A₂A₂ ∂ᵢ∂ⱼ∂ₖ∂ₗ − δₖₗ pᵢpⱼqₖ∫∫A₂A₁ ∂ᵢ∂ⱼ∂ₖ
                     + δᵢⱼ pᵢqₖqₗ∫∫A₁A₂ ∂ᵢ∂ₖ∂ₗ − δᵢⱼδₖₗ pᵢqₖ∫∫A₁A₁ ∂ᵢ∂ₖ

where ∂ᵢ∂ₖ = ψ₂uᵢuₖ + ψ₁δᵢₖ, and so on: one product of derivatives for each way to pair indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpattr._core.array import Array, namespace
from gpattr.operators.pairs import Pairs


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of n pairs of paths; u has k parts, and "cc" stands for the k² products of two.

    The first two letters of a name are the weights along both paths, the number is that of ψ.
    """

    vectors: Array  # V, (n, d, k)
    a22_4: Array  # ∫∫A₂A₂ψ₄ cc cc, (n, k², k²)
    a22_3: Array  # ∫∫A₂A₂ψ₃ cc, (n, k, k)
    a22_2: Array  # ∫∫A₂A₂ψ₂, (n,)
    a21_3: Array  # ∫∫A₂A₁ψ₃ cc c, (n, k², k)
    a21_2: Array  # ∫∫A₂A₁ψ₂ c, (n, k)
    a12_3: Array  # ∫∫A₁A₂ψ₃ cc c, (n, k², k)
    a12_2: Array  # ∫∫A₁A₂ψ₂ c, (n, k)
    a11_2: Array  # ∫∫A₁A₁ψ₂ cc, (n, k, k)
    a11_1: Array  # ∫∫A₁A₁ψ₁, (n,)


@dataclass(frozen=True)
class Layout:
    """Where pairs of features meet: positions in the matrix of all pairs (i, j) × (k, l)."""

    i: list[int]
    j: list[int]
    diagonal: list[int]  # the positions of pairs i = j
    # Positions (rows, columns) of equal features, and the two features that remain.
    meetings: tuple[tuple[list[int], list[int], list[int], list[int]], ...]
    same: list[int]  # how often both features of a pair can be paired with themselves

    @property
    def features(self) -> list[int]:
        """The features of the pairs i = j."""
        return [self.i[place] for place in self.diagonal]


@lru_cache(maxsize=32)
def layout_of(pairs: Pairs) -> Layout:
    """Return the layout of these pairs."""
    i, j = (np.array(side, dtype=int) for side in zip(*pairs, strict=True))
    meetings = []
    for mine, rest in ((i, j), (j, i)):
        for other, remaining in ((i, j), (j, i)):
            rows, columns = np.nonzero(mine[:, None] == other)
            found = (rows, columns, rest[rows], remaining[columns])
            meetings.append(tuple(part.tolist() for part in found))
    return Layout(
        i.tolist(),
        j.tolist(),
        np.flatnonzero(i == j).tolist(),
        tuple(meetings),
        (1 + (i == j)).tolist(),
    )


def assembled(pairs: Pairs, p: Array, q: Array, moments: Moments) -> Array:
    """Return Cov[Γᵢⱼ, Γ'ₖₗ] for the given pairs, (n, Q, Q), of a kernel of variance 1."""
    xp, layout, V = namespace(p), layout_of(pairs), moments.vectors
    i, j, diagonal = layout.i, layout.j, layout.diagonal
    n, count, size = len(p), len(i), V.shape[2]
    F = (V[:, i, :, None] * V[:, j, None, :]).reshape(n, count, size * size)
    result = F @ moments.a22_4 @ xp.swapaxes(F, 1, 2)
    third = (F @ moments.a22_3.reshape(n, -1, 1))[:, :, 0]  # ψ₃uₖuₗ
    if diagonal:
        result[:, diagonal, :] += third[:, None, :]
        result[:, :, diagonal] += third[:, :, None]
        result[:, [[place] for place in diagonal], diagonal] += moments.a22_2[:, None, None]
    outer = V @ moments.a22_3 @ xp.swapaxes(V, 1, 2)  # ψ₃uⱼuₗ, (n, d, d)
    for rows, columns, first, second in layout.meetings:
        result[:, rows, columns] += outer[:, first, second]
    every = xp.arange(count)
    result[:, every, every] += moments.a22_2[:, None] * xp.asarray(layout.same)
    left, right = p[:, i] * p[:, j], q[:, i] * q[:, j]
    result *= left[:, :, None]
    result *= right[:, None, :]
    if not diagonal:
        return result
    features = layout.features
    ours = _third(layout, V, F, moments.a21_3, moments.a21_2)  # (n, Q, diagonal)
    result[:, :, diagonal] -= left[:, :, None] * ours * q[:, None, features]
    theirs = xp.swapaxes(_third(layout, V, F, moments.a12_3, moments.a12_2), 1, 2)
    result[:, diagonal, :] += p[:, features, None] * theirs * right[:, None, :]
    some = V[:, features]
    second = some @ moments.a11_2 @ xp.swapaxes(some, 1, 2)
    place = xp.arange(len(features))
    second[:, place, place] += moments.a11_1[:, None]
    second = p[:, features, None] * second * q[:, None, features]
    result[:, [[at] for at in diagonal], diagonal] -= second
    return result


def _third(layout: Layout, V: Array, F: Array, third: Array, second: Array) -> Array:
    """Return ∂ᵢ∂ⱼ∂ₖ, (n, Q, K), for pairs (i, j) and the features k of pairs (k, k)."""
    xp, features = namespace(V), layout.features
    result = F @ third @ xp.swapaxes(V[:, features], 1, 2)
    along = (V @ second[:, :, None])[:, :, 0]  # ψ₂uᵢ, (n, d)
    result[:, layout.diagonal, :] += along[:, None, features]
    for mine, rest in ((layout.i, layout.j), (layout.j, layout.i)):
        for column, feature in enumerate(features):
            rows = [row for row, own in enumerate(mine) if own == feature]
            result[:, rows, column] += along[:, [rest[row] for row in rows]]
    return result
